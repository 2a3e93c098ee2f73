"""The state of a tree from its independent coordinates and rates, as machine code: loops closed, velocities, accelerations, reactions.

    Φ(x) = 0,    v = R ż,    Rᵀ M R z̈ = Rᵀ (Γ − h − M a₀),    Φ_sᵀ λ = (Γ − h − M a)_s

R = ∂x/∂z; a₀ is what the loops and prescribed coordinates accelerate without z̈; s are the coordinates that loops tie. All functions share
one work record (:mod:`veridyn.mechanics.tree.layout`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.compiled import core
from veridyn.mechanics.tree.layout import (
    CLOCK,
    CLOSING,
    COUNT,
    COUNT_V,
    DELTA,
    DEP,
    DEP_T,
    DEPENDENT,
    DRIFT,
    EXTRA,
    F_B,
    FREE,
    FREEDOM,
    GIVEN,
    HELD,
    J_CLOSING,
    LAM,
    LOAD,
    LOOPED,
    M_A,
    MASS,
    MOTION,
    NV_C,
    OPEN_CLOSING,
    PIVOT_DEP,
    PIVOT_DEP_T,
    PIVOT_MASS,
    PRESCRIBED,
    START,
    UNIT,
    A,
    J,
    M,
    R,
    V,
    X,
    Z,
)
from veridyn.mechanics.tree.record import call_kernel, factor, solve

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]
CLOSED_TOLERANCE_M = 1e-13  # m, and of products of unit axes: a loop that is closed to rounding
CLOSING_ITERATIONS = 40
LONGEST_NEWTON_STEP = 0.5  # rad, and of the machine's reach: what one Newton step may change a coordinate


@core
def shift(I: Numbers, W: Array) -> None:
    """Base, independent and prescribed coordinates of X = START ⊞ DELTA; dependent coordinates of X stay as they are."""
    x, start, delta, z, at, first = I[X], I[START], I[DELTA], I[Z], 0, 0
    if I[FREE]:
        at, first = 7, 6
        for i in range(3):
            W[x + i] = W[start + i] + W[delta + i]
        rx, ry, rz = 0.5 * W[delta + 3], 0.5 * W[delta + 4], 0.5 * W[delta + 5]
        square = rx * rx + ry * ry + rz * rz
        if square < 1e-8:
            c, s = 1.0 - 0.5 * square, 1.0 - square / 6.0
        else:
            half = np.sqrt(square)
            c, s = np.cos(half), np.sin(half) / half
        rx, ry, rz = s * rx, s * ry, s * rz
        e, a, b, d = W[start + 3], W[start + 4], W[start + 5], W[start + 6]
        w0, w1 = e * c - a * rx - b * ry - d * rz, e * rx + a * c + b * rz - d * ry
        w2, w3 = e * ry + b * c + d * rx - a * rz, e * rz + d * c + a * ry - b * rx
        size = 1.0 / np.sqrt(w0 * w0 + w1 * w1 + w2 * w2 + w3 * w3)
        W[x + 3], W[x + 4], W[x + 5], W[x + 6] = w0 * size, w1 * size, w2 * size, w3 * size
    for c in range(I[FREEDOM] - first):
        k = at + I[z + c]
        W[x + k] = W[start + k] + W[delta + first + c]
    nh, given, clock = I[HELD], I[GIVEN], W[I[CLOCK]]
    for c in range(nh):
        W[x + at + I[I[PRESCRIBED] + c]] = (
            W[given + c] + clock * W[given + nh + c] + 0.5 * clock * clock * W[given + 2 * nh + c]
        )


@core
def close(I: Numbers, W: Array) -> bool:
    """Dependent coordinates of X by Newton's method; False where no closed position is found."""
    n, m, at = I[COUNT], I[LOOPED], 7 if I[FREE] else 0
    x, slopes, opening, block, step, dep, unit = (
        I[X] + at, I[J_CLOSING], I[OPEN_CLOSING], I[DEP], I[M_A], I[DEPENDENT], I[UNIT],
    )  # fmt: skip
    worst = np.inf
    for _ in range(CLOSING_ITERATIONS):
        call_kernel(I, CLOSING)
        worst, most = 0.0, 0.0
        for i in range(m):
            worst = max(worst, abs(W[opening + i]))
            W[step + i] = -W[opening + i]
            for j in range(m):
                W[block + i * m + j] = W[slopes + i * n + I[dep + j]]
        if not np.isfinite(worst) or not factor(I, W, block, m, I[PIVOT_DEP]):
            return False
        solve(I, W, block, m, I[PIVOT_DEP], step)
        for j in range(m):
            most = max(most, abs(W[step + j]) / W[unit + I[dep + j]])
        if not np.isfinite(most):
            return False
        short = min(1.0, LONGEST_NEWTON_STEP / most) if most > 0.0 else 1.0
        for j in range(m):
            W[x + I[dep + j]] += short * W[step + j]
        if worst <= CLOSED_TOLERANCE_M or most <= 1e-15:
            return True
    return bool(worst <= 1e3 * CLOSED_TOLERANCE_M)


@core
def spread(I: Numbers, W: Array) -> bool:
    """R = ∂x/∂z of dependent coordinates, from Φ_q; False at a singular position."""
    n, m, f, first = I[COUNT], I[LOOPED], I[FREEDOM], 6 if I[FREE] else 0
    slopes, block, across, step, dep, r = I[J], I[DEP], I[DEP_T], I[M_A], I[DEPENDENT], I[R]
    for i in range(m):
        for j in range(m):
            slope = W[slopes + i * n + I[dep + j]]
            W[block + i * m + j] = slope
            W[across + j * m + i] = slope
    if not factor(I, W, block, m, I[PIVOT_DEP]) or not factor(I, W, across, m, I[PIVOT_DEP_T]):
        return False
    for c in range(f - first):
        for i in range(m):
            W[step + i] = -W[slopes + i * n + I[I[Z] + c]]
        solve(I, W, block, m, I[PIVOT_DEP], step)
        for i in range(m):
            W[r + (first + I[dep + i]) * f + first + c] = W[step + i]
    return True


