"""What must hold of a mechanism's description in natural coordinates; every fault is found before any is raised."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from veridyn.errors import Fault, Faults, did_you_mean, part_at, within
from veridyn.model.load import Drive, Force
from veridyn.model.place import GROUND, Marker, PointRef, check_marker, check_place
from veridyn.model.point_parts import Angle, Combination, DirectionRef, Elevation, MechanismParts, RigidBody, held
from veridyn.model.sensor import HEADINGS, ON_COORDINATE, OWN_AXES, reading_fault, sensor_faults
from veridyn.spatial.inertia import broken_law, from_centre

UNIT_LENGTH_ERROR = 1e-9  # by how much a unit vector may miss its length
PERPENDICULAR_COSINE = 1e-6  # the largest cosine of two directions that count as perpendicular
KINDS = ("spherical", "turning", "sliding", "cylindrical", "universal", "inline", "inplane", "distance")


def check_mechanism(m: MechanismParts, coordinates: Sequence[str], physical: bool = True) -> list[Fault]:
    """Every fault of a description, each with the name of the part it is in; `coordinates` are the names of all its coordinates."""
    faults = Faults()
    if m.dimension not in (2, 3):
        faults.add(
            "the points are neither in the plane nor in space.",
            where=part_at("points"),
            expected="two or three coordinates for each point",
            found=f"{m.dimension}",
        )
        return faults.found
    look = _Look(m, coordinates, faults)
    look.names()
    for p in m.points:
        look.place(p.at, part_at("point", p.name))
    for v in m.vectors:
        look.unit(v.along, part_at("vector", v.name))
    look.place(m.gravity, "gravity")
    for b in m.bodies:
        look.body(b, physical)
    look.joints()
    look.added()
    look.acting()
    look.sensors()
    return faults.found


def mechanism_sensor_faults(m: MechanismParts, coordinates: Sequence[str]) -> list[Fault]:
    """Every fault of a mechanism's sensors alone; `coordinates` are the names of all its coordinates."""
    faults = Faults()
    _Look(m, coordinates, faults).sensors()
    return faults.found


