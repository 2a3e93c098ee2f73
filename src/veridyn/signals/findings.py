"""What was found wrong with a log, each finding with its channel, kind, severity, times and a message; and values that cannot be.

"fatal": the data cannot be resampled or filtered; "warning": what follows is biased by it; "note": worth knowing.
Times are in seconds. A finding is a :class:`veridyn.errors.Fault` that did not have to be raised.

Speeds that no joint has, clocks too slow for any motion and channels outside of the range of what they measure come from degrees for
radians, milliseconds for seconds, or an absurd amplitude; a unit that was named wrongly is guessed:

    beyond(log, {"clearance.*": (-0.6, 0.3), "inertial.omega.*": (-3.0, 3.0)})

A clearance of -295 in metres is one in millimetres: where one common factor brings all of a channel into its range, the finding says so.

Forces in coarse steps are values that are all multiples of one number q, as where a column was written in whole numbers. Rounding to steps
q adds q²/12 to the variance of a signal, and where its own noise σ is above q/2 that error is independent of the value (Widrow 1956), so
that it harms nothing more. Below it is not independent; and truncation takes q/2 in the mean away from every value, towards zero against
its sign, as dry friction acts, so that friction, and what holds weights, come out wrong by many deviations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import DataError, DataWarning, Fault, warn
from veridyn.model.experiment import Channel, Experiment
from veridyn.signals.conditioning import HARMLESS_NOISE
from veridyn.signals.outliers import REST_SAMPLES

Kind = Literal[
    "empty",
    "clock nan",
    "backwards",
    "duplicate",
    "gap",
    "jitter",
    "nan",
    "constant",
    "clipping",
    "spike",
    "dropout",
    "frozen",
    "held",
    "coarse",
    "standstill",
    "missing",
    "unit",
    "range",
    "contradiction",
    "false count",
    "clock offset",
]
Severity = Literal["note", "warning", "fatal"]
FASTEST_TURNING = 60.0  # rad/s of a joint with its links; 20 m/s of a sliding one (chosen)
FASTEST_SLIDING = 20.0
ONE_WAY_SHARE = 0.5  # of its largest speed: what goes one way so fast in the mean is a wheel or a vehicle (chosen)
SIMULATED = "Look at the amplitudes, forces and units of the simulation: degrees for radians do this."
SLOWEST_CLOCK = 5.0  # Hz (chosen)
MILLISECONDS = "Is the time in milliseconds, and declared as seconds?"
Ranges = Mapping[str, tuple[float, float]]
# SI unit → what is often recorded in its place, and the factor that makes SI of it.
MISTAKEN: Mapping[str, tuple[tuple[str, float], ...]] = {
    "m": (("millimetres", 1e-3), ("centimetres", 1e-2)),
    "rad": (("degrees", np.pi / 180.0), ("milliradians", 1e-3)),
    "rad/s": (("degrees per second", np.pi / 180.0),),
    "m/s": (("kilometres per hour", 1.0 / 3.6),),
    "m/s^2": (("millimetres per second squared", 1e-3),),
    "N": (("millinewtons", 1e-3), ("decanewtons", 10.0)),
    "N*m": (("newton millimetres", 1e-3),),
}
FORCE_UNITS = ("N", "N*m", "A")  # of forces, torques and the currents that stand for them
STEP_ROUNDING = 1e-6  # of a step, times its number: a larger distance from a multiple is no rounding of numbers
DITHER_STEPS = 0.5  # of a step: own noise above it makes the error of rounding independent of the value
MIN_LEVELS = 5  # fewer are those of a command that is switched, as up, off and down
JUMP_SHARE = 0.05  # of third differences, the largest, which dry friction makes


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One kind of trouble on one channel, `count` times, from the first place to the last (s; NaN where it has no time)."""

    channel: str
    kind: Kind
    severity: Severity
    t_start: float = np.nan
    t_end: float = np.nan
    count: int
    fault: Fault

    @classmethod
    def of(cls, channel: Channel, kind: Kind, severity: Severity, places: NDArray[np.intp], fault: Fault) -> Finding:
        """A finding at these places of a channel, which are indices in order."""
        start, end = channel.t[places[[0, -1]]].tolist() if len(places) else (np.nan, np.nan)
        name, count = channel.name, len(places)
        return cls(channel=name, kind=kind, severity=severity, t_start=start, t_end=end, count=count, fault=fault)

    @property
    def message(self) -> str:
        return str(self.fault)

    def summary(self) -> str:
        return f"{self.severity}, {self.kind}: {self.message}"


@dataclass(frozen=True)
class Findings:
    """Everything found in the experiment `name`, channel by channel; iterates and counts like a tuple."""

    name: str
    findings: tuple[Finding, ...] = ()

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __getitem__(self, index: int) -> Finding:
        return self.findings[index]

    def of(self, kind: Kind | None = None, channel: str | None = None) -> tuple[Finding, ...]:
        """Those of one kind, of one channel, or both."""
        return tuple(f for f in self if kind in (None, f.kind) and channel in (None, f.channel))

    @property
    def fatal(self) -> tuple[Finding, ...]:
        return tuple(f for f in self if f.severity == "fatal")

    def summary(self) -> str:
        """All findings, gravest first, one paragraph each."""
        if not self.findings:
            return f"{self.name}: nothing found."
        rank = {"fatal": 0, "warning": 1, "note": 2}
        ordered = sorted(self.findings, key=lambda f: rank[f.severity])
        return "\n".join([f"{self.name}: {len(self)} finding(s).", *(f.summary() for f in ordered)])

    def raise_if_fatal(self) -> None:
        """Raise all fatal findings as one DataError; return where there is none."""
        if self.fatal:
            raise DataError([f.fault for f in self.fatal], self.name)


