"""Samples that a sensor's limits or an electrical fault made, separated from those that a machine made.

- A plateau is clipped where the signal meets its extreme at speed; a machine that comes to rest arrives slowly.
- A spike leaves both its neighbours in the same direction and comes back; a step does not come back.

One signal (N,) of finite numbers; indices count samples. Both look at the signal's own steps and at its quantum (the
smallest difference of two values), so no unit or sensor range is needed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def runs(mask: NDArray[np.bool_], least: int = 1) -> list[tuple[int, int]]:
    """First and last index of every run of at least `least` true entries."""
    edges = np.diff(np.concatenate([[0], mask.astype(np.int8), [0]]))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
    return [(int(a), int(b)) for a, b in zip(starts, ends, strict=True) if b - a + 1 >= least]


def quantum(x: Array) -> float:
    """The smallest difference of two different values; 0 where all are equal."""
    steps = np.diff(np.unique(x))
    return float(steps.min()) if len(steps) else 0.0


def plateaus(x: Array, value: float, least: int = 3) -> list[tuple[int, int]]:
    """Runs of at least `least` samples that equal `value` and that the signal enters or leaves at speed.

    At speed: by a step above 0.3 of its median step while moving and above two quanta. Runs that begin or end the
    record are left out, since nothing is known of how they were met.
    """
    steps = np.abs(np.diff(x))
    if not np.any(steps > 0.0):
        return []
    least_speed = max(0.3 * float(np.median(steps[steps > 0.0])), 2.0 * quantum(x))
    # The step before the one that meets the limit is the last that the limit did not shorten.
    return [
        (a, b)
        for a, b in runs(x == value, least)
        if a >= 2 and b <= len(x) - 3 and max(steps[a - 2], steps[b + 1]) > least_speed
    ]


def spikes(x: Array, factor: float = 10.0) -> NDArray[np.intp]:
    """Indices of samples, alone or in pairs, that stand out from the sample before and the sample after.

    By more than `factor` robust standard deviations of the steps, a fifth of the range that holds 98 % of the samples,
    and three quanta, whichever is most.
    """
    if len(x) < 3:
        return np.empty(0, dtype=np.intp)
    steps = np.diff(x)
    scatter = 1.4826 * float(np.median(np.abs(steps - np.median(steps))))
    low, high = np.percentile(x, (1.0, 99.0))
    least = max(factor * scatter, 0.2 * float(high - low), 3.0 * quantum(x))
    hits: list[int] = []
    for width in (1, 2):
        if len(x) < width + 2:
            break
        before, after = x[: -width - 1], x[width + 1 :]
        within = np.stack([x[1 + i : len(x) - width + i] for i in range(width)])
        up = within.min(axis=0) - np.maximum(before, after)
        down = np.minimum(before, after) - within.max(axis=0)
        for i in np.flatnonzero(np.maximum(up, down) > least):
            hits.extend(range(int(i) + 1, int(i) + 1 + width))
    return np.unique(np.asarray(hits, dtype=np.intp))
