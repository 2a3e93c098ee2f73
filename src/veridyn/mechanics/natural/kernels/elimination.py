"""The bordered matrix of a mechanism, factorised by one plan for all its poses, as machine code.

    B = [ T   Φ_qᵀ  ]
        [ Φ_q −1/α I ]

The plan (:mod:`veridyn.mechanics.natural.kernels.sparse`) is made once per mechanism; where its fixed order loses digits, the dense
factorisation with pivoting takes that one solve.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import ModelError
from veridyn.mechanics.compiled import core
from veridyn.mechanics.dense import factor, solve
from veridyn.mechanics.natural.equations.constraints import Constraints
from veridyn.mechanics.natural.equations.forces import ForceTable
from veridyn.mechanics.natural.equations.wheels import WheelTable
from veridyn.mechanics.natural.kernels.sparse import SparsePlan, factor_planned, plan_of, solve_planned
from veridyn.mechanics.natural.kernels.terms import Tables
from veridyn.mechanics.record import Matrix, Numbers, Places, Vector
from veridyn.spatial.rotations import rotation_of

POSES = 6  # at which the order of elimination is tried when it is planned
USUAL_STEP = 1e-3  # s, for the weights of stiffness and penalty at those
USUAL_PENALTY = 1e12  # times the mean diagonal of the mass matrix


class Elimination(NamedTuple):
    """The plan of a mechanism's bordered matrix, and where its numbers come from: cells of T, of Φ_q (twice), and of −1/α."""

    plan: SparsePlan
    tangent_cell: Places
    tangent_row: Places
    tangent_column: Places
    border_cell: Places
    border_row: Places
    border_column: Places
    corner_cell: Places
    slope_row: Places  # the pattern of Φ_q
    slope_column: Places


class Factors(NamedTuple):
    """The numbers of B, its factors, and room for solving: b → x. Written to."""

    given: Vector
    v: Vector
    b: Vector
    x: Vector
    z: Vector
    r: Vector
    size: Vector
    room: Vector  # for the widest node
    B: Matrix
    pivot: Numbers
    dense: Numbers  # (1,): whether the factors in hand are those of the dense B


def elimination_of(
    mass: Array,
    c: Constraints,
    f: ForceTable,
    wheels: WheelTable,
    tables: Tables,
    guess: Array,
    added: int,
    turns: bool,
) -> Elimination:
    """Planned on the description's pose and on poses around it, so that no pivot leans on one of them.

    `turns`: nothing of the mechanism is fixed in space, so that these are turned as a whole; the last `added` coordinates do not turn.
    """
    n, rng, h = len(mass), np.random.default_rng(0), USUAL_STEP
    alpha = USUAL_PENALTY * max(float(np.trace(mass)) / max(n, 1), 1e-300)
    w, samples = 0.25 * h * h, []
    for pose in poses_around(guess, added, turns):
        J = c.jacobian(pose)
        m = len(J)
        K, C = f.tangents(pose, np.zeros(n), f.values)
        T = mass + 0.5 * h * C + w * (K + c.curvature(pose, rng.normal(size=m)))
        for metric, held in ((T, w * alpha), (mass, alpha)):  # of positions; of velocities and accelerations
            samples.append(np.block([[metric, J.T], [J, -np.eye(m) / held]]))
    pattern = _pattern(mass, f, wheels, tables, len(samples[0]) - n)
    try:
        plan = plan_of(samples, pattern)
    except ModelError:  # the step reports what is wrong with the mechanism, where something is: with pivoting
        plan = plan_of(np.eye(len(pattern)), pattern)
    row, column = plan.row.astype(np.int64), plan.column.astype(np.int64)
    tangent = np.flatnonzero((row < n) & (column < n))
    border = np.flatnonzero((row < n) != (column < n))
    corner = np.flatnonzero((row >= n) & (row == column))
    slope = np.flatnonzero((row >= n) & (column < n))
    low, high = np.minimum(row, column)[border], np.maximum(row, column)[border]
    numbers = (tangent, row[tangent], column[tangent], border, high - n, low, corner, row[slope] - n, column[slope])
    return Elimination(plan, *(x.astype(np.uint64) for x in numbers))


