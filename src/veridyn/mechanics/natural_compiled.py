"""The index-3 step of :mod:`veridyn.mechanics.natural_index3` as machine code: the same equations over the same tables."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.compiled import compiled, kept
from veridyn.mechanics.natural_terms import Tables, acting, constraints_at, curvature, drift, factor, solve

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]
PROJECTIONS = 12
CLOSED = 1e-12


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
        solve(B, pivot, z)
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


@kept
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
    constraints_at(t, q, y, phi, J, AB, slopes)
    moved, converged = np.inf, False
    for _ in range(iterations):
        for i in range(n):
            qd[i] = 2.0 / h * (q[i] - q0[i]) - qd0[i]
            qdd[i] = 4.0 / (h * h) * (q[i] - q0[i]) - 4.0 / h * qd0[i] - qdd0[i]
        acting(t, load, turning, q, qd, w, 0.5 * h, Q, T)
        curvature(t, q, lam, AB, slopes, w, T)
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
        if not factor(B, pivot):
            return np.inf, q, qd, qdd, lam
        solve(B, pivot, z)
        moved, off = 0.0, 0.0
        for i in range(n):
            q[i] += z[i]
            moved = max(moved, abs(z[i]))
        for i in range(m):
            lam[i] += z[n + i] / w
        constraints_at(t, q, y, phi, J, AB, slopes)
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
    acting(t, load, turning, q, qd, w, 0.5 * h, Q, T)
    _border(T, J, w * alpha, B)
    if not factor(B, pivot):
        return np.inf, q, qd, qdd, lam
    target = np.zeros(m)
    _project(T, J, B, pivot, qd, target, z)
    drift(t, q, qd, AB, slopes, target)
    for i in range(m):
        target[i] = -target[i]
    _project(T, J, B, pivot, qdd, target, z)
    return 0.0, q, qd, qdd, lam
