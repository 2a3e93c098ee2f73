"""What counts as trouble in a log, and what is done about each kind of it: settings of :mod:`veridyn.signals.quality` and of
:mod:`veridyn.signals.mend`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

GAP_STEPS = 5.0  # a step longer than this many median steps is a gap, unless the caller says otherwise


@dataclass(frozen=True, kw_only=True)
class QualityLimits:
    """What counts as trouble.

    `shortest` samples; `gap` in median steps; `jitter` as a share of the median step; `plateau` equal samples at an
    extreme; `spike` in robust standard deviations of the step from sample to sample; `standstill` in seconds of one and
    the same value (None: do not look).
    """

    shortest: int = 20
    gap: float = GAP_STEPS
    jitter: float = 0.05
    plateau: int = 3
    spike: float = 10.0
    standstill: float | None = None


DEFAULT = QualityLimits()


@dataclass(frozen=True, kw_only=True)
class Mending:
    """What is done about each kind of trouble.

    Parameters
    ----------
    duplicates : "refuse" or "drop"
        Stamps that repeat: refuse the log, or keep the first sample of each time.
    backwards : "refuse" or "cut"
        A clock that was reset: refuse the log, or cut it into pieces there.
    gaps : "cut", "bridge" or "refuse"
        Spans without samples longer than max_gap: cut the log into pieces there, bridge them by interpolation, or refuse.
    max_gap : float, or None
        Longest span that interpolation may bridge in any case, s; five steps of the clock or 0.02 s, the longer, if left out.
    missing : "refuse" or "cut"
        Empty cells and NaN: refuse the log, or cut it there.
    spikes : "repair", "keep" or "refuse"
        Samples that stand out alone: replace them by their neighbours, keep them, or refuse the log.
    dropouts : "repair", "keep" or "refuse"
        Up to 20 samples that are exactly zero in the middle of a signal that is not: as for spikes.
    dead : "refuse" or "warn"
        A channel that never changes: refuse the log, or only say so.
    limits : QualityLimits
        From what size on each of them counts.
    """

    duplicates: Literal["refuse", "drop"] = "refuse"
    backwards: Literal["refuse", "cut"] = "refuse"
    gaps: Literal["cut", "bridge", "refuse"] = "cut"
    max_gap: float | None = None
    missing: Literal["refuse", "cut"] = "refuse"
    spikes: Literal["repair", "keep", "refuse"] = "repair"
    dropouts: Literal["repair", "keep", "refuse"] = "repair"
    dead: Literal["refuse", "warn"] = "refuse"
    limits: QualityLimits = DEFAULT
