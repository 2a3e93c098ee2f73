"""Pulses of a wheel with holes as readings of its angle: at edges, where the angle is known, and nowhere else.

    edge n at φ = n p + φ₀,   p = 2π/holes
    φ(t_k) = n p + φ₀ + ω a,   a ~ uniform(a₁, a₂)        σ² = ω² (a₂ − a₁)²/12 + σ_ω² E a² + σ_h²

A count is sampled: at the sample where it changed, the edge passed a seconds before, within the last interval. One edge in an interval
that is shorter than p/ω lies anywhere in it, a₁ = 0 and a₂ = Δt; of several the last one is known better. With measured times of edges the
reading is made at the edge, and its deviation is that of the clock and of the holes. Taken at every sample instead, as if it were white,
the rounding of a count is an error that lasts from edge to edge, and a filter that averages it is far too sure of the speed.

At standstill a hole edge that vibrates before its sensor makes false counts. A signed count then goes up and down by one; an unsigned one
goes up. Either is distinguished from rolling by other channels: the other wheels, and a speed or a yaw rate that is near zero. A wheel that
counts on while all of these stand does not roll.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import copysign, hypot, isfinite, pi, sqrt
from types import MappingProxyType
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.arguments import as_array, checked, checked_record
from veridyn.arrays import Array
from veridyn.errors import DataError, Fault, Faults, did_you_mean
from veridyn.model.experiment import Channel, Experiment
from veridyn.settings import above, at_least
from veridyn.signals.findings import Finding, Findings

ROUNDED = 1e-3  # of a pitch: numbers of a log have few digits
Mask = NDArray[np.bool_]
ROLLED_EDGES = 1  # that another wheel may pass while this one counts `least`: it stands, or just moves off


@checked_record
@dataclass(frozen=True, kw_only=True)
class PulseWheel:
    """A wheel with holes, edge n of which passes at the angle n·2π/holes + phase (rad).

    Parameters
    ----------
    holes : int of at least 1
        Edges in one turn.
    signed : bool
        Whether the count goes down when the wheel turns back; if not, every edge counts upwards, and the wheel goes forward.
    phase : float
        Angle of the wheel when edge 0 passes, rad.
    hole_sigma : float above 0
        Deviation of a hole from its place, rad.
    clock_sigma : float of at least 0
        Deviation of measured times of edges, s.
    """

    holes: Annotated[int, at_least(1)] = 40
    signed: bool = True
    phase: float = 0.0
    hole_sigma: Annotated[float, above(0.0)] = 1e-4
    clock_sigma: Annotated[float, at_least(0.0)] = 0.0

    def __post_init__(self) -> None:
        faults = Faults()
        if self.holes < 1:
            faults.add("it has no holes.", where="pulse wheel", expected="holes of 1 or more", found=f"{self.holes}")
        for name, low in (("phase", -np.inf), ("hole_sigma", 0.0), ("clock_sigma", 0.0)):
            value = getattr(self, name)
            if not (isfinite(value) and value >= low):
                faults.add(f"its {name} is not usable.", where="pulse wheel", found=f"{value:g}")
        if self.hole_sigma == 0.0:
            hint = "At a crawl nothing else is left of a reading's noise, and a filter cannot weigh one without any."
            faults.add("its hole_sigma is zero.", where="pulse wheel", expected="a positive number (rad)", hint=hint)
        faults.raise_if_any(DataError)

    @property
    def pitch(self) -> float:
        """The angle between two edges (rad)."""
        return 2.0 * pi / self.holes


class PulseReading(NamedTuple):
    """The wheel's angle (rad) at the time `t` (s), and the standard deviation of that reading."""

    t: float
    angle: float
    sigma: float


