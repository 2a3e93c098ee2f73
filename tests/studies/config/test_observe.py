from pathlib import Path

import pytest

from studies.crane_log import EXAMPLE
from veridyn.errors import FileError
from veridyn.files.yaml_reader import plain_yaml
from veridyn.studies.config.study import load_study, parse_study, settings_class
from veridyn.studies.config.text import study_text

SHORTEST = """
veridyn: 1
kind: observe
model: {file: crane.yaml}
log: {file: log.csv, columns: {travel: 'trolley [mm]'}}
"""


def read(text: str):
    return parse_study(plain_yaml(text, "s.yaml"), "observe")


def test_few_keys_are_enough() -> None:
    study = read(SHORTEST)
    assert (study.name, study.filter.name, study.filter.unknown) == ("observation", "ekf", None)
    assert study.process_noise.tuned and not study.virtual and study.accept.nis is None
    assert (study.log.columns["travel"].column, study.log.columns["travel"].unit) == ("trolley", "mm")
    assert not read(SHORTEST + "process_noise: {force: {motor: 400}}").process_noise.tuned
    assert read(SHORTEST + "process_noise: {start: radians(5)}").process_noise.start == pytest.approx(0.0872665)


@pytest.mark.parametrize("comments", [False, True])
def test_the_text_with_every_default_is_the_same_study(comments: bool) -> None:
    place = "{kind: accelerometer, on: {body: rope, at: [1, 0], axis: [0, 1]}}"
    pin = "{kind: reaction, on: [rope, L]}"
    for text in (
        EXAMPLE.read_text(encoding="utf-8"),
        SHORTEST + f"virtual: {{imu: {place}, pin: {pin}}}\nprocess_noise: {{force: {{motor: 4}}}}\n",
    ):
        study = read(text)
        assert read(study_text(study, comments)) == study


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("filter: {nam: ekf}", r"filter \(line 6\): there is no key 'nam' here"),
        ("filter: {name: kalman}", r"filter.name \(line 6\).*\n.*'error_ekf_force'"),
        ("filter: {gate: 1.5}", "less than 1"),
        ("filter: {frozen_after: 0}", "greater than or equal to 1"),
        ("process_noise: {force: much}", r"process_noise.force \(line 6\)"),
        ("start: {rate: {x: 1}}", "no key 'rate' here"),
        ("virtual: {a: {kind: smell, on: L}}", r"virtual.a.kind \(line 6\)"),
        ("virtual: {a: {kind: position}}", r"virtual.a \(line 6\): the key 'on' is missing"),
        ("accept: {nis: [1.2, 0.8]}", "the lower one first"),
        ("accept: {share_white: 80}", "less than or equal to 1"),
        ("settle: -1", "greater than or equal to 0"),
        ("senors: []", "no key 'senors' here"),
    ],
)
def test_faults_are_told_with_their_line(more: str, words: str) -> None:
    with pytest.raises(FileError, match=words):
        read(SHORTEST + more)


def test_every_fault_is_told_at_once(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("veridyn: 1\nkind: observe\nlog: {columns: {}}\nsettle: soon\n", encoding="utf-8")
    with pytest.raises(FileError) as found:
        load_study(file, "observe")
    text = str(found.value)
    assert "the key 'model' is missing" in text and "the key 'file' is missing" in text and "settle (line 4)" in text


def test_every_key_has_words() -> None:
    for name, part in settings_class("observe").model_json_schema()["$defs"].items():
        for key, value in part["properties"].items():
            assert value.get("description"), f"{name}.{key}"
