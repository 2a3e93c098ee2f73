"""Old words in study files: read as the new ones, with one warning, and faults keep their lines."""

import pytest

from veridyn.errors import DataWarning, FileError
from veridyn.files.yaml_plain import plain_yaml
from veridyn.studies.config.renamed import modern

OBSERVE = """kind: observe
mechanism: crane.yaml
unsure:
  force: {motor: 4}
"""


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