@core
def own_row(I: Numbers, c: int) -> int:
    """The velocity that the independent coordinate c is."""
    if I[FREE]:
        return c if c < 6 else int(6 + I[I[Z] + c - 6])
    return int(I[I[Z] + c])


@core
def respond(I: Numbers, W: Array, right: int, a: int) -> None:
    """a ← R (Rᵀ M R)⁻¹ Rᵀ (right − M a) + a: `a` comes with the part that the loops give, and zeros elsewhere."""
    nv, m, f, first = I[COUNT_V], I[LOOPED], I[FREEDOM], 6 if I[FREE] else 0
    mass, r, left, z, dep = I[M], I[R], I[NV_C], I[F_B], I[DEPENDENT]
    for i in range(nv):
        s = W[right + i]
        for d in range(m):
            k = first + I[dep + d]
            s -= W[mass + i * nv + k] * W[a + k]
        for d in range(I[HELD]):
            k = first + I[I[PRESCRIBED] + d]
            s -= W[mass + i * nv + k] * W[a + k]
        W[left + i] = s
    for c in range(f):
        s = W[left + own_row(I, c)]
        for d in range(m):
            k = first + I[dep + d]
            s += W[r + k * f + c] * W[left + k]
        W[z + c] = s
    solve(I, W, I[MASS], f, I[PIVOT_MASS], z)
    for c in range(f):
        W[a + own_row(I, c)] = W[z + c]
        for d in range(m):
            k = first + I[dep + d]
            W[a + k] += W[r + k * f + c] * W[z + c]


@core
def hold(I: Numbers, W: Array, right: int, a: int, lam: int) -> None:
    """λ with Φ_sᵀ λ = (right − M a) of the dependent coordinates."""
    nv, m, first, mass = I[COUNT_V], I[LOOPED], 6 if I[FREE] else 0, I[M]
    for i in range(m):
        r = first + I[I[DEPENDENT] + i]
        s = W[right + r]
        for j in range(nv):
            s -= W[mass + r * nv + j] * W[a + j]
        W[lam + i] = s
    solve(I, W, I[DEP_T], m, I[PIVOT_DEP_T], lam)


@core
def reduce_mass(I: Numbers, W: Array) -> bool:
    """Rᵀ M R, factorised; False where it is singular or not finite."""
    nv, m, f, first = I[COUNT_V], I[LOOPED], I[FREEDOM], 6 if I[FREE] else 0
    whole, r, left, reduced, dep = I[M], I[R], I[NV_C], I[MASS], I[DEPENDENT]
    for c in range(f):
        own = own_row(I, c)
        for i in range(nv):
            s = W[whole + i * nv + own]
            for d in range(m):
                k = first + I[dep + d]
                s += W[whole + i * nv + k] * W[r + k * f + c]
            W[left + i] = s
        for b in range(f):
            s = W[left + own_row(I, b)]
            for d in range(m):
                k = first + I[dep + d]
                s += W[r + k * f + b] * W[left + k]
            W[reduced + b * f + c] = s
    return factor(I, W, reduced, f, I[PIVOT_MASS])


@core
def state_at(I: Numbers, W: Array, rate: int) -> bool:
    """From X with its independent part set: dependent coordinates, velocities R `rate`, accelerations and forces of cut joints."""
    nv, m, f, first = I[COUNT_V], I[LOOPED], I[FREEDOM], 6 if I[FREE] else 0
    v, a, load, extra, r, dep = I[V], I[A], I[LOAD], I[EXTRA], I[R], I[DEPENDENT]
    if m > 0:
        if not close(I, W):
            return False
        call_kernel(I, MOTION)  # for Φ_q alone: velocities follow from it
        if not spread(I, W):
            return False
    for i in range(nv):
        W[v + i] = 0.0
        W[a + i] = 0.0
    n, nh, held, given, step = I[COUNT], I[HELD], I[PRESCRIBED], I[GIVEN], I[M_A]
    for c in range(nh):
        k = first + I[held + c]
        W[v + k] = W[given + nh + c] + W[I[CLOCK]] * W[given + 2 * nh + c]
        W[a + k] = W[given + 2 * nh + c]
    if nh > 0 and m > 0:  # what the loops make of prescribed rates
        for i in range(m):
            s = 0.0
            for c in range(nh):
                s -= W[I[J] + i * n + I[held + c]] * W[v + first + I[held + c]]
            W[step + i] = s
        solve(I, W, I[DEP], m, I[PIVOT_DEP], step)
        for i in range(m):
            W[v + first + I[dep + i]] = W[step + i]
    for c in range(f):
        W[v + own_row(I, c)] = W[rate + c]
        for d in range(m):
            k = first + I[dep + d]
            W[v + k] += W[r + k * f + c] * W[rate + c]
    call_kernel(I, MOTION)
    for i in range(nv):
        W[load + i] += W[extra + i]
    if m > 0:
        for i in range(m):
            s = -W[I[DRIFT] + i]
            for c in range(nh):
                s -= W[I[J] + i * n + I[held + c]] * W[a + first + I[held + c]]
            W[step + i] = s
        solve(I, W, I[DEP], m, I[PIVOT_DEP], step)
        for i in range(m):
            W[a + first + I[dep + i]] = W[step + i]
    if not reduce_mass(I, W):
        return False
    respond(I, W, load, a)
    if m > 0:
        hold(I, W, load, a, I[LAM])
    return True
