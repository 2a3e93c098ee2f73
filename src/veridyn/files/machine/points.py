"""The description of a machine by points and bars in a model file: points, unit vectors, bodies, joints, angles and distances, racks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from ruamel.yaml.nodes import Node, SequenceNode

from veridyn.errors import At, part_at
from veridyn.files.machine.parts import Places
from veridyn.files.yaml_nodes import line_of
from veridyn.files.yaml_reader import Reader
from veridyn.model.point_parts import (
    Added,
    Angle,
    Distance,
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
            joints.append(MechanismJoint(name, cast(JointKind, kind), a, b, self.number(at, where, "length")))
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
        return RigidBody(name, places["points"], places["vectors"], mass, centre, cast(Any, inertia))

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
