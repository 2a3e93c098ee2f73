"""The schema of model files against files that exist, by a validator that is not ours."""

from pathlib import Path

import jsonschema
import pytest
from ruamel.yaml import YAML

import veridyn
from veridyn.files.native_schema import model_schema

PACKAGE = Path(veridyn.__file__).parent
MODELS = [*PACKAGE.glob("machines/*.yaml"), *(Path(__file__).parents[2] / "examples").glob("studies/*_model.yaml")]
MODELS = [
    m for m in MODELS if "bodies:" in m.read_text(encoding="utf-8") and "points:" not in m.read_text(encoding="utf-8")
]
CHECK = jsonschema.Draft202012Validator(model_schema())


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(model_schema())


@pytest.mark.parametrize("file", MODELS, ids=lambda m: m.stem)
def test_every_model_of_this_package_obeys_it(file: Path) -> None:
    assert [e.message for e in CHECK.iter_errors(YAML(typ="safe").load(file))] == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"bodis": []}, "bodis"),
        ({"base": "floating"}, "floating"),
        ({"gravity": [0, -9.81]}, "too short"),
        ({"bodies": [{"joint": "turning"}]}, "'name' is a required property"),
        ({"bodies": [{"name": 1, "joint": "hinge"}]}, "hinge"),
        ({"elements": [{"kind": "dampr", "on": "q1"}]}, "dampr"),
    ],
)
def test_what_the_reader_refuses_it_refuses(change: dict, said: str) -> None:
    good = {"veridyn": 1, "bodies": [{"name": 1, "joint": "turning"}]}
    assert not list(CHECK.iter_errors(good))
    assert any(said in e.message for e in CHECK.iter_errors(good | change))
