"""What a message shows as an example is taken by the key that it stands for, in every section of every study file.

Old words in study files: read as the new ones, with one warning, and faults keep their lines.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import pytest
from pydantic import TypeAdapter

import veridyn.studies.config as config
from veridyn.errors import DataWarning, FileError
from veridyn.files.yaml_reader import plain_yaml
from veridyn.studies.config.key_messages import example_of, example_of_field, modern, words_of
from veridyn.studies.config.study import StudyFile, StudySection

OBSERVE = """kind: observe
mechanism: crane.yaml
unsure:
  force: {motor: 4}
"""


def sections(kind: type[StudySection] = StudySection) -> Iterator[type[StudySection]]:
    for own in kind.__subclasses__():
        yield own
        yield from sections(own)


for module in pkgutil.iter_modules(config.__path__):
    importlib.import_module(f"{config.__name__}.{module.name}")


SECTIONS = sorted({s for s in sections() if s.__module__.startswith(config.__name__)}, key=lambda s: s.__name__)


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


def test_new_words_pass_without_a_warning() -> None:
    yaml = plain_yaml("kind: identify\nmodel: {file: a.yaml, estimated: [K1]}\nprocess_noise: {}\n")
    assert modern(yaml) is yaml


def test_one_warning_names_every_new_word() -> None:
    words = (
        r"s.yaml \(line 3\): 'unsure' is 'process_noise' and 'mechanism: crane.yaml' is 'model: {file: crane.yaml}' now"
    )
    with pytest.warns(DataWarning, match=words) as found:
        made = modern(plain_yaml(OBSERVE, "s.yaml"))
    assert len(found) == 1
    assert made.values == {
        "kind": "observe",
        "model": {"file": "crane.yaml", "formulation": "natural"},
        "process_noise": {"force": {"motor": 4}},
    }
    assert made.line(("process_noise", "force", "motor")) == 4 and made.line(("model", "file")) == 2


def test_estimated_parameters() -> None:
    with pytest.warns(DataWarning, match="'asked' is 'estimated' now; the old word is still read"):
        made = modern(plain_yaml("kind: identify\nmodel:\n  file: a.yaml\n  asked: [K1]\n"))
    assert made.values["model"] == {"file": "a.yaml", "estimated": ["K1"]} and made.line(("model", "estimated", 0)) == 4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "kind: observe\nunsure: {}\nprocess_noise: {}\n",
            r"unsure \(line 2\): 'unsure' is the old word for 'process_noise'",
        ),
        ("kind: identify\nmodel: {asked: [a], estimated: [b]}\n", r"model.asked \(line 2\).*both are given"),
        ("kind: simulate\nmodel: {file: a}\nmechanism: b\n", r"mechanism \(line 3\).*'model', and both"),
    ],
)
def test_both_words_at_once_are_refused(text: str, said: str) -> None:
    with pytest.raises(FileError, match=said):
        modern(plain_yaml(text))


def test_mechanism_is_an_unknown_key_elsewhere() -> None:
    yaml = plain_yaml("kind: identify\nmechanism: crane.yaml\n")
    assert modern(yaml) is yaml
