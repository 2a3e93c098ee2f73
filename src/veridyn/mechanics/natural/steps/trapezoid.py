"""A step of a mechanism by the trapezoidal rule over its independent coordinates, with its exact derivative, as machine code.

    z₁ = z₀ + h ż₀ + h²/4 (z̈₀ + z̈₁),    ż₁ = ż₀ + h/2 (z̈₀ + z̈₁),    z̈ = z̈(z, ż, u)

solved by Newton's method with the exact ∂z̈/∂(z, ż), so that stiff springs do no harm; where the matrix of the start leads there slowly, it
is made anew, and changes that lead away are halved. The derivative of the step is that of these equations, not of an approximation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics.compiled import core, kept, opened
from veridyn.mechanics.dense import factor, solve
from veridyn.mechanics.natural.kernels.room import Desk, Found, Model, Room
from veridyn.mechanics.natural.kernels.tangent import accelerate, close, differentiate

SETTLED = 1e-11  # of a step's last change, relative to the mechanism's size
ITERATIONS = 30
SLOW_ITERATIONS = (
    8  # after which Newton's matrix is made anew: dry friction that turns round within the step changes it
)
Numbers = NDArray[np.int64]


@core
def _newton(N: Array, z: Numbers, qdd_x: Array, h: float) -> None:
    """N (f, f) = 1 − h²/4 ∂z̈/∂z − h/2 ∂z̈/∂ż."""
    f = len(z)
    for c in range(f):
        for d in range(f):
            N[c, d] = (1.0 if c == d else 0.0) - 0.25 * h * h * qdd_x[z[c], d] - 0.5 * h * qdd_x[z[c], f + d]


@core
def advance(
    m: Model,
    w: Room,
    load: Array,
    turning: Array,
    target: Array,
    rate: Array,
    h: float,
    derivative: bool,
    at: Found,
) -> int:
    """One motion of :func:`trapezoid`, from the pose `at.q` into `at`: 0, 1 at a singular pose, 2 where the step does not settle."""
    z, q, qd, qdd, R, qdd_x = m.z, at.q, at.qd, at.qdd, at.R, at.qdd_x
    n, f, u = len(q), len(z), m.B.shape[1]
    before, N, L, x, a0, a1 = w.before, w.N, w.L, w.column, w.a0, w.a1
    aim, speed, change, size, k = w.aim, w.speed, w.change, 1.0, 0.25 * h * h
    for c in range(f):
        a0[c], a1[c] = 0.0, 0.0
    for i in range(n):
        size = max(size, abs(q[i]))
    done, last = False, np.inf
    for pass_ in range(ITERATIONS + 1):  # the first is the instant itself
        for c in range(f):
            aim[c], speed[c] = target[c], rate[c]
            if pass_ > 0:
                aim[c] += h * rate[c] + k * (a0[c] + a1[c])
                speed[c] += 0.5 * h * (a0[c] + a1[c])
        if not close(m, w, q, aim, R, pass_ > 0):
            return 1
        for i in range(n):
            s = 0.0
            for c in range(f):
                s += R[i, c] * speed[c]
            qd[i] = s
        if not accelerate(m, w, load, turning, at):
            return 1
        settled = pass_ == 0
        if pass_ > SLOW_ITERATIONS:
            off = 0.0
            for c in range(f):
                off = max(off, abs(qdd[z[c]] - a1[c]))
            if not off <= last:
                for c in range(f):
                    change[c] *= 0.5
                    a1[c] -= change[c]
                continue
            last = off
            differentiate(m, w, load, turning, at)
            _newton(N, z, qdd_x, h)
            if not factor(N, w.N_pivot):
                return 1
        if pass_ > 0:
            for c in range(f):
                change[c] = qdd[z[c]] - a1[c]
            solve(N, w.N_pivot, change)
            moved = 0.0
            for c in range(f):
                a1[c] += change[c]
                moved = max(moved, 0.5 * h * abs(change[c]), k * abs(change[c]))
            if not np.isfinite(moved):
                return 1
            settled = moved <= SETTLED * size
        if settled and (derivative or (pass_ == 0 and h > 0.0)):
            differentiate(m, w, load, turning, at)
        if settled and (pass_ > 0 or h == 0.0):
            done = True
            break
        if pass_ > 0:
            continue
        for c in range(f):
            jerk = 0.0
            for d in range(2 * f + u):
                before[c, d] = qdd_x[z[c], d]
            for d in range(f):
                jerk += before[c, d] * rate[d] + before[c, f + d] * qdd[z[d]]
            a0[c] = qdd[z[c]]
            a1[c] = a0[c] + h * jerk  # where the acceleration will be, to first order
        _newton(N, z, qdd_x, h)
        if not factor(N, w.N_pivot):
            return 1
    if not done:
        return 2
    if derivative and h > 0.0:
        for c in range(f):
            for d in range(2 * f):
                L[c, d] = -k * qdd_x[z[c], d] + (1.0 if c == d else 0.0)
                L[f + c, d] = -0.5 * h * qdd_x[z[c], d] + (1.0 if f + c == d else 0.0)
        if not factor(L, w.L_pivot):
            return 1
        for j in range(2 * f + u):
            for c in range(f):
                s = before[c, j] + (qdd_x[z[c], j] if j >= 2 * f else 0.0)
                x[c] = k * s + (1.0 if j == c else 0.0) + (h if j == f + c else 0.0)
                x[f + c] = 0.5 * h * s + (1.0 if j == f + c else 0.0)
            solve(L, w.L_pivot, x)
            for i in range(2 * f):
                at.F[i, j] = x[i]
    return 0


@core
def _copy(x: Array, out: Array) -> None:
    for i in range(len(x)):
        out[i] = x[i]


@core
def _copy_rows(x: Array, out: Array) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j]


@kept
def trapezoid(
    model: Numbers,
    desk: Numbers,
    load: Array,
    turning: Array,
    q: Array,
    target: Array,
    rate: Array,
    h: float,
    derivative: bool,
) -> tuple[int, Array, Array, Array, Array, Array, Array, Array, Array, Array]:
    """From each pose near q (N, n) with z = `target`, ż = `rate` one step h on, or for h = 0 that instant itself.

    First 0, or 1 at a singular pose, or 2 where a step does not settle; then (N, …) of q, q̇, q̈, λ, R, ∂q̇/∂z, ∂q̈/∂x, ∂λ/∂x and
    ∂(z, ż)/∂x, zeros where no derivative is wanted. `model` and `desk` are the addresses of a bound :class:`Model` and :class:`Desk`;
    `load` (N, n).
    """
    m, w, at = opened(model, Model), opened(desk, Desk).room, opened(desk, Desk).found
    many, n = q.shape
    count, f, x = len(m.dep), len(m.z), 2 * len(m.z) + m.B.shape[1]
    poses, qd, qdd, lam = np.empty((many, n)), np.empty((many, n)), np.empty((many, n)), np.empty((many, count))
    R, qd_z, qdd_x = np.empty((many, n, f)), np.zeros((many, n, f)), np.zeros((many, n, x))
    lam_x, F, state = np.zeros((many, count, x)), np.zeros((many, 2 * f, x)), 0
    for k in range(many):
        _copy(q[k], at.q)
        state = advance(m, w, load[k], turning, target[k], rate[k], h, derivative, at)
        if state != 0:
            break
        _copy(at.q, poses[k])
        _copy(at.qd, qd[k])
        _copy(at.qdd, qdd[k])
        _copy(at.lam, lam[k])
        _copy_rows(at.R, R[k])
        if derivative:
            _copy_rows(at.qd_z, qd_z[k])
            _copy_rows(at.qdd_x, qdd_x[k])
            _copy_rows(at.lam_x, lam_x[k])
        if derivative and h > 0.0:
            _copy_rows(at.F, F[k])
    return state, poses, qd, qdd, lam, R, qd_z, qdd_x, lam_x, F
