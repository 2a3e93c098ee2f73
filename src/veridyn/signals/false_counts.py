"""False wheel counts at standstill: a hole edge that vibrates before its sensor counts, though the wheel stands.

A signed count then goes up and down by one; an unsigned one goes up. Either is told from rolling by what else there is: the other wheels,
and channels such as a speed or a yaw rate that are near zero. A wheel that counts on while all of these stand does not roll.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from veridyn.arguments import checked
from veridyn.errors import DataError, Fault, did_you_mean
from veridyn.model.experiment import Channel, Experiment
from veridyn.signals.findings import Finding, Findings

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
ROLLED_EDGES = 1  # that another wheel may pass while this one counts `least`: it stands, or just moves off


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
        raise DataError(
            Fault(
                "nothing tells whether the machine stands.",
                f"{log.name}, counts {', '.join(counts)}",
                "another wheel's count, or a channel under still",
            )
        )
    for name in (*counts, *still):
        if name not in log:
            raise DataError(Fault(f"there is no channel '{name}'.", log.name, hint=did_you_mean(name, log.names)))
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
    first, last = float(count.t[bad[0]]), float(count.t[bad[-1]])
    fault = Fault(
        f"it counts {len(bad)} edges at standstill, first at t = {first:.6f} s.",
        f"channel '{count.name}'",
        "a count that rests while " + ", ".join(f"'{n}'" for n in witnesses) + " stand",
        ("it goes up and down" if toggles else "it goes on") + f" until t = {last:.6f} s",
        "A hole edge vibrates before its sensor, or a driven wheel spins; these counts are not used as edges.",
    )
    return Finding(
        channel=count.name,
        kind="false count",
        severity="warning",
        t_start=first,
        t_end=last,
        count=len(bad),
        message=str(fault),
        fault=fault,
    )
