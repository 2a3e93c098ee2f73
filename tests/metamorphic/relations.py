"""Relations: a machine and its log described another way, and how results go back.

    other_machine, other_log, back = relation(machine, log)      back.parameter("日本", …) → what it is in the first description

Each is a fact of mechanics or of bookkeeping, so nothing here depends on how veridyn computes. Rotations and sums in another order differ
by rounding; renaming, mirroring of signs and factors of powers of two do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import ArrayLike

import veridyn as vd
from metamorphic.machines import Array, turn
from veridyn.model.place import Attachment
from veridyn.spatial.inertia import INERTIAL, INERTIAL_UNITS

REFLECTED = np.diag([1.0, -1.0, 1.0])  # y in place of −y
ODD = ("XY", "YZ", "MY")  # inertial parameters that change their sign with y
# Powers of (length, mass, time)
DIMENSIONS = {"kg": (0, 1, 0), "m": (1, 0, 0), "s": (0, 0, 1), "rad": (0, 0, 0), "N": (1, 1, -2), "1": (0, 0, 0)}
EARLIER_S = 1024.0  # by which a clock is moved: exact for samples at powers of two


@dataclass(frozen=True)
class Back:
    """How results of another description go back to the first."""

    names: Mapping[str, str] = field(default_factory=dict)  # of bodies and coordinates: other → first
    mirrored: tuple[str, ...] = ()  # coordinates that count the other way, by their first names
    reflected: bool = False  # whether y is −y
    length: float = 1.0
    mass: float = 1.0
    time: float = 1.0
    start: float = 0.0  # s, that times are later

    def name(self, other: str) -> str:
        """The first name of a body or coordinate."""
        return self.names.get(other, other)

    def parameter(self, other: str) -> str:
        """The first name of a parameter of a body or element."""
        for name in sorted(self.names, key=len, reverse=True):
            if other.endswith(name):
                head = other.removesuffix(name).removesuffix("_")
                first = self.names[name]
                # A number follows the symbol directly, any other name behind a line.
                return head + first if first.isdigit() else f"{head}_{first}"
        return other

    def sign(self, parameter: str) -> float:
        """Of a parameter by its first name."""
        return -1.0 if self.reflected and parameter.startswith(ODD) else 1.0

    def turned(self, coordinate: str) -> float:
        """The sign of a coordinate by its first name."""
        return -1.0 if coordinate in self.mirrored else 1.0

    def scale(self, unit: str) -> float:
        """A number in `unit` of the other description, divided by the same of the first."""
        out = 1.0
        above, *below = unit.split("/")
        for part, sense in [(above, 1), *((b, -1) for b in below)]:
            for one in part.split("*"):
                base, _, power = one.partition("^")
                powers = sense * int(power or 1) * np.array(DIMENSIONS[base])
                out *= float(np.prod(np.array([self.length, self.mass, self.time]) ** powers))
        return out


class Related(NamedTuple):
    """Another description of a machine and its log, and the way back."""

    machine: vd.Machine
    log: vd.Experiment
    back: Back


Relation = Callable[[vd.Machine, vd.Experiment], Related]


def rebuilt(machine: vd.Machine, **changes: object) -> vd.Machine:
    """A machine made again from its parts, some of them others."""
    parts = {
        "links": machine.links,
        "joints": machine.joints,
        "name": machine.name,
        "elements": machine.elements,
        "sensors": machine.sensors,
        "controllers": machine.controllers,
        "gravity": machine.gravity,
        "formulation": machine.formulation,
    }
    return vd.Machine.build(**{**parts, **changes})  # pyright: ignore[reportArgumentType]


def recast(
    log: vd.Experiment,
    name: Callable[[str], str] = str,
    values: Callable[[str, str, Array], Array] = lambda prefix, coordinate, x: x,
    clock: Callable[[Array], Array] = lambda t: t,
) -> vd.Experiment:
    """A log with other names of coordinates, other values of a (prefix, coordinate, values), and another clock."""
    channels = []
    for c in log.channels.values():
        prefix, _, coordinate = c.name.partition(".")
        channels.append(
            replace(c, name=f"{prefix}.{name(coordinate)}", t=clock(c.t), values=values(prefix, coordinate, c.values))
        )
    return replace(log, channels={c.name: c for c in channels})


def named(**names: str) -> Relation:
    """Bodies and coordinates by other names: `names` are first → other, a body "1" as b1."""
    other = {n.removeprefix("b") if n[1:].isdigit() and n[0] == "b" else n: new for n, new in names.items()}
    new = lambda name: other.get(name, name)  # noqa: E731

    def relation(machine: vd.Machine, log: vd.Experiment) -> Related:
        links = [replace(k, name=new(k.name)) for k in machine.links]
        joints = [
            replace(
                j,
                name=new(j.name),
                a=replace(_end(j.a), body=new(_end(j.a).body)),
                b=replace(_end(j.b), body=new(_end(j.b).body)),
            )
            for j in machine.joints
        ]
        elements = [replace(e, on={new(c): x for c, x in e.on.items()}) for e in machine.elements]
        sensors = [
            replace(s, name=f"{s.name.partition('.')[0]}.{new(s.name.partition('.')[2])}", on=new(str(s.on)))
            for s in machine.sensors
        ]
        controllers = [replace(c, on=new(c.on)) for c in machine.controllers]
        described = rebuilt(
            machine, links=links, joints=joints, elements=elements, sensors=sensors, controllers=controllers
        )
        return Related(described, recast(log, new), Back({n: first for first, n in other.items()}))

    return relation


def _end(end: object) -> Attachment:
    assert isinstance(end, Attachment)
    return end


def columns_reversed(machine: vd.Machine, log: vd.Experiment) -> Related:
    """The last column of the log first."""
    return Related(machine, replace(log, channels=dict(reversed(log.channels.items()))), Back())


def clock_from(start: float) -> Relation:
    """The clock begins `start` s later."""
    return lambda machine, log: Related(machine, recast(log, clock=lambda t: t + start), Back(start=start))


def joints_reordered(machine: vd.Machine, log: vd.Experiment) -> Related:
    """Joints, links, elements and sensors listed from the last to the first."""
    parts = {n: getattr(machine, n)[::-1] for n in ("links", "joints", "elements", "sensors", "controllers")}
    return Related(rebuilt(machine, **parts), log, Back())


def axis_mirrored(coordinate: str) -> Relation:
    """The axis of one joint the other way: its frames are turned by half a turn about x, and its channels have the other sign."""
    half = np.diag([1.0, -1.0, -1.0])

    def relation(machine: vd.Machine, log: vd.Experiment) -> Related:
        joints = [
            replace(j, a=_turned_frame(j.a, half), b=_turned_frame(j.b, half)) if j.name == coordinate else j
            for j in machine.joints
        ]
        back = Back(mirrored=(coordinate,))
        turned = recast(log, values=lambda _, c, x: back.turned(c) * x)
        return Related(rebuilt(machine, joints=joints), turned, back)

    return relation


def _turned_frame(end: object, R: Array) -> Attachment:
    """The frame turned by R about its own axes."""
    there = _end(end)
    P = there.placement
    assert isinstance(P, vd.spatial.Placement)
    return replace(there, placement=vd.spatial.Placement(P.rotation @ R, P.position))


def world_turned(R: ArrayLike) -> Relation:
    """The ground's axes turned: gravity and the joints on the ground have other components, and nothing else changes."""
    A = np.asarray(R, dtype=np.float64)

    def relation(machine: vd.Machine, log: vd.Experiment) -> Related:
        def end(given: object) -> Attachment:
            there = _end(given)
            P = there.placement
            assert isinstance(P, vd.spatial.Placement)
            if there.body != "ground":
                return there
            return replace(there, placement=vd.spatial.Placement(A @ P.rotation, A @ P.position))

        joints = [replace(j, a=end(j.a), b=end(j.b)) for j in machine.joints]
        return Related(rebuilt(machine, joints=joints, gravity=A @ machine.gravity), log, Back())

    return relation


