"""Ends of a filtered motion: samples that a zero-phase low-pass knows too little of, by one rule for logs and for studies.

Beyond an end the filter continues the signal by its odd reflection, so that accelerations of an end in motion are wrong there. What is
wrong decays with the slowest pole of one pass: that of a Butterworth filter of order n and cut-off f decays by exp(−2π f t sin(π/2n)), to
exp(−π²/2), 0.7 %, after t = n/(2f), which is n/2 periods of the cut-off.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from veridyn.model.motion import Motion
from veridyn.signals.butterworth import Butterworth

Trim = float | Literal["auto"]
AT_REST = 0.02  # of its largest speed: a joint that stays below it for that long is at rest at an end of a log


def settling_time(low: Butterworth | None) -> float:
    """Seconds after which about 1 % is left of what a low-pass makes of an end: n/2 periods of its cut-off, one at least."""
    return 0.0 if low is None else max(low.order, 2) / 2.0 / float(np.min(low.cutoff))


def ends_in_motion(m: Motion, seconds: float) -> tuple[int, int]:
    """Samples of so many seconds at both ends, at most a quarter of all, and none where the machine rests there."""
    speeds = m.qd if m.base is None else np.hstack([m.qd, m.base.omega])
    if not seconds or not speeds.shape[1]:
        return 0, 0
    count = min(round(seconds * (len(m) - 1) / (m.t[-1] - m.t[0])), len(m) // 4)
    moving = (np.abs(speeds) > AT_REST * np.abs(speeds).max(axis=0)).any(axis=1)
    return count if moving[:count].any() else 0, count if moving[len(m) - count :].any() else 0


def trimmed_ends(m: Motion, trim: Trim, low: Butterworth | None, rate: float) -> tuple[int, int]:
    """Samples cut off the start and the end of a motion that passed `low`: `trim` seconds of both, or by "auto" what the filter takes to
    settle (:func:`settling_time`) of an end in motion, and nothing of one at rest."""
    if trim != "auto":
        return round(trim * rate), round(trim * rate)
    return ends_in_motion(m, settling_time(low))


def trim_note(cut: tuple[int, int], low: Butterworth, rate: float) -> str:
    """What was cut off by itself, in words."""
    where = " and ".join(f"{n / rate:.3g} s ({n} samples) at its {end}" for n, end in zip(cut, ("start", "end")) if n)
    full = settling_time(low)
    short = f" (it takes {full:.3g} s, and a quarter of the log at most is cut)" if max(cut) + 1 < full * rate else ""
    return f"trimmed: {where}, where the low-pass at {low.cutoff:g} Hz still settles{short}; Signals(trim=0) keeps them"
