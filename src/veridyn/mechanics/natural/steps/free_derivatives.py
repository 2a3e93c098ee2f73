"""Derivatives of accelerations, multipliers and slips of a machine with a free base in natural coordinates, as machine code."""

from __future__ import annotations

import numpy as np

from veridyn.arrays import Array
from veridyn.mechanics.compiled import core
from veridyn.mechanics.linear import factor, solve_transposed
from veridyn.mechanics.natural.equations.elimination import solve_symmetric_many
from veridyn.mechanics.natural.equations.terms import add_tangents, curvature, gather
from veridyn.mechanics.natural.steps.free_kernel import FreeRoom, FreeTables, set_freedoms


@core
def bend_freedoms(t: FreeTables, a: int, u: Array, v: Array) -> float:
    """uᵀ G_a v of a turn."""
    c, total = len(t.turning_at), 0.0
    for i in range(c):
        for j in range(c):
            total += u[t.turning_at[i]] * t.turning[a, i, j] * v[t.turning_at[j]]
    return total


@core
def add_bends(t: FreeTables, a: int, R: Array, v: Array, out: Array) -> None:
    """Add uᵀ G_a v of a turn for all columns u of R to `out`."""
    c = len(t.turning_at)
    for i in range(c):
        total, row = 0.0, R[t.turning_at[i]]
        for j in range(c):
            total += t.turning[a, i, j] * v[t.turning_at[j]]
        for column in range(len(out)):
            out[column] += row[column] * total


@core
def add_freedoms(E: Array, X: Array, out: Array) -> None:
    """Add E X to `out`; most of E is zero."""
    for a in range(len(E)):
        to = out[a]
        for i in range(E.shape[1]):
            e = E[a, i]
            if e != 0.0:
                row = X[i]
                for c in range(len(to)):
                    to[c] += e * row[c]


@core
def differentiate(t: FreeTables, w: FreeRoom, q: Array, qd: Array, u: Array) -> bool:
    """R, ∂q̇/∂z, ∂(q̈, λ)/∂x and the slopes of z̈ and of slip rates, after :func:`accelerate` with derivatives and factors at this pose."""
    n, m, f = len(q), len(w.lam), len(w.R[0])
    set_freedoms(t, w, q)
    for i in range(n):
        for c in range(f):
            w.X[i, c] = w.E[c, i]
    for i in range(m):
        for c in range(f):
            w.X[n + i, c] = 0.0
    solve_symmetric_many(t.plan, w.f, w.X, w.XZ)
    for a in range(f):
        for c in range(f):
            w.small[a, c] = 0.0
    add_freedoms(w.E, w.X, w.small)
    if not factor(w.small, w.pivot):
        return False
    for i in range(n):
        for c in range(f):
            w.R[i, c] = w.X[i, c]
        solve_transposed(w.small, w.pivot, w.R[i])
    rate_of_slopes(t, w, q, w.qdd, w.bends)
    rate_of_slopes(t, w, q, qd, w.rates)  # last: what it leaves of the angles is along q̇
    for i in range(n + m):
        for c in range(f):
            w.X[i, c] = 0.0
    for p in range(len(t.e.slope_row)):
        i, j = t.e.slope_row[p], t.e.slope_column[p]
        rate, to, row = w.rates[i, j], w.X[n + i], w.R[j]
        if rate != 0.0:
            for c in range(f):
                to[c] -= rate * row[c]
    solve_symmetric_many(t.plan, w.f, w.X, w.XZ)
    left = w.small  # whose factors have been used: what the freedoms' rates still change by
    for a in range(f):
        for c in range(f):
            left[a, c] = 0.0
    for a in range(len(t.turning)):
        add_bends(t, a, w.R, qd, left[3 + a])
    add_freedoms(w.E, w.X, left)
    for i in range(n):
        to = w.qd_z[i]
        for c in range(f):
            to[c] = w.X[i, c]
        for a in range(f):
            share, row = w.R[i, a], left[a]
            for c in range(f):
                to[c] -= share * row[c]
    _stiffness(t, w, q, qd, u)
    _right_sides(t, w, q, qd)
    solve_symmetric_many(t.plan, w.f, w.S, w.SZ)
    _slopes(t, w)
    return True


