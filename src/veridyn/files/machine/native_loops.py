"""``loops`` and ``assembly`` in a model file: joints at which the machine was cut open, and where it stands closed."""

from __future__ import annotations

from ruamel.yaml.nodes import Node

from veridyn.errors import part_at
from veridyn.files.machine.native_bodies import ROTATIONS, placed
from veridyn.files.yaml_nodes import name_in
from veridyn.files.yaml_reader import Reader
from veridyn.mechanics.tree.loop import CUTS
from veridyn.model.assembly import Assembly, Attachment
from veridyn.model.body import Loop
from veridyn.model.names import GROUND

KEYS = ("name", "joint", "first", "second", "length")
END = ("body", "position", *ROTATIONS)


def read_loop(read: Reader, node: Node, k: int) -> Loop | None:
    """The k-th cut joint; None where it cannot be read."""
    name = name_in(node)
    where = f"loop number {k}" if name is None else part_at("loop", name)
    at = read.mapping(node, where, KEYS, required=("name", "joint", "first", "second"))
    joint = read.choice(at["joint"], where, "kind of cut joint", tuple(CUTS)) if "joint" in at else None
    first, second = (_end(read, at[key], where) if key in at else None for key in ("first", "second"))
    length = read.number(at["length"], where, "length", 0.0) if "length" in at else 0.0
    if joint is None or first is None or second is None or name is None:
        return None
    return Loop(name, joint, first, second, length)


def read_assembly(read: Reader, node: Node) -> Assembly:
    """Where the machine is put together."""
    at = read.mapping(node, "assembly", ("hold", "guess"))
    found: dict[str, dict[str, float]] = {"hold": {}, "guess": {}}
    for key, values in found.items():
        if key in at:
            for name, _, value in read.items(at[key], f"assembly, {key}"):
                values[name] = read.number(value, f"assembly, {key}", name, 0.0)
    return Assembly(found["hold"], found["guess"])


def _end(read: Reader, node: Node, where: str) -> Attachment | None:
    given = read.mapping(node, where, END, required=("body",))
    body = read.text(given["body"], where, "body") if "body" in given else None
    place = placed(read, {key: value for key, value in given.items() if key != "body"}, where)
    return None if body is None else Attachment(GROUND if body == "0" else body, place)
