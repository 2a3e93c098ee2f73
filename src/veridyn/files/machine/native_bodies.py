"""One entry of ``bodies`` in a model file: a body, its joint, its placement and its inertia."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode

from veridyn.errors import part_at, within
from veridyn.files.machine.quarter_turns import ROUNDED, snap_quarter_turns
from veridyn.files.yaml_nodes import line_of, name_in
from veridyn.files.yaml_reader import Reader
from veridyn.model.body import SIGMA, Body, BodyJoint
from veridyn.model.names import GROUND
from veridyn.spatial.inertia import INERTIAL, from_centre
from veridyn.spatial.rotations import rpy
from veridyn.spatial.transforms import MDH, Placement, rotation_to_axis

Array = NDArray[np.float64]

KEYS = (
    *("name", "antecedent", "joint", "sigma", "actuated", "mu", "mdh", "placement"),
    *("coordinate", "ratio", "virtual", "label", "inertia"),
)
ANGLES_AND_LENGTHS = ("gamma", "b", "alpha", "d", "theta", "r")
ANGLES = ("gamma", "alpha", "theta")
ROTATIONS = ("rotation", "rpy", "axis")
CENTRAL = ("mass", "centre", "about_centre")


def read_body(read: Reader, node: Node, k: int, free: bool) -> tuple[Body, Array | None] | None:
    """The k-th body and its ten inertial parameters where given; None where the entry is no body at all."""
    name = name_in(node)
    where = f"body number {k}" if name is None else part_at("body", name)
    at = read.mapping(node, where, KEYS, required=("name",))
    if not isinstance(node, MappingNode):
        return None
    if name is None or "name" not in at or read.text(at["name"], where, "name") is None:
        name = f"number {k}"
    body = carried_body(read, node, at, name, where, free)
    return body, read_inertia(read, at["inertia"], where) if "inertia" in at else None


def carried_body(read: Reader, node: Node, at: Mapping[str, Node], name: str, where: str, free: bool) -> Body:
    """A body and the joint that carries it, from the keys of its entry; `free`, one without an antecedent floats."""
    only_one(read, at, where, ("actuated", "mu"))
    mu = "actuated" if "actuated" in at else "mu"
    antecedent = _antecedent(read, at, where)
    return Body(
        name=name,
        antecedent=antecedent,
        joint=_joint(read, node, at, where, floats=free and antecedent is None),
        placement=_placement(read, at, where),
        actuated=read.truth(at[mu], where, mu, True) if mu in at else True,
        real=not (read.truth(at["virtual"], where, "virtual", False) if "virtual" in at else False),
        coordinate=read.optional_text(at, where, "coordinate"),
        ratio=read.number(at["ratio"], where, "ratio", 1.0) if "ratio" in at else 1.0,
        label=read.optional_text(at, where, "label"),
    )


def only_one(read: Reader, at: Mapping[str, Node], where: str, keys: Sequence[str]) -> None:
    """A fault where two keys that mean the same are given."""
    given = [key for key in keys if key in at]
    if len(given) > 1:
        read.fault(at[given[1]], f"'{given[0]}' and '{given[1]}' say the same thing.", where, hint="Drop one.")


def _antecedent(read: Reader, at: Mapping[str, Node], where: str) -> str | None:
    if "antecedent" not in at:
        return None
    node = at["antecedent"]
    if isinstance(node, ScalarNode) and str(node.tag).endswith(":int") and node.value == "0":
        return GROUND  # the ground of the tables of the literature; a body called 0 is written "0"
    return read.text(node, where, "antecedent") or GROUND


def _joint(read: Reader, node: Node, at: Mapping[str, Node], where: str, floats: bool) -> BodyJoint:
    only_one(read, at, where, ("joint", "sigma"))
    kind: str | None = "turning"
    if "joint" in at:
        kind = read.choice(at["joint"], where, "kind of joint", tuple(SIGMA))
    elif "sigma" in at:
        number = read.choice(at["sigma"], where, "σ of a joint", ("0", "1", "2"))
        kind = next((word for word, sigma in SIGMA.items() if str(sigma) == number), None)
    elif floats:
        kind = "fixed"  # the root of a free tree has no joint to speak of
    else:
        read.fault(node, "the key 'joint' is missing.", where, expected="turning, sliding or fixed")
    return cast(BodyJoint, kind or "turning")


def _placement(read: Reader, at: Mapping[str, Node], where: str) -> MDH | Placement:
    only_one(read, at, where, ("mdh", "placement"))
    if "placement" not in at:
        given = read.mapping(at["mdh"], within(where, "mdh"), ANGLES_AND_LENGTHS) if "mdh" in at else {}
        return read_mdh(read, given, where)
    return placed(read, read.mapping(at["placement"], within(where, "placement"), ("position", *ROTATIONS)), where)


def read_mdh(read: Reader, given: Mapping[str, Node], where: str) -> MDH:
    """Modified Denavit-Hartenberg numbers from their keys; rounded quarter turns are made exact, and noted."""
    table = {key: read.number(value, where, key, 0.0) for key, value in given.items()}
    angles = {key: table[key] for key in ANGLES if key in table}
    return MDH(
        **table | dict(zip(angles, _exact(read, list(given.values()), where, list(angles.values())), strict=True))
    )


def _exact(read: Reader, nodes: Sequence[Node], where: str, angles: Sequence[float]) -> list[float]:
    turns, changed = snap_quarter_turns(angles)
    if changed:
        read.notes.add(ROUNDED, where=where, found=changed, line=line_of(nodes[0]))
    return turns


def placed(read: Reader, given: Mapping[str, Node], where: str) -> Placement:
    """A frame from the keys `position` and one of :data:`ROTATIONS`, each where given."""
    only_one(read, given, where, ROTATIONS)
    position, rotation = [0.0, 0.0, 0.0], np.eye(3)
    if "position" in given:
        position = read.numbers(given["position"], where, "position", 3, 0.0)
    if "rotation" in given:
        rows = read.matrix(given["rotation"], where, "rotation", (3, 3))
        rotation = np.eye(3) if rows is None else np.array(rows)
    elif "rpy" in given:
        rotation = rpy(*_exact(read, [given["rpy"]], where, read.numbers(given["rpy"], where, "rpy", 3, 0.0)))
    elif "axis" in given:
        axis = np.array(read.numbers(given["axis"], where, "axis", 3, 1.0))
        if np.any(axis != 0.0):
            rotation = rotation_to_axis(axis / np.abs(axis).max())
        else:
            read.fault(given["axis"], "an axis of length zero has no direction.", where)
    return Placement(rotation, position)


def read_inertia(read: Reader, node: Node, where: str) -> Array:
    """Ten numbers about the frame's origin, given so or by mass, centre and about_centre."""
    inside = within(where, "inertia")
    keys = (
        {key.value for key, _ in node.value if isinstance(key, ScalarNode)} if isinstance(node, MappingNode) else set()
    )
    if not keys & set(CENTRAL):
        at = read.mapping(node, inside, (*INERTIAL, *CENTRAL))
        return np.array([read.number(at[s], where, s, unknown=True) if s in at else 0.0 for s in INERTIAL])
    if mixed := [symbol for symbol in INERTIAL if symbol in keys]:
        what = f"{mixed[0]} is about the frame's origin, mass, centre and about_centre are not."
        read.fault(node, what, inside, hint="Give the one or the other.")
        return np.full(10, np.nan)
    at = read.mapping(node, inside, CENTRAL, required=("mass",))
    mass = read.number(at["mass"], where, "mass") if "mass" in at else np.nan
    centre = read.numbers(at["centre"], where, "centre", 3) if "centre" in at else [0.0] * 3
    about = [0.0] * 6
    if isinstance(given := at.get("about_centre"), MappingNode):
        six = read.mapping(given, f"{inside}, about_centre", INERTIAL[:6])
        about = [read.number(six[s], where, s) if s in six else 0.0 for s in INERTIAL[:6]]
    elif given is not None:
        about = read.numbers(given, where, "about_centre", 6)
    with np.errstate(over="ignore", invalid="ignore"):
        return from_centre(mass, centre, about)
