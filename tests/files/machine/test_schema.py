"""The schema of model files against files that exist and texts that are written, by a validator that is not ours."""

from pathlib import Path

import jsonschema
import pytest
from ruamel.yaml import YAML

import veridyn
from strangers import graph_machines, machine_files
from veridyn.files.access import shipped_files
from veridyn.files.machine.load import load_model, parse_machine
from veridyn.files.machine.schema import model_schema
from veridyn.files.machine.write import model_text

PACKAGE = Path(veridyn.__file__).parent
MODELS = [file for file in shipped_files().values() if file.suffix == ".yaml"]
FILES = {name: text for name, text in vars(machine_files).items() if name.isupper() and isinstance(text, str)}
CHECK = jsonschema.Draft202012Validator(model_schema())


def faults(text: str) -> list[str]:
    return [e.message for e in CHECK.iter_errors(YAML(typ="safe").load(text))]


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(model_schema())


@pytest.mark.parametrize("file", MODELS, ids=lambda m: m.stem)
def test_every_model_of_this_package_obeys_it(file: Path) -> None:
    assert faults(file.read_text(encoding="utf-8")) == []
    assert faults(model_text(load_model(file))) == []


@pytest.mark.parametrize("name", FILES)
def test_every_written_mechanism_obeys_it(name: str) -> None:
    assert faults(model_text(parse_machine(FILES[name], name))) == []


@pytest.mark.parametrize("name", ["slider_crank", "rssr", "seven_joint_arm"])
def test_every_written_graph_obeys_it(name: str) -> None:
    assert faults(model_text(getattr(graph_machines, name)())) == []


@pytest.mark.parametrize(
    "change",
    [
        {"bodis": []},
        {"base": "floating"},
        {"gravity": [0]},
        {"veridyn": 3},
        {"bodies": [{"joint": "turning"}]},
        {"bodies": [{"name": 1, "joint": "hinge"}]},
        {"bodies": [{"name": 1, "joint": "turning", "capsules": [{"radius": 1}]}]},
        {"bodies": [{"name": 1, "joint": "turning", "capsules": [{"start": [0, 0], "radius": 1}]}]},
        {"elements": [{"kind": "dampr", "on": "q1"}]},
        {"elements": [{"kind": "damper"}]},
        {"joints": [{"name": "a", "a": "b", "b": "c", "cut": "maybe"}]},
        {"loads": [{"name": "a", "kind": "push", "on": "q1"}]},
        {"sensors": {"a": {"kind": "coordinate", "on": "q1"}}},
        {"formulation": "graph"},
    ],
    ids=str,
)
def test_what_the_reader_refuses_it_refuses(change: dict) -> None:
    good = {"veridyn": 2, "bodies": [{"name": 1, "joint": "turning"}]}
    assert not list(CHECK.iter_errors(good))
    assert list(CHECK.iter_errors(good | change))
