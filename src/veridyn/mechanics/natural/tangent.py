"""Accelerations of a mechanism over independent coordinates z, with their exact derivatives, as machine code.

    (Rᵀ M R) z̈ = Rᵀ (Q − M c),   q̈ = R z̈ + c,   Φ_q c = −Φ̇_q q̇,   Φ_qᵀ λ = Q − M q̈

Along a change dx of z, ż or a force u the constraints and the equations of motion stay satisfied, so that

    Φ_q dq̈ = −Φ_qq[dq, q̈] − 2 Φ_qq[q̇, dq̇] − Φ_qqq[dq, q̇, q̇],    M dq̈ + Φ_qᵀ dλ = dQ − ∂(Φ_qᵀ λ)/∂q dq,

with dq = R dz and dq̇ = (∂R/∂z dz) ż + R dż. One factorisation of the dependent columns of Φ_q serves all of it. Paper 003 writes the
same derivatives out by hand for its four-bar (`Rq` of its appendix, which is misprinted).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.compiled import compiled
from veridyn.mechanics.dense import factor, solve, solve_transposed
from veridyn.mechanics.natural.terms import Tables, acting, constraints_at, curvature, drift

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]
NEWTON = 30
CLOSED = 1e-13  # of the constraints, relative to the square of the mechanism's size
STRIDE = 0.1  # of the mechanism's size: a longer way of a coordinate is gone in pieces


@compiled
def second_along(rows: int, row: Numbers, place: Numbers, value: Array, v: Array, w: Array, out: Array) -> None:
    """vᵀ ∂²Φ/∂q² w of quadratic forms."""
    n = len(v)
    for i in range(rows):
        out[i] = 0.0
    for k in range(len(row)):
        p = place[k]
        out[row[k]] += value[k] * v[p // n] * w[p % n]


@compiled
def bend(t: Tables, AB: Array, slopes: Array, q: Array, v: Array, w: Array, out: Array) -> None:
    """Φ_qq[v, w] (m,), after `constraints_at` at the same q."""
    f, a = t.quadratic, len(t.places)
    second_along(f.rows, f.bend_row, f.bend_place, f.bend_value, v, w, out)
    if a == 0:
        return
    f = t.angles
    bent, first = np.empty(2 * a), len(out) - a
    second_along(f.rows, f.bend_row, f.bend_place, f.bend_value, v, w, bent)
    for i in range(a):
        p = t.places[i]
        s, c, Av, Bv, Aw, Bw = np.sin(q[p]), np.cos(q[p]), 0.0, 0.0, 0.0, 0.0
        for j in range(len(q)):
            Av += slopes[2 * i, j] * v[j]
            Bv += slopes[2 * i + 1, j] * v[j]
            Aw += slopes[2 * i, j] * w[j]
            Bw += slopes[2 * i + 1, j] * w[j]
        mixed = v[p] * (c * Aw + s * Bw) + w[p] * (c * Av + s * Bv)
        own = v[p] * w[p] * (c * AB[2 * i + 1] - s * AB[2 * i])
        out[first + i] = s * bent[2 * i] - c * bent[2 * i + 1] + mixed + own


@compiled
def add_third(t: Tables, AB: Array, slopes: Array, q: Array, d: Array, v: Array, out: Array) -> None:
    """Add Φ_qqq[d, v, v] to `out` (m,); only angles have one."""
    a = len(t.places)
    if a == 0:
        return
    f = t.angles
    vv, dv, first = np.empty(2 * a), np.empty(2 * a), len(out) - a
    second_along(f.rows, f.bend_row, f.bend_place, f.bend_value, v, v, vv)
    second_along(f.rows, f.bend_row, f.bend_place, f.bend_value, d, v, dv)
    for i in range(a):
        p = t.places[i]
        s, c, w, e = np.sin(q[p]), np.cos(q[p]), v[p], d[p]
        Av, Bv, Ad, Bd = 0.0, 0.0, 0.0, 0.0
        for j in range(len(q)):
            Av += slopes[2 * i, j] * v[j]
            Bv += slopes[2 * i + 1, j] * v[j]
            Ad += slopes[2 * i, j] * d[j]
            Bd += slopes[2 * i + 1, j] * d[j]
        turned = 2.0 * e * w * (c * Bv - s * Av) + w * w * (c * Bd - s * Ad)
        curved = e * (c * vv[2 * i] + s * vv[2 * i + 1]) + 2.0 * w * (c * dv[2 * i] + s * dv[2 * i + 1])
        out[first + i] += turned + curved - e * w * w * (c * AB[2 * i] + s * AB[2 * i + 1])


@compiled
def reduce_columns(J: Array, A: Array, pivot: Numbers, z: Numbers, dep: Numbers, R: Array) -> None:
    """R with Φ_q R = 0 and unit rows for z, from the factors of the dependent columns."""
    x = np.empty(len(dep))
    for c in range(len(z)):
        for i in range(len(dep)):
            x[i] = -J[i, z[c]]
        solve(A, pivot, x)
        for i in range(len(dep)):
            R[dep[i], c] = x[i]
        for i in range(len(z)):
            R[z[i], c] = 1.0 if i == c else 0.0


@compiled
def close(
    t: Tables,
    z: Numbers,
    dep: Numbers,
    q: Array,
    target: Array,
    J: Array,
    AB: Array,
    slopes: Array,
    A: Array,
    pivot: Numbers,
    R: Array,
    known: bool,
) -> bool:
    """Move q to z = `target` on Φ = 0 by Newton's method, in pieces where the way is long; True when it is closed there.

    Leaves Φ_q, its factors and R of the new pose behind; `known`: those of the present pose are there already.
    """
    n, f, m = len(q), len(z), len(dep)
    y, phi, x, start = np.empty(n + 1), np.empty(m), np.empty(m), np.empty(f)
    size, longest, pieces = 1.0, 0.0, 1
    for i in range(n):
        size = max(size, abs(q[i]))
    for c in range(f):
        start[c] = q[z[c]]
    piece = 0 if not known else 1
    while piece <= pieces:
        if piece == 1:
            for i in range(n):
                s = 0.0
                for c in range(f):
                    s += R[i, c] * (target[c] - start[c])
                longest = max(longest, abs(s))
            if not np.isfinite(longest):
                return False
            pieces = 1 + min(int(longest / (STRIDE * size)), 1000)
        if piece > 0:
            for i in range(m):
                for c in range(f):
                    q[dep[i]] += R[dep[i], c] * (target[c] - start[c]) / pieces
            for c in range(f):
                q[z[c]] = target[c] if piece == pieces else start[c] + (target[c] - start[c]) * piece / pieces
        closed = False
        for _ in range(NEWTON):
            constraints_at(t, q, y, phi, J, AB, slopes)
            off = 0.0
            for i in range(m):
                off = max(off, abs(phi[i]))
                x[i] = -phi[i]
                for j in range(m):
                    A[i, j] = J[i, dep[j]]
            if not (np.isfinite(off) and factor(A, pivot)):
                return False
            if off <= CLOSED * size * size:
                closed = True
                break
            solve(A, pivot, x)
            for i in range(m):
                q[dep[i]] += x[i]
        if not closed:
            return False
        reduce_columns(J, A, pivot, z, dep, R)
        if piece == 0:
            arrived = True
            for c in range(f):
                arrived = arrived and target[c] == start[c]
            if arrived:
                return True
        piece += 1
    return True


@compiled
def accelerate(
    t: Tables,
    z: Numbers,
    dep: Numbers,
    load: Array,
    turning: Array,
    q: Array,
    qd: Array,
    AB: Array,
    slopes: Array,
    A: Array,
    pivot: Numbers,
    R: Array,
    qdd: Array,
    lam: Array,
    MR: Array,
    mass: Array,
    mass_pivot: Numbers,
) -> bool:
    """q̈ and λ at a closed pose; leaves M R and the factors of Rᵀ M R behind. False where no mass resists."""
    n, f, m = len(q), len(z), len(dep)
    Q, T, zdd = np.empty(n), np.empty((n, n)), np.zeros(f)
    acting(t, load, turning, q, qd, 0.0, 0.0, Q, T, np.empty((5, 3)))
    drift(t, q, qd, AB, slopes, lam)
    solve(A, pivot, lam)
    for i in range(f):
        qdd[z[i]] = 0.0
    for i in range(m):
        qdd[dep[i]] = -lam[i]
    for i in range(n):
        s = Q[i]
        for j in range(n):
            s -= t.mass[i, j] * qdd[j]
        for c in range(f):
            zdd[c] += R[i, c] * s
            s_c = 0.0
            for j in range(n):
                s_c += t.mass[i, j] * R[j, c]
            MR[i, c] = s_c
    for c in range(f):
        for d in range(f):
            s = 0.0
            for i in range(n):
                s += R[i, c] * MR[i, d]
            mass[c, d] = s
    if not factor(mass, mass_pivot):
        return False
    solve(mass, mass_pivot, zdd)
    for i in range(n):
        for c in range(f):
            qdd[i] += R[i, c] * zdd[c]
    for i in range(m):
        s = Q[dep[i]]
        for j in range(n):
            s -= t.mass[dep[i], j] * qdd[j]
        lam[i] = s
    solve_transposed(A, pivot, lam)
    return True


@compiled
def differentiate(
    t: Tables,
    z: Numbers,
    dep: Numbers,
    load: Array,
    turning: Array,
    B: Array,
    q: Array,
    qd: Array,
    AB: Array,
    slopes: Array,
    A: Array,
    pivot: Numbers,
    R: Array,
    qdd: Array,
    lam: Array,
    MR: Array,
    mass: Array,
    mass_pivot: Numbers,
    qd_z: Array,
    qdd_x: Array,
    lam_x: Array,
) -> None:
    """∂q̇/∂z (n, f), ∂q̈/∂x (n, 2f + k) and ∂λ/∂x for x = (z, ż, u), where the forces B u act; after `accelerate`."""
    n, f, m = len(q), len(z), len(dep)
    K, C, scratch = np.empty((n, n)), np.empty((n, n)), np.empty(n)
    acting(t, load, turning, q, qd, 1.0, 0.0, scratch, K, np.empty((5, 3)))
    acting(t, load, turning, q, qd, 0.0, 1.0, scratch, C, np.empty((5, 3)))
    for i in range(n):
        for j in range(n):
            K[i, j] -= t.mass[i, j]
            C[i, j] -= t.mass[i, j]
    curvature(t, q, lam, AB, slopes, 1.0, K)
    dq, dqd, p, g, da = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(f)
    x, more = np.empty(m), np.empty(m)
    for column in range(2 * f + B.shape[1]):
        for i in range(n):
            dq[i] = R[i, column] if column < f else 0.0
            dqd[i] = R[i, column - f] if f <= column < 2 * f else 0.0
            g[i] = B[i, column - 2 * f] if column >= 2 * f else 0.0
            p[i] = 0.0
        for i in range(m):
            x[i] = 0.0
        if column < f:
            bend(t, AB, slopes, q, dq, qd, more)
            solve(A, pivot, more)
            for i in range(m):
                dqd[dep[i]] = -more[i]
            for i in range(n):
                qd_z[i, column] = dqd[i]
            bend(t, AB, slopes, q, dq, qdd, x)
            add_third(t, AB, slopes, q, dq, qd, x)
        if column < 2 * f:
            bend(t, AB, slopes, q, qd, dqd, more)
            for i in range(m):
                x[i] += 2.0 * more[i]
            solve(A, pivot, x)
            for i in range(m):
                p[dep[i]] = -x[i]
            for i in range(n):
                for j in range(n):
                    g[i] -= K[i, j] * dq[j] + C[i, j] * dqd[j]
        for c in range(f):
            s = 0.0
            for i in range(n):
                s += R[i, c] * g[i] - MR[i, c] * p[i]
            da[c] = s
        solve(mass, mass_pivot, da)
        for i in range(n):
            s = p[i]
            for c in range(f):
                s += R[i, c] * da[c]
            qdd_x[i, column] = s
        for i in range(m):
            s = g[dep[i]]
            for j in range(n):
                s -= t.mass[dep[i], j] * qdd_x[j, column]
            more[i] = s
        solve_transposed(A, pivot, more)
        for i in range(m):
            lam_x[i, column] = more[i]
