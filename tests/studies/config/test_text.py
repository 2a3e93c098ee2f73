"""What a message shows as an example is taken by the key that it stands for, in every section of every study file.

Old words in study files are refused by line, with the new ones.
"""

from __future__ import annotations

import importlib
import pkgutil

import pytest
from pydantic import TypeAdapter

import veridyn.studies.config as config
from studies.bench_robot import STUDY
from veridyn.errors import FileError
from veridyn.files.yaml_reader import plain_yaml
from veridyn.studies.config.study import StudyFile, StudySection, parse_study
from veridyn.studies.config.text import commented, example_of, example_of_field, flow, study_text, words_of

RICH = STUDY.replace(
    "{file: model.yaml}", "{file: '${A}/m 1.yaml', elements: [{kind: damper}, {kind: spring, on: {q1: 1, q2: -1}}]}"
).replace("[training.csv]", "[{file: a.csv, share: [0, 0.5], drop: {q1: [[0.5, 1]]}}, {files: {x: y.txt}}]")


@pytest.mark.parametrize("text", [STUDY, RICH])
@pytest.mark.parametrize("comments", [True, False])
def test_what_is_written_reads_back_as_the_same_study(text: str, comments: bool) -> None:
    study = parse_study(plain_yaml(text))
    written = study_text(study, comments)
    again = parse_study(plain_yaml(written))
    assert again == study
    assert study_text(again, comments) == written


def test_every_default_is_written_and_told_about() -> None:
    study = parse_study(plain_yaml(STUDY))
    written = study_text(study, comments=True)
    assert "  order: 4\n" in written
    assert "# Cut-off of the zero-phase low-pass of positions, Hz;" in written
    assert "#" not in study_text(study)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ("true", '"true"'),
        ("3", '"3"'),
        ("a: b", '"a: b"'),
        ("q [rad]", '"q [rad]"'),
        (None, "null"),
        (2.0, "2.0"),
        ({"a": [1, "x y"]}, "{a: [1, x y]}"),
    ],
)
def test_values_on_one_line(value: object, text: str) -> None:
    assert flow(value) == text
    assert plain_yaml(f"v: {text}\n").values["v"] == value


def test_long_comments_are_wrapped() -> None:
    lines = commented("word " * 60)
    assert len(lines) > 1 and all(line.startswith("# ") and len(line) <= 110 for line in lines)


def sections() -> dict[str, type[StudySection]]:
    """Name → section, of those that a module of the folder has: bases that are made on the way, and those of tests, are none."""
    modules = [importlib.import_module(f"{config.__name__}.{m.name}") for m in pkgutil.iter_modules(config.__path__)]
    kinds = [kind for m in modules for kind in vars(m).values() if isinstance(kind, type)]
    return {kind.__name__: kind for kind in kinds if issubclass(kind, StudySection)}


SECTIONS = [section for _, section in sorted(sections().items())]


@pytest.mark.parametrize("section", SECTIONS)
def test_examples_are_taken_and_most_keys_have_one(section: type[StudySection]) -> None:
    without = []
    for name, field in section.model_fields.items():
        shown = example_of_field(field)
        without += [] if shown else [name]
        if shown:
            value = plain_yaml(f"{name}: {shown}", "example").values[name]
            TypeAdapter(field.annotation).validate_python(value)
    assert len(without) <= 2, without  # a few values are too particular to be made from a type
    if not issubclass(section, StudyFile) and "…" not in example_of(section):
        section.model_validate(plain_yaml(f"it: {example_of(section)}", "example").values["it"])


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("inertia", "the word 'inertia'"),
        ("two words", "the text 'two words'"),
        (3, "the number 3"),
        (True, "true"),
        (None, "nothing"),
        ([], "an empty list"),
        ([1], "a list"),
        ({"a": 1}, "keys and values"),
        ("x" * 99, "the word '" + "x" * 39 + "…'"),
    ],
)
def test_values_in_words(value: object, said: str) -> None:
    assert words_of(value) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "kind: observe\nmodel: {file: a.yaml}\nunsure: {}\n",
            r"line 3\)?: there is no key 'unsure' here.*'process_noise'",
        ),
        ("kind: identify\nmodel: {file: a.yaml, asked: [K1]}\n", r"model \(line 2\).*'asked' here.*'estimated'"),
        ("kind: simulate\nmechanism: crane.yaml\n", r"line 2\)?: there is no key 'mechanism' here.*'model: {file: …}'"),
    ],
)
def test_old_words_are_refused_with_the_new_ones(text: str, said: str) -> None:
    with pytest.raises(FileError, match=f"(?s){said}"):
        parse_study(plain_yaml(text, "s.yaml"))
