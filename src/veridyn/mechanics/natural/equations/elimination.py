"""The bordered matrix of a mechanism, factorised by one plan for all its poses, as machine code.

    B = [T Φ_qᵀ; Φ_q −1/α I]

The plan (:mod:`veridyn.mechanics.linear`) is made once per mechanism; where its fixed order loses digits, the dense
factorisation with pivoting takes that one solve.

Where T = M and α never change, P B Pᵀ = Uᵀ D⁻¹ U is planned on the pattern of M and Φ_q alone, and only the rows of U are kept: half the
numbers and half the work of a factorisation that could carry any matrix. Pivots are kept as their inverses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import ModelError
from veridyn.mechanics.compiled import Matrix, Numbers, Places, Vector, core, summing
from veridyn.mechanics.linear import (
    SparsePlan,
    factor,
    factor_planned,
    node_of,
    plan_of,
    solve,
    solve_planned,
    take_off,
)
from veridyn.mechanics.natural.equations.constraints import Constraints
from veridyn.mechanics.natural.equations.forces import ForceTable
from veridyn.mechanics.natural.equations.terms import Tables
from veridyn.mechanics.natural.equations.wheels import WheelTable
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


class SymmetricPlan(NamedTuple):
    """An order of elimination and the cells it touches.

    Node s has p pivots from `first[s]` on and couples them to the d pivots `outer[outer_start[s] : outer_start[s + 1]]`; its rows of U,
    (p, p + d), begin at cell `upper[s]`. `target` lists the cells that it changes: of each row of the outer pivots those from the
    diagonal on, node after node. `given` has M and −1/α in all cells, and cell `border[k]` is Φ_q[`border_row[k]`, `border_column[k]`].
    """

    order: Places  # (N,) the row and column of B that pivot k is
    first: Numbers
    outer_start: Numbers
    outer: Places
    upper: Numbers
    target: Places
    given: Vector
    border: Places
    border_row: Places
    border_column: Places


class SymmetricRoom(NamedTuple):
    """The cells of U, a right side b and what it gives, and room for solving. Written to."""

    v: Vector
    b: Vector
    x: Vector
    z: Vector
    node: Vector  # (widest,) the pivots of a node and those that it couples them to


def symmetric_plan(mass: Array, slopes: Array, alpha: float) -> SymmetricPlan:
    """Planned on Φ_q at some poses, (S, m, n); what is zero in all of them stays zero."""
    m, n = slopes.shape[1:]
    corner = -np.eye(m) / alpha
    plan = plan_of([np.block([[mass, J.T], [J, corner]]) for J in slopes])
    first, outer_start = plan.first.astype(np.int64), plan.outer_start.astype(np.int64)
    p, d = np.diff(first), np.diff(outer_start)
    upper = np.concatenate([[0], np.cumsum(p * (p + d))])
    cell = np.full(plan.cells, -1, dtype=np.int64)  # of U for each cell of the plan for any matrix
    for s, begin in enumerate(plan.upper.astype(np.int64)):
        cell[begin : begin + p[s] * (p[s] + d[s])] = np.arange(upper[s], upper[s + 1])
    place = np.empty(plan.size, dtype=np.int64)
    place[plan.order] = np.arange(plan.size)
    row, column = plan.row.astype(np.int64), plan.column.astype(np.int64)
    above = place[row] <= place[column]
    row, column, at = row[above], column[above], cell[plan.cell[above]]
    given = np.zeros(upper[-1])
    given[at] = np.block([[mass, np.zeros((n, m))], [np.zeros((m, n)), corner]])[row, column]
    border = (row < n) != (column < n)
    starts = np.concatenate([[0], np.cumsum(d * d)])
    blocks = [plan.target[starts[s] : starts[s + 1]].reshape(d[s], d[s])[np.triu_indices(d[s])] for s in range(len(d))]
    target = cell[np.concatenate([np.zeros(0, dtype=np.uint64), *blocks])]
    places = (target, at[border], np.maximum(row, column)[border] - n, np.minimum(row, column)[border])
    target, *rest = (x.astype(np.uint64) for x in places)
    return SymmetricPlan(plan.order, first, outer_start, plan.outer, upper[:-1], target, given, *rest)


def symmetric_room(plan: SymmetricPlan) -> SymmetricRoom:
    """Room for one matrix and one right side."""
    N, widest = len(plan.order), int((np.diff(plan.first) + np.diff(plan.outer_start)).max(initial=0))
    return SymmetricRoom(np.zeros(len(plan.given)), np.zeros(N), np.zeros(N), np.zeros(N), np.zeros(widest))


@core
def factor_symmetric(plan: SymmetricPlan, w: SymmetricRoom, J: Array) -> bool:
    """U of B with this Φ_q, in place of the cells; False where a pivot is zero or not finite."""
    v, o = w.v, 0
    for k in range(len(v)):
        v[k] = plan.given[k]
    for k in range(len(plan.border)):
        v[plan.border[k]] = J[plan.border_row[k], plan.border_column[k]]
    for s in range(len(plan.upper)):
        _, _, p, d = node_of(plan, s)
        width = p + d
        U = v[plan.upper[s] : plan.upper[s] + p * width]
        for i in range(p):
            _eliminate(U[i * width + i : (i + 1) * width], U, width, i, i)
            pivot = U[i * width + i]
            if not (abs(pivot) > 0.0 and np.isfinite(pivot)):
                return False
            U[i * width + i] = 1.0 / pivot
        if p == 1:
            for i in range(d):
                share, row, targets = U[1 + i] * U[0], U[1 + i :], plan.target[o : o + d - i]
                for j in range(len(row)):
                    v[targets[j]] -= share * row[j]
                o += d - i
            continue
        for i in range(d):
            changes, targets = w.node[: d - i], plan.target[o : o + d - i]
            for j in range(d - i):
                changes[j] = 0.0
            _eliminate(changes, U, width, p, p + i)
            for j in range(d - i):
                v[targets[j]] += changes[j]
            o += d - i
    return True


@core
def _eliminate(row: Array, U: Array, width: int, pivots: int, column: int) -> None:
    """row −= Σ U[k, column]/U[k, k] U[k, column :] over the first pivots of a node, four at a time."""
    k = 0
    while k + 4 <= pivots:
        u0, u1, u2, u3 = k * width, (k + 1) * width, (k + 2) * width, (k + 3) * width
        s0, s1 = U[u0 + column] * U[u0 + k], U[u1 + column] * U[u1 + k + 1]
        s2, s3 = U[u2 + column] * U[u2 + k + 2], U[u3 + column] * U[u3 + k + 3]
        r0, r1, r2, r3 = U[u0 + column : u1], U[u1 + column : u2], U[u2 + column : u3], U[u3 + column : u3 + width]
        for j in range(len(row)):
            row[j] -= s0 * r0[j] + s1 * r1[j] + s2 * r2[j] + s3 * r3[j]
        k += 4
    while k < pivots:
        take_off(row, U[k * width + column] * U[k * width + k], U[k * width + column : (k + 1) * width])
        k += 1


@core
def solve_symmetric(plan: SymmetricPlan, w: SymmetricRoom) -> None:
    """x = B⁻¹ b."""
    order, outer, v, z = plan.order, plan.outer, w.v, w.z
    for k in range(len(order)):
        z[k] = w.b[order[k]]
    nodes = len(plan.upper)
    for s in range(nodes):
        first, at, p, d = node_of(plan, s)
        width = p + d
        U, own, apart = v[plan.upper[s] : plan.upper[s] + p * width], z[first : first + p], outer[at : at + d]
        if p == 1:
            share, line = own[0] * U[0], U[1:]
            own[0] = share
            for j in range(len(line)):
                z[apart[j]] -= share * line[j]
            continue
        for k in range(p):
            w.node[k] = own[k]
        changes = w.node[p:width]
        for j in range(d):
            changes[j] = 0.0
        for k in range(p):
            share = w.node[k] * U[k * width + k]
            own[k] = share
            rest, line = w.node[k + 1 : width], U[k * width + k + 1 : (k + 1) * width]
            for j in range(len(rest)):
                rest[j] -= share * line[j]
        for j in range(d):
            z[apart[j]] += changes[j]
    for back in range(nodes):
        s = nodes - 1 - back
        first, at, p, d = node_of(plan, s)
        width = p + d
        U, own, apart = v[plan.upper[s] : plan.upper[s] + p * width], z[first : first + p], outer[at : at + d]
        if p == 1:
            own[0] -= U[0] * _product_at(U[1:], z, apart)
            continue
        right = w.node[p:width]
        for j in range(d):
            right[j] = z[apart[j]]
        for up in range(p):
            k = p - 1 - up
            own[k] -= U[k * width + k] * product(U[k * width + k + 1 : (k + 1) * width], w.node[k + 1 : width])
            w.node[k] = own[k]
    for k in range(len(order)):
        w.x[order[k]] = z[k]


@core
def solve_symmetric_many(plan: SymmetricPlan, w: SymmetricRoom, X: Matrix, Z: Matrix) -> None:
    """X ← B⁻¹ X of many right sides (N, c) at once; Z is room of the same size."""
    order, outer, v, c = plan.order, plan.outer, w.v, X.shape[1]
    for k in range(len(order)):
        for r in range(c):
            Z[k, r] = X[order[k], r]
    nodes = len(plan.upper)
    for s in range(nodes):
        first, at, p, d = node_of(plan, s)
        width = p + d
        U = v[plan.upper[s] : plan.upper[s] + p * width]
        for k in range(p):
            inverse, line = U[k * width + k], Z[first + k]
            for r in range(c):
                line[r] *= inverse
            for i in range(k + 1, p):
                share = U[k * width + i]
                for r in range(c):
                    Z[first + i, r] -= share * line[r]
        for j in range(d):
            line = Z[outer[at + j]]
            for k in range(p):
                share = U[k * width + p + j]
                for r in range(c):
                    line[r] -= share * Z[first + k, r]
    for back in range(nodes):
        s = nodes - 1 - back
        first, at, p, d = node_of(plan, s)
        width = p + d
        U = v[plan.upper[s] : plan.upper[s] + p * width]
        for up in range(p):
            k = p - 1 - up
            line, inverse = Z[first + k], U[k * width + k]
            for i in range(k + 1, p):
                share = U[k * width + i] * inverse
                for r in range(c):
                    line[r] -= share * Z[first + i, r]
            for j in range(d):
                share, other = U[k * width + p + j] * inverse, outer[at + j]
                for r in range(c):
                    line[r] -= share * Z[other, r]
    for k in range(len(order)):
        for r in range(c):
            X[order[k], r] = Z[k, r]


@summing
def product(left: Array, right: Array) -> float:
    """left · right, over the length of `left`."""
    total = 0.0
    for r in range(len(left)):
        total += left[r] * right[r]
    return total


@summing
def _product_at(left: Array, right: Array, at: Places) -> float:
    """Σ leftᵣ right[atᵣ]."""
    total = 0.0
    for r in range(len(left)):
        total += left[r] * right[at[r]]
    return total