def world_reflected(machine: vd.Machine, log: vd.Experiment) -> Related:
    """The machine in a mirror: y is −y in every frame, and a right-handed turn about x or z a left-handed one."""
    S = REFLECTED

    def end(given: object) -> Attachment:
        there = _end(given)
        P = there.placement
        assert isinstance(P, vd.spatial.Placement)
        return replace(there, placement=vd.spatial.Placement(S @ P.rotation @ S, S @ P.position))

    signs = np.array([-1.0 if s in ODD else 1.0 for s in INERTIAL])
    links = [replace(k, inertia=signs * k.ten) for k in machine.links]
    joints = [replace(j, a=end(j.a), b=end(j.b)) for j in machine.joints]
    back = Back(mirrored=machine.coordinates, reflected=True)
    mirrored = recast(log, values=lambda _, c, x: -x)
    return Related(rebuilt(machine, links=links, joints=joints, gravity=S @ machine.gravity), mirrored, back)


def scaled(length: float = 1.0, mass: float = 1.0, time: float = 1.0) -> Relation:
    """Another machine whose lengths, masses and times are so many times those of the first: every number scales by its dimension."""
    back = Back(length=length, mass=mass, time=time)
    units = {"q": "rad", "encoder": "rad", "position": "rad", "command": "rad", "force": "N*m"}
    ten = np.array([back.scale(u) for u in INERTIAL_UNITS])

    def end(given: object) -> Attachment:
        there = _end(given)
        P = there.placement
        assert isinstance(P, vd.spatial.Placement)
        return replace(there, placement=vd.spatial.Placement(P.rotation, length * P.position))

    def relation(machine: vd.Machine, log: vd.Experiment) -> Related:
        links = [replace(k, inertia=ten * k.ten) for k in machine.links]
        joints = [replace(j, a=end(j.a), b=end(j.b)) for j in machine.joints]
        p = machine.parameters
        unit = dict(zip(p.names, p.units, strict=True))
        elements = [replace(e, value=e.value * back.scale(unit[e.parameter_name])) for e in machine.elements]
        gravity = back.scale("m/s^2") * machine.gravity
        larger = recast(log, values=lambda prefix, _, x: back.scale(units[prefix]) * x, clock=lambda t: time * t)
        return Related(rebuilt(machine, links=links, joints=joints, elements=elements, gravity=gravity), larger, back)

    return relation


