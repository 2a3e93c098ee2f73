"""What a sensor on a machine is: what it reads, how well, and on which clock. Data only; one type for every formulation.

``mechanics/tree/readout.py`` reads the sensors of trees, ``mechanics/natural/channels.py`` those of mechanisms in natural coordinates.

=============== ========================================================================== ========
kind            reads                                                                      outputs
=============== ========================================================================== ========
coordinate      a coordinate by name, as an encoder does: a joint's of a tree, any of a    1
                mechanism's natural coordinates
rate            its rate                                                                   1
position        a place, in the ground's axes                                              axes
velocity        its velocity: in the ground's axes, or in the axes of the sensor where     axes
                its marker has an axis
gyroscope       the angular velocity of a body, about the sensor's axes (plane: one)       axes
accelerometer   r̈ − g of a place, along the sensor's axes                                  axes
distance        the distance from `on` to `to` (trees)                                     1
course          the direction in which a place moves over the ground's x-y plane, from x   1
                to y (trees)
yaw             the direction of a body's x axis, or of the marker's axis, there (trees)   1
reading         a car of a few numbers (formulation single_track) by the name of what is   1
                read: `CAR_READINGS`
=============== ========================================================================== ========

A position has no components along axes that move with the body, so a `position` sensor on a marker with an axis is refused. A course says
nothing at standstill: a log has no reading of it there, or one that is marked as not available.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Literal, get_args

from veridyn.errors import Fault, Faults, ModelError, did_you_mean, part_at
from veridyn.model.place import GROUND, Home, Marker, PointRef, check_marker, moved_place

SensorKind = Literal[
    "coordinate", "rate", "position", "velocity", "gyroscope", "accelerometer", "distance", "course", "yaw", "reading"
]
KINDS: tuple[str, ...] = get_args(SensorKind)
ON_COORDINATE = ("coordinate", "rate")
HEADINGS = ("course", "yaw")  # angles modulo a full turn
SINGLE = (*ON_COORDINATE, "distance", *HEADINGS, "reading")  # one number, whatever the dimension
# Deviations whose squares, the squares of those and their inverses are numbers: filters multiply variances with each other.
SMALLEST_DEVIATION, LARGEST_DEVIATION = sys.float_info.min**0.25, sys.float_info.max**0.25
CAR_READINGS = {"yaw_rate": "rad/s", "ay": "m/s^2", "roll": "rad", "sideslip": "rad", "lateral_speed": "m/s"}
OWN_AXES = ("gyroscope", "accelerometer")  # always read along axes that move with the body


@dataclass(frozen=True)
class Sensor:
    """A sensor by the name of its channel: `on` a coordinate, a point, a body, or a marker.

    A marker's `axis` and `side` are the sensor's x and y; without them those of a gyroscope and an accelerometer are the body's. On a
    tree a body's name stands for its frame. `to`: the other end of a distance, a point, a body or a marker. `axes` chooses some of x, y,
    z. A sensor of several outputs has the channels "name.x" and so on. `sigma`: standard deviation of its white noise; `quantum`: the
    step between two readings; `rate` (Hz): its own clock, None for that of the log; `delay` (s): a reading stamped t is the truth at
    t − delay. `bias` is known and taken off. An unknown one has the standard deviation `bias_sigma` at the start and drifts by
    √(`bias_walk` · t); it is then estimated with the state. `turns`: it reads an angle modulo a full turn.

    Examples
    --------
    >>> import veridyn as vd
    >>> encoder = vd.Sensor("encoder", "coordinate", "hinge", sigma=1e-4, quantum=2e-4)
    >>> gyro = vd.Sensor("gyro", "gyroscope", "rod", sigma=0.01, bias_sigma=0.05)  # its bias is estimated
    >>> encoder.kind, gyro.delay
    ('coordinate', 0.0)
    """

    name: str
    kind: SensorKind
    on: PointRef
    sigma: float
    _: KW_ONLY
    to: PointRef | None = None
    axes: str = ""
    quantum: float = 0.0
    rate: float | None = None
    delay: float = 0.0
    bias: float = 0.0
    bias_sigma: float = 0.0
    bias_walk: float = 0.0
    turns: bool = False

    @property
    def variance(self) -> float:
        """Of one reading: noise, and Δ²/12 of the rounding."""
        return self.sigma**2 + self.quantum**2 / 12.0

    @property
    def wraps(self) -> bool:
        """Whether it reads an angle modulo a full turn."""
        return self.turns or self.kind in HEADINGS

    @property
    def drifts(self) -> bool:
        """Whether its bias is estimated."""
        return self.bias_sigma > 0.0 or self.bias_walk > 0.0

    @property
    def has_own_axes(self) -> bool:
        """Whether it reads along axes that move with the body."""
        return self.kind in OWN_AXES or (self.kind == "velocity" and isinstance(self.on, Marker) and bool(self.on.axis))

    def components(self, dimension: int) -> tuple[str, ...]:
        """The axes it reads, in order; nothing for a single number."""
        return () if self.kind in SINGLE else tuple(self.axes or self.all_axes(dimension))

    def all_axes(self, dimension: int) -> str:
        """The axes it can read: in the plane a gyroscope turns about z."""
        return "z" if self.kind == "gyroscope" and dimension == 2 else "xyz"[:dimension]

    def channels(self, dimension: int) -> tuple[str, ...]:
        """The names of its outputs."""
        return tuple(f"{self.name}.{a}" for a in self.components(dimension)) or (self.name,)

    def unit(self, angular: bool) -> str:
        """The unit of its readings, given whether its coordinate is an angle."""
        of = {"position": "m", "velocity": "m/s", "gyroscope": "rad/s", "accelerometer": "m/s^2", "distance": "m"}
        of |= dict.fromkeys(HEADINGS, "rad")
        if self.kind == "reading":
            return CAR_READINGS[str(self.on)]
        size = "rad" if angular else "m"
        return of.get(self.kind, size if self.kind == "coordinate" else f"{size}/s")

    def moved(self, homes: Mapping[str, Home]) -> Sensor:
        """The same sensor of a tree whose bodies have other frames: `homes` gives body → its new body and its old frame there."""
        if self.kind in ON_COORDINATE:
            return self
        to = self.to if self.to is None else moved_place(self.to, homes)
        return replace(self, on=moved_place(self.on, homes, self.kind in OWN_AXES), to=to)


Choice = Sequence[Sensor | str] | Mapping[str, Sensor | None]


def chosen_sensors(own: Sequence[Sensor], given: Choice | None, where: str) -> tuple[Sensor, ...]:
    """The sensors that are used: a machine's own, or what is given instead.

    A sequence lists all of them, a name standing for the machine's own. A mapping replaces the machine's own by name: one set to None is
    left out, the others stay. None leaves all as they are. `where`: who asks, for messages.

    Examples
    --------
    >>> encoder, gyro = Sensor("encoder", "coordinate", "q1", 1e-4), Sensor("gyro", "gyroscope", "arm", 0.01)
    >>> [s.name for s in chosen_sensors([encoder, gyro], {"gyro": None}, "observe")]
    ['encoder']
    """
    if given is None:
        return tuple(own)
    by_name = {s.name: s for s in own}
    named = [*given] if isinstance(given, Mapping) else [s for s in given if isinstance(s, str)]
    faults = Faults()
    for name in named:
        new = isinstance(given, Mapping) and given[name] is not None
        if name not in by_name and not new:
            faults.add(f"the machine has no sensor '{name}'.", where=where, hint=did_you_mean(name, list(by_name)))
    faults.raise_if_any(ModelError)
    if isinstance(given, Mapping):
        merged = {**by_name, **{name: s and replace(s, name=name) for name, s in given.items()}}
        return tuple(s for s in merged.values() if s is not None)
    return tuple(by_name[s] if isinstance(s, str) else s for s in given)


def sensor_faults(s: Sensor, dimension: int) -> list[Fault]:
    """What is wrong with a sensor's own numbers."""
    faults, where = Faults(), part_at("sensor", s.name)
    if s.kind not in KINDS:
        faults.add(f"there is no kind '{s.kind}'.", where=where, expected=", ".join(KINDS))
    for part in ("sigma", "quantum", "delay", "bias_sigma", "bias_walk"):
        value = getattr(s, part)
        if not (math.isfinite(value) and value >= 0.0):
            faults.add(f"its {part} is not usable.", where=where, expected="zero or more", found=f"{value:g}")
        elif part != "delay" and value and not SMALLEST_DEVIATION <= value <= LARGEST_DEVIATION:
            expected = f"zero, or {SMALLEST_DEVIATION:.0e} to {LARGEST_DEVIATION:.0e}"
            faults.add(f"its {part} is not usable.", where=where, expected=expected, found=f"{value:g}")
    if not faults and s.variance == 0.0:
        faults.add(
            "it has neither noise nor a quantum.",
            where=where,
            expected="a positive sigma or quantum",
            hint="No sensor is perfect, and a filter cannot weigh one without noise.",
        )
    if s.rate is not None and not (math.isfinite(s.rate) and s.rate > 0.0):
        faults.add("its rate is not usable.", where=where, expected="Hz above zero, or None", found=f"{s.rate:g}")
    if not math.isfinite(s.bias):
        faults.add("its bias is not usable.", where=where, expected="a finite number", found=f"{s.bias:g}")
    known = s.all_axes(dimension)
    if set(s.axes) - set(known) or len(set(s.axes)) != len(s.axes):
        faults.add("its axes cannot be read.", where=where, expected=f"some of {known}", found=s.axes)
    elif s.axes and s.kind in SINGLE:
        faults.add("it reads one number and has no axes.", where=where, expected=f"kind {s.kind} without axes=")
    if s.kind == "reading" and s.on not in CAR_READINGS:
        hint = did_you_mean(f"{s.on}", [*CAR_READINGS])
        faults.add(f"a car has no reading '{s.on}'.", where=where, hint=hint)
    if s.kind == "position" and isinstance(s.on, Marker) and (s.on.axis or s.on.side):
        faults.add(
            "a position is read in the ground's axes, and its marker has an axis.",
            where=where,
            expected="a marker without axis= and side=",
            hint="A velocity is read along the axes of its marker.",
        )
    if (s.kind == "distance") != (s.to is not None):
        faults.add(
            "a distance has two ends, every other kind has one.",
            where=where,
            expected="on= and to=" if s.kind == "distance" else "no to=",
            found="no to=" if s.to is None else "to=",
        )
    return faults.found


