"""Machines that have no tree of bodies in their model file, read and written: by points and bars, and a car of a few numbers.

By points and bars: the sections of points, unit vectors, bodies, joints, angles and distances, and racks. Of a car the section ``car``:

    veridyn: 2
    formulation: single_track
    car:
      tyre: tanh
      mass: 982
      front: 1.33                                   # m from the centre of mass to the front axle
      rear: 1.07
      front_stiffness: {value: 15, sigma: 6}        # estimated, with a prior

A number is known; ``{value, sigma, lower, upper}`` is estimated, unless its sigma is 0. :data:`veridyn.model.car.TABLE` has every key.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from ruamel.yaml.nodes import MappingNode, Node, SequenceNode

from veridyn.errors import At, ModelError, part_at, with_line
from veridyn.files.machine.parameters import ParameterSection, read_constants, read_parameters
from veridyn.files.machine.parts import Parts, Places
from veridyn.files.machine.write_parts import (
    CAR_TOP,
    TOP,
    drift_texts,
    equal_parts,
    flow,
    mapping_text,
    matrix_text,
    name_text,
    names_text,
    number_text,
    numbers_text,
    place_text,
    sensor_text,
    uncertainty_lines,
)
from veridyn.files.yaml_nodes import line_of
from veridyn.files.yaml_reader import Reader
from veridyn.model.car import SECTION, TABLE, CarDescription, car_parameters, check_car
from veridyn.model.graph import PointDescription
from veridyn.model.machine import Machine
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
from veridyn.model.sensor import Sensor
from veridyn.model.single_track import USUAL_SENSORS, described_car

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


FORMULATION = "single_track"
PRIOR = ("value", "sigma", "lower", "upper")


def parse_car(root: MappingNode, source: str) -> Machine:
    """The car that the top mapping of a model file describes; every fault at once, by name and line."""
    read, lines = Reader(), dict[At, int]()
    top = read.mapping(root, "", TOP, required=("veridyn", SECTION))
    for key in top:
        if key not in CAR_TOP:
            hint = "Drop it, or describe bodies, joints and tyres in formulation: tree."
            read.fault(top[key], f"'{key}' does not belong to a car of a few numbers.", key, hint=hint)
    if "formulation" in top:
        chosen = read.text(top["formulation"], "formulation", "formulation")
        if chosen not in (None, FORMULATION):
            what = "a car of a few numbers has one formulation."
            read.fault(top["formulation"], what, "formulation", FORMULATION, f"{chosen}")
    if "constants" in top:
        read_constants(read, top["constants"])
    name = read.optional_text(top, "", "name") or Path(source).stem
    lines |= {(key,): line_of(node) for key, node in top.items()}
    car, sigma = _read_car(read, top[SECTION], lines) if SECTION in top else (CarDescription({}), {})
    sensors, found = _read_sensors(read, top)
    lines |= found
    own = car_parameters(car)
    priors = dict(zip(own.names, own.values.tolist(), strict=True))
    section = read_parameters(read, top.get("parameters"), priors)
    if sigma and section.uncertainty is not None:
        what = f"deviations stand here and with the parameters of the car ('{next(iter(sigma))}')."
        read.fault(top["parameters"], what, "parameters", hint="Give all of them in one of the two places.")
    if SECTION in top:
        read.faults.extend(with_line(fault, lines) for fault in check_car(car))
    if read.faults:
        raise ModelError(dict.fromkeys(sorted(read.faults.found, key=lambda fault: fault.line or 0)), source)
    try:
        return _with_section(described_car(name, car, sigma, sensors), section)
    except ModelError as error:
        raise ModelError([with_line(fault, lines) for fault in error.faults], source) from error


def _with_section(machine: Machine, section: ParameterSection) -> Machine:
    """The car with what the section ``parameters`` says; deviations of the section ``car`` stay."""
    known = section.uncertainty or machine.uncertainty
    changed = machine.with_parameters(section.applied(machine.parameters)) if section.changes else machine
    return changed.with_uncertainty(known)


def _read_car(read: Reader, node: Node, lines: dict[At, int]) -> tuple[CarDescription, dict[str, float]]:
    """The description, and the deviations of its parameters."""
    values, sigma, bounds, estimated = dict[str, float](), dict[str, float](), dict[str, tuple[float, float]](), []
    at, tyre = read.mapping(node, SECTION, ("tyre", *TABLE)), "tanh"
    for key, value in at.items():
        lines[SECTION, key] = line_of(value)
        where = part_at(SECTION, key)
        if key == "tyre":
            tyre = read.text(value, where, "tyre") or tyre
        elif isinstance(value, MappingNode):
            given = read.mapping(value, where, PRIOR, required=("value",))
            numbers = {part: read.number(n, where, part, fallback=TABLE[key].typical) for part, n in given.items()}
            values[key] = numbers.get("value", TABLE[key].typical)
            if numbers.get("sigma", 1.0) < 0.0:
                read.fault(given["sigma"], "sigma is below zero.", where, "zero or more", f"{numbers['sigma']:g}")
            if {"lower", "upper"} & {*numbers}:
                bounds[key] = (numbers.get("lower", -np.inf), numbers.get("upper", np.inf))
            if numbers.get("sigma") != 0.0:
                estimated.append(key)
                sigma |= {key: numbers["sigma"]} if "sigma" in numbers else {}
        else:
            values[key] = read.number(value, where, key, fallback=TABLE[key].typical)
    car = CarDescription(values, tyre, tuple(estimated), bounds)
    return car, {n: sigma[n] for n in car.estimated if n in sigma}


def _read_sensors(read: Reader, top: Mapping[str, Node]) -> tuple[tuple[Sensor, ...], dict[At, int]]:
    if "sensors" not in top:
        return USUAL_SENSORS, {}
    parts = Parts(Places(read, 2))
    return tuple(parts.sensors(top["sensors"])), parts.lines


def car_lines(machine: Machine) -> list[str]:
    """The sections ``car``, ``sensors`` and ``parameters`` of a car."""
    car, u = machine.car, machine.uncertainty
    assert car is not None  # the caller looked
    if not {*car.bounds} | {*car.estimated} <= {*car.values}:
        raise ModelError(
            "bounds or a state of a parameter are given, but no value.", where=part_at(SECTION), source=machine.name
        )
    own = {} if u is None or not _independent(machine) else dict(zip(u.names, u.sigma.tolist(), strict=True))
    lines = [f"{SECTION}:", f"  tyre: {name_text(car.tyre)}"]
    for key, value in car.values.items():
        parts = {"value": number_text(value)}
        if key in car.estimated:
            parts |= {"sigma": number_text(own[key])} if key in own else {}
        elif key in car.bounds:
            parts["sigma"] = "0"
        ends = car.bounds.get(key, (-np.inf, np.inf))
        parts |= {word: number_text(x) for word, x in zip(("lower", "upper"), ends, strict=True) if np.isfinite(x)}
        known = key not in car.estimated and key not in car.bounds
        lines.append(
            f"  {key}: {parts['value'] if known else mapping_text(parts)}  # {TABLE[key].what}, {TABLE[key].unit}"
        )
    sensors = [flow("  - ", sensor_text(s)) for s in machine.sensors]
    lines += ["sensors:", *sensors] if sensors else ["sensors: []"]
    p, plain = machine.parameters, car_parameters(car)
    sizes = {n: number_text(x) for n, x, y in zip(p.names, p.typical, plain.typical, strict=True) if x != y}
    section = [flow("  typical: ", sizes)] if sizes else []
    section += [flow("  drifts: ", drift_texts(p.drifts))] if p.drifts else []
    section += uncertainty_lines(u) if u is not None and not own else []
    return [*lines, *(["parameters:", *section] if section else [])]


def _independent(machine: Machine) -> bool:
    """Whether deviations with the parameters say all: of estimated ones, in order, independent, and squares bring back the variances."""
    u, car = machine.uncertainty, machine.car
    assert u is not None and car is not None
    estimated = tuple(n for n in car.estimated if n in u.names)
    return (
        u.names == estimated and bool(np.array_equal(np.diag(u.sigma**2), u.covariance)) and bool((u.sigma > 0.0).all())
    )