# Bookkeeping and signs: the same floating-point numbers in another order, so that only sums may round differently.
DESCRIPTIONS: Mapping[str, Relation] = {
    "names": named(b1="upper", b2="lower", q1="shoulder", q2="elbow"),
    "names in other letters": named(b1="日本", b2="плечо", q1="関節", q2="ω_2"),
    "names swapped": named(b1="2", b2="1", q1="q2", q2="q1"),
    "columns": columns_reversed,
    "clock": clock_from(EARLIER_S),
    "clock below zero": clock_from(-EARLIER_S),
    "joints reordered": joints_reordered,
    "first axis mirrored": axis_mirrored("q1"),
    "second axis mirrored": axis_mirrored("q2"),
    "world reflected": world_reflected,
    "world turned about z": world_turned(turn("z", 0.7)),
    "world turned": world_turned(turn("x", 0.7) @ turn("y", -1.1)),
}
# Times by ten: cut-offs and dead zones are chosen to two or three decimal digits, so that they can be written down.
SCALES: Mapping[str, Relation] = {
    "lengths": scaled(length=2.0),
    "masses": scaled(mass=4.0),
    "times": scaled(time=10.0),
    "all": scaled(length=0.5, mass=8.0, time=10.0),
}
ALL = {**DESCRIPTIONS, **SCALES}
# Those that go different ways through the code; the others run in `make test-all`.
QUICK = ("names in other letters", "second axis mirrored", "all")
TWINS = ("names", "names swapped", "clock below zero", "first axis mirrored", "world turned about z", "lengths")
MOST = tuple(n for n in ALL if n not in TWINS)


def mostly_slow(names: Iterable[str], quick: Sequence[str] = QUICK) -> list[Any]:
    """Names as parameters of a test, slow ones but those that are `quick`."""
    return [pytest.param(n, marks=[] if n in quick else pytest.mark.slow) for n in names]