def poses_around(guess: Array, added: int, turns: bool) -> list[Array]:
    """The description's pose and others around it; arguments as those of :func:`elimination_of`."""
    rng, q = np.random.default_rng(0), np.asarray(guess, dtype=np.float64)
    n, far = len(q), 0.3 * max(1.0, float(np.abs(q).max(initial=0.0)))
    cartesian = q[: n - added].reshape(-1, 3) if turns else np.zeros((0, 3))
    poses = [q]
    for _ in range(POSES - 1):
        pose = q + (0.1 if turns else far) * rng.normal(size=n)
        if turns:
            pose[: n - added] += ((rotation_of(rng.normal(size=4)) - np.eye(3)) @ cartesian.T).T.reshape(-1)
        poses.append(pose)
    return poses


def _pattern(mass: Array, f: ForceTable, wheels: WheelTable, t: Tables, m: int) -> NDArray[np.bool_]:
    """All cells of the bordered matrix that some pose, rate or load can fill."""
    n = len(mass)
    out = np.zeros((n + m, n + m), dtype=bool)
    T, J = out[:n, :n], out[n:, :n]
    T |= mass != 0.0
    for forms in (t.quadratic, t.angles):
        T[forms.bend_left, forms.bend_right] = True
    inside = t.quadratic.column < n
    J[t.quadratic.row[inside], t.quadratic.column[inside]] = True
    inside = t.angles.column < n
    a = t.angles.row[inside] // 3
    J[m - len(t.places) + a, t.angles.column[inside]] = True
    J[m - len(t.places) + np.arange(len(t.places)), t.places] = True
    T[t.places[a], t.angles.column[inside]] = True
    T[t.places, t.places] = True
    for touched in f.lines != 0.0:
        T |= touched[:, None] & touched
    T |= (f.turning[:, :, :n] != 0.0).any(axis=0)
    for moved in wheels.moved:
        T[moved[:, None], moved] = True
    for read in f.laws.touched():
        T[read[:, None], read] = True
    for strut in f.struts:
        moved = np.flatnonzero((strut[:, :n] != 0.0).any(axis=0))
        T[moved[:, None], moved] = True
    return out


def factors_of(e: Elimination) -> Factors:
    """Room for one bordered matrix."""
    N = len(e.plan.order)
    return Factors(
        np.zeros(len(e.plan.row)),
        np.empty(e.plan.cells),
        np.empty(N),
        np.empty(N),
        np.empty(N),
        np.empty(N),
        np.empty(N),
        np.empty(e.plan.widest + 1),
        np.empty((N, N)),
        np.empty(N, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
    )


@core
def set_tangent(e: Elimination, w: Factors, T: Array, alpha: float) -> None:
    """T and −1/α into B."""
    for k in range(len(e.tangent_cell)):
        w.given[e.tangent_cell[k]] = T[e.tangent_row[k], e.tangent_column[k]]
    for k in range(len(e.corner_cell)):
        w.given[e.corner_cell[k]] = -1.0 / alpha


@core
def factorised(e: Elimination, w: Factors, J: Array) -> bool:
    """Factors of B with the Φ_q in hand, after :func:`set_tangent`; False where it is singular."""
    for k in range(len(e.border_cell)):
        w.given[e.border_cell[k]] = J[e.border_row[k], e.border_column[k]]
    for k in range(len(w.v)):
        w.v[k] = 0.0
    for k in range(len(w.given)):
        w.v[e.plan.cell[k]] = w.given[k]
    w.dense[0] = 0
    if factor_planned(e.plan, w.v, w.room) < 0:
        return True
    return _pivoted(e, w)


@core
def _pivoted(e: Elimination, w: Factors) -> bool:
    w.dense[0] = 1
    for i in range(len(w.B)):
        for j in range(len(w.B)):
            w.B[i, j] = 0.0
    for k in range(len(w.given)):
        w.B[e.plan.row[k], e.plan.column[k]] = w.given[k]
    return factor(w.B, w.pivot)


@core
def solved(e: Elimination, w: Factors) -> bool:
    """x from b."""
    if w.dense[0] == 0:
        if solve_planned(e.plan, w.given, w.v, w.b, w.x, w.z, w.r, w.size):
            return True
        if not _pivoted(e, w):
            return False
    for i in range(len(w.b)):
        w.x[i] = w.b[i]
    solve(w.B, w.pivot, w.x)
    return True