class PulseReader:
    """Makes readings of a count that is sampled, one sample after the other, beside a running program.

    Examples
    --------
    >>> from veridyn.signals import PulseReader, PulseWheel
    >>> reader = PulseReader(PulseWheel(holes=40))
    >>> reader.step(0.000, 6, speed=10.0)  # the first count tells no edge
    >>> reader.step(0.002, 6, speed=10.0)
    >>> reading = reader.step(0.004, 7, speed=10.0)
    >>> round(reading.angle - 7 * 0.15708, 4), round(reading.sigma, 4)  # ω Δt/2 and ω Δt/√12
    (0.01, 0.0058)
    """

    def __init__(self, wheel: PulseWheel) -> None:
        self.wheel = wheel
        self._t = self._count = np.nan
        self._place = 0  # number of the last edge at or behind the wheel's angle
        self._direction = 1.0

    def step(self, t: float, count: float, speed: float, speed_sigma: float = 0.0) -> PulseReading | None:
        """The reading at `t`, None where no edge has passed; `speed` (rad/s) with its deviation as the observer has them.

        A speed that is not a number makes no reading: the edge is counted all the same.
        """
        before, self._t = self._t, t
        if np.isnan(self._count):
            self._place = round(count) if self.wheel.signed else 0
            self._count = count
            return None
        edges, self._count = count - self._count, count
        if edges == 0.0:
            return None
        if self.wheel.signed:
            self._direction = copysign(1.0, edges)
        elif speed != 0.0 and isfinite(speed):
            self._direction = copysign(1.0, speed)
        self._place += int(self._direction) * round(abs(edges))
        if not isfinite(speed):
            return None
        return self._reading(t, t - before, round(abs(edges)), speed * self._direction, speed_sigma)

    @property
    def last_edge(self) -> float:
        """The angle of the last edge that passed (rad)."""
        last = self._place if self._direction > 0.0 else self._place + 1
        return last * self.wheel.pitch + self.wheel.phase

    def skip(self, t: float, count: float) -> None:
        """Take a count that is known to be false: no edge has passed, whatever it says."""
        if self.wheel.signed and not np.isnan(self._count):
            self._place += round(count - self._count)  # it comes back by itself
        self._t, self._count = t, count

    def _reading(self, t: float, dt: float, edges: int, along: float, speed_sigma: float) -> PulseReading:
        """After so many edges in dt seconds; `along`: the speed in their direction."""
        if along < 0.0:  # the estimate has the wrong sign: the wheel has just turned round
            along, speed_sigma = 0.0, hypot(speed_sigma, along)
        low, high = edge_ages(dt, edges, self.wheel.pitch, along)
        middle, width = 0.5 * (low + high), high - low
        noise = (along * width) ** 2 / 12.0 + speed_sigma**2 * (middle**2 + width**2 / 12.0)
        angle = self.last_edge + self._direction * along * middle
        return PulseReading(t, angle, sqrt(noise + self.wheel.hole_sigma**2))


def edge_ages(dt: float, edges: int, pitch: float, speed: float) -> tuple[float, float]:
    """The shortest and longest time since the last of so many edges, all in the last dt seconds, at a speed of zero or more."""
    if speed * dt <= 0.0:
        return 0.0, dt
    apart = pitch / speed
    low, high = max(0.0, dt - edges * apart), min(apart, dt - (edges - 1) * apart)
    return (low, high) if high > low else (0.0, min(apart, dt))  # a speed that does not go with the count


@checked
def readings_of_counts(
    count: Channel, wheel: PulseWheel, name: str, *, speed: Channel | None = None, false: ArrayLike | None = None
) -> tuple[Channel, ...]:
    """Readings of a wheel's angle from its sampled count: the channels `name` and `name.sigma`, at the samples where the count changed.

    Parameters
    ----------
    count : the number of edges passed, ("1").
    wheel : its holes, and whether the count is signed.
    name : the output of the sensor of the wheel's angle.
    speed : rate of the wheel (rad/s), from another sensor; its sign is the direction of an unsigned count. Without it the speed is that
        from edge to edge, with the change since the edge before as its deviation, and an unsigned count goes forward.
    false : (N,) samples whose change is no edge (:func:`veridyn.signals.pulses.find_false_counts`); with it there is a channel
        `name.available`, 0 there.

    Returns
    -------
    channels : of one clock; ``log.replacing(*channels)`` puts them into a log. Without `speed` the first edge has none and is left out.
    """
    t, n = count.t, count.values
    _check_count(count)
    wrong = (
        np.zeros(len(n), dtype=np.bool_)
        if false is None
        else as_array(false, "readings_of_counts, false", (len(n),)) > 0.0
    )
    rates, deviations = _paces(t, n, wrong, wheel) if speed is None else _given(speed, t)
    reader, found, available = PulseReader(wheel), list[PulseReading](), list[float]()
    for now, value, rate, deviation, bad in zip(
        t.tolist(), n.tolist(), rates.tolist(), deviations.tolist(), wrong.tolist(), strict=True
    ):
        if bad:
            reader.skip(now, value)
            found.append(PulseReading(now, reader.last_edge, wheel.pitch))
            available.append(0.0)
        elif (reading := reader.step(now, value, rate, deviation)) is not None:
            found.append(reading)
            available.append(1.0)
    return _channels(found, name, available if false is not None else None)


