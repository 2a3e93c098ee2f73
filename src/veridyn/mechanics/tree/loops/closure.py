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

from veridyn.arguments import as_array
from veridyn.arrays import Array
from veridyn.errors import DataError, Faults, did_you_mean
from veridyn.mechanics.tree.dynamics.engine import Engine
from veridyn.mechanics.tree.loops.assembly import CLOSED_TOLERANCE_M, Split, assembled, splitting
from veridyn.mechanics.tree.loops.closing import Counts, closing, loop_values, loops_at, newton, solved_loops
from veridyn.mechanics.tree.loops.equations import check_closed, check_rates
from veridyn.mechanics.tree.of_machine import takes_machine, tree_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.machine import Machine
from veridyn.model.motion import BaseMotion, Motion

Given = Mapping[str, ArrayLike] | ArrayLike
REGULAR_CONDITION_RATIO = 5.0  # times the condition at home: far from singular
MAKE_CLOSED = "Make the motion with closed_motion: the passive joints follow from the actuated ones."
OPEN_MOTION = "this motion does not keep its loops closed.", MAKE_CLOSED
SHARP_TOLERANCE_M = 1e-13  # m: closed to rounding, where relations are read from numbers


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
    there, count, residual = closing(split, as_given(split, given), start, path, patient, tolerance, engine)
    return Closed(there.q, count, residual, there.condition)


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
    split, clock = splitting(tree, at), as_array(t, "closed_motion, t", (None,))
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
    at = closing(split, part.q, start, path, patient, CLOSED_TOLERANCE_M, engine)[0]
    return Motion(part.t, at.q, *at.rates(part.qd, part.qdd, engine), part.base)


def closed_positions(machine: Machine | Tree, samples: int, rng: np.random.Generator, spread: float = 0.3) -> Array:
    """Closed positions (N, n) about home: independent coordinates within ± `spread`, in rad and of the machine's reach.

    Where fewer than half of those drawn can be reached, or are nearly singular, the spread is halved.
    """
    tree = tree_of(machine)
    split = splitting(tree)
    given = list(split.given)
    found = np.zeros((0, tree.n))
    most = REGULAR_CONDITION_RATIO * float(loops_at(split, split.home[None]).condition[0])
    while len(found) < samples:
        q = np.broadcast_to(split.home, (samples, tree.n)).copy()
        q[:, given] += spread * split.unit[given] * rng.uniform(-1.0, 1.0, (samples, len(given)))
        residual = newton(split, q, SHARP_TOLERANCE_M)[1]
        at = loops_at(split, q)
        good = (residual <= SHARP_TOLERANCE_M) & (at.condition < most) & (at.sign == split.sign)
        if good.mean() < 0.5:
            spread *= 0.5
            continue
        found = np.concatenate([found, q[good]])
    return found[:samples]


@takes_machine
def loop_jacobian(
    machine: Machine | Tree, q: ArrayLike, at: str | Sequence[str] = "actuated", *, engine: Engine = "auto"
) -> Array:
    """∂q/∂q_g (N, n, n_given) at closed positions (N, n), for coordinates `at` as in :func:`close`."""
    tree = tree_of(machine)
    split = splitting(tree, at)
    where = np.asarray(q, dtype=np.float64)
    if where.ndim != 2 or where.shape[1] != tree.n:
        expected = f"(N, {tree.n})"
        raise DataError("wrong shape.", where=tree.name, expected=expected, found=f"{where.shape}")
    there = loops_at(split, where, engine)
    check_closed(tree, there.values[:, :, tree.n], *OPEN_MOTION)
    return there.check(split.sign).jacobian


def projection(tree: Tree, motion: Motion, engine: Engine = "auto") -> Array:
    """∂q/∂q_a (N, n, independent) along a motion, which must keep the loops closed: positions, rates and accelerations."""
    split, n = splitting(tree), tree.n
    T = loop_values(tree, motion.q, motion.qd, engine=engine)
    check_closed(tree, T[:, :, n], *OPEN_MOTION)
    check_rates(tree, T[:, :, :n], motion.qd, 0.0, "the rates of this motion open its loops.", MAKE_CLOSED, " a second")
    what = "the accelerations of this motion open its loops."
    check_rates(tree, T[:, :, :n], motion.qdd, T[:, :, n + 1], what, MAKE_CLOSED, " a second squared")
    return solved_loops(split, motion.q, T).check(split.sign).jacobian


def closed_or_none(split: Split, part: Motion, near: Array | None = None) -> Motion | None:
    """The motion of all coordinates from that of the given ones, each sample for itself; None where some cannot be reached, or where
    they come so near to a singular position that their accelerations do not keep the loops closed.

    Newton's method starts at home, and failing that `near`, (N, n): there are many samples, so none is reached in small steps.
    """
    for start in (None,) if near is None else (None, near):
        try:
            made = whole_motion(split, part, start, path=False, patient=False, engine="numpy")
            projection(split.tree, made, "numpy")
            return made
        except DataError:
            continue
    return None


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
