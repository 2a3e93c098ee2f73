"""P B Pᵀ = Uᵀ D⁻¹ U of a symmetric matrix B = [M Φ_qᵀ; Φ_q −1/α] whose M and α never change: planned once, then only Φ_q.

The plan is that of :mod:`veridyn.mechanics.natural.kernels.sparse` on the pattern of M and Φ_q alone, and only the rows of U are kept: half
the numbers and half the work of a factorisation that could carry any matrix. Pivots are kept as their inverses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from veridyn.arrays import Array
from veridyn.mechanics.compiled import core, summing
from veridyn.mechanics.natural.kernels.sparse import node_of, plan_of, take_off
from veridyn.mechanics.record import Matrix, Numbers, Places, Vector


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
