"""``bodies`` and ``joints`` in a model file: bodies with frames, and joints between two frames, or within the body that they carry.

``flexible`` of a joint is one line for a spring, a damper and the motor side, which are ordinary bodies and elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from veridyn.arrays import Array
from veridyn.errors import At, within
from veridyn.files.expressions import ROUNDED_QUARTER_TURN, snap_quarter_turns
from veridyn.files.machine.write_parts import (
    ANGLES,
    ANGLES_AND_LENGTHS,
    BODY,
    CAPSULE,
    CENTRAL,
    END,
    FLEXIBLE,
    FRAME,
    JOINT,
    ROTATIONS,
    SHORT,
)
from veridyn.files.yaml_nodes import line_of
from veridyn.files.yaml_reader import Reader
from veridyn.model.elements.element import Element
from veridyn.model.flexible import (
    FLEXIBLE_KINDS,
    Flexible,
    flexible_elements,
    flexible_joints,
    motor_body,
    motor_joint,
    motor_side,
)
from veridyn.model.graph import SIGMA, Body, BodyJoint
from veridyn.model.link import CUT_CHOICES, KINDS, Cut, End, Joint, JointKind, Link, LinkCapsule
from veridyn.model.machine import Machine
from veridyn.model.place import GROUND, Attachment
from veridyn.spatial.inertia import INERTIAL, from_centre
from veridyn.spatial.rotations import MDH, Placement, rotation_to_axis, rpy

UNKNOWN = ("stiffness", "damping", "inertia")  # may be so; others are constants inside laws


def read_flexible(read: Reader, at: Mapping[str, Node], where: str, kind: str) -> Flexible | None:
    """The key ``flexible`` of a joint of this kind, from the keys of its entry; None where it is rigid."""
    if "flexible" not in at:
        return None
    node, here = at["flexible"], f"{where}, flexible"
    if kind not in FLEXIBLE_KINDS:
        expected = " or ".join(FLEXIBLE_KINDS)
        read.fault(node, "a joint of this kind cannot be flexible.", where, f"a {expected} joint", kind)
        return None
    for key in ("actuated", "mu"):
        told = at.get(key)
        if isinstance(told, ScalarNode) and str(told.value).lower() in ("false", "0"):
            hint = f"Drop '{key}': the motor acts on the motor side, the link side is passive."
            read.fault(told, "a flexible joint has a motor.", where, hint=hint)
    own = read.mapping(node, here, FLEXIBLE, required=("stiffness",))
    given = {key: read.number(value, here, key, unknown=key in UNKNOWN) for key, value in own.items()}
    for key, least in Flexible(**given).out_of_range.items():
        found = f"{given.pop(key):g}" if key in given else "none"
        read.fault(own.get(key, node), f"its {key} cannot be this.", here, f"a number {least}", found)
    return Flexible(**given)


@dataclass(frozen=True)
class Expanded:
    """Bodies and joints with the motor sides of flexible joints behind them, the elements of these, and the lines they come from."""

    links: list[Link]
    carried: list[Body | None]
    joints: list[Joint]
    elements: list[Element]
    lines: dict[At, int]


def expand(
    bodies: Iterable[tuple[Link, Body | None, Flexible | None]],
    joints: Iterable[tuple[Joint, Flexible | None]],
    lines: Mapping[At, int],
) -> Expanded:
    """The description without the key ``flexible``: link sides become passive, motor sides follow all others."""
    out = Expanded([], [], [], [], {})
    sides: list[tuple[Link, Body | None]] = []
    for link, carried, flexible in bodies:
        own = carried
        if carried is not None and flexible is not None:
            own = replace(carried, actuated=False)
            side = motor_body(carried)
            sides.append((Link(name=side.name, real=False), side))
            out.elements.extend(flexible_elements(carried.coordinate_name, flexible))
            out.lines["body", side.name] = lines.get(("body", link.name), 0)
        out.links.append(link)
        out.carried.append(own)
    behind: list[Joint] = []
    for joint, flexible in joints:
        out.joints.append(joint if flexible is None else replace(joint, actuated=False))
        if flexible is not None:
            link, side = motor_joint(joint)
            sides.append((link, None))
            behind.append(side)
            out.elements.extend(flexible_elements(joint.coordinate_names[0], flexible))
            line = lines.get(("joint", joint.name), 0)
            out.lines.update({("body", link.name): line, ("joint", side.name): line})
    out.links.extend(link for link, _ in sides)
    out.carried.extend(body for _, body in sides)
    out.joints.extend(behind)
    return out


def collapsed(machine: Machine) -> tuple[Machine, dict[str, Flexible]]:
    """The machine without the motor sides and elements of its flexible joints, and these by coordinate: what a file says of it.

    Estimates may have values that no spring or damper has; such joints stay written out.
    """
    flexible = {c: own for c, own in flexible_joints(machine).items() if not own.out_of_range}
    motors = {motor_side(c) for c in flexible}
    gone = {e.parameter_name for c, own in flexible.items() for e in flexible_elements(c, own)}
    joints = [
        replace(j, actuated=True) if set(j.coordinate_names) & set(flexible) else j
        for j in machine.joints
        if j.name not in motors
    ]
    links = tuple(link for link in machine.links if link.name not in motors)
    elements = tuple(e for e in machine.elements if e.parameter_name not in gone)
    return replace(machine, links=links, joints=tuple(joints), elements=elements), flexible


@dataclass(frozen=True)
class ReadBody:
    """A body of a file; `carried` where its entry describes the joint that carries it."""

    link: Link
    carried: Body | None
    flexible: Flexible | None = None


def read_body(
    read: Reader, node: Node, name: str, where: str, *, inside: bool, floats: bool, needs_joint: bool
) -> ReadBody:
    """One body.

    `inside`: its name stands in its entry. `floats`: it is the first of a base that is free. `needs_joint`: there is no section of joints,
    so that its entry must describe the joint that carries it.
    """
    at = read.mapping(node, where, BODY if inside else BODY[1:])
    inertia = _inertia(read, at["inertia"], where) if "inertia" in at else None
    virtual = read.truth(at["virtual"], where, "virtual", False) if "virtual" in at else False
    frames = {}
    if "frames" in at:
        for frame, key, value in read.items(at["frames"], f"{where}, frames"):
            if "." in frame:
                read.fault(key, f"a frame cannot be called '{frame}'.", where, "a name without a dot")
            here = f"{where}, frame '{frame}'"
            frames[frame] = _frame(read, read.mapping(value, here, FRAME), here)
    label = read.optional_text(at, where, "label")
    capsules = _capsules(read, at["capsules"], where) if "capsules" in at else ()
    link = Link(name=name, inertia=inertia, frames=frames, real=not virtual, label=label, capsules=capsules)
    if not floats and not needs_joint and not any(key in at for key in SHORT):
        return ReadBody(link, None)
    carried = _carried_body(read, node, at, name, where, free=floats)
    kind = "floating" if floats and carried.antecedent is None else carried.joint
    return ReadBody(link, carried, read_flexible(read, at, where, kind))


def read_joint(read: Reader, node: Node, name: str, where: str, inside: bool) -> tuple[Joint | None, Flexible | None]:
    """One joint between two frames, None where it cannot be read; and what it says of its flexibility."""
    at = read.mapping(node, where, ("name", *JOINT) if inside else JOINT, required=("a", "b"))
    kind = read.choice(at["kind"], where, "kind of joint", KINDS) if "kind" in at else "turning"
    cut: Cut = _cut(read, at["cut"], where) if "cut" in at else "auto"
    a, b = (_end(read, at[key], where) if key in at else None for key in ("a", "b"))
    coordinates = tuple(_names(read, at["coordinates"], where, "coordinates")) if "coordinates" in at else ()
    actuated: bool | tuple[str, ...] = False
    if "actuated" in at:
        several = isinstance(at["actuated"], SequenceNode)
        node = at["actuated"]
        actuated = tuple(read.texts(node, where, "actuated")) if several else read.truth(node, where, "actuated", False)
    ratio = read.number(at["ratio"], where, "ratio", 1.0) if "ratio" in at else 1.0
    length = read.number(at["length"], where, "length", 1.0) if "length" in at else 0.0
    flexible = read_flexible(read, at, where, kind or "turning")
    if a is None or b is None:
        return None, None
    if kind is None:  # a harmless one, so that what uses the joint is not reported as well
        kind, coordinates = "turning", coordinates[:1]
    joint = Joint(
        name=name,
        kind=cast(JointKind, kind),
        a=a,
        b=b,
        coordinates=coordinates,
        ratio=ratio,
        actuated=actuated,
        cut=cut,
        length=length,
    )
    return joint, flexible


def _cut(read: Reader, node: Node, where: str) -> Cut:
    """auto, yes or no; true and false mean yes and no, as older rules of YAML have it."""
    word = {"true": "yes", "false": "no"}.get(str(node.value).lower(), str(node.value))
    if isinstance(node, MappingNode | SequenceNode) or word not in CUT_CHOICES:
        read.fault(node, "cut cannot be this.", where, ", ".join(CUT_CHOICES), str(node.value)[:40])
        return "auto"
    return cast(Cut, word)


def _names(read: Reader, node: Node, where: str, name: str) -> list[str]:
    """A list of names, or one alone."""
    if isinstance(node, SequenceNode):
        return read.texts(node, where, name)
    one = read.text(node, where, name)
    return [] if one is None else [one]


def _end(read: Reader, node: Node, where: str) -> End | None:
    """body, body.frame, or {body: …, position: …}."""
    if not isinstance(node, MappingNode):
        return read.text(node, where, "an end of a joint")
    at = read.mapping(node, where, END, required=("body",))
    body = read.text(at["body"], where, "body") if "body" in at else None
    place = _frame(read, {key: value for key, value in at.items() if key != "body"}, where)
    return None if body is None else Attachment(body, place)


def _capsules(read: Reader, node: Node, where: str) -> tuple[LinkCapsule, ...]:
    """The capsules of a body; an end that is left out is the start, which makes a sphere."""
    found = []
    for k, item in enumerate(read.sequence(node, where, "capsules"), 1):
        here = f"{where}, capsule {k}"
        at = read.mapping(item, here, CAPSULE, required=("start", "radius"))
        ends = [_three(read, at[key], here, key) if key in at else None for key in ("start", "end")]
        radius = read.number(at["radius"], here, "radius", 1.0) if "radius" in at else 1.0
        if radius <= 0.0:
            read.fault(at["radius"], "a radius must be above zero.", here, "m", f"{radius:g}")
            radius = 1.0
        if ends[0] is not None:
            found.append(LinkCapsule(ends[0], ends[1] or ends[0], radius))
    return tuple(found)


def _three(read: Reader, node: Node, where: str, name: str) -> tuple[float, float, float]:
    x, y, z = read.numbers(node, where, name, 3, 0.0)
    return x, y, z


def _frame(read: Reader, at: Mapping[str, Node], where: str) -> MDH | Placement:
    """A frame from its keys: `mdh`, or `position` and one of :data:`ROTATIONS`."""
    if "mdh" not in at:
        return _placement(read, at, where)
    if len(at) > 1:
        _only_one(read, {"mdh": at["mdh"], "position": at["mdh"]}, where, ("mdh", "position"))
    return _mdh(read, at["mdh"], where)


def _carried_body(read: Reader, node: Node, at: Mapping[str, Node], name: str, where: str, free: bool) -> Body:
    """A body and the joint that carries it, from the keys of its entry; `free`, one without an antecedent floats."""
    _only_one(read, at, where, ("actuated", "mu"))
    mu = "actuated" if "actuated" in at else "mu"
    antecedent = _antecedent(read, at, where)
    return Body(
        name=name,
        antecedent=antecedent,
        joint=_joint(read, node, at, where, floats=free and antecedent is None),
        placement=_carried_frame(read, at, where),
        actuated=read.truth(at[mu], where, mu, True) if mu in at else True,
        real=not (read.truth(at["virtual"], where, "virtual", False) if "virtual" in at else False),
        coordinate=read.optional_text(at, where, "coordinate"),
        ratio=read.number(at["ratio"], where, "ratio", 1.0) if "ratio" in at else 1.0,
        label=read.optional_text(at, where, "label"),
    )


def _only_one(read: Reader, at: Mapping[str, Node], where: str, keys: Sequence[str]) -> None:
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
    _only_one(read, at, where, ("joint", "sigma"))
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


def _carried_frame(read: Reader, at: Mapping[str, Node], where: str) -> MDH | Placement:
    _only_one(read, at, where, ("mdh", "placement"))
    if "placement" not in at:
        return _mdh(read, at["mdh"], where) if "mdh" in at else MDH()
    return _placement(read, read.mapping(at["placement"], within(where, "placement"), ("position", *ROTATIONS)), where)


def _mdh(read: Reader, node: Node, where: str) -> MDH:
    """Modified Denavit-Hartenberg numbers; rounded quarter turns are made exact, and noted."""
    given = read.mapping(node, within(where, "mdh"), ANGLES_AND_LENGTHS)
    table = {key: read.number(value, where, key, 0.0) for key, value in given.items()}
    angles = [key for key in ANGLES if key in table]
    exact = _exact(read, node, where, [table[key] for key in angles])
    return MDH(**table | dict(zip(angles, exact, strict=True)))


def _exact(read: Reader, node: Node, where: str, angles: Sequence[float]) -> list[float]:
    exact, changed = snap_quarter_turns(angles)
    if changed:
        read.notes.add(ROUNDED_QUARTER_TURN, where=where, found=changed, line=line_of(node))
    return exact


def _placement(read: Reader, given: Mapping[str, Node], where: str) -> Placement:
    """A frame from the keys `position` and one of :data:`ROTATIONS`, each where given."""
    _only_one(read, given, where, ROTATIONS)
    position, rotation = [0.0, 0.0, 0.0], np.eye(3)
    if "position" in given:
        position = read.numbers(given["position"], where, "position", 3, 0.0)
    if "rotation" in given:
        rows = read.matrix(given["rotation"], where, "rotation", (3, 3))
        rotation = np.eye(3) if rows is None else np.array(rows)
    elif "rpy" in given:
        rotation = rpy(*_exact(read, given["rpy"], where, read.numbers(given["rpy"], where, "rpy", 3, 0.0)))
    elif "axis" in given:
        axis = np.array(read.numbers(given["axis"], where, "axis", 3, 1.0))
        if np.any(axis != 0.0):
            rotation = rotation_to_axis(axis / np.abs(axis).max())
        else:
            read.fault(given["axis"], "an axis of length zero has no direction.", where)
    return Placement(rotation, position)


def _inertia(read: Reader, node: Node, where: str) -> Array:
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
