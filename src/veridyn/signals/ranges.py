"""Values that cannot be: channels that leave the range of what they measure, with a guess at a unit that was named wrongly.

    beyond(log, {"clearance.*": (-0.6, 0.3), "inertial.omega.*": (-3.0, 3.0)})

A clearance of -295 in metres is one in millimetres: where one common factor brings all of a channel into its range, the finding says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

import numpy as np

from veridyn.errors import Fault
from veridyn.model.experiment import Channel, Experiment
from veridyn.signals.findings import Finding

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