@checked
def count_of_rounded(angle: Channel, wheel: PulseWheel) -> tuple[Channel, PulseWheel]:
    """The count behind a wheel's angle that was rounded to the nearest hole, and the wheel whose edges lie half a pitch earlier.

    Examples
    --------
    >>> import numpy as np
    >>> from veridyn.model import Channel
    >>> from veridyn.signals import PulseWheel, count_of_rounded
    >>> rounded = Channel("angle_fl", np.arange(4) * 0.002, np.pi / 20 * np.array([0.0, 0.0, 1.0, 1.0]), "rad")
    >>> count, wheel = count_of_rounded(rounded, PulseWheel(holes=40))
    >>> count.values.tolist(), round(wheel.phase, 4)
    ([0.0, 0.0, 1.0, 1.0], -0.0785)
    """
    n = (angle.values - wheel.phase) / wheel.pitch
    whole = np.round(n)
    if angle.unit != "rad" or not (np.abs(n - whole) < ROUNDED).all():
        found = angle.unit if angle.unit != "rad" else "values between them"
        expected = f"whole steps of {wheel.pitch:.6g} rad"
        raise DataError(
            "it is no rounded angle of this wheel.", where=f"channel '{angle.name}'", expected=expected, found=found
        )
    return Channel(angle.name, angle.t, whole, "1"), replace(wheel, phase=wheel.phase - 0.5 * wheel.pitch)


@checked
def readings_of_edges(edges: ArrayLike, wheel: PulseWheel, name: str, *, first: int = 1) -> tuple[Channel, ...]:
    """Readings of a wheel's angle at measured times (s) of its edges, forward: the channels `name` and `name.sigma`.

    `first`: number of the first edge. The deviation is √(hole_sigma² + (ω clock_sigma)²), with ω from edge to edge.
    """
    t = np.asarray(edges, dtype=np.float64)
    if t.ndim != 1 or not np.isfinite(t).all() or (np.diff(t) <= 0.0).any():
        raise DataError(
            "times of edges do not increase.", where=f"edges of '{name}'", expected="finite times, one after the other"
        )
    angle: Array = wheel.pitch * (first + np.arange(len(t), dtype=np.float64)) + wheel.phase
    rate = np.diff(angle) / np.diff(t)
    rate = np.concatenate([rate[:1], rate]) if len(rate) else np.zeros(len(t))
    sigma = np.hypot(wheel.hole_sigma, rate * wheel.clock_sigma)
    return Channel(name, t, angle, "rad"), Channel(f"{name}.sigma", t, sigma, "rad")


@checked
def edges_of_intervals(start: float, intervals: ArrayLike) -> Array:
    """Times of edges (N + 1,) from that of the first one and the intervals (N,) between them, s: none may be left out."""
    steps = np.asarray(intervals, dtype=np.float64)
    if steps.ndim != 1 or not np.isfinite(steps).all() or (steps <= 0.0).any():
        raise DataError(
            "an interval between edges is not usable.", where="intervals", expected="positive times (s), all of them"
        )
    return start + np.concatenate([[0.0], np.cumsum(steps)])


def _check_count(count: Channel) -> None:
    n = count.values
    if count.unit != "1" or not np.isfinite(n).all() or (n != np.round(n)).any():
        found = count.unit if count.unit != "1" else "values that are not whole numbers"
        raise DataError(
            "it is no count.", where=f"channel '{count.name}'", expected="whole numbers of unit 1", found=found
        )


def _given(speed: Channel, t: Array) -> tuple[Array, Array]:
    if speed.unit != "rad/s":
        raise DataError(
            "it is no rate of a wheel.", where=f"channel '{speed.name}'", expected="rad/s", found=speed.unit
        )
    return np.interp(t, speed.t, speed.values), np.zeros(len(t))


def _paces(t: Array, n: Array, wrong: NDArray[np.bool_], wheel: PulseWheel) -> tuple[Array, Array]:
    """Rate (N,) from edge to edge at the samples where a count changed, and its deviation; NaN at the first of them, zero elsewhere."""
    rates, deviations = np.zeros(len(t)), np.zeros(len(t))
    changed = np.flatnonzero(np.diff(n)) + 1
    changed = changed[~wrong[changed]]
    if len(changed) == 0:
        return rates, deviations
    moved, dt = n[changed] - n[changed - 1], t[changed] - t[changed - 1]
    edge = np.where(moved > 0.0, n[changed], n[changed] + 1.0) if wheel.signed else np.cumsum(moved)
    passed = np.diff(t[changed] - 0.5 * dt)
    pace = wheel.pitch * np.diff(edge) / passed
    rounding = pace * np.hypot(dt[1:], dt[:-1]) / np.sqrt(12.0) / passed
    rates[changed] = np.concatenate([[np.nan], pace])
    deviations[changed] = np.concatenate([[np.nan], np.hypot(rounding, np.diff(pace, prepend=0.0))])
    return rates, deviations


