from pathlib import Path

import pytest
from docs.study_keys import reference

from studies.crane_log import EXAMPLE
from veridyn.errors import FileError
from veridyn.files.yaml_reader import plain_yaml
from veridyn.studies.config.observe import CarIdentifyFile, CarObserveFile
from veridyn.studies.config.study import FORMULATED, json_schema, load_study, parse_study, settings_class
from veridyn.studies.config.text import study_text

SHORTEST = """
veridyn: 1
kind: observe
model: {file: crane.yaml}
log: {file: log.csv, columns: {travel: 'trolley [mm]'}}
"""
STUDIES = Path(__file__).parents[3] / "examples" / "studies"
KINDS = {
    "ferrari": CarObserveFile,
    "indy": CarObserveFile,
    "rav4": CarIdentifyFile,
    "formula": CarIdentifyFile,
}


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


@pytest.mark.parametrize("name", KINDS)
def test_the_examples_are_read_and_written_back(name: str) -> None:
    study = parse_study(plain_yaml((STUDIES / f"{name}.yaml").read_text(encoding="utf-8"), name))
    assert isinstance(study, KINDS[name])
    assert parse_study(plain_yaml(study_text(study, comments=True), name)) == study


def test_words_about_every_key() -> None:
    for kind in FORMULATED["single_track"]:
        schema = settings_class(kind, formulation="single_track").model_json_schema()
        for part in (schema, *schema["$defs"].values()):
            missing = [
                key for key, value in part["properties"].items() if not (value.get("description") or "$ref" in value)
            ]
            assert missing == []
    assert "## `kind: observe` of a car" in reference()
    (either,) = [part for part in json_schema()["oneOf"] if part["properties"]["kind"]["const"] == "identify"]
    assert len(either["oneOf"]) == 6  # of a machine, a car, a payload, a fleet, flexible joints, drives


def test_a_log_is_one_file_or_several() -> None:
    text = (STUDIES / "formula.yaml").read_text(encoding="utf-8")
    with pytest.raises(FileError, match="either file or files"):
        parse_study(plain_yaml(text.replace("  file: ", "  files: {a: x.csv}\n  file: "), "formula.yaml"))


def test_a_study_with_its_car_inside_is_refused() -> None:
    text = (STUDIES / "formula.yaml").read_text(encoding="utf-8")
    old = text.replace("model: {file: formula_model.yaml, formulation: single_track}", "vehicle: {mass: 250}")
    with pytest.raises(FileError, match=r"stands in a model file now(.|\n)*Write it in a file of its own"):
        parse_study(plain_yaml(old, "formula.yaml"))


def test_the_model_file_makes_a_study_one_of_a_car(tmp_path: Path) -> None:
    text = (STUDIES / "formula.yaml").read_text(encoding="utf-8").replace(", formulation: single_track", "")
    (tmp_path / "s.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "formula_model.yaml").write_text((STUDIES / "formula_model.yaml").read_text(encoding="utf-8"), "utf-8")
    assert isinstance(load_study(tmp_path / "s.yaml").study, CarIdentifyFile)
