"""Clocks of a machine's sensors against each other: a satellite receiver against the inertial unit, found from a log of both.

The course of a velocity in the ground's axes turns with the yaw rate of the body that carries the receiver, and its size changes with the
acceleration ahead. What is compared is the same motion twice, so an offset of the clocks shows as a lag. Known delays of the sensors are
taken off first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Fault
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.place import Marker, frame
from veridyn.model.sensor import Sensor
from veridyn.signals.clock_offset import ClockOffset, clock_offset
from veridyn.signals.findings import Finding

Array = NDArray[np.float64]
TOLERATED_OFFSET_S = 0.02  # s
COURSE_ABOVE_SIGMAS = 5.0  # of the velocity's noise, below which a course is that of noise
COURSE_ABOVE = 1.0  # m/s, at least
FEWEST_SAMPLES = 10


def sensor_clock_offsets(sensors: Sequence[Sensor], log: Experiment) -> tuple[ClockOffset, ...]:
    """Of each sensor of a velocity along the ground's x and y, by how much it is late against the inertial sensors of its body.

    Of several comparisons that the motion allows, the one with the least deviation. The ground's z points up, and so, nearly, does that of
    the body, whose x points ahead.
    """
    found = []
    for receiver in (s for s in sensors if s.kind == "velocity" and not s.has_own_axes):
        names = [f"{receiver.name}.{axis}" for axis in "xy"]
        if any(n not in log for n in names) or not np.array_equal(log[names[0]].t, log[names[1]].t):
            continue
        x, y = (log[n] for n in names)
        speed = np.hypot(x.values, y.values)
        usable = speed > max(COURSE_ABOVE, COURSE_ABOVE_SIGMAS * receiver.sigma)  # also false where it is not a number
        if usable.sum() < FEWEST_SAMPLES:
            continue
        course = np.full(len(x), np.nan)
        course[usable] = np.unwrap(np.arctan2(y.values[usable], x.values[usable]))
        seen = {
            kind: Channel(receiver.name, x.t - receiver.delay, values, unit)
            for kind, values, unit in (("gyroscope", course, "rad"), ("accelerometer", speed, "m/s"))
        }
        compared = []
        for other in sensors:
            rate = _inertial(other, log) if other.kind in seen and _body(other) == _body(receiver) else None
            if rate is not None:
                compared.append(clock_offset(rate, seen[other.kind], usable=usable))
        known = [o for o in compared if o.determined]
        found += [min(known, key=lambda o: o.sigma)] if known else compared[:1]
    return tuple(found)


def offset_findings(offsets: Sequence[ClockOffset], limit: float = TOLERATED_OFFSET_S) -> tuple[Finding, ...]:
    """A warning for each offset beyond `limit` (s) and two of its deviations."""
    found = []
    for o in offsets:
        if not o.beyond(limit):
            continue
        late, early = (o.late, o.reference) if o.seconds > 0.0 else (o.reference, o.late)
        fault = Fault(
            f"its clock is {abs(o.seconds):.3f} ± {o.sigma:.3f} s late against '{early}'.",
            f"sensor '{late}'",
            f"sensors on one clock, to {limit:g} s",
            f"the same turns that much later (correlation {o.correlation:.2f})",
            f"Give the sensor '{late}' delay: {abs(o.seconds):.3g}, or take its stamps from the receiver's own time.",
        )
        found.append(
            Finding(
                channel=late,
                kind="clock offset",
                severity="warning",
                t_start=np.nan,
                t_end=np.nan,
                count=1,
                message=str(fault),
                fault=fault,
            )
        )
    return tuple(found)


def _body(sensor: Sensor) -> str:
    return sensor.on.body if isinstance(sensor.on, Marker) else sensor.on


def _inertial(sensor: Sensor, log: Experiment) -> Channel | None:
    """The rate about the body's z axis, or the acceleration along its x axis, from the axes of the sensor; None without them in the log."""
    place = sensor.on if isinstance(sensor.on, Marker) else Marker(sensor.on, (0.0, 0.0, 0.0))
    axes = np.array(frame(place)) if place.axis else np.eye(3)
    share = axes[:, 2 if sensor.kind == "gyroscope" else 0]
    needed = [f"{sensor.name}.{a}" for a, part in zip("xyz", share.tolist(), strict=True) if abs(part) > 1e-9]
    if any(n not in log for n in needed) or any(not np.array_equal(log[n].t, log[needed[0]].t) for n in needed):
        return None
    parts = share[np.abs(share) > 1e-9]
    values = np.column_stack([log[n].values for n in needed]) @ parts - sensor.bias * parts.sum()
    good = np.isfinite(values)
    unit = "rad/s" if sensor.kind == "gyroscope" else "m/s^2"
    t = log[needed[0]].t - sensor.delay
    return Channel(sensor.name, t[good], values[good], unit) if good.sum() >= FEWEST_SAMPLES else None
