"""Closed positions that are hard to reach at once: by steps along a path, or along straight lines from a start."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.engine import Engine
from veridyn.mechanics.loops.assembly import Split, loop_values
from veridyn.mechanics.loops.solver import (
    check_regular,
    inverse,
    newton,
    refuse_unreachable,
    slopes,
    times,
)

Array = NDArray[np.float64]
PATH_STRIDE = 0.1  # rad, and of the reach: between two positions of a path that is track_branch
SHORTEST_PATH_STRIDE = PATH_STRIDE / 128.0  # steps shorter than this say that it cannot be track_branch
PATH_TOLERANCE = 1e-6  # how far loops may stay open on the way
LONG_PATH = 100  # positions of a path from which on equations in machine code earn the time to compile them


def smooth(split: Split, q: Array, slope: Array) -> bool:
    """Whether neighbouring samples lie on one branch: each step is about what its tangents `slope` (N, m, n_given) say."""
    unit = split.unit[list(split.solved)]
    expected = times(0.5 * (slope[1:] + slope[:-1]), np.diff(q[:, split.given], axis=0)) / unit
    found = np.diff(q[:, split.solved], axis=0) / unit
    size = np.abs(expected).max(axis=1, initial=0.0)
    near = np.abs(found - expected).max(axis=1, initial=0.0) <= 0.5 * size + PATH_TOLERANCE
    return bool(near.all())


def track_branch(split: Split, values: Array, begin: Array, engine: Engine) -> tuple[Array, int]:
    """A good start for every sample of a path `values` (N, n_given) that begins at the closed position `begin`; and the steps it took.

    Positions along the path, a stride apart, are found one from the other; every sample starts from the one before it.
    """
    travel = np.abs(np.diff(values, axis=0) / split.unit[list(split.given)]).max(axis=1)
    passed = np.floor(np.concatenate([[0.0], np.cumsum(travel)]) / PATH_STRIDE)
    keys = np.flatnonzero(np.diff(passed, prepend=-1.0) > 0.0)
    found, at, steps = np.empty((len(keys), split.tree.n)), begin, 0
    one_by_one: Engine = engine if engine != "auto" else "compiled" if len(keys) > LONG_PATH else "numpy"
    for i, k in enumerate(keys):
        at, used = _led(split, at, values[k], int(k), one_by_one)
        found[i], steps = at, steps + used
    last = np.searchsorted(keys, np.arange(len(values)), side="right") - 1
    T = loop_values(split.tree, found, engine=engine)
    slope = slopes(split, T, inverse(split, T)[0])
    q = found[last]
    q[:, split.solved] += times(slope[last], values - q[:, split.given])
    q[:, split.given] = values
    return q, steps


def step_towards(split: Split, values: Array, origin: Array, engine: Engine) -> tuple[Array, int]:
    """A good start for every sample for itself: the end of a straight line of small steps from `origin` (N, n); and how many steps."""
    begin = origin[:, split.given]
    longest = (np.abs(values - begin) / split.unit[list(split.given)]).max(initial=0.0)
    steps = int(np.ceil(longest / PATH_STRIDE)) + 1
    q, total = origin.copy(), 0
    for k in range(1, steps):
        q[:, split.given] = begin + (values - begin) * k / steps
        total += int(newton(split, q, PATH_TOLERANCE, engine)[0].max(initial=0))
    q[:, split.given] = values
    return q, total


def _led(split: Split, at: Array, goal: Array, sample: int, engine: Engine) -> tuple[Array, int]:
    """From one closed position to another along the tangent, in shorter steps where it is hard, and the Newton steps it took."""
    given, solved, unit = list(split.given), list(split.solved), split.unit
    T = loop_values(split.tree, at[None], engine=engine)
    B, condition, (side,) = inverse(split, T)
    begin, steps = at[given].copy(), 0
    length = float((np.abs(goal - begin) / unit[given]).max(initial=0.0))
    done, stride = 0.0, PATH_STRIDE
    while done < 1.0:
        share = min(1.0, done + stride / length) if length > 0.0 else 1.0
        guess = at.copy()
        guess[given] = begin + share * (goal - begin)
        guess[solved] += slopes(split, T, B)[0] @ (guess[given] - at[given])
        trial = guess[None].copy()
        count, residual = newton(split, trial, PATH_TOLERANCE, engine)
        steps += int(count[0])
        corrected = float((np.abs(trial[0] - guess) / unit).max())
        moved = float((np.abs(guess - at) / unit).max())
        there = loop_values(split.tree, trial, engine=engine)
        inverted, near, (found,) = inverse(split, there)
        if residual[0] <= PATH_TOLERANCE and corrected <= max(0.5 * moved, 1e-3) and found == side:
            at, done, stride = trial[0], share, min(PATH_STRIDE, 2.0 * stride)
            T, B, condition = there, inverted, near
            continue
        stride *= 0.5
        if stride < SHORTEST_PATH_STRIDE:
            number = np.array([sample])
            if residual[0] <= PATH_TOLERANCE and found != side:
                check_regular(split, trial, condition, np.array([-side]), side, number)
            refuse_unreachable(split, trial[0], sample)
    return at, steps
