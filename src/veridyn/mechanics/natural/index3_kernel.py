"""The index-3 step of :mod:`veridyn.mechanics.natural.index3` as machine code: the same equations over the same tables, many steps a call.

The bordered matrix is factorised by a plan made once per mechanism (:mod:`veridyn.mechanics.natural.sparse`); where its fixed order loses
digits, the dense factorisation with pivoting takes that one solve.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import ModelError
from veridyn.mechanics.compiled import kept, lean
from veridyn.mechanics.natural.dynamics import Stabilisation
from veridyn.mechanics.natural.sparse import Plan, factor_planned, plan_of, solve_planned
from veridyn.mechanics.natural.terms import Tables, acting, constraints_at, curvature, drift, factor, solve

if TYPE_CHECKING:
    from veridyn.mechanics.natural.system import NaturalSystem

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]
PROJECTIONS = 12
CLOSED = 1e-12
POSES = 6  # at which the order of elimination is tried when it is planned
USUAL_STEP = 1e-3  # s, for the weights of stiffness and penalty at those


class Elimination(NamedTuple):
    """The plan of a mechanism's bordered matrix, and where its numbers come from: cells of T, of Φ_q (twice), and of −1/α."""

    plan: Plan
    tangent_cell: Numbers
    tangent_row: Numbers
    tangent_column: Numbers
    border_cell: Numbers
    border_row: Numbers
    border_column: Numbers
    corner_cell: Numbers
    slope_row: Numbers  # the pattern of Φ_q
    slope_column: Numbers


class _Room(NamedTuple):
    """What a step writes to, made once for many."""

    y: Array
    phi: Array
    J: Array
    AB: Array
    slopes: Array
    Q: Array
    T: Array
    way: Array
    given: Array
    v: Array
    b: Array
    x: Array
    z: Array
    r: Array
    size: Array
    right: Array
    sigma: Array
    target: Array
    B: Array
    pivot: Numbers
    dense: Numbers  # (1,): whether the factors in hand are those of B


def elimination_of(system: NaturalSystem) -> Elimination:
    """Planned on the description's pose and on poses around it, so that no pivot leans on one of them."""
    n, rng = system.n, np.random.default_rng(0)
    q, c = np.asarray(system.guess, dtype=np.float64), system.constraints
    h, alpha = USUAL_STEP, Stabilisation().alpha(system)
    w, far = 0.25 * h * h, 0.3 * max(1.0, float(np.abs(q).max(initial=0.0)))
    samples = []
    for k in range(POSES):
        pose = q if k == 0 else q + far * rng.normal(size=n)
        J = c.jacobian(pose)
        m = len(J)
        K, C = system.forces.tangents(pose, np.zeros(n), system.forces.values)
        T = system.mass + 0.5 * h * C + w * (K + c.curvature(pose, rng.normal(size=m)))
        samples.append(np.block([[T, J.T], [J, -np.eye(m) / (w * alpha)]]))
    pattern = _pattern(system, len(samples[0]) - n)
    try:
        plan = plan_of(samples, pattern)
    except ModelError:  # the step tells what is wrong with the mechanism, where something is: with pivoting
        plan = plan_of(np.eye(len(pattern)), pattern)
    row, column = plan.row, plan.column
    tangent = np.flatnonzero((row < n) & (column < n))
    border = np.flatnonzero((row < n) != (column < n))
    corner = np.flatnonzero((row >= n) & (row == column))
    slope = np.flatnonzero((row >= n) & (column < n))
    low, high = np.minimum(row, column)[border], np.maximum(row, column)[border]
    return Elimination(
        plan,
        tangent,
        row[tangent],
        column[tangent],
        border,
        high - n,
        low,
        corner,
        row[slope] - n,
        column[slope],
    )