@core
def _stiffness(t: FreeTables, w: FreeRoom, q: Array, qd: Array, u: Array) -> None:
    """K in at.T, with that of the constraint forces, and C."""
    r, K, C = w.wheels, w.at.T, w.C
    for p in range(len(t.e.tangent_row)):
        i, j = t.e.tangent_row[p], t.e.tangent_column[p]
        K[i, j], C[i, j] = 0.0, 0.0
    add_tangents(t.t, q, qd, 1.0, 0.0, K, w.at.way)
    add_tangents(t.t, q, qd, 0.0, 1.0, C, w.at.way)
    curvature(t.t, q, w.lam, w.at.AB, w.at.slopes, 1.0, K)
    count, k = r.Q.shape
    for i in range(count):
        for a in range(k):
            for b in range(k):
                K[r.at[i * k + a], r.at[i * k + b]] -= r.Q_q[i, a, b]
                C[r.at[i * k + a], r.at[i * k + b]] -= r.Q_qd[i, a, b]
    for j in range(len(t.unknown)):
        a = t.unknown[j] - 3
        if 0 <= a < len(t.turning):
            for b in range(len(t.turning_at)):
                for c in range(len(t.turning_at)):
                    K[t.turning_at[c], t.turning_at[b]] -= u[j] * t.turning[a, b, c]


@core
def _right_sides(t: FreeTables, w: FreeRoom, q: Array, qd: Array) -> None:
    """The right sides (n + m, 2f + k) of what accelerations and multipliers change by, into S."""
    n, m, f, e, r, S = len(q), len(w.lam), len(w.R[0]), t.e, w.wheels, w.S
    columns = S.shape[1]
    for i in range(n + m):
        for c in range(columns):
            S[i, c] = 0.0
    for p in range(len(e.tangent_row)):
        i, j = e.tangent_row[p], e.tangent_column[p]
        stiff, damp, place, rate, row, bent = w.at.T[i, j], w.C[i, j], S[i], S[i, f:], w.R[j], w.qd_z[j]
        if damp != 0.0:
            for c in range(f):
                place[c] -= stiff * row[c] + damp * bent[c]
                rate[c] -= damp * row[c]
        elif stiff != 0.0:
            for c in range(f):
                place[c] -= stiff * row[c]
    for j in range(len(t.unknown)):
        for i in range(n):
            S[i, 2 * f + j] = w.E[t.unknown[j], i]
    count, k = r.Q.shape
    for i in range(count):
        for a in range(k):
            for b in range(2):
                S[r.at[i * k + a], columns - 2 * count + 2 * i + b] += r.Q_s[i, a, b]
    for p in range(len(e.slope_row)):
        i, j = e.slope_row[p], e.slope_column[p]
        turn, bend, place, rate, row, bent = (
            2.0 * w.rates[i, j],
            w.bends[i, j],
            S[n + i],
            S[n + i, f:],
            w.R[j],
            w.qd_z[j],
        )
        if turn != 0.0 or bend != 0.0:
            for c in range(f):
                place[c] -= turn * bent[c] + bend * row[c]
                rate[c] -= turn * row[c]
    _third(t, w, q, qd)


