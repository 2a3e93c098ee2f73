"""A mechanism in natural coordinates from a model file of version 1: every fault is reported at once, by name and line.

The file names its parts and is otherwise the arguments of :meth:`veridyn.mechanics.natural.mechanism.Mechanism.build`::

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

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from ruamel.yaml.nodes import Node, ScalarNode, SequenceNode

from veridyn.errors import Fault, FileError, ModelError, with_line
from veridyn.files.machine.points import ANGLE, DISTANCE, POINT_SECTIONS, PointSections, Sections
from veridyn.files.yaml_nodes import compose
from veridyn.files.yaml_reader import Reader
from veridyn.mechanics.natural.mechanism import Mechanism
from veridyn.model.load import Drive, Force, Torque
from veridyn.model.names import GROUND
from veridyn.model.place import PointRef
from veridyn.model.point_parts import Added, Damper, Rotor, Spring
from veridyn.model.sensor import KINDS as SENSORS
from veridyn.model.sensor import Sensor, SensorKind

FORMAT = 1
SECTIONS: Sections = {
    **{key: POINT_SECTIONS[key] for key in ("points", "vectors", "bodies", "joints", "racks")},
    "angles": ("coordinate", ANGLE, ("of", "from")),
    "distances": ("coordinate", DISTANCE, ("a", "b")),
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
    draft = _Draft(read, top, SECTIONS)
    parts = draft.parts()
    if read.faults:
        raise ModelError(sorted(read.faults.found, key=lambda fault: fault.line or 0), source)
    try:
        return Mechanism.build(name=name, **parts)
    except ModelError as error:
        raise ModelError([with_line(f, draft.lines) for f in error.faults], source) from error


class _Draft(PointSections):
    """The sections of a file of version 1."""

    def parts(self) -> dict[str, Any]:
        return {
            **self.described(),
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

    def added(self) -> list[Added]:
        return [*self.each("angles", self.angle), *self.each("distances", self.distance)]

    def on(self, at: Mapping[str, Node], where: str) -> str | tuple[PointRef, PointRef]:
        if not isinstance(at["on"], SequenceNode):
            return self.text(at, where, "on")
        ends = [self.place(item, where) for item in at["on"].value]
        if len(ends) != 2:
            self.read.fault(at["on"], "it needs two ends.", where, "a coordinate, or [place, place]", f"{len(ends)}")
            return ""
        return ends[0], ends[1]

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