def _pattern(system: NaturalSystem, m: int) -> NDArray[np.bool_]:
    """All cells of the bordered matrix that some pose, rate or load can fill."""
    n, f, t = system.n, system.forces, system.tables
    out = np.zeros((n + m, n + m), dtype=bool)
    T, J = out[:n, :n], out[n:, :n]
    T |= system.mass != 0.0
    for forms in (t.quadratic, t.angles):
        T[forms.bend_place // n, forms.bend_place % n] = True
    inside = t.quadratic.column < n
    J[t.quadratic.row[inside], t.quadratic.column[inside]] = True
    inside = t.angles.column < n
    a = t.angles.row[inside] // 2
    J[m - len(t.places) + a, t.angles.column[inside]] = True
    J[m - len(t.places) + np.arange(len(t.places)), t.places] = True
    T[t.places[a], t.angles.column[inside]] = True
    T[t.places, t.places] = True
    T[t.own, t.own] = True
    T |= (f.turning[:, :, :n] != 0.0).any(axis=0)
    for strut in f.struts:
        moved = np.flatnonzero((strut[:, :n] != 0.0).any(axis=0))
        T[moved[:, None], moved] = True
    return out


@lean
def _factorised(e: Elimination, w: _Room, alpha: float) -> bool:
    """Factors of the bordered matrix of T and Φ_q in hand; False where it is singular."""
    for k in range(len(e.tangent_cell)):
        w.given[e.tangent_cell[k]] = w.T[e.tangent_row[k], e.tangent_column[k]]
    for k in range(len(e.border_cell)):
        w.given[e.border_cell[k]] = w.J[e.border_row[k], e.border_column[k]]
    for k in range(len(e.corner_cell)):
        w.given[e.corner_cell[k]] = -1.0 / alpha
    for k in range(len(w.v)):
        w.v[k] = 0.0
    for k in range(len(w.given)):
        w.v[e.plan.cell[k]] = w.given[k]
    w.dense[0] = 0
    if factor_planned(e.plan, w.v) < 0:
        return True
    return _pivoted(e, w)


@lean
def _pivoted(e: Elimination, w: _Room) -> bool:
    w.dense[0] = 1
    for i in range(len(w.B)):
        for j in range(len(w.B)):
            w.B[i, j] = 0.0
    for k in range(len(w.given)):
        w.B[e.plan.row[k], e.plan.column[k]] = w.given[k]
    return factor(w.B, w.pivot)


@lean
def _solved(e: Elimination, w: _Room) -> bool:
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


@lean
def _projected(e: Elimination, w: _Room, x: Array) -> bool:
    """x onto J x = target in the metric T, repeated with multipliers until nothing of size 1/α is left."""
    n, m, before, size = len(x), len(w.target), np.inf, 1.0
    for i in range(n):
        w.right[i] = 0.0
    for k in range(len(e.tangent_cell)):
        w.right[e.tangent_row[k]] += w.given[e.tangent_cell[k]] * x[e.tangent_column[k]]
    for i in range(m):
        size = max(size, abs(w.target[i]))
        w.sigma[i] = 0.0
    for _ in range(PROJECTIONS):
        for j in range(n):
            w.b[j] = w.right[j]
        for i in range(m):
            w.b[n + i] = w.target[i]
        for k in range(len(e.slope_row)):
            i, j = e.slope_row[k], e.slope_column[k]
            w.b[j] -= w.J[i, j] * w.sigma[i]
        if not _solved(e, w):
            return False
        for j in range(n):
            x[j] = w.x[j]
        open_by = 0.0
        for i in range(m):
            w.right[n + i] = -w.target[i]
            w.sigma[i] += w.x[n + i]
        for k in range(len(e.slope_row)):
            i, j = e.slope_row[k], e.slope_column[k]
            w.right[n + i] += w.J[i, j] * x[j]
        for i in range(m):
            open_by = max(open_by, abs(w.right[n + i]))
        if open_by <= CLOSED * size or open_by > 0.5 * before:
            break
        before = open_by
    return True


@lean
def _rates(h: float, q0: Array, qd0: Array, qdd0: Array, q: Array, qd: Array, qdd: Array) -> None:
    for i in range(len(q)):
        qd[i] = 2.0 / h * (q[i] - q0[i]) - qd0[i]
        qdd[i] = 4.0 / (h * h) * (q[i] - q0[i]) - 4.0 / h * qd0[i] - qdd0[i]


@lean
def _step(
    t: Tables,
    e: Elimination,
    w: _Room,
    load: Array,
    turning: Array,
    q0: Array,
    qd0: Array,
    qdd0: Array,
    q: Array,
    qd: Array,
    qdd: Array,
    lam: Array,
    h: float,
    alpha: float,
    tolerance: float,
    iterations: int,
) -> float:
    """One step; `lam` holds the multipliers before and after. Zero, or by how much the last iteration moved where it did not converge."""
    n, m = len(q), len(lam)
    k, size = 0.25 * h * h, 1.0
    for i in range(n):
        q[i] = q0[i] + h * qd0[i] + 0.5 * h * h * qdd0[i]
        size = max(size, abs(q[i]))
    constraints_at(t, q, w.y, w.phi, w.J, w.AB, w.slopes)
    moved, converged = np.inf, False
    for _ in range(iterations):
        _rates(h, q0, qd0, qdd0, q, qd, qdd)
        acting(t, load, turning, q, qd, k, 0.5 * h, w.Q, w.T, w.way)
        curvature(t, q, lam, w.AB, w.slopes, k, w.T)
        for i in range(n):
            s = -w.Q[i]
            for j in range(n):
                s += t.mass[i, j] * qdd[j]
            w.b[i] = -k * s
        for p in range(len(e.slope_row)):
            w.b[e.slope_column[p]] -= k * w.J[e.slope_row[p], e.slope_column[p]] * lam[e.slope_row[p]]
        for i in range(m):
            w.b[n + i] = -w.phi[i]
        if not (_factorised(e, w, k * alpha) and _solved(e, w)):
            return np.inf
        moved, off = 0.0, 0.0
        for i in range(n):
            q[i] += w.x[i]
            moved = max(moved, abs(w.x[i]))
        for i in range(m):
            lam[i] += w.x[n + i] / k
        constraints_at(t, q, w.y, w.phi, w.J, w.AB, w.slopes)
        for i in range(m):
            off = max(off, abs(w.phi[i]))
        if not (np.isfinite(moved) and np.isfinite(off)):
            return np.inf
        if moved <= tolerance * size and off <= tolerance * size * size:
            converged = True
            break
    if not converged:
        return max(moved, 1e-300)
    _rates(h, q0, qd0, qdd0, q, qd, qdd)
    acting(t, load, turning, q, qd, k, 0.5 * h, w.Q, w.T, w.way)
    for i in range(m):
        w.target[i] = 0.0
    if not (_factorised(e, w, k * alpha) and _projected(e, w, qd)):
        return np.inf
    drift(t, q, qd, w.AB, w.slopes, w.target)
    for i in range(m):
        w.target[i] = -w.target[i]
    if not _projected(e, w, qdd):
        return np.inf
    return 0.0


@kept
def index3_kernel(
    t: Tables,
    e: Elimination,
    loads: Array,
    values: Array,
    turnings: Array,
    start: Array,
    steps: Array,
    alpha: float,
    tolerance: float,
    iterations: int,
    out: Array,
) -> tuple[int, float]:
    """Steps of lengths `steps` (K,) from `start` (3n + m,): q, q̇, q̈ and λ after each, in the rows of `out` (K, 3n + m).

    `loads` (K or 1, n) holds all constant generalised forces of each step, `values` (K or 1, a) the factors of `turnings` (a, n, n+1), the
    forces that are linear in q. The number of steps made, and zero, or by how much the last iteration of the next one moved.
    """
    n = loads.shape[1]
    m, a, N = len(start) - 3 * n, len(t.places), len(e.plan.order)
    w = _Room(
        np.empty(n + 1),
        np.empty(m),
        np.zeros((m, n)),
        np.empty(2 * a),
        np.zeros((2 * a, n)),
        np.empty(n),
        np.empty((n, n)),
        np.empty((5, 3)),
        np.zeros(len(e.plan.row)),
        np.empty(e.plan.cells),
        np.empty(N),
        np.empty(N),
        np.empty(N),
        np.empty(N),
        np.empty(N),
        np.empty(N),
        np.empty(m),
        np.empty(m),
        np.empty((N, N)),
        np.empty(N, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
    )
    turning = np.zeros((n if len(turnings) else 0, n + 1))
    before = start
    for k in range(len(steps)):
        if len(turnings) and (k == 0 or len(values) > 1):
            turning[:] = 0.0
            for i in range(len(turnings)):
                turning += values[k, i] * turnings[i]
        x = out[k]
        lam = x[3 * n :]
        lam[:] = before[3 * n :]
        moved = _step(
            t,
            e,
            w,
            loads[min(k, len(loads) - 1)],
            turning,
            before[:n],
            before[n : 2 * n],
            before[2 * n : 3 * n],
            x[:n],
            x[n : 2 * n],
            x[2 * n : 3 * n],
            lam,
            steps[k],
            alpha,
            tolerance,
            iterations,
        )
        if moved != 0.0:
            return k, moved
        before = x
    return len(steps), 0.0
