"""``bodies`` and ``joints`` in a model file: bodies with frames, and joints between two frames, or within the body that they carry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from ruamel.yaml.nodes import MappingNode, Node, SequenceNode

from veridyn.files.machine.keys import BODY, CAPSULE, END, FRAME, JOINT, SHORT
from veridyn.files.machine.native_bodies import (
    ANGLES_AND_LENGTHS,
    carried_body,
    only_one,
    placed,
    read_inertia,
    read_mdh,
)
from veridyn.files.yaml_reader import Reader
from veridyn.model.assembly import Attachment
from veridyn.model.body import Body
from veridyn.model.link import CUT_CHOICES, KINDS, Cut, End, Joint, JointKind, Link, LinkCapsule
from veridyn.spatial.transforms import MDH, Placement


@dataclass(frozen=True)
class ReadBody:
    """A body of a file; `carried` where its entry describes the joint that carries it."""

    link: Link
    carried: Body | None


def read_body(
    read: Reader, node: Node, name: str, where: str, *, inside: bool, floats: bool, needs_joint: bool
) -> ReadBody:
    """One body.

    `inside`: its name stands in its entry. `floats`: it is the first of a base that is free. `needs_joint`: there is no section of joints,
    so that its entry must describe the joint that carries it.
    """
    at = read.mapping(node, where, BODY if inside else BODY[1:])
    inertia = read_inertia(read, at["inertia"], where) if "inertia" in at else None
    virtual = read.truth(at["virtual"], where, "virtual", False) if "virtual" in at else False
    frames = {}
    if "frames" in at:
        for frame, key, value in read.items(at["frames"], f"{where}, frames"):
            if "." in frame:
                read.fault(key, f"a frame cannot be called '{frame}'.", where, "a name without a dot")
            frames[frame] = _frame(read, value, f"{where}, frame '{frame}'")
    label = read.optional_text(at, where, "label")
    capsules = _capsules(read, at["capsules"], where) if "capsules" in at else ()
    link = Link(name=name, inertia=inertia, frames=frames, real=not virtual, label=label, capsules=capsules)
    if not floats and not needs_joint and not any(key in at for key in SHORT):
        return ReadBody(link, None)
    return ReadBody(link, carried_body(read, node, at, name, where, free=floats))


def read_joint(read: Reader, node: Node, name: str, where: str, inside: bool) -> Joint | None:
    """One joint between two frames; None where it cannot be read."""
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
    if a is None or b is None:
        return None
    if kind is None:  # a harmless one, so that what uses the joint is not reported as well
        kind, coordinates = "turning", coordinates[:1]
    return Joint(
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
    place = _placed(read, {key: value for key, value in at.items() if key != "body"}, where)
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


def _frame(read: Reader, node: Node, where: str) -> MDH | Placement:
    return _placed(read, read.mapping(node, where, FRAME), where)


def _placed(read: Reader, at: Mapping[str, Node], where: str) -> MDH | Placement:
    if "mdh" not in at:
        return placed(read, at, where)
    if len(at) > 1:
        only_one(read, {"mdh": at["mdh"], "position": at["mdh"]}, where, ("mdh", "position"))
    given = read.mapping(at["mdh"], f"{where}, mdh", ANGLES_AND_LENGTHS)
    return read_mdh(read, given, where)
