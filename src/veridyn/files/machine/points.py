"""A machine by points and bars in a model file, read and written: points, unit vectors, bodies, joints, angles and distances, racks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np
from ruamel.yaml.nodes import Node, SequenceNode

from veridyn.errors import At, ModelError, part_at
from veridyn.files.machine.parts import Places
from veridyn.files.machine.write_parts import (
    equal_parts,
    flow,
    mapping_text,
    matrix_text,
    name_text,
    names_text,
    number_text,
    numbers_text,
    place_text,
)
from veridyn.files.yaml_nodes import line_of
from veridyn.files.yaml_reader import Reader
from veridyn.model.graph import PointDescription
from veridyn.model.place import Marker
from veridyn.model.point_parts import (
    Added,
    Angle,
    DirectionRef,
    Distance,
    Elevation,
    JointKind,
    MechanismJoint,
    Point,
    Rack,
    RigidBody,
    UnitVector,
    uniform_bar,
)

KINDS = ("spherical", "turning", "sliding", "cylindrical", "universal", "inline", "inplane", "distance")
BODY = ("points", "vectors", "bar", "length", "mass", "centre", "inertia")
ANGLE = ("of", "from", "towards", "start")
DISTANCE = ("a", "b", "along")
# Section → its word in messages, its keys, and those that are required.
POINT_SECTIONS: Mapping[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "points": ("point", ("at", "fixed"), ("at",)),
    "vectors": ("vector", ("along", "fixed"), ("along",)),
    "bodies": ("body", BODY, ()),
    "joints": ("joint", ("kind", "a", "b", "length"), ("kind", "a", "b")),
    "coordinates": ("coordinate", (*ANGLE, *DISTANCE), ()),
    "racks": ("rack", ("distance", "angle", "radius", "offset"), ("distance", "angle", "radius")),
}


class PointSections(Places):
    """Reads the sections of points, bodies, joints and coordinates; `lines` gives the line of each item."""

    def __init__(self, read: Reader, top: Mapping[str, Node]) -> None:
        super().__init__(read, dimension=2)
        self.top = top
        self.lines: dict[At, int] = {(key,): line_of(node) for key, node in top.items()}

    def items(self, section: str) -> Iterator[tuple[str, str, dict[str, Node]]]:
        """Name, place for messages and values of each item of a section."""
        if section not in self.top:
            return
        word, allowed, required = POINT_SECTIONS[section]
        for name, key, node, inside in self.read.named(self.top[section], section, word):
            where = part_at(word, name)
            self.lines[where.at] = line_of(key)
            at = self.read.mapping(node, where, (*allowed, "name") if inside else allowed, required)
            if all(k in at for k in required):
                yield name, where, at

    def described(self) -> dict[str, Any]:
        """Points, vectors, bodies, joints, added coordinates and racks, as :func:`machine_of_points` takes them."""
        read = self.read
        points = []
        for name, where, at in self.items("points"):
            if not self.points and isinstance(at["at"], SequenceNode):
                self.dimension = len(at["at"].value)
            self.points.append(name)
            points.append(Point(name, self.vector(at["at"], where, "at"), self.truth(at, where, "fixed")))
        vectors = [
            UnitVector(name, self.vector(at["along"], where, "along"), self.truth(at, where, "fixed"))
            for name, where, at in self.items("vectors")
        ]
        bodies = [b for b in (self.body(*item) for item in self.items("bodies")) if b is not None]
        joints = []
        for name, where, at in self.items("joints"):
            kind = read.choice(at["kind"], where, "kind of joint", KINDS)
            a, b = self.place(at["a"], where), self.place(at["b"], where)
            joints.append(MechanismJoint(name, cast("JointKind", kind), a, b, self.number(at, where, "length")))
        return {
            "points": points,
            "vectors": vectors,
            "bodies": bodies,
            "joints": joints,
            "added": self.added(),
            "racks": [self.rack(*item) for item in self.items("racks")],
        }

    def added(self) -> list[Added]:
        """Angles and distances, in order: an angle is `of` a direction, a distance between `a` and `b`."""
        found: list[Added] = []
        for name, where, at in self.items("coordinates"):
            if {"of", "from"} <= {*at} <= {*ANGLE, "name"}:
                found.append(self.angle(name, where, at))
            elif {"a", "b"} <= {*at} <= {*DISTANCE, "name"}:
                found.append(self.distance(name, where, at))
            else:
                expected = "of, from, towards and start of an angle, or a, b and along of a distance"
                keys = ", ".join(key for key in at if key != "name") or "nothing"
                node = next(iter(at.values()), self.top["coordinates"])
                self.read.fault(node, "it is neither an angle nor a distance.", where, expected, keys)
        return found

    def angle(self, name: str, where: str, at: dict[str, Node]) -> Angle:
        towards = self.direction(at["towards"], where) if "towards" in at else None
        of, reference = self.direction(at["of"], where), self.direction(at["from"], where)
        return Angle(name, of, reference, towards, self.number(at, where, "start"))

    def distance(self, name: str, where: str, at: dict[str, Node]) -> Distance:
        along = self.direction(at["along"], where) if "along" in at else None
        return Distance(name, self.place(at["a"], where), self.place(at["b"], where), along)

    def body(self, name: str, where: str, at: dict[str, Node]) -> RigidBody | None:
        mass = self.number(at, where, "mass", 0.0)
        if "bar" in at:
            ends, length = self.read.texts(at["bar"], where, "bar"), self.number(at, where, "length")
            others = [key for key in at if key not in ("bar", "length", "mass")]
            if others or len(ends) != 2 or "length" not in at:
                self.read.fault(at["bar"], "a bar has two points, a length and a mass, and nothing else.", where)
                return None
            if not length > 0.0:
                self.read.fault(at["length"], "a bar has a length.", where, "a positive number, m", f"{length:g}")
                return None
            if ends[0] == ends[1]:
                self.read.fault(at["bar"], "its two ends are one point.", where, "two points", f"'{ends[0]}' twice")
                return None
            return uniform_bar(name, ends[0], ends[1], length, mass, self.dimension)
        places = {
            key: {e: self.vector(v, where, e) for e, _, v in self.read.items(at[key], where)} if key in at else {}
            for key in ("points", "vectors")
        }
        inertia: object = 0.0
        if "inertia" in at:
            inertia = self.inertia(at, where)
        centre = self.vector(at["centre"], where, "centre") if "centre" in at else ()
        return RigidBody(name, places["points"], places["vectors"], mass, centre, cast("Any", inertia))

    def inertia(self, at: dict[str, Node], where: str) -> object:
        """About the centre: one number in the plane, six numbers or a matrix in space."""
        node = at["inertia"]
        if self.dimension == 2:
            return self.number(at, where, "inertia")
        if isinstance(node, SequenceNode) and node.value and isinstance(node.value[0], SequenceNode):
            return self.read.matrix(node, where, "inertia", (3, 3)) or 0.0
        return self.read.numbers(node, where, "inertia", 6)

    def rack(self, name: str, where: str, at: dict[str, Node]) -> Rack:
        distance, angle = self.text(at, where, "distance"), self.text(at, where, "angle")
        return Rack(name, distance, angle, self.number(at, where, "radius"), self.number(at, where, "offset", 0.0))


def point_lines(d: PointDescription, dimension: int) -> list[str]:
    """Points, vectors, bodies, joints, added coordinates and racks."""
    fixed = {"fixed": "true"}
    sections = {
        "points": {p.name: {"at": numbers_text(p.at)} | (fixed if p.fixed else {}) for p in d.points},
        "vectors": {v.name: {"along": numbers_text(v.along)} | (fixed if v.fixed else {}) for v in d.vectors},
        "bodies": {b.name: _body_text(b, dimension) for b in d.bodies},
        "joints": {j.name: _joint_text(j) for j in d.joints},
        "coordinates": {a.name: _added_text(a) for a in d.added},
        "racks": {
            r.name: {
                "distance": name_text(r.distance),
                "angle": name_text(r.angle),
                "radius": number_text(r.radius),
                "offset": number_text(r.offset),
            }
            for r in d.racks
        },
    }
    lines = []
    for section, items in sections.items():
        if items:
            lines += [f"{section}:", *(flow(f"  {name_text(name)}: ", keys) for name, keys in items.items())]
    return lines


def _body_text(b: RigidBody, dimension: int) -> dict[str, str]:
    bar = _bar_text(b, dimension)
    if bar:
        return bar
    out: dict[str, str] = {}
    for key, places in (("points", b.points), ("vectors", b.vectors)):
        if places:
            out[key] = mapping_text({name_text(n): numbers_text(np.asarray(x)) for n, x in places.items()})
    if b.mass != 0.0:
        out["mass"] = number_text(b.mass)
    if b.centre:
        out["centre"] = numbers_text(b.centre)
    J = np.asarray(b.inertia, dtype=np.float64)
    if np.any(J) or J.ndim:
        texts = {0: lambda: number_text(float(J)), 1: lambda: numbers_text(J), 2: lambda: matrix_text(J)}
        out["inertia"] = texts[J.ndim]()
    return out


def _bar_text(b: RigidBody, dimension: int) -> dict[str, str]:
    """A uniform bar by its points, length and mass; nothing where the body is anything else."""
    if len(b.points) != 2 or b.vectors:
        return {}
    (start, end), length = b.points, float(np.asarray([*b.points.values()][1])[0])
    if not length > 0.0 or not equal_parts(uniform_bar(b.name, start, end, length, b.mass, dimension), b):
        return {}
    return {"bar": names_text([start, end]), "length": number_text(length), "mass": number_text(b.mass)}


def _joint_text(j: MechanismJoint) -> dict[str, str]:
    out = {"kind": j.kind, "a": place_text(j.a), "b": place_text(j.b)}
    return out | ({} if math.isnan(j.length) else {"length": number_text(j.length)})


def _added_text(a: Added) -> dict[str, str]:
    if isinstance(a, Angle):
        out = {"of": _direction_text(a.of), "from": _direction_text(a.reference)}
        out |= {} if a.towards is None else {"towards": _direction_text(a.towards)}
        return out | ({} if math.isnan(a.start) else {"start": number_text(a.start)})
    if isinstance(a, Elevation):
        what = "the pitch of a ball joint has no words in a description by points."
        hint = "Save the machine with the joints it was described by."
        raise ModelError(what, where=f"added coordinate '{a.name}'", hint=hint)
    out = {"a": place_text(a.a), "b": place_text(a.b)}
    return out | ({} if a.along is None else {"along": _direction_text(a.along)})


def _direction_text(ref: DirectionRef) -> str:
    if isinstance(ref, str | Marker):
        return place_text(ref)
    if all(isinstance(part, str) for part in ref):
        return names_text([str(part) for part in ref])
    return numbers_text([float(part) for part in ref])
