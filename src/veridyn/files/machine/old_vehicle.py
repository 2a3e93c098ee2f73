"""Vehicle files of the older format, and the section ``vehicle`` of older study files, as cars of today's model files.

    vehicle: {name: small, mass: 900, front_stiffness: {value: 15, sigma: 5}}
    →  name: small
       formulation: single_track
       car: {mass: 900, front_stiffness: {value: 15, sigma: 5}}

Bounds without a sigma belonged to a known value, which ``sigma: 0`` says today.
"""

from __future__ import annotations

from ruamel.yaml.nodes import MappingNode, Node, ScalarNode

from veridyn.errors import Fault, FileError
from veridyn.files.machine.car import FORMULATION, parse_car
from veridyn.files.machine.keys import FORMAT
from veridyn.files.yaml_nodes import compose
from veridyn.model.car import SECTION
from veridyn.model.machine import Machine

OLD_SECTION = "vehicle"
INTEGER, TEXT = "tag:yaml.org,2002:int", "tag:yaml.org,2002:str"


def has_vehicle(text: str, source: str) -> bool:
    """Whether a file has the section ``vehicle``."""
    return OLD_SECTION in _keys(compose(text, source))


def parse_vehicle(text: str, source: str) -> Machine:
    """The car of a section ``vehicle``, with its faults by the lines of that file."""
    keys = _keys(compose(text, source))
    old = keys[OLD_SECTION]
    if not isinstance(old, MappingNode):
        found = f"vehicle: {old.value}" if isinstance(old, ScalarNode) else "something else"
        hint = "Convert the file that it names."
        raise FileError(
            Fault("this study names a vehicle file.", expected="keys and values", found=found, hint=hint), source
        )
    own = _keys(old)
    name = own.get("name", keys.get("name"))
    entries = [(key, _prior(value)) for key, value in old.value if key.value != "name"]
    top = {
        "veridyn": _scalar(old, INTEGER, f"{FORMAT}"),
        **({"name": name} if name is not None else {}),
        "formulation": _scalar(old, TEXT, FORMULATION),
        SECTION: MappingNode(old.tag, entries, old.start_mark, old.end_mark),
    }
    root = [(_scalar(old, TEXT, key), value) for key, value in top.items()]
    return parse_car(MappingNode(old.tag, root, old.start_mark, old.end_mark), source)


def _prior(value: Node) -> Node:
    """A prior as it is; bounds of a known value get sigma: 0."""
    if not isinstance(value, MappingNode) or "sigma" in _keys(value):
        return value
    zero = (_scalar(value, TEXT, "sigma"), _scalar(value, INTEGER, "0"))
    return MappingNode(value.tag, [*value.value, zero], value.start_mark, value.end_mark)


def _keys(node: MappingNode) -> dict[str, Node]:
    return {key.value: value for key, value in node.value if isinstance(key, ScalarNode)}


def _scalar(beside: Node, tag: str, value: str) -> ScalarNode:
    return ScalarNode(tag, value, beside.start_mark, beside.end_mark)
