"""Clocks of a machine's sensors against each other: a satellite receiver against the inertial unit, found from a log of both.

    v̇ = a_x,    χ̇ = a_y/v        speed v and course χ of the receiver, accelerations ahead and to the left of the inertial unit
    χ̇ = ψ̇ + β̇                   course against yaw rate: the sideslip β of a rolling vehicle leads by up to l/v

What is compared is the same motion twice, so an offset of the clocks shows as a lag. Course and lateral acceleration hold for any sideslip.
A yaw rate alone shows a lag only as well as the sideslip is known: its deviation allows for a lever of 1.5 m. Pitch and roll add a share
of gravity to the accelerations that comes a little later; deviations allow for that too. Known delays of the sensors are taken off first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Fault
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.place import Marker, frame
from veridyn.model.sensor import Sensor
from veridyn.signals.clock_offset import ClockOffset, estimate_clock_offset
from veridyn.signals.findings import Finding

Array = NDArray[np.float64]
TOLERATED_OFFSET_S = 0.02  # s
COURSE_ABOVE_SIGMAS = 5.0  # of the velocity's noise, below which a course is that of noise
COURSE_ABOVE = 1.0  # m/s, at least
FEWEST_SAMPLES = 10
SIDESLIP_LEVER_M = 1.5  # m ahead of the rear axle: there the course leads the yaw angle by that over the speed (chosen)
BODY_SWAY_S = 0.01  # s by which a body that rolls 0.02 rad per m/s² at 1.5 Hz makes lateral acceleration late (chosen)


def sensor_clock_offsets(sensors: Sequence[Sensor], log: Experiment) -> tuple[ClockOffset, ...]:
    """Of each sensor of a velocity along the ground's x and y, by how much it is late against the inertial sensors of its body.

    Of several comparisons that the motion allows, the one with the least deviation. The ground's z points up, and so, nearly, does that of
    the body, whose x points ahead.
    """
    found = []
    for receiver in (s for s in sensors if s.kind == "velocity" and not s.has_own_axes):
        seen = _seen(receiver, log)
        if seen is None:
            continue
        compared = []
        for other in sensors:
            if _body(other) == _body(receiver):
                compared += _compared(other, log, seen)
        known = [o for o in compared if o.determined]
        found += [min(known, key=lambda o: o.sigma)] if known else compared[:1]
    return tuple(found)


@dataclass(frozen=True, eq=False)
class _Seen:
    """Speed and course of a receiver on its clock without its known delay, and the samples at which it moves."""

    speed: Channel
    course: Channel
    usable: NDArray[np.bool_]


def _seen(receiver: Sensor, log: Experiment) -> _Seen | None:
    names = [f"{receiver.name}.{axis}" for axis in "xy"]
    if any(n not in log for n in names) or not np.array_equal(log[names[0]].t, log[names[1]].t):
        return None
    x, y = (log[n] for n in names)
    speed = np.hypot(x.values, y.values)
    usable = speed > max(COURSE_ABOVE, COURSE_ABOVE_SIGMAS * receiver.sigma)  # also false where it is not a number
    if usable.sum() < FEWEST_SAMPLES:
        return None
    course = np.full(len(x), np.nan)
    course[usable] = np.unwrap(np.arctan2(y.values[usable], x.values[usable]))
    t = x.t - receiver.delay
    return _Seen(Channel(receiver.name, t, speed, "m/s"), Channel(receiver.name, t, course, "rad"), usable)


def _compared(other: Sensor, log: Experiment, seen: _Seen) -> list[ClockOffset]:
    """The receiver against each motion that an inertial sensor shows of it."""
    if other.kind == "gyroscope" and (rate := _inertial(other, log, 2, "rad/s")) is not None:
        offset = estimate_clock_offset(rate, seen.course, usable=seen.usable)
        pace = float(np.median(seen.speed.values[seen.usable]))
        return [_allowing(offset, SIDESLIP_LEVER_M / pace / np.sqrt(3.0))]
    if other.kind != "accelerometer":
        return []
    found = []
    if (ahead := _inertial(other, log, 0, "m/s^2")) is not None:
        found.append(estimate_clock_offset(ahead, seen.speed, usable=seen.usable))
    if (left := _inertial(other, log, 1, "m/s^2")) is not None:
        pace = np.interp(left.t, seen.speed.t[seen.usable], seen.speed.values[seen.usable])
        turning = Channel(left.name, left.t, left.values / pace, "rad/s")
        found.append(estimate_clock_offset(turning, seen.course, usable=seen.usable))
    return [_allowing(offset, BODY_SWAY_S) for offset in found]


def _allowing(offset: ClockOffset, systematic: float) -> ClockOffset:
    """The same offset with the deviation of what the comparison leaves out."""
    return replace(offset, sigma=float(np.hypot(offset.sigma, systematic)))


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


def _inertial(sensor: Sensor, log: Experiment, axis: int, unit: str) -> Channel | None:
    """What the sensor shows along an axis of its body (0, 1, 2 for x, y, z), from its own axes; None without them in the log."""
    place = sensor.on if isinstance(sensor.on, Marker) else Marker(sensor.on, (0.0, 0.0, 0.0))
    axes = np.array(frame(place)) if place.axis else np.eye(3)
    share = np.where(np.abs(axes[:, axis]) > 1e-9, axes[:, axis], 0.0)
    needed = [f"{sensor.name}.{a}" for a, part in zip("xyz", share.tolist(), strict=True) if part]
    if any(n not in log for n in needed) or any(not np.array_equal(log[n].t, log[needed[0]].t) for n in needed):
        return None
    parts = share[share != 0.0]
    values = np.column_stack([log[n].values for n in needed]) @ parts - sensor.bias * parts.sum()
    good, t = np.isfinite(values), log[needed[0]].t - sensor.delay
    return Channel(sensor.name, t[good], values[good], unit) if good.sum() >= FEWEST_SAMPLES else None
