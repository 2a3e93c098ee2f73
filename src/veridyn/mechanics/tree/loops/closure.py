"""Positions, rates and accelerations of machines with closed loops: some coordinates given, the others follow.

Given the actuated coordinates this is direct kinematics, given the pose of a platform it is inverse kinematics: one solver, Newton's,
for all samples at once. Φ(q) = 0, so with q_g given and q_s solved for: q̇_s = −Φ_s⁻¹ Φ_g q̇_g and q̈_s = −Φ_s⁻¹ (Φ_g q̈_g + bias). Closed
positions that are hard to reach at once are reached by steps along a path, or along straight lines from a start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.errors import DataError, Faults, did_you_mean
from veridyn.mechanics.tree.dynamics.engine import Engine
from veridyn.mechanics.tree.loops.assembly import (
    CLOSED_TOLERANCE_M,
    Counts,
    Split,
    assembled,
    check_regular,
    inverse,
    loop_values,
    newton,
    refuse_unreachable,
    side_of,
    slopes,
    splitting,
    times,
)
from veridyn.mechanics.tree.of_machine import takes_machine, tree_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.machine import Machine
from veridyn.model.motion import BaseMotion, Motion

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


Given = Mapping[str, ArrayLike] | ArrayLike
REGULAR_CONDITION_RATIO = 5.0  # times the condition at home: far from singular
SHARP_TOLERANCE_M = 1e-13  # m: closed to rounding, where relations are read from numbers
SAME_PLACE = 1e-9  # rad, and of the machine's reach: a step that changes slopes by no more than rounding
MORE_STEPS = 4  # of Newton's, from a tolerance in m to rounding in the coordinates
ROUGHEST_TOLERANCE_M = 1e-6  # m: looser tolerances leave errors of the pose beyond those of sensors


@dataclass(frozen=True, eq=False)
class Closed:
    """Closed positions `q` (N, n), the Newton `iterations` (N,) each took, what stays open of them, and their condition.

    `residual` (N,) is in m and in products of unit axes. `condition` (N,) is that of Φ_q over what was solved for, with sliding
    coordinates in units of the machine's reach.
    """

    q: Array
    iterations: Counts
    residual: Array
    condition: Array


@takes_machine
def closed_home(machine: Machine | Tree) -> Array:
    """All coordinates (n,) of the closed machine where 'assembly' puts it."""
    tree = tree_of(machine)
    return assembled(tree).home.copy()


@takes_machine
def close(
    machine: Machine | Tree,
    given: Given,
    *,
    at: str | Sequence[str] = "actuated",
    start: ArrayLike | None = None,
    path: bool = True,
    patient: bool = True,
    tolerance: float = CLOSED_TOLERANCE_M,
    engine: Engine = "auto",
) -> Closed:
    """All coordinates from those given: a mapping name → (N,), or (N, n_given) in the order of `at`.

    `at`: "actuated", which stands for the actuated coordinates and those outside every loop, or the names of any coordinates that
    determine the machine. `start`: (n,), by default the home position, or one of its own for each sample (N, n). Samples of a `path`
    follow each other, and the branch of the start is kept; otherwise each is solved for itself. What Newton's method does not find from
    the start is looked for in small steps, unless not `patient`. A position that cannot be reached, a singular one, and a path that
    leads through one are refused.
    """
    split = splitting(tree_of(machine), at)
    return _closing(split, as_given(split, given), start, path, patient, tolerance, engine).closed


@dataclass(frozen=True, eq=False)
class _Closing:
    """Closed positions, and Φ_s⁻¹ and ∂q_s/∂q_g there."""

    closed: Closed
    inverted: Array
    slope: Array


def _closing(
    split: Split, values: Array, start: ArrayLike | None, path: bool, patient: bool, tolerance: float, engine: Engine
) -> _Closing:
    tree = split.tree
    begin = _start(split, start, len(values), tolerance)
    q = begin.copy()
    q[:, split.given] = values
    side = split.sign if start is None else side_of(split, begin[0])
    count, residual = newton(split, q, tolerance, engine)
    T = loop_values(tree, q, engine=engine)
    B, condition, sign = inverse(split, T)
    slope = slopes(split, T, B)
    lost = ~((residual <= tolerance) & (sign == side))
    on_path = path and len(values) > 1
    if start is not None and np.ndim(start) == 2:  # every sample has a start of its own, and its side is what was meant
        on_path, lost = False, ~(residual <= tolerance)
    if patient and (lost.any() or (on_path and not smooth(split, q, slope))):
        if on_path:
            q, steps = track_branch(split, values, _closed_start(split, begin[0]), engine)
        else:
            q[lost], steps = step_towards(split, values[lost], begin[lost], engine)
        more, residual = newton(split, q, tolerance, engine)
        count = more + (-(-steps // len(values)) if on_path else count)
        T = loop_values(tree, q, engine=engine)
        B, condition, sign = inverse(split, T)
        slope = slopes(split, T, B)
    if not (residual <= tolerance).all():
        k = int(np.argmin(residual <= tolerance))
        refuse_unreachable(split, q[k], k)
    check_regular(split, q, condition, sign, side)
    for _ in range(MORE_STEPS):
        step = times(B, T[:, split.rows, tree.n])
        q[:, split.solved] -= step  # one step more, which costs nothing here: closed to rounding
        if not (np.abs(step) > SAME_PLACE * split.unit[list(split.solved)]).any():
            break
        T = loop_values(tree, q, engine=engine)  # near a singular position the step is no small one
        B, condition, sign = inverse(split, T)
        check_regular(split, q, condition, sign, side)
        slope = slopes(split, T, B)
    return _Closing(Closed(q, count, residual, condition), B, slope)


@takes_machine
def closed_motion(
    machine: Machine | Tree,
    t: ArrayLike,
    q: Given,
    qd: Given,
    qdd: Given,
    *,
    at: str | Sequence[str] = "actuated",
    forces: Given | None = None,
    base: BaseMotion | None = None,
    start: ArrayLike | None = None,
    path: bool = True,
    patient: bool = True,
    engine: Engine = "auto",
) -> Motion:
    """The motion of all coordinates from positions, rates and accelerations of the coordinates `at`, as for :func:`close`.

    `forces`: those of the actuated coordinates, in their order or by name; passive ones have NaN.
    """
    tree = tree_of(machine)
    split, clock = splitting(tree, at), np.asarray(t, dtype=np.float64)
    rates, accelerations = as_given(split, qd), as_given(split, qdd)
    measured = None if forces is None else _columns(tree, tree.actuated_coordinates, forces)
    positions = as_given(split, q)
    faults = Faults()
    for name, x in (("t", clock), ("qd", rates), ("qdd", accelerations), ("forces", measured)):
        if x is not None and len(x) != len(positions):
            faults.add(
                f"{name} has another number of samples than the positions.",
                where=tree.name,
                expected=f"{len(positions)}",
                found=f"{len(x)}",
            )
    faults.raise_if_any(DataError)
    part = Motion(clock, positions, rates, accelerations, base)
    whole = whole_motion(split, part, start, path, patient, engine)
    if measured is None:
        return whole
    force = np.full(whole.q.shape, np.nan)
    force[:, tree.actuated] = measured
    return replace(whole, forces=force)


def whole_motion(
    split: Split,
    part: Motion,
    start: ArrayLike | None = None,
    path: bool = True,
    patient: bool = True,
    engine: Engine = "auto",
) -> Motion:
    """:func:`closed_motion` from that of the given coordinates alone, in their order."""
    split = replace(split, clock=part.t)
    found = _closing(split, part.q, start, path, patient, CLOSED_TOLERANCE_M, engine)
    q, slope = found.closed.q, found.slope
    qd, qdd = np.zeros_like(q), np.zeros_like(q)
    qd[:, split.given], qdd[:, split.given] = part.qd, part.qdd
    qd[:, split.solved] = times(slope, part.qd)
    bias = loop_values(split.tree, q, qd, engine)[:, split.rows, split.tree.n + 1]
    qdd[:, split.solved] = times(slope, part.qdd) - times(found.inverted, bias)
    return Motion(part.t, q, qd, qdd, part.base)


def closed_positions(machine: Machine | Tree, samples: int, rng: np.random.Generator, spread: float = 0.3) -> Array:
    """Closed positions (N, n) about home: independent coordinates within ± `spread`, in rad and of the machine's reach.

    Where fewer than half of those drawn can be reached, or are nearly singular, the spread is halved.
    """
    tree = tree_of(machine)
    split = splitting(tree)
    given = list(split.given)
    found = np.zeros((0, tree.n))
    most = REGULAR_CONDITION_RATIO * float(inverse(split, loop_values(tree, split.home[None]))[1][0])
    while len(found) < samples:
        q = np.broadcast_to(split.home, (samples, tree.n)).copy()
        q[:, given] += spread * split.unit[given] * rng.uniform(-1.0, 1.0, (samples, len(given)))
        residual = newton(split, q, SHARP_TOLERANCE_M)[1]
        _, condition, sign = inverse(split, loop_values(tree, q))
        good = (residual <= SHARP_TOLERANCE_M) & (condition < most) & (sign == split.sign)
        if good.mean() < 0.5:
            spread *= 0.5
            continue
        found = np.concatenate([found, q[good]])
    return found[:samples]


def as_given(split: Split, values: Given) -> Array:
    """(N, n_given) of the given coordinates; lengths and names that do not fit are refused by name."""
    return _columns(split.tree, split.names, values)


def _columns(tree: Tree, names: Sequence[str], values: Given) -> Array:
    faults = Faults()
    if not isinstance(values, Mapping):
        found = np.asarray(values, dtype=np.float64)
        if found.ndim != 2 or found.shape[1] != len(names):
            expected = f"(N, {len(names)}): {', '.join(names)}"
            raise DataError("wrong shape.", where=tree.name, expected=expected, found=f"{found.shape}")
    else:
        for name in values:
            if name not in names:
                faults.add(f"'{name}' is not one of the given coordinates.", hint=did_you_mean(name, list(names)))
        missing = [name for name in names if name not in values]
        if missing:
            faults.add(f"nothing is given for {', '.join(missing)}.", where=tree.name)
        faults.raise_if_any(DataError, tree.name)
        columns = {name: np.asarray(values[name], dtype=np.float64).ravel() for name in names}
        most = max(len(x) for x in columns.values())
        for name, x in columns.items():
            if len(x) < most:
                faults.add(
                    f"the log of '{name}' is shorter than the others.",
                    where=tree.name,
                    expected=f"{most} samples",
                    found=f"{len(x)}",
                    hint="Cut the others to its length, or bring all to one clock (resample).",
                )
        faults.raise_if_any(DataError)
        found = np.column_stack(list(columns.values()))
    wrong = [name for name, x in zip(names, found.T, strict=True) if not np.isfinite(x).all()]
    if wrong:
        raise DataError(f"{', '.join(wrong)} holds NaN or infinite values.", where=tree.name)
    return found


def _start(split: Split, start: ArrayLike | None, samples: int, tolerance: float) -> Array:
    n = split.tree.n
    begin = np.asarray(split.home if start is None else start, dtype=np.float64)
    faults = Faults()
    if begin.shape not in ((n,), (samples, n)):
        faults.add("the start has the wrong shape.", expected=f"({n},) or ({samples}, {n})", found=f"{begin.shape}")
    if not 0.0 < tolerance <= ROUGHEST_TOLERANCE_M:
        faults.add(
            "no tolerance to close loops to.",
            expected=f"above 0, at most {ROUGHEST_TOLERANCE_M:g}",
            found=f"{tolerance:g}",
        )
    faults.raise_if_any(DataError, split.tree.name)
    return np.broadcast_to(begin, (samples, n)).copy()


def _closed_start(split: Split, begin: Array) -> Array:
    """A start for a path must itself be closed."""
    q = begin[None].copy()
    residual = newton(split, q, CLOSED_TOLERANCE_M)[1]
    if not residual[0] <= CLOSED_TOLERANCE_M:
        refuse_unreachable(split, q[0], 0)
    return q[0]
