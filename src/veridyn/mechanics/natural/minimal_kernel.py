"""The trapezoidal step of :mod:`veridyn.mechanics.natural.minimal` over independent coordinates, with its derivative, as machine code."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.compiled import compiled, kept
from veridyn.mechanics.dense import factor, solve
from veridyn.mechanics.natural.tangent import accelerate, close, differentiate
from veridyn.mechanics.natural.terms import Tables

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]
SETTLED = 1e-11  # of a step's last change, relative to the mechanism's size
ITERATIONS = 30


@compiled
def _advance(
    t: Tables,
    z: Numbers,
    dep: Numbers,
    load: Array,
    turning: Array,
    B: Array,
    target: Array,
    rate: Array,
    h: float,
    derivative: bool,
    q: Array,
    qd: Array,
    qdd: Array,
    lam: Array,
    R: Array,
    qd_z: Array,
    qdd_x: Array,
    lam_x: Array,
    F: Array,
) -> int:
    """One motion of :func:`trapezoid`, into the arrays from `q` on."""
    n, m, f, u, a = len(q), len(dep), len(z), B.shape[1], len(t.places)
    w = 0.25 * h * h
    before, N, L = np.zeros((f, 2 * f + u)), np.empty((f, f)), np.zeros((2 * f, 2 * f))
    J, AB, slopes, A = np.zeros((m, n)), np.empty(2 * a), np.zeros((2 * a, n)), np.empty((m, m))
    MR, mass, x = np.empty((n, f)), np.empty((f, f)), np.empty(2 * f)
    pivot, mass_pivot, L_pivot = (
        np.empty(m, dtype=np.int64),
        np.empty(f, dtype=np.int64),
        np.empty(2 * f, dtype=np.int64),
    )
    N_pivot, a0, a1 = np.empty(f, dtype=np.int64), np.zeros(f), np.zeros(f)
    aim, speed, change, size = np.empty(f), np.empty(f), np.empty(f), 1.0
    for i in range(n):
        size = max(size, abs(q[i]))
    for pass_ in range(ITERATIONS + 1):  # the first is the instant itself
        for c in range(f):
            aim[c], speed[c] = target[c], rate[c]
            if pass_ > 0:
                aim[c] += h * rate[c] + w * (a0[c] + a1[c])
                speed[c] += 0.5 * h * (a0[c] + a1[c])
        if not close(t, z, dep, q, aim, J, AB, slopes, A, pivot, R, pass_ > 0):
            return 1
        for i in range(n):
            s = 0.0
            for c in range(f):
                s += R[i, c] * speed[c]
            qd[i] = s
        good = accelerate(t, z, dep, load, turning, q, qd, AB, slopes, A, pivot, R, qdd, lam, MR, mass, mass_pivot)
        if not good:
            return 1
        settled = pass_ == 0
        if pass_ > 0:
            for c in range(f):
                change[c] = qdd[z[c]] - a1[c]
            solve(N, N_pivot, change)
            moved = 0.0
            for c in range(f):
                a1[c] += change[c]
                moved = max(moved, 0.5 * h * abs(change[c]), w * abs(change[c]))
            if not np.isfinite(moved):
                return 1
            settled = moved <= SETTLED * size
        if settled and (derivative or (pass_ == 0 and h > 0.0)):
            differentiate(
                t,
                z,
                dep,
                load,
                turning,
                B,
                q,
                qd,
                AB,
                slopes,
                A,
                pivot,
                R,
                qdd,
                lam,
                MR,
                mass,
                mass_pivot,
                qd_z,
                qdd_x,
                lam_x,
            )
        if settled and (pass_ > 0 or h == 0.0):
            break
        if pass_ > 0:
            continue
        for c in range(f):
            jerk = 0.0
            for d in range(2 * f + u):
                before[c, d] = qdd_x[z[c], d]
            for d in range(f):
                N[c, d] = (1.0 if c == d else 0.0) - w * before[c, d] - 0.5 * h * before[c, f + d]
                jerk += before[c, d] * rate[d] + before[c, f + d] * qdd[z[d]]
            a0[c] = qdd[z[c]]
            a1[c] = a0[c] + h * jerk  # where the acceleration will be, to first order
        if not factor(N, N_pivot):
            return 1
    else:
        return 2
    if derivative and h > 0.0:
        for c in range(f):
            for d in range(2 * f):
                L[c, d] = -w * qdd_x[z[c], d] + (1.0 if c == d else 0.0)
                L[f + c, d] = -0.5 * h * qdd_x[z[c], d] + (1.0 if f + c == d else 0.0)
        if not factor(L, L_pivot):
            return 1
        for j in range(2 * f + u):
            for c in range(f):
                s = before[c, j] + (qdd_x[z[c], j] if j >= 2 * f else 0.0)
                x[c] = w * s + (1.0 if j == c else 0.0) + (h if j == f + c else 0.0)
                x[f + c] = 0.5 * h * s + (1.0 if j == f + c else 0.0)
            solve(L, L_pivot, x)
            for i in range(2 * f):
                F[i, j] = x[i]
    return 0


@kept
def trapezoid(
    t: Tables,
    z: Numbers,
    dep: Numbers,
    load: Array,
    turning: Array,
    B: Array,
    q: Array,
    target: Array,
    rate: Array,
    h: float,
    derivative: bool,
) -> tuple[int, Array, Array, Array, Array, Array, Array, Array, Array, Array]:
    """From each pose near q (N, n) with z = `target`, ż = `rate` one step h on, or for h = 0 that instant itself.

    First 0, or 1 at a singular pose, or 2 where a step does not settle; then (N, …) of q, q̇, q̈, λ, R, ∂q̇/∂z, ∂q̈/∂x, ∂λ/∂x and
    ∂(z, ż)/∂x. `load` (N, n); q is written to.
    """
    many, n = q.shape
    m, f, x = len(dep), len(z), 2 * len(z) + B.shape[1]
    qd, qdd, lam, R = np.empty((many, n)), np.empty((many, n)), np.empty((many, m)), np.zeros((many, n, f))
    qd_z, qdd_x, lam_x = np.zeros((many, n, f)), np.zeros((many, n, x)), np.zeros((many, m, x))
    F, state = np.zeros((many, 2 * f, x)), 0
    for k in range(many):
        state = _advance(
            t,
            z,
            dep,
            load[k],
            turning,
            B,
            target[k],
            rate[k],
            h,
            derivative,
            q[k],
            qd[k],
            qdd[k],
            lam[k],
            R[k],
            qd_z[k],
            qdd_x[k],
            lam_x[k],
            F[k],
        )
        if state != 0:
            break
    return state, q, qd, qdd, lam, R, qd_z, qdd_x, lam_x, F