@core
def _third(t: FreeTables, w: FreeRoom, q: Array, qd: Array) -> None:
    """Subtract Φ_qqq[dq, q̇, q̇] from the right sides of positions, after :func:`rate_of_slopes` along q̇; only angles have one."""
    n, f, a = len(q), w.R.shape[1], len(t.t.places)
    first, AB, slopes = n + len(w.lam) - a, w.at.AB, w.at.slopes
    for i in range(a):
        p = t.t.places[i]
        s, c, v = np.sin(q[p]), np.cos(q[p]), qd[p]
        Av, Bv, vv_a, vv_b = 0.0, 0.0, 0.0, 0.0
        for at in range(t.t.angle_start[i], t.t.angle_start[i + 1]):
            j = t.t.angle_column[at]
            Av += slopes[3 * i, j] * qd[j]
            Bv += slopes[3 * i + 1, j] * qd[j]
            vv_a += w.turned[3 * i, j] * qd[j]
            vv_b += w.turned[3 * i + 1, j] * qd[j]
        for column in range(f):
            e, Ad, Bd, dv_a, dv_b = w.R[p, column], 0.0, 0.0, 0.0, 0.0
            for at in range(t.t.angle_start[i], t.t.angle_start[i + 1]):
                j = t.t.angle_column[at]
                d = w.R[j, column]
                Ad += slopes[3 * i, j] * d
                Bd += slopes[3 * i + 1, j] * d
                dv_a += w.turned[3 * i, j] * d
                dv_b += w.turned[3 * i + 1, j] * d
            total = 2.0 * e * v * (c * Bv - s * Av) + v * v * (c * Bd - s * Ad) + e * (c * vv_a + s * vv_b)
            total += 2.0 * v * (c * dv_a + s * dv_b) - e * v * v * (c * AB[3 * i] + s * AB[3 * i + 1])
            w.S[first + i, column] -= total


@core
def rate_of_slopes(t: FreeTables, w: FreeRoom, q: Array, v: Array, out: Array) -> None:
    """∂Φ_q/∂q v (m, n), after :func:`constrain` at q: Φ̇_q where v is q̇. Gradients of the angles' forms along v are left in `turned`."""
    n, a, y = len(q), len(t.t.places), w.at.y
    for i in range(n):
        y[i] = v[i]
    y[n] = 0.0
    gather(t.t.quadratic, y, w.spare, out)
    gather(t.t.angles, y, w.spare, w.turned)
    first, AB, slopes = len(w.lam) - a, w.at.AB, w.at.slopes
    for i in range(a):
        p = t.t.places[i]
        s, c, rate, Av, Bv = np.sin(q[p]), np.cos(q[p]), v[p], 0.0, 0.0
        for at in range(t.t.angle_start[i], t.t.angle_start[i + 1]):
            j = t.t.angle_column[at]
            Av += slopes[3 * i, j] * v[j]
            Bv += slopes[3 * i + 1, j] * v[j]
            out[first + i, j] = s * w.turned[3 * i, j] - c * w.turned[3 * i + 1, j] - w.turned[3 * i + 2, j]
            out[first + i, j] += rate * (c * slopes[3 * i, j] + s * slopes[3 * i + 1, j])
        out[first + i, p] = c * Av + s * Bv + rate * (c * AB[3 * i + 1] - s * AB[3 * i])


@core
def _slopes(t: FreeTables, w: FreeRoom) -> None:
    """∂z̈/∂x and the derivatives of slip rates."""
    f, r, S = w.R.shape[1], w.wheels, w.S
    columns = S.shape[1]
    for a in range(f):
        for c in range(columns):
            w.slopes[a, c] = 0.0
    add_freedoms(w.E, S, w.slopes[:f])
    for a in range(len(t.turning)):
        add_bends(t, a, w.R, w.qdd, w.slopes[3 + a, :f])
    count, k = r.Q.shape
    for i in range(count):
        for b in range(2):
            row = f + 2 * i + b
            for c in range(columns):
                w.slopes[row, c] = 0.0
            for a in range(k):
                j = r.at[i * k + a]
                for c in range(f):
                    w.slopes[row, c] += r.rates_q[i, b, a] * w.R[j, c] + r.rates_qd[i, b, a] * w.qd_z[j, c]
                    w.slopes[row, f + c] += r.rates_qd[i, b, a] * w.R[j, c]
            for d in range(2):
                w.slopes[row, columns - 2 * count + 2 * i + d] = r.f[i, 8 + (6 + b) * 14 + 12 + d]