def _channels(found: list[PulseReading], name: str, available: list[float] | None) -> tuple[Channel, ...]:
    t, angle, sigma = np.array(found, dtype=np.float64).reshape(-1, 3).T
    out = Channel(name, t, angle, "rad"), Channel(f"{name}.sigma", t, sigma, "rad")
    return out if available is None else (*out, Channel(f"{name}.available", t, np.array(available), "1"))


@dataclass(frozen=True, eq=False)
class FalseCounts:
    """Of each wheel which samples (N,) of its count change by no edge, and what was found in words."""

    false: Mapping[str, Mask]
    findings: Findings


@checked
def find_false_counts(
    log: Experiment,
    counts: tuple[str, ...],
    *,
    still: Mapping[str, float] = MappingProxyType({}),
    window: float = 0.5,
    least: int = 3,
) -> FalseCounts:
    """Find counts that change though everything else stands.

    Parameters
    ----------
    log : with the channels of `counts` (unit 1), and of `still`.
    counts : the channels of the wheels' counts.
    still : channel → size below which it says that the machine stands, such as ``{"speed": 0.1, "gyro.z": 0.01}``.
    window, least : a wheel counts falsely where it changes `least` times within `window` (s) and, over the same time, every channel of
        `still` stays below its size, or, where none are given, every other wheel passes at most one edge.

    Returns
    -------
    FalseCounts : masks by wheel for :func:`veridyn.signals.pulses.readings_of_counts`, and findings that name the wheel and the time. A
        driven wheel that spins while the machine stands looks the same; the finding says so.
    """
    if len(counts) < 2 and not still:
        what = "nothing tells whether the machine stands."
        expected = "another wheel's count, or a channel under still"
        raise DataError(what, where=f"{log.name}, counts {', '.join(counts)}", expected=expected)
    for name in (*counts, *still):
        if name not in log:
            raise DataError(f"there is no channel '{name}'.", where=log.name, hint=did_you_mean(name, log.names))
    moving = [log[name].t[~(np.abs(log[name].values) < limit)] for name, limit in still.items()]
    false, findings = {}, []
    for name in counts:
        channel = log[name]
        others = [] if still else [log[n] for n in counts if n != name]
        mask = _false_of(channel, others, moving, window, least)
        if mask.any():
            findings.append(_finding(channel, np.flatnonzero(mask), [*still] or [c.name for c in others]))
        false[name] = mask
    return FalseCounts(false, Findings(log.name, tuple(findings)))


def _false_of(count: Channel, others: list[Channel], moving: list[Array], window: float, least: int) -> Mask:
    """Which samples of a count change within a window in which it changes often and nothing else moves."""
    changed = np.flatnonzero(np.diff(count.values)) + 1
    t, mask = count.t[changed], np.zeros(len(count), dtype=np.bool_)
    ends = np.searchsorted(t, t + window, side="right")
    for i in np.flatnonzero(ends - np.arange(len(t)) >= least).tolist():
        first, last = float(t[i]), float(t[ends[i] - 1])
        stands = all(np.searchsorted(m, last, side="right") == np.searchsorted(m, first) for m in moving)
        if stands and all(_range(c, first, last) <= ROLLED_EDGES for c in others):
            mask[changed[i : ends[i]]] = True
    return mask


def _range(count: Channel, first: float, last: float) -> float:
    """How far a count goes between two times."""
    lo, hi = max(int(np.searchsorted(count.t, first)) - 1, 0), int(np.searchsorted(count.t, last, side="right"))
    part = count.values[lo:hi]
    return float(part.max() - part.min()) if len(part) else 0.0


def _finding(count: Channel, bad: NDArray[np.intp], witnesses: list[str]) -> Finding:
    steps = np.diff(count.values)[bad - 1]
    toggles = bool((steps > 0.0).any() and (steps < 0.0).any())
    first, last = count.t[bad[[0, -1]]].tolist()
    what = f"it counts {len(bad)} edges at standstill, first at t = {first:.6f} s."
    expected = "a count that rests while " + ", ".join(f"'{n}'" for n in witnesses) + " stand"
    found = ("it goes up and down" if toggles else "it goes on") + f" until t = {last:.6f} s"
    hint = "A hole edge vibrates before its sensor, or a driven wheel spins; these counts are not used as edges."
    fault = Fault(what, f"channel '{count.name}'", expected, found, hint)
    return Finding.of(count, "false count", "warning", bad, fault)