class _Look:
    """One pass over a description; faults are collected."""

    def __init__(self, m: MechanismParts, coordinates: Sequence[str], faults: Faults) -> None:
        self.m, self.all_coordinates, self.faults = m, list(coordinates), faults
        self.points = [p.name for p in m.points]
        self.vectors = [v.name for v in m.vectors]
        self.bodies = [b.name for b in m.bodies]
        self.coordinates = [a.name for a in m.added]

    def names(self) -> None:
        m = self.m
        groups = {
            "point or vector": [*self.points, *self.vectors, *self.coordinates],
            "body or joint": [*self.bodies, *(j.name for j in m.joints), *(r.name for r in m.racks)],
            "force": [f.name for f in (*m.springs, *m.dampers, *m.loads, *m.rotors)],
            "sensor": [s.name for s in m.sensors],
        }
        for kind, names in groups.items():
            for name, times in Counter(names).items():
                if times > 1:
                    self.faults.add(f"the name is used {times} times.", where=f"{kind} '{name}'")
                if name in ("", GROUND):
                    self.faults.add("this name is taken by the ground.", where=f"{kind} '{name}'")

    def place(self, at: object, where: str) -> bool:
        return check_place(at, self.m.dimension, where, self.faults)

    def unit(self, along: object, where: str) -> None:
        if self.place(along, where):
            length = float(np.linalg.norm(np.asarray(along, dtype=np.float64)))
            if abs(length - 1.0) > UNIT_LENGTH_ERROR:
                self.faults.add("a unit vector has length one.", where=where, expected="1", found=f"{length:.9g}")

    def known(self, name: str, names: list[str], kind: str, where: str) -> bool:
        if name not in names:
            self.faults.add(f"there is no {kind} '{name}'.", where=where, hint=did_you_mean(name, names))
        return name in names

    def body(self, b: RigidBody, physical: bool) -> None:
        where = part_at("body", b.name)
        if not b.points:
            self.faults.add("it has no point.", where=where, hint="A body has at least one point.")
        for name, at in b.points.items():
            self.known(name, self.points, "point", where)
            self.place(at, within(where, f"point '{name}'"))
        for name, along in b.vectors.items():
            self.known(name, self.vectors, "vector", where)
            self.unit(along, within(where, f"vector '{name}'"))
        if b.centre:
            self.place(b.centre, within(where, "centre"))
        self.inertia(b, where, physical)

    def inertia(self, b: RigidBody, where: str, physical: bool) -> None:
        J = np.asarray(b.inertia, dtype=np.float64)
        shapes = [()] if self.m.dimension == 2 else [(6,), (3, 3)]
        if self.m.dimension == 3 and J.shape == () and J == 0.0:
            J = np.zeros(6)
        if J.shape not in shapes or not np.isfinite(J).all() or not math.isfinite(b.mass):
            self.faults.add(
                "its inertia cannot be read.",
                where=where,
                expected="one finite number" if self.m.dimension == 2 else "(3, 3) or six finite numbers",
                found=f"mass {b.mass}, inertia of shape {J.shape}",
            )
        elif not physical:
            return
        elif self.m.dimension == 2:
            if b.mass < 0.0 or J < 0.0 or (b.mass == 0.0 and J > 0.0):
                self.faults.add(
                    "its inertia breaks a law of physics.",
                    where=where,
                    found=f"mass {b.mass:.6g}, inertia {float(J):.6g}",
                )
        else:
            if J.shape == (3, 3) and np.abs(J - J.T).max() > 1e-12 * np.abs(J).max():  # products near zero are rounded
                self.faults.add("its inertia is not symmetric.", where=where)
            law = broken_law(from_centre(b.mass, np.zeros(3), J))
            if law:
                self.faults.add("its inertia breaks a law of physics.", where=where, found=law)

    def point(self, ref: PointRef, where: str) -> None:
        if isinstance(ref, Marker):
            if ref.body != GROUND:
                self.known(ref.body, self.bodies, "body", where)
            self.place(ref.at, within(where, f"marker on '{ref.body}'"))
        else:
            self.known(ref, self.points, "point", where)

    def direction(self, ref: DirectionRef, where: str) -> None:
        if isinstance(ref, str):
            self.known(ref, self.vectors, "vector", where)
        elif isinstance(ref, Marker):
            self.point(ref, where)
            self.axis(ref, where)
        elif len(ref) == 2 and all(isinstance(r, str) for r in ref):
            for r in ref:
                self.known(str(r), self.points, "point", where)
            if ref[0] == ref[1]:
                self.faults.add("a direction needs two points.", where=where, found=f"'{ref[0]}' twice")
        else:
            self.unit(ref, where)

    def axis(self, ref: PointRef, where: str) -> None:
        if not isinstance(ref, Marker):
            self.faults.add(
                "this joint has an axis, and a point has none.",
                where=where,
                expected="a marker with an axis",
                found=f"point '{ref}'",
            )
        elif not ref.axis:
            self.faults.add("the marker has no axis.", where=within(where, f"marker on '{ref.body}'"))
        elif self.place(ref.axis, within(where, f"axis on '{ref.body}'")) and not np.any(ref.axis):
            self.faults.add("the axis has length zero.", where=within(where, f"axis on '{ref.body}'"))

    def side(self, ref: PointRef, where: str) -> None:
        if not isinstance(ref, Marker) or not ref.axis:
            return
        if not ref.side:
            self.faults.add(
                "a sliding joint in space needs a direction beside its axis on both bodies.",
                where=within(where, f"marker on '{ref.body}'"),
                hint="Give side=; the two sides stay parallel.",
            )
        elif self.place(ref.side, within(where, f"side on '{ref.body}'")):
            a, s = np.array(ref.axis), np.array(ref.side)
            if np.linalg.norm(np.cross(a, s)) < 1e-6 * np.linalg.norm(a) * max(np.linalg.norm(s), 1e-300):
                self.faults.add("the side is along the axis.", where=within(where, f"marker on '{ref.body}'"))

    def joints(self) -> None:
        plane = self.m.dimension == 2
        for j in self.m.joints:
            where = part_at("joint", j.name)
            if j.kind not in KINDS:
                self.faults.add(f"there is no joint of kind '{j.kind}'.", where=where, hint=did_you_mean(j.kind, KINDS))
                continue
            for end in (j.a, j.b):
                self.point(end, where)
                with_axis = j.kind in ("sliding", "universal") or (j.kind in ("turning", "cylindrical") and not plane)
                if with_axis or (j.kind in ("cylindrical", "inline", "inplane") and end is j.a):
                    self.axis(end, where)
                if j.kind == "sliding" and not plane:
                    self.side(end, where)
            if j.kind in ("universal", "inplane") and plane:
                self.faults.add(f"a joint of kind {j.kind} exists in space only.", where=where)
            if j.kind == "distance" and not (math.isfinite(j.length) and j.length > 0.0):
                self.faults.add(
                    "a distance joint needs its length.", where=where, expected="a positive length", found=f"{j.length}"
                )

    def added(self) -> None:
        for a in self.m.added:
            where = part_at("coordinate", a.name)
            if isinstance(a, Angle):
                for ref in (a.of, a.reference, a.towards):
                    if ref is not None:
                        self.direction(ref, where)
                if a.towards is None and self.m.dimension == 3:
                    self.faults.add(
                        "an angle in space needs the direction it is counted towards.",
                        where=where,
                        expected="towards=, perpendicular to reference= and to the axis",
                    )
                elif a.towards is not None:
                    self.square(a, where)
            elif isinstance(a, Elevation):
                for ref in (a.of, a.normal):
                    self.direction(ref, where)
                    self.rigid(ref, where)
            else:
                self.point(a.a, where)
                self.point(a.b, where)
                if a.along is not None:
                    self.direction(a.along, where)
                    self.rigid(a.along, where)
        angles = [a.name for a in self.m.added if isinstance(a, Angle | Elevation)]
        distances = [name for name in self.coordinates if name not in angles]
        for r in self.m.racks:
            where = part_at("rack", r.name)
            self.known(r.distance, distances, "added distance", where)
            self.known(r.angle, angles, "added angle", where)
            if not (math.isfinite(r.radius) and r.radius != 0.0 and math.isfinite(r.offset)):
                self.faults.add("a rack needs the radius of its pinion.", where=where, found=f"radius {r.radius}")

    def rigid(self, ref: DirectionRef, where: str) -> None:
        """A direction from point to point needs a body that holds both: only then is its length constant."""
        if isinstance(ref, str | Marker) or not all(isinstance(r, str) and r in self.points for r in ref):
            return
        found = held(self.m, ref)
        if not found:
            self.faults.add(
                f"no body has both points of the direction {ref[0]}-{ref[1]}, so it has no constant length.",
                where=where,
                expected="two points of one body, or two fixed ones",
                hint="Give a vector, or a marker with an axis.",
            )
        elif ref[0] != ref[1] and not any(np.linalg.norm(x) > 0.0 for x in found.values()):
            self.faults.add(f"the direction {ref[0]}-{ref[1]} has no length.", where=where)

    def square(self, a: Angle, where: str) -> None:
        """An angle's references must be perpendicular: with others sin and cos do not belong together."""
        assert a.towards is not None
        for ref in (a.reference, a.towards):
            self.rigid(ref, where)
        if self.faults:
            return
        first, second = held(self.m, a.reference), held(self.m, a.towards)
        for body in first.keys() & second.keys():
            e, f = first[body], second[body]
            cosine = float(e @ f) / float(np.linalg.norm(e) * np.linalg.norm(f))
            if abs(cosine) > PERPENDICULAR_COSINE:
                self.faults.add(
                    "the direction it is counted towards is not perpendicular to the one it is counted from.",
                    where=where,
                    expected="a right angle between them",
                    found=f"{math.degrees(math.acos(max(-1.0, min(1.0, cosine)))):.6g} degrees",
                )
                return

    def acting(self) -> None:
        for s in (*self.m.springs, *self.m.dampers):
            where = part_at("force", s.name)
            if isinstance(s.on, str):
                self.known(s.on, self.coordinates, "added coordinate", where)
            elif isinstance(s.on, Combination):
                for name, weight in s.on.weights:
                    self.known(name, self.coordinates, "added coordinate", where)
                    if not math.isfinite(weight):
                        self.faults.add("its numbers are not finite.", where=where)
            else:
                for ref in s.on:
                    self.point(ref, where)
        for s in self.m.springs:
            if not (math.isfinite(s.stiffness) and math.isfinite(s.rest)):
                self.faults.add("its numbers are not finite.", where=part_at("force", s.name))
        for d in self.m.dampers:
            if not math.isfinite(d.coefficient):
                self.faults.add("its number is not finite.", where=part_at("force", d.name))
        for r in self.m.rotors:
            where = part_at("force", r.name)
            for name in r.weights:
                self.known(name, self.coordinates, "added coordinate", where)
            if not (math.isfinite(r.inertia) and r.inertia >= 0.0):
                self.faults.add("it needs an inertia of zero or more.", where=where, found=f"{r.inertia}")
        for name in self.m.prescribed:
            self.known(name, self.coordinates, "added coordinate", part_at("prescribed"))
        for e in self.m.tyres:
            assert e.wheel is not None  # tyres of a machine have been checked with it
            self.point(e.wheel, part_at("element", e.parameter_name))
        for e in self.m.laws:
            for name in (*e.on, *e.named_coordinates):
                self.known(name, self.coordinates, "added coordinate", part_at("element", e.parameter_name))
        for load in self.m.loads:
            where = part_at("force", load.name)
            if isinstance(load, Drive):
                self.known(load.coordinate, self.coordinates, "added coordinate", where)
                if not math.isfinite(load.value):
                    self.faults.add("its number is not finite.", where=where)
            elif isinstance(load, Force):
                self.point(load.at, where)
                self.place(load.value, where)
            else:
                for body in (load.body, load.against):
                    if body != GROUND:
                        self.known(body, self.bodies, "body", where)
                value = np.asarray(load.value)
                size = 1 if self.m.dimension == 2 else 3
                if value.shape != (size,) or not np.isfinite(value).all():
                    self.faults.add(
                        "this is no torque here.",
                        where=where,
                        expected=f"{size} finite number(s)",
                        found=f"{load.value}",
                    )

    def sensors(self) -> None:
        angles = {a.name for a in self.m.added if isinstance(a, Angle)}
        for i in self.m.sensors:
            where = part_at("sensor", i.name)
            self.faults.extend(sensor_faults(i, self.m.dimension))
            if i.kind == "reading":
                self.faults.found.append(reading_fault(i))
                continue
            if i.kind in HEADINGS:
                if not (self.m.tyres or self.m.prescribed):
                    self.faults.add(
                        "natural coordinates have headings only with tyres or prescribed coordinates.",
                        where=where,
                        expected="formulation: tree",
                        found=f"kind {i.kind}",
                        hint="A velocity sensor with axes xy reads what a course is made of.",
                    )
                continue
            if i.kind == "distance":
                self.faults.add(
                    "natural coordinates read a distance as a coordinate.",
                    where=where,
                    expected="a sensor of kind coordinate on an added distance",
                    found="kind distance",
                )
                continue
            if i.turns and (i.kind != "coordinate" or i.on not in angles):
                self.faults.add(
                    "only an angle is read modulo a full turn.",
                    where=where,
                    expected="turns on a sensor of kind coordinate, on an added angle",
                    found=f"kind {i.kind}",
                )
            if isinstance(i.on, Marker):
                if i.kind in ON_COORDINATE:
                    self.faults.add("it reads a coordinate.", where=where, expected="the name of one", found="a marker")
                    continue
                check_marker(i.on, self.bodies, self.m.dimension, where, self.faults)
                if i.kind in OWN_AXES and i.on.body == GROUND:
                    self.faults.add("it stands on the ground and does not move.", where=where)
            elif i.kind in ON_COORDINATE:
                self.known(i.on, self.all_coordinates, "coordinate", where)
            elif i.kind == "gyroscope":
                self.known(i.on, self.bodies, "body", where)
            elif i.kind == "accelerometer":
                self.faults.add(
                    "an accelerometer has axes, and a point has none.", where=where, expected="a marker on a body"
                )
            else:
                self.point(i.on, where)
