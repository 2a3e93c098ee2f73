"""How late one channel is against another: the lag at which what the one integrates to changes as the other does.

    b(t + s) − b(t) = c + β (Ψ(t + s − d) − Ψ(t − d)),    Ψ = ∫ a dt        d: by how much b is late

Course against yaw rate, speed against forward acceleration: changes over a span s are mean rates, in which the noise of b is not amplified
and slow drift of a does not add up. d is the lag of the largest correlation, found on a grid and then to a fraction of a sample by
Gauss-Newton. Its deviation allows for correlated residuals (Newey and West, Econometrica 55, 1987, 703-708): spans overlap, and a
course is not a yaw angle. It is not less than a quarter of the way to lags that four deviations do not exclude.

The clock of a satellite receiver is compared with that of the inertial unit in a log of both:

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

from veridyn.arguments import as_array, checked
from veridyn.arrays import Array
from veridyn.errors import DataError, Fault
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.place import Marker, frame
from veridyn.model.sensor import Sensor
from veridyn.signals.findings import Finding
from veridyn.signals.outliers import runs

LEAST_CORRELATION = 0.5  # below it the two channels do not show the same motion (chosen)
GRID_STEPS = 200  # lags that are tried on either side of zero
REFINEMENTS = 10  # of Gauss and Newton
PROFILE_SIGMAS = 4.0  # lags whose squared residuals are within so many deviations of the least ones cannot be excluded
TOLERATED_OFFSET_S = 0.02  # s
COURSE_ABOVE_SIGMAS = 5.0  # of the velocity's noise, below which a course is that of noise
COURSE_ABOVE = 1.0  # m/s, at least
FEWEST_SAMPLES = 10
SIDESLIP_LEVER_M = 1.5  # m ahead of the rear axle: there the course leads the yaw angle by that over the speed (chosen)
BODY_SWAY_S = 0.01  # s by which a body that rolls 0.02 rad per m/s² at 1.5 Hz makes lateral acceleration late (chosen)


@dataclass(frozen=True)
class ClockOffset:
    """By how many seconds `late` comes after `reference`, with its standard deviation and the correlation at that lag."""

    late: str
    reference: str
    seconds: float
    sigma: float
    correlation: float

    @property
    def determined(self) -> bool:
        """Whether the motion in the log shows it."""
        return bool(np.isfinite(self.seconds))

    def beyond(self, limit: float, deviations: float = 2.0) -> bool:
        """Whether it is larger than `limit` (s) and than so many of its own deviations."""
        return self.determined and abs(self.seconds) > max(limit, deviations * self.sigma)


@checked
def estimate_clock_offset(
    rate: Channel,
    integral: Channel,
    *,
    span: float = 1.0,
    longest: float = 1.0,
    usable: NDArray[np.bool_] | None = None,
) -> ClockOffset:
    """By how much `integral` is late against `rate`, whose integral it is up to a scale and an offset.

    Parameters
    ----------
    rate : such as a yaw rate (rad/s) or a forward acceleration (m/s²).
    integral : such as a course, unwrapped (rad), or a speed (m/s), on a clock of its own.
    span : s over which changes are compared.
    longest : s; lags from −longest to longest are tried.
    usable : (N,) samples of `integral` that count; changes are taken within unbroken stretches of them.

    Returns
    -------
    ClockOffset : NaN seconds where the largest correlation is below 0.5, or at the end of the range, or where lags up to the end of the
        range explain the log about as well, as in a bend that tightens steadily.

    Examples
    --------
    >>> import numpy as np
    >>> from veridyn.model import Channel
    >>> from veridyn.signals import estimate_clock_offset
    >>> t, slow = np.arange(0.0, 30.0, 0.01), np.arange(0.0, 30.0, 0.1)
    >>> gyro = Channel("gyro.z", t, np.cos(0.7 * t) + 0.5 * np.sin(1.9 * t), "rad/s")
    >>> course = Channel("course", slow, np.sin(0.7 * (slow - 0.2)) / 0.7 - 0.5 * np.cos(1.9 * (slow - 0.2)) / 1.9, "rad")
    >>> round(estimate_clock_offset(gyro, course).seconds, 4)
    0.2
    """
    _check(rate, integral, span, longest)
    if usable is not None:
        as_array(usable, "estimate_clock_offset, usable", (len(integral.t),))
    i, j = _pairs(integral, span, usable)
    inside = (integral.t[i] - longest >= rate.t[0]) & (integral.t[j] + longest <= rate.t[-1])
    i, j = i[inside], j[inside]
    none = ClockOffset(integral.name, rate.name, np.nan, np.nan, np.nan)
    if len(i) < 10:
        return none
    change, begin, end = integral.values[j] - integral.values[i], integral.t[i], integral.t[j]
    steps = np.diff(rate.t)
    whole = np.concatenate([[0.0], np.cumsum(0.5 * steps * (rate.values[1:] + rate.values[:-1]))])

    def expected(d: float) -> Array:
        return np.interp(end - d, rate.t, whole) - np.interp(begin - d, rate.t, whole)

    if np.ptp(change) == 0.0 or np.ptp(whole) == 0.0:
        return none
    lags = np.linspace(-longest, longest, 2 * GRID_STEPS + 1)
    correlations = np.array([_correlation(expected(d), change) for d in lags.tolist()])
    best = int(np.argmax(correlations))
    if not correlations[best] > LEAST_CORRELATION or best in (0, len(lags) - 1):
        return ClockOffset(integral.name, rate.name, np.nan, np.nan, float(correlations[best]))
    d, low, high = float(lags[best]), float(lags[best - 1]), float(lags[best + 1])

    def fitted(d: float) -> tuple[Array, Array]:
        """Slopes of the model by d, scale and offset, at the best scale and offset for this lag, and what these leave."""
        slope = np.interp(begin - d, rate.t, rate.values) - np.interp(end - d, rate.t, rate.values)
        A = np.column_stack([expected(d), np.ones(len(begin))])
        best_fit = np.linalg.lstsq(A, change, rcond=None)[0]
        return np.column_stack([best_fit[0] * slope, A]), change - A @ best_fit

    for _ in range(REFINEMENTS):
        G, left = fitted(d)
        step = float(np.linalg.lstsq(G, left, rcond=None)[0][0])
        d = float(np.clip(d + step, low, high))
    lag = int(np.ceil(2.0 * span / np.median(np.diff(integral.t))))
    sigma, effective = _deviation(*fitted(d), lag)
    r = _correlation(expected(d), change)
    explained = np.maximum(correlations, 0.0) ** 2
    close = np.flatnonzero(1.0 - explained <= (1.0 - r * r) * (1.0 + PROFILE_SIGMAS**2 / effective))
    if len(close) and (close[0] == 0 or close[-1] == len(lags) - 1):  # other lags explain the log about as well
        return ClockOffset(integral.name, rate.name, np.nan, np.nan, r)
    wide = float(np.abs(lags[close] - d).max(initial=0.0)) / PROFILE_SIGMAS
    return ClockOffset(integral.name, rate.name, d, max(sigma, wide), r)


def _pairs(b: Channel, span: float, usable: NDArray[np.bool_] | None) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Samples and those one span later, both within one unbroken stretch."""
    good = np.isfinite(b.values) & (True if usable is None else np.asarray(usable, dtype=np.bool_))
    steps = np.diff(b.t)
    good_steps = good[1:] & good[:-1] & (steps <= 0.5 * span + 1e-12)
    first, second = [np.zeros(0, dtype=np.intp)], [np.zeros(0, dtype=np.intp)]
    for start, stop in runs(good_steps, 1):
        k = np.arange(start, stop + 2)
        after = start + np.searchsorted(b.t[k], b.t[k] + span - 1e-9)
        kept = after <= stop + 1
        first.append(k[kept])
        second.append(after[kept])
    return np.concatenate(first), np.concatenate(second)


