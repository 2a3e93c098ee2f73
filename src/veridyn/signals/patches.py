"""Samples, alone or up to `LONGEST` in a row, that are off what the samples before and behind them predict, both alike.

A patch is a model of what a sensor did for some samples while the machine went on: what lies before and behind it belongs to one smooth
curve, and the patch lies off it. Other models of the same samples are a step, a corner, a start or a stop, which a machine makes; then the
curve behind is another one, and samples between lie between the two. One sample is judged by its innovations from both sides. Of several,
the first is an innovation from before, the last one from behind; and with one cubic on both sides, and a step of any height between them,

    x = c₀ + c₁ t + c₂ t² + c₃ t³ + h (t behind the patch)

both must lie outside of both branches by more than the limit of the innovations times the deviation of that prediction. Such a pair of
jumps is honest where a signal jumps as far elsewhere and stays, as dry friction and commands do, though not twice within two samples.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.signals.innovations import FEWEST, LocalInnovations, extreme_limit, gauss_limit, innovations
from veridyn.signals.rest import STUCK_SHARE

Array = NDArray[np.float64]
SAME_VALUE = 1e-12  # of the largest value: a smaller difference is the rounding of some operations
LONGEST = 20  # samples: what lies between is bridged by a curve; a longer stretch is a freeze or a motion (chosen)
BESIDE = 8  # samples on either side of a patch, at least, that a cubic with a step is fitted to: three for each of its numbers (chosen)
ROUNDS = 5  # of looking again without what was found (chosen)


def quantum(x: Array) -> float:
    """The smallest difference of two different values; 0 where all are equal. Values that rounding of numbers makes differ are one."""
    values = np.unique(x)
    steps = np.diff(values)
    steps = steps[steps > SAME_VALUE * float(np.abs(values).max(initial=0.0))]
    return float(steps.min()) if len(steps) else 0.0


def find_patches(x: Array, chance: float) -> list[tuple[int, int]]:
    """First and last index of every patch of a signal (N,) of finite numbers; a clean one has any with the probability `chance` at most."""
    if len(x) < FEWEST:
        return []
    seen = innovations(x)
    over = gauss_limit(chance / len(x)) * seen.scale
    if not any((np.abs(side) > over).any() for side in (seen.forward, seen.backward)):
        return []
    grain = quantum(x)
    seen = seen.rounded(grain)
    limit = extreme_limit(seen.both() / seen.scale, chance)
    low, high = np.percentile(x, (1.0, 99.0))
    least = max(seen.rounding(grain), STUCK_SHARE * float(high - low))
    y = x.copy()
    seen, single = _single(y, seen, limit, least)
    ends = _ends(seen, limit, least)
    several = _several(y, seen, limit, least)
    return sorted([(k, k) for k in [*single, *ends]] + several)


def _single(y: Array, seen: LocalInnovations, limit: float, least: float) -> tuple[LocalInnovations, list[int]]:
    """Single samples, and the innovations without them; `y` has what was predicted in their place."""
    found: list[int] = []
    m = len(seen.weights)
    for _ in range(ROUNDS):
        g = seen.both()
        over = np.flatnonzero((g > limit * seen.scale) & (g > least))
        new = []
        for k in over[np.argsort(-g[over] / seen.scale[over])].tolist():
            f = float(y[k] - seen.weights @ y[k - m : k][::-1])
            b = float(y[k] - seen.weights @ y[k + 1 : k + 1 + m])
            off = min(abs(f), abs(b)) if f * b > 0.0 else 0.0
            if off > max(limit * seen.scale[k], least) and _pointed(y, k, float(y[k]) - 0.5 * (f + b), off):
                y[k] -= 0.5 * (f + b)
                new.append(k)
        if not new:
            break
        found += new
        seen = seen.again(y)
    return seen, sorted(set(found))


def _pointed(y: Array, k: int, value: float, off: float) -> bool:
    """Whether sample k stands out by itself: from both sides along the line through the two nearest samples, by half of `off` at least, and
    by more than the signal bends beside it once it has the `value` that was predicted.

    Two events further away, one on either side, or a quick turn of the signal make innovations of one sign as well.
    """
    if not 2 <= k < len(y) - 2:
        return False
    f, b = y[k] - 2.0 * y[k - 1] + y[k - 2], y[k] - 2.0 * y[k + 1] + y[k + 2]
    near = y[max(k - 3, 0) : k + 4].copy()
    near[min(k, 3)] = value
    return f * b > 0.0 and min(abs(f), abs(b)) > 0.5 * off and off > np.abs(np.diff(near, 2)).max()


def _ends(seen: LocalInnovations, limit: float, least: float) -> list[int]:
    """The first or the last sample, where it is off by more than any other sample from one side: nothing says that it comes back."""
    n = len(seen.forward)
    f, b = np.abs(seen.forward), np.abs(seen.backward)
    others = max(float(f[:-1].max()), float(b[1:].max()))
    sizes = ((0, float(b[0])), (n - 1, float(f[-1])))
    return [k for k, size in sizes if size > max(others + limit * float(seen.scale[k]), least)]


def _several(y: Array, seen: LocalInnovations, limit: float, least: float) -> list[tuple[int, int]]:
    """Patches of two samples or more."""
    over = np.maximum(limit * seen.scale, least)
    entries, exits = np.flatnonzero(np.abs(seen.forward) > over), np.flatnonzero(np.abs(seen.backward) > over)
    passed: list[tuple[float, int, int, float]] = []
    for a in entries.tolist():
        for b in exits[np.searchsorted(exits, a + 1) : np.searchsorted(exits, a + LONGEST)].tolist():
            off, left = _off_both(y, a, b, limit, float(seen.scale[a]) / seen.gain)
            if off > 0.0:
                passed.append((left, a, b, off))
    chosen: list[tuple[int, int, float]] = []
    for _, a, b, off in sorted(passed):
        if all(b < c or a > d for c, d, _ in chosen):
            chosen.append((a, b, off))
    if not chosen:
        return []
    beside = LONGEST + len(seen.weights)  # one burst may be several patches
    elsewhere = np.ones(len(y), dtype=np.bool_)
    for a, b, _ in chosen:
        elsewhere[max(a - beside, 0) : b + beside + 1] = False
    steps = float(np.abs(seen.forward[elsewhere]).max(initial=0.0))
    return [(a, b) for a, b, off in chosen if b == a + 1 or off > steps]


def _off_both(y: Array, a: int, b: int, limit: float, noise: float) -> tuple[float, float]:
    """By how much samples a and b, both, lie outside of what lies before and behind, `limit` deviations of that taken off, and the rms of
    what the cubic leaves beside the patch."""
    wide = max(BESIDE, 2 * (b - a + 1))
    at = np.concatenate([np.arange(max(a - wide, 0), a), np.arange(b + 1, min(b + 1 + wide, len(y)))])
    if np.count_nonzero(at < a) < BESIDE or np.count_nonzero(at > b) < BESIDE:
        return 0.0, np.inf
    t = (np.concatenate([at, [a, b]]) - 0.5 * (a + b)) / wide
    A = np.column_stack([t[:, None] ** np.arange(4), np.concatenate([at > b, [False, False]])])
    base = y[a - 1]
    inverse = np.linalg.inv(A[:-2].T @ A[:-2])
    c = inverse @ (A[:-2].T @ (y[at] - base))
    left = y[at] - base - A[:-2] @ c
    variance = max(float(left @ left) / (len(at) - 5), noise**2)
    off = []
    for row, value in zip(A[-2:], (y[a] - base, y[b] - base), strict=True):
        sides = [float(row @ c), float(row @ c + c[4])]
        deviation = np.sqrt(
            variance * (1.0 + max(row @ inverse @ row, (row + np.eye(5)[4]) @ inverse @ (row + np.eye(5)[4])))
        )
        beyond = max(value - max(sides), min(sides) - value)
        off.append(beyond - limit * deviation)
    return min(off), float(np.sqrt(variance))
