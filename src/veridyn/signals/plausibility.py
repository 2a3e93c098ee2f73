"""Values that cannot be: speeds that no joint has, clocks too slow for any motion, channels outside of the range of what they measure.

Degrees for radians, milliseconds for seconds, or an absurd amplitude make them; a unit that was named wrongly is guessed:

    beyond(log, {"clearance.*": (-0.6, 0.3), "inertial.omega.*": (-3.0, 3.0)})

A clearance of -295 in metres is one in millimetres: where one common factor brings all of a channel into its range, the finding says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataWarning, Fault, warn
from veridyn.model.experiment import Channel, Experiment
from veridyn.signals.findings import Finding

Array = NDArray[np.float64]
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
    start, end = float(channel.t[outside[0]]), float(channel.t[outside[-1]])
    kind = "unit" if other else "range"
    return Finding(
        channel=channel.name,
        kind=kind,
        severity="fatal",
        t_start=start,
        t_end=end,
        count=len(outside),
        message=str(fault),
        fault=fault,
    )


def _looks_like(channel: Channel, low: float, high: float) -> str:
    """The unit whose factor brings all values into the range, and not all of them to almost nothing; empty where none does."""
    x = channel.values[np.isfinite(channel.values)]
    for name, factor in MISTAKEN.get(channel.unit, ()):
        scaled = factor * x
        if low <= scaled.min() and scaled.max() <= high and np.abs(scaled).max() > 1e-3 * max(abs(low), abs(high)):
            return name
    return ""