def too_fast(coordinate: str, unit: str, rates: Array) -> Fault | None:
    """That a coordinate in `unit` ("rad" or "m") with these rates (N,) is faster than any joint of a machine.

    Wheels that roll and vehicles that drive on are not, and coordinates without a unit, such as components of unit vectors, have no limit.
    """
    most = {"rad": FASTEST_TURNING, "m": FASTEST_SLIDING}.get(unit, np.inf)
    fastest = float(np.abs(rates).max(initial=0.0))
    if fastest <= most or abs(float(np.mean(rates))) > ONE_WAY_SHARE * fastest:
        return None
    where, found = f"coordinate '{coordinate}'", f"{fastest:.4g} {unit}/s"
    return Fault("it moves too fast.", where, f"up to {most:g} {unit}/s", found)


def warn_of_speeds(coordinates: Sequence[str], units: Sequence[str], rates: Array) -> None:
    """A DataWarning for each coordinate of a simulated motion with `rates` (N, n) that is too fast."""
    for name, unit, column in zip(coordinates, units, rates.T, strict=True):
        fast = too_fast(name, unit, column)
        if fast is not None:
            warn(DataWarning, replace(fast, hint=SIMULATED))


def slow_clock(where: str, rate: float) -> Fault:
    """That a log of `rate` samples per second is too slow."""
    what = "its clock is slower than any motion can be followed with."
    return Fault(what, where, f"at least {SLOWEST_CLOCK:g} samples per second", f"{rate:.3g}", MILLISECONDS)


def beyond(log: Experiment, ranges: Ranges) -> tuple[Finding, ...]:
    """A finding for each channel with values outside its range; the first pattern that fits a channel decides, others are not looked at."""
    found = []
    for name, channel in log.channels.items():
        limits = next((r for pattern, r in ranges.items() if fnmatchcase(name, pattern)), None)
        if limits is not None:
            finding = _beyond(channel, *limits)
            if finding is not None:
                found.append(finding)
    return tuple(found)


def _beyond(channel: Channel, low: float, high: float) -> Finding | None:
    x = channel.values
    outside = np.flatnonzero(np.isfinite(x) & ((x < low) | (x > high)))
    if not len(outside):
        return None
    worst = outside[int(np.argmax(np.abs(x[outside])))]
    where = f"channel '{channel.name}'"
    other = _looks_like(channel, low, high) if len(outside) > 0.5 * len(x) else ""
    fault = Fault(
        f"it looks recorded in {other} and is named {channel.unit}."
        if other
        else f"{len(outside)} of its {len(x)} values are out of range, first at t = {channel.t[outside[0]]:.6f} s.",
        where,
        f"{low:g} to {high:g} {channel.unit}",
        f"{x[worst]:.4g} {channel.unit} at t = {channel.t[worst]:.6f} s",
        "Name the column's own unit where the log is loaded."
        if other
        else "Leave those samples out, or repair the sensor and drive again.",
    )
    return Finding.of(channel, "unit" if other else "range", "fatal", outside, fault)


def _looks_like(channel: Channel, low: float, high: float) -> str:
    """The unit whose factor brings all values into the range, and not all of them to almost nothing; empty where none does."""
    x = channel.values[np.isfinite(channel.values)]
    for name, factor in MISTAKEN.get(channel.unit, ()):
        scaled = factor * x
        if low <= scaled.min() and scaled.max() <= high and np.abs(scaled).max() > 1e-3 * max(abs(low), abs(high)):
            return name
    return ""


def step(x: Array) -> float:
    """The step of which all values are multiples; 0 where they are not, or where steps are finer than `HARMLESS_NOISE` of the signal."""
    values = np.unique(x)
    if len(values) < MIN_LEVELS:
        return 0.0
    q = float(np.diff(values).min())
    if 0.5 * q <= HARMLESS_NOISE * float(np.std(x)):
        return 0.0
    off = np.abs(values / q - np.round(values / q)).max()
    return q if off <= STEP_ROUNDING * max(1.0, float(np.abs(values).max()) / q) else 0.0


def coarse_step(x: Array) -> float:
    """The step of a signal where its own noise is below `DITHER_STEPS` of it, and 0 elsewhere.

    The variance of third differences is 20 (σ² + q²/12), those of dry friction's jumps and of long rests left out.
    """
    q = step(x)
    if not q:
        return 0.0
    third = np.abs(np.diff(x, 3))[_moving(x)[3:]]
    if len(third) < REST_SAMPLES:
        return 0.0
    kept = third[third <= np.quantile(third, 1.0 - JUMP_SHARE)]
    return q if float(np.mean(kept**2)) / 20.0 < (DITHER_STEPS**2 + 1.0 / 12.0) * q**2 else 0.0


def coarse_fault(name: str, x: Array, unit: str) -> Fault | None:
    """That a force or current has coarse steps; None where it has not, or where the channel is none."""
    q = coarse_step(x[np.isfinite(x)]) if unit in FORCE_UNITS else 0.0
    if not q:
        return None
    return Fault(
        f"all its values are multiples of {q:.6g} {unit}, coarser than its noise: they were rounded or truncated.",
        f"channel '{name}'",
        f"steps below twice its noise, or below {2.0 * HARMLESS_NOISE:.2g} of its standard deviation",
        f"{len(np.unique(x))} different values in {len(x)} samples",
        "Record or export the column with more digits; truncation towards zero looks like dry friction that is not there.",
    )


def _moving(x: Array) -> NDArray[np.bool_]:
    """Samples that belong to no run of `REST_SAMPLES` equal ones."""
    starts = np.concatenate([[0], np.flatnonzero(np.diff(x) != 0.0) + 1, [len(x)]])
    lengths = np.diff(starts)
    return np.repeat(lengths < REST_SAMPLES, lengths)
