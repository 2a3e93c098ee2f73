"""The index-3 step of :mod:`veridyn.mechanics.natural_index3` as machine code: the same equations over the same tables.

Everything is planned when the tables are made: patterns, sizes and constants of a mechanism never change, so one function serves all
mechanisms and is compiled once in a process, in a few seconds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.compiled import compiled
from veridyn.mechanics.natural_constraints import Constraints, Table
from veridyn.mechanics.natural_forces import ForceTable

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]
PROJECTIONS = 12
CLOSED = 1e-12


class _Forms(NamedTuple):
    """A :class:`Table`: a compressed gather by rows, and the second derivatives one by one."""

    rows: int
    start: Numbers
    source: Numbers
    value: Array
    row: Numbers
    column: Numbers
    bend_row: Numbers
    bend_place: Numbers
    bend_value: Array


class Tables(NamedTuple):
    """All constants of a mechanism, as the compiled step reads them."""

    mass: Array
    quadratic: _Forms
    angles: _Forms
    places: Numbers
    struts: Array
    strut_laws: Array
    own: Numbers
    own_laws: Array


def tables_of(mass: Array, c: Constraints, f: ForceTable) -> Tables:
    """The constants of a mechanism for :func:`index3_kernel`."""
    return Tables(
        np.ascontiguousarray(mass),
        _forms(c.quadratic),
        _forms(c.angles),
        c.places.astype(np.int64),
        np.ascontiguousarray(f.struts),
        np.ascontiguousarray(f.strut_laws),
        f.own.astype(np.int64),
        np.ascontiguousarray(f.own_laws),
    )


def _forms(t: Table) -> _Forms:
    g = t.gather

    def whole(x: object) -> Numbers:
        return np.array(x, dtype=np.int64)

    return _Forms(
        t.rows,
        whole(g.indptr),
        whole(g.indices),
        np.array(g.data, dtype=np.float64),
        whole(t.row),
        whole(t.column),
        whole(t.bend_row),
        whole(t.bend_place),
        np.array(t.bend_value, dtype=np.float64),
    )


@compiled
def _gather(f: _Forms, y: Array, values: Array, slopes: Array) -> None:
    """Values and gradients of quadratic forms at y = (q, 1)."""
    n = slopes.shape[1]
    for i in range(f.rows):
        values[i] = 0.0
    for k in range(len(f.row)):
        s = 0.0
        for p in range(f.start[k], f.start[k + 1]):
            s += f.value[p] * y[f.source[p]]
        values[f.row[k]] += 0.5 * s * y[f.column[k]]
        if f.column[k] < n:
            slopes[f.row[k], f.column[k]] = s


@compiled
def _second(f: _Forms, qd: Array, out: Array) -> None:
    """q̇ᵀ ∂²Φ/∂q² q̇ of each form."""
    n = len(qd)
    for i in range(f.rows):
        out[i] = 0.0
    for k in range(len(f.bend_row)):
        p = f.bend_place[k]
        out[f.bend_row[k]] += f.bend_value[k] * qd[p // n] * qd[p % n]


@compiled
def _constraints(t: Tables, q: Array, y: Array, phi: Array, J: Array, AB: Array, slopes: Array) -> None:
    """Φ and Φ_q; A, B and their gradients are left in `AB` and `slopes`."""
    n, a = len(q), len(t.places)
    k = len(phi) - a
    for i in range(n):
        y[i] = q[i]
    y[n] = 1.0
    _gather(t.quadratic, y, phi, J)
    if a == 0:
        return
    _gather(t.angles, y, AB, slopes)
    for i in range(a):
        p = t.places[i]
        s, c = np.sin(q[p]), np.cos(q[p])
        phi[k + i] = s * AB[2 * i] - c * AB[2 * i + 1]
        for j in range(n):
            J[k + i, j] = s * slopes[2 * i, j] - c * slopes[2 * i + 1, j]
        J[k + i, p] += c * AB[2 * i] + s * AB[2 * i + 1]


@compiled
def _drift(t: Tables, q: Array, qd: Array, AB: Array, slopes: Array, out: Array) -> None:
    """Φ̇_q q̇, after :func:`_constraints` at the same q."""
    a = len(t.places)
    k = len(out) - a
    _second(t.quadratic, qd, out)
    if a == 0:
        return
    bent = np.empty(2 * a)
    _second(t.angles, qd, bent)
    for i in range(a):
        p = t.places[i]
        s, c, w = np.sin(q[p]), np.cos(q[p]), qd[p]
        A, B, Ad, Bd = AB[2 * i], AB[2 * i + 1], 0.0, 0.0
        for j in range(len(qd)):
            Ad += slopes[2 * i, j] * qd[j]
            Bd += slopes[2 * i + 1, j] * qd[j]
        out[k + i] = s * bent[2 * i] - c * bent[2 * i + 1] + 2.0 * w * (c * Ad + s * Bd) + w * w * (c * B - s * A)


@compiled
def _curvature(t: Tables, q: Array, lam: Array, AB: Array, slopes: Array, scale: float, out: Array) -> None:
    """Add scale ∂(Φ_qᵀ λ)/∂q, after :func:`_constraints` at the same q."""
    n, a = len(q), len(t.places)
    k = len(lam) - a
    f = t.quadratic
    for j in range(len(f.bend_row)):
        out[f.bend_place[j] // n, f.bend_place[j] % n] += scale * f.bend_value[j] * lam[f.bend_row[j]]
    if a == 0:
        return
    f = t.angles
    for j in range(len(f.bend_row)):
        i = f.bend_row[j] // 2
        x = q[t.places[i]]
        weight = np.sin(x) if f.bend_row[j] % 2 == 0 else -np.cos(x)
        out[f.bend_place[j] // n, f.bend_place[j] % n] += scale * f.bend_value[j] * lam[k + i] * weight
    for i in range(a):
        p = t.places[i]
        s, c, w = np.sin(q[p]), np.cos(q[p]), scale * lam[k + i]
        for j in range(n):
            mixed = w * (c * slopes[2 * i, j] + s * slopes[2 * i + 1, j])
            out[p, j] += mixed
            out[j, p] += mixed
        out[p, p] += w * (c * AB[2 * i + 1] - s * AB[2 * i])


@compiled
def _acting(
    t: Tables, load: Array, turning: Array, q: Array, qd: Array, wk: float, wc: float, Q: Array, T: Array
) -> None:
    """Q, and T = M + wk K + wc C."""
    n = len(q)
    for i in range(n):
        Q[i] = load[i]
        for j in range(n):
            T[i, j] = t.mass[i, j]
    if len(turning):
        for i in range(n):
            for j in range(n):
                Q[i] += turning[i, j] * q[j]
                T[i, j] -= wk * turning[i, j]
            Q[i] += turning[i, n]
    for i in range(len(t.own)):
        p = t.own[i]
        Q[p] -= t.own_laws[0, i] * (q[p] - t.own_laws[1, i]) + t.own_laws[2, i] * qd[p]
        T[p, p] += wk * t.own_laws[0, i] + wc * t.own_laws[2, i]
    dim = t.struts.shape[1]
    u, v, inner = np.empty(dim), np.empty(dim), np.empty((dim, dim))
    for e in range(len(t.struts)):
        k, rest, c = t.strut_laws[0, e], t.strut_laws[1, e], t.strut_laws[2, e]
        length, rate = 0.0, 0.0
        for a in range(dim):
            u[a], v[a] = t.struts[e, a, n], 0.0
            for j in range(n):
                u[a] += t.struts[e, a, j] * q[j]
                v[a] += t.struts[e, a, j] * qd[j]
            length += u[a] * u[a]
        length = np.sqrt(length)
        for a in range(dim):
            u[a] /= length
            rate += u[a] * v[a]
        f = k * (length - rest) + c * rate
        for a in range(dim):
            for b in range(dim):
                inner[a, b] = (wk * (k - f / length) + wc * c) * u[a] * u[b] + wk * c * u[a] * (
                    v[b] - rate * u[b]
                ) / length
            inner[a, a] += wk * f / length
        for i in range(n):
            for a in range(dim):
                d = t.struts[e, a, i]
                if d != 0.0:
                    Q[i] -= d * u[a] * f
                    for b in range(dim):
                        for j in range(n):
                            T[i, j] += d * inner[a, b] * t.struts[e, b, j]


@compiled
def _factor(B: Array, pivot: Numbers) -> bool:
    """LU with row pivoting, in place; False where a pivot is zero or not finite."""
    size = len(B)
    for k in range(size):
        best, p = abs(B[k, k]), k
        for i in range(k + 1, size):
            if abs(B[i, k]) > best:
                best, p = abs(B[i, k]), i
        if not (best > 0.0 and np.isfinite(best)):
            return False
        pivot[k] = p
        if p != k:
            for j in range(size):
                B[k, j], B[p, j] = B[p, j], B[k, j]
        inverse = 1.0 / B[k, k]
        for i in range(k + 1, size):
            if B[i, k] != 0.0:
                B[i, k] *= inverse
                s = B[i, k]
                for j in range(k + 1, size):
                    B[i, j] -= s * B[k, j]
    return True


@compiled
def _solve(B: Array, pivot: Numbers, x: Array) -> None:
    size = len(B)
    for k in range(size):
        p = pivot[k]
        if p != k:
            x[k], x[p] = x[p], x[k]
    for i in range(size):
        s = x[i]
        for j in range(i):
            s -= B[i, j] * x[j]
        x[i] = s
    for i in range(size - 1, -1, -1):
        s = x[i]
        for j in range(i + 1, size):
            s -= B[i, j] * x[j]
        x[i] = s / B[i, i]


@compiled
def _border(T: Array, J: Array, alpha: float, B: Array) -> None:
    n, m = len(T), len(J)
    for i in range(n):
        for j in range(n):
            B[i, j] = T[i, j]
    for i in range(m):
        for j in range(m):
            B[n + i, n + j] = 0.0
        for j in range(n):
            B[n + i, j] = J[i, j]
            B[j, n + i] = J[i, j]
        B[n + i, n + i] = -1.0 / alpha


@compiled
def _project(T: Array, J: Array, B: Array, pivot: Numbers, x: Array, target: Array, z: Array) -> None:
    """x onto J x = target in the metric T, repeated with multipliers until nothing of size 1/α is left."""
    n, m = len(x), len(target)
    right, sigma, before = np.zeros(n), np.zeros(m), np.inf
    for i in range(n):
        for j in range(n):
            right[i] += T[i, j] * x[j]
    size = 1.0
    for i in range(m):
        size = max(size, abs(target[i]))
    for _ in range(PROJECTIONS):
        for j in range(n):
            z[j] = right[j]
        for i in range(m):
            z[n + i] = target[i]
            for j in range(n):
                z[j] -= J[i, j] * sigma[i]
        _solve(B, pivot, z)
        for j in range(n):
            x[j] = z[j]
        open_by = 0.0
        for i in range(m):
            s = -target[i]
            for j in range(n):
                s += J[i, j] * x[j]
            open_by = max(open_by, abs(s))
            sigma[i] += z[n + i]
        if open_by <= CLOSED * size or open_by > 0.5 * before:
            break
        before = open_by


@compiled
def index3_kernel(
    t: Tables,
    load: Array,
    turning: Array,
    q0: Array,
    qd0: Array,
    qdd0: Array,
    lam0: Array,
    h: float,
    alpha: float,
    tolerance: float,
    iterations: int,
) -> tuple[float, Array, Array, Array, Array]:
    """One step; the first number is zero, or by how much the last iteration moved where it did not converge.

    `load` (n,) holds all constant generalised forces, `turning` (n, n+1) those linear in q, or nothing.
    """
    n, m, a = len(q0), len(lam0), len(t.places)
    w = 0.25 * h * h
    q, qd, qdd, lam = np.empty(n), np.empty(n), np.empty(n), np.empty(m)
    size = 1.0
    for i in range(n):
        q[i] = q0[i] + h * qd0[i] + 0.5 * h * h * qdd0[i]
        size = max(size, abs(q[i]))
    for i in range(m):
        lam[i] = lam0[i]
    y, phi, J = np.empty(n + 1), np.empty(m), np.zeros((m, n))
    AB, slopes = np.empty(2 * a), np.zeros((2 * a, n))
    Q, T, B = np.empty(n), np.empty((n, n)), np.empty((n + m, n + m))
    pivot, z = np.empty(n + m, dtype=np.int64), np.empty(n + m)
    _constraints(t, q, y, phi, J, AB, slopes)
    moved, converged = np.inf, False
    for _ in range(iterations):
        for i in range(n):
            qd[i] = 2.0 / h * (q[i] - q0[i]) - qd0[i]
            qdd[i] = 4.0 / (h * h) * (q[i] - q0[i]) - 4.0 / h * qd0[i] - qdd0[i]
        _acting(t, load, turning, q, qd, w, 0.5 * h, Q, T)
        _curvature(t, q, lam, AB, slopes, w, T)
        for i in range(n):
            s = -Q[i]
            for j in range(n):
                s += t.mass[i, j] * qdd[j]
            for j in range(m):
                s += J[j, i] * lam[j]
            z[i] = -w * s
        for i in range(m):
            z[n + i] = -phi[i]
        _border(T, J, w * alpha, B)
        if not _factor(B, pivot):
            return np.inf, q, qd, qdd, lam
        _solve(B, pivot, z)
        moved, off = 0.0, 0.0
        for i in range(n):
            q[i] += z[i]
            moved = max(moved, abs(z[i]))
        for i in range(m):
            lam[i] += z[n + i] / w
        _constraints(t, q, y, phi, J, AB, slopes)
        for i in range(m):
            off = max(off, abs(phi[i]))
        if not (np.isfinite(moved) and np.isfinite(off)):
            return np.inf, q, qd, qdd, lam
        if moved <= tolerance * size and off <= tolerance * size * size:
            converged = True
            break
    if not converged:
        return max(moved, 1e-300), q, qd, qdd, lam
    for i in range(n):
        qd[i] = 2.0 / h * (q[i] - q0[i]) - qd0[i]
        qdd[i] = 4.0 / (h * h) * (q[i] - q0[i]) - 4.0 / h * qd0[i] - qdd0[i]
    _acting(t, load, turning, q, qd, w, 0.5 * h, Q, T)
    _border(T, J, w * alpha, B)
    if not _factor(B, pivot):
        return np.inf, q, qd, qdd, lam
    target = np.zeros(m)
    _project(T, J, B, pivot, qd, target, z)
    _drift(t, q, qd, AB, slopes, target)
    for i in range(m):
        target[i] = -target[i]
    _project(T, J, B, pivot, qdd, target, z)
    return 0.0, q, qd, qdd, lam
