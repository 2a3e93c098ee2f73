"""A mechanism in natural coordinates from a model file: YAML with formulas, every fault reported at once, by name and line.

The file names its parts and is otherwise the arguments of :meth:`veridyn.model.natural.Mechanism.build`::

    veridyn: 1
    mechanism: crane                # its name
    gravity: [0, -9.81]
    points: {O: {at: [0, 0], fixed: true}, P: {at: [0, -2]}}
    bodies: {rope: {bar: [O, P], length: 2, mass: 5}}
    angles: {swing: {of: [O, P], from: [0, -1]}}
    dampers: {air: {on: swing, coefficient: 0.3}}
    sensors: {encoder: {kind: coordinate, on: swing, sigma: 0.01}}

A place is the name of a point or a marker {body, at, axis, side}; a direction is a vector's name, two points, a marker, or components.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from veridyn.errors import Fault, FileError, ModelError, at_line
from veridyn.files.native_write import FORMAT
from veridyn.files.yaml_nodes import compose, line_of, text_of
from veridyn.files.yaml_reader import Reader
from veridyn.model.joint import GROUND
from veridyn.model.load import Drive, Force, Torque
from veridyn.model.natural import (
    Angle,
    Damper,
    DirectionRef,
    Distance,
    Joint,
    JointKind,
    Mechanism,
    Point,
    Rack,
    RigidBody,
    Rotor,
    Spring,
    UnitVector,
    uniform_bar,
)
from veridyn.model.place import Marker, PointRef
from veridyn.model.sensor import KINDS as SENSORS
from veridyn.model.sensor import Sensor, SensorKind

T = TypeVar("T")
KINDS = ("spherical", "turning", "sliding", "cylindrical", "universal", "inline", "inplane", "distance")
SECTIONS: Mapping[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {  # its word in messages, keys, required keys
    "points": ("point", ("at", "fixed"), ("at",)),
    "vectors": ("vector", ("along", "fixed"), ("along",)),
    "bodies": ("body", ("points", "vectors", "bar", "length", "mass", "centre", "inertia"), ()),
    "joints": ("joint", ("kind", "a", "b", "length"), ("kind", "a", "b")),
    "angles": ("coordinate", ("of", "from", "towards", "start"), ("of", "from")),
    "distances": ("coordinate", ("a", "b", "along"), ("a", "b")),
    "racks": ("rack", ("distance", "angle", "radius", "offset"), ("distance", "angle", "radius")),
    "springs": ("force", ("on", "stiffness", "rest"), ("on", "stiffness")),
    "dampers": ("force", ("on", "coefficient"), ("on", "coefficient")),
    "rotors": ("force", ("on", "inertia"), ("on", "inertia")),
    "drives": ("force", ("on", "value"), ("on",)),
    "forces": ("force", ("at", "value"), ("at", "value")),
    "torques": ("force", ("body", "value", "against"), ("body", "value")),
    "sensors": (
        "sensor",
        ("kind", "on", "sigma", "axes", "quantum", "delay", "bias", "bias_sigma", "bias_walk", "turns"),
        ("kind", "on", "sigma"),
    ),
}
TOP = ("veridyn", "mechanism", "gravity", "constants", *SECTIONS)


def load_mechanism(path: str | Path) -> Mechanism:
    """The mechanism that a model file describes; a :class:`FileError` or :class:`ModelError` tells all that is wrong."""
    file = Path(path)
    return parse_mechanism(text_of(file), source=file.name)


def parse_mechanism(text: str, source: str = "model") -> Mechanism:
    """The mechanism that the text of a model file describes."""
    root = compose(text, source)
    keys = {key.value: value for key, value in root.value if isinstance(key, ScalarNode)}
    if "mechanism" not in keys or getattr(keys.get("veridyn"), "value", None) != str(FORMAT):
        raise FileError(
            Fault(
                "this is not the model file of a mechanism.",
                expected=f"veridyn: {FORMAT} and mechanism: its name",
                found=f"the keys {', '.join(list(keys)[:8])}",
            ),
            source,
        )
    read = Reader()
    top = read.mapping(root, "", TOP, required=("veridyn", "mechanism", "points", "bodies"))
    if "constants" in top:
        for name, _, value in read.items(top["constants"], "constants"):
            read.constants[name] = read.number(value, "constants", name, fallback=1.0)
    name = read.text(top["mechanism"], "", "mechanism") or Path(source).stem
    draft = _Draft(read, top)
    parts = draft.parts()
    if read.faults:
        raise ModelError(sorted(read.faults.found, key=lambda fault: fault.line or 0), source)
    try:
        return Mechanism.build(name=name, **parts)
    except ModelError as error:
        lines = draft.lines
        raise ModelError([at_line(f, lines.get(f.where.split(",")[0])) for f in error.faults], source) from error


class _Draft:
    """Reads section by section; knows the names of the points, which decide what [A, B] means."""

    def __init__(self, read: Reader, top: Mapping[str, Node]) -> None:
        self.read, self.top = read, top
        self.lines: dict[str, int] = {key: line_of(node) for key, node in top.items()}
        self.dimension = 2
        self.points: list[str] = []

    def items(self, section: str) -> Iterator[tuple[str, str, dict[str, Node]]]:
        """Name, place for messages and values of each item of a section."""
        if section not in self.top:
            return
        word, allowed, required = SECTIONS[section]
        for name, key, node in self.read.items(self.top[section], section):
            where = f"{word} '{name}'"
            self.lines[where] = line_of(key)
            at = self.read.mapping(node, where, allowed, required)
            if all(k in at for k in required):
                yield name, where, at

    def parts(self) -> dict[str, Any]:
        read = self.read
        points = []
        for name, where, at in self.items("points"):
            if not self.points and isinstance(at["at"], SequenceNode):
                self.dimension = len(at["at"].value)
            self.points.append(name)
            points.append(Point(name, self.vector(at["at"], where, "at"), self.fixed(at, where)))
        vectors = [
            UnitVector(name, self.vector(at["along"], where, "along"), self.fixed(at, where))
            for name, where, at in self.items("vectors")
        ]
        bodies = [b for b in (self.body(*item) for item in self.items("bodies")) if b is not None]
        joints = []
        for name, where, at in self.items("joints"):
            kind = read.choice(at["kind"], where, "kind of joint", KINDS)
            a, b = self.place(at["a"], where), self.place(at["b"], where)
            joints.append(Joint(name, cast(JointKind, kind), a, b, self.number(at, where, "length")))
        added: list[Angle | Distance] = []
        for name, where, at in self.items("angles"):
            towards = self.direction(at["towards"], where) if "towards" in at else None
            of, reference = self.direction(at["of"], where), self.direction(at["from"], where)
            added.append(Angle(name, of, reference, towards, self.number(at, where, "start")))
        for name, where, at in self.items("distances"):
            along = self.direction(at["along"], where) if "along" in at else None
            added.append(Distance(name, self.place(at["a"], where), self.place(at["b"], where), along))
        return {
            "points": points,
            "vectors": vectors,
            "bodies": bodies,
            "joints": joints,
            "added": added,
            "racks": self.each("racks", self.rack),
            "springs": self.each(
                "springs",
                lambda n, w, at: Spring(
                    n, self.on(at, w), self.number(at, w, "stiffness"), self.number(at, w, "rest", 0.0)
                ),
            ),
            "dampers": self.each(
                "dampers", lambda n, w, at: Damper(n, self.on(at, w), self.number(at, w, "coefficient"))
            ),
            "rotors": self.each(
                "rotors", lambda n, w, at: Rotor(n, self.text(at, w, "on"), self.number(at, w, "inertia"))
            ),
            "loads": [
                *self.each(
                    "drives", lambda n, w, at: Drive(n, self.text(at, w, "on"), self.number(at, w, "value", 0.0))
                ),
                *self.each(
                    "forces", lambda n, w, at: Force(n, self.place(at["at"], w), self.vector(at["value"], w, "value"))
                ),
                *self.each("torques", self.torque),
            ],
            "gravity": self.vector(self.top["gravity"], "gravity", "gravity") if "gravity" in self.top else (),
            "sensors": self.each("sensors", self.sensor),
        }

    def each(self, section: str, make: Callable[[str, str, dict[str, Node]], T]) -> list[T]:
        return [make(*item) for item in self.items(section)]

    def number(self, at: Mapping[str, Node], where: str, key: str, default: float = float("nan")) -> float:
        return self.read.number(at[key], where, key) if key in at else default

    def text(self, at: Mapping[str, Node], where: str, key: str) -> str:
        return self.read.optional_text(at, where, key)

    def fixed(self, at: Mapping[str, Node], where: str) -> bool:
        return "fixed" in at and self.read.truth(at["fixed"], where, "fixed", False)

    def vector(self, node: Node, where: str, name: str) -> list[float]:
        return self.read.numbers(node, where, name, self.dimension)

    def place(self, node: Node, where: str) -> PointRef:
        if not isinstance(node, MappingNode):
            return self.read.text(node, where, "a place") or ""
        at = self.read.mapping(node, f"{where}, marker", ("body", "at", "axis", "side"), ("body", "at"))
        body = self.text(at, where, "body")
        parts = {key: self.vector(at[key], where, key) for key in ("at", "axis", "side") if key in at}
        return Marker(body, parts.get("at", ()), parts.get("axis", ()), parts.get("side", ()))

    def direction(self, node: Node, where: str) -> DirectionRef:
        if isinstance(node, SequenceNode):
            names = [str(item.value) for item in node.value if isinstance(item, ScalarNode)]
            if len(names) == 2 and all(name in self.points for name in names):
                return names[0], names[1]
            return self.vector(node, where, "a direction")
        return self.place(node, where)

    def on(self, at: Mapping[str, Node], where: str) -> str | tuple[PointRef, PointRef]:
        if not isinstance(at["on"], SequenceNode):
            return self.text(at, where, "on")
        ends = [self.place(item, where) for item in at["on"].value]
        if len(ends) != 2:
            self.read.fault(at["on"], "it needs two ends.", where, "a coordinate, or [place, place]", f"{len(ends)}")
            return ""
        return ends[0], ends[1]

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
            flat = self.dimension == 2
            inertia = (
                self.number(at, where, "inertia") if flat else self.read.numbers(at["inertia"], where, "inertia", 6)
            )
        centre = self.vector(at["centre"], where, "centre") if "centre" in at else ()
        return RigidBody(name, places["points"], places["vectors"], mass, centre, cast(Any, inertia))

    def rack(self, name: str, where: str, at: dict[str, Node]) -> Rack:
        distance, angle = self.text(at, where, "distance"), self.text(at, where, "angle")
        return Rack(name, distance, angle, self.number(at, where, "radius"), self.number(at, where, "offset", 0.0))

    def torque(self, name: str, where: str, at: dict[str, Node]) -> Torque:
        value = self.number(at, where, "value") if self.dimension == 2 else self.vector(at["value"], where, "value")
        return Torque(name, self.text(at, where, "body"), value, self.text(at, where, "against") or GROUND)

    def sensor(self, name: str, where: str, at: dict[str, Node]) -> Sensor:
        kind = self.read.choice(at["kind"], where, "kind of sensor", SENSORS)
        numbers = {k: self.number(at, where, k, 0.0) for k in ("quantum", "delay", "bias", "bias_sigma", "bias_walk")}
        return Sensor(
            name,
            cast(SensorKind, kind),
            self.place(at["on"], where),
            self.number(at, where, "sigma"),
            axes=self.text(at, where, "axes"),
            quantum=numbers["quantum"],
            delay=numbers["delay"],
            bias=numbers["bias"],
            bias_sigma=numbers["bias_sigma"],
            bias_walk=numbers["bias_walk"],
            turns="turns" in at and self.read.truth(at["turns"], where, "turns", False),
        )