def _correlation(x: Array, y: Array) -> float:
    a, b = x - x.mean(), y - y.mean()
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / size if size > 0.0 else 0.0


def _deviation(G: Array, left: Array, lag: int) -> tuple[float, float]:
    """Of the first unknown of a least-squares problem whose residuals are correlated over `lag` samples.

    Beside it the number of independent residuals with which it would be the same.
    """
    u = G * left[:, None]
    S = u.T @ u
    for k in range(1, min(lag, len(u) - 1) + 1):
        C = u[k:].T @ u[:-k]
        S += (1.0 - k / (lag + 1.0)) * (C + C.T)
    inverse = np.linalg.pinv(G.T @ G)
    variance, white = max((inverse @ S @ inverse)[0, 0], 0.0), float(left @ left) / len(left) * inverse[0, 0]
    effective = len(left) * white / variance if variance > white > 0.0 else float(len(left))
    return float(np.sqrt(variance)), effective


def _check(rate: Channel, integral: Channel, span: float, longest: float) -> None:
    for c in (rate, integral):
        if len(c) < 3 or not (np.isfinite(c.t).all() and (np.diff(c.t) > 0.0).all()):
            raise DataError(
                "its clock is not usable.", where=f"channel '{c.name}'", expected="three or more increasing times"
            )
    if not np.isfinite(rate.values).all():
        raise DataError("it holds values that are not numbers.", where=f"channel '{rate.name}'")
    if not (span > 0.0 and longest > 0.0):
        found = f"span {span:g} s, longest {longest:g} s"
        raise DataError("these times are not usable.", where="clock offset", expected="positive times", found=found)


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


def offset_findings(offsets: Sequence[ClockOffset]) -> tuple[Finding, ...]:
    """A warning for each offset beyond `TOLERATED_OFFSET_S` and two of its deviations."""
    found = []
    for o in offsets:
        if not o.beyond(TOLERATED_OFFSET_S):
            continue
        late, early = (o.late, o.reference) if o.seconds > 0.0 else (o.reference, o.late)
        what = f"its clock is {abs(o.seconds):.3f} ± {o.sigma:.3f} s late against '{early}'."
        shown = f"the same turns that much later (correlation {o.correlation:.2f})"
        hint = f"Give the sensor '{late}' delay: {abs(o.seconds):.3g}, or take its stamps from the receiver's own time."
        fault = Fault(what, f"sensor '{late}'", f"sensors on one clock, to {TOLERATED_OFFSET_S:g} s", shown, hint)
        found.append(Finding(channel=late, kind="clock offset", severity="warning", count=1, fault=fault))
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