def reading_fault(s: Sensor) -> Fault:
    """That only a car of a few numbers has readings by name."""
    return Fault(
        "only a car described by a few numbers has readings by name.",
        where=part_at("sensor", s.name),
        expected="formulation: single_track, or a sensor on a body or a coordinate",
        found="kind reading",
    )


def check_sensors(sensors: Sequence[Sensor], bodies: Sequence[str], coordinates: Mapping[str, str]) -> list[Fault]:
    """Every fault of the sensors of a tree, from names of its bodies and kinds of its coordinates ("turning", "sliding")."""
    faults = Faults()
    for name, times in Counter(s.name for s in sensors).items():
        if times > 1:
            faults.add(f"the name is used {times} times.", where=part_at("sensor", name))
        if not name:
            faults.add("it has no name.", where=part_at("sensor", name))
    for s in sensors:
        where = part_at("sensor", s.name)
        faults.extend(sensor_faults(s, 3))
        if s.kind == "reading":
            faults.found.append(reading_fault(s))
            continue
        if s.turns and (s.kind != "coordinate" or coordinates.get(str(s.on)) != "turning"):
            faults.add(
                "only an angle is read modulo a full turn.",
                where=where,
                expected="turns on a sensor of kind coordinate, on a turning joint",
                found=f"kind {s.kind} on '{s.on}'",
            )
        if s.kind in ON_COORDINATE:
            if isinstance(s.on, Marker):
                faults.add("it reads a coordinate.", where=where, expected="the name of one", found="a marker")
            elif s.on not in coordinates:
                hint = did_you_mean(s.on, [*coordinates])
                faults.add(f"there is no coordinate '{s.on}'.", where=where, hint=hint)
            continue
        for end in (s.on,) if s.to is None else (s.on, s.to):
            if isinstance(end, Marker):
                check_marker(end, bodies, 3, where, faults)
            elif end != GROUND and end not in bodies:
                faults.add(f"there is no body '{end}'.", where=where, hint=did_you_mean(end, bodies))
        ends = [end.body if isinstance(end, Marker) else end for end in (s.on, s.to) if end is not None]
        if set(ends) == {GROUND}:
            faults.add("it stands on the ground and does not move.", where=where, expected="a place on a body")
        elif len(ends) == 2 and ends[0] == ends[1]:
            faults.add(f"both ends are on '{ends[0]}', so the distance is constant.", where=where)
    return faults.found
