"""Derivatives of a tree's motion as machine code: of accelerations, reactions and rates of elements' states, and of the trapezoidal step.

The equations M a + h + Φ_qᵀ λ = Γ and Φ_q q̈ + b = 0 are differentiated at the state in hand; what is left is one solution with the factors
of :mod:`veridyn.mechanics.tree.steps.motion_kernel`, of all columns (z, ż, u) at once. The step,
:mod:`veridyn.mechanics.tree.steps.step_kernel`, is linearised with them: the matrix of its Newton's method, and the derivative of its end.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics.compiled import core
from veridyn.mechanics.tree.steps import record
from veridyn.mechanics.tree.steps.motion_kernel import hold, own_row, solve_block
from veridyn.mechanics.tree.steps.record import call_kernel, factor, matrix, solve_many

Numbers = NDArray[np.int64]


@core
def along(I: Numbers, W: Array, row: int, c: int) -> float:
    """Entry c of (row of derivatives by v at W[row]) R."""
    f, r = I[record.FREEDOM], I[record.R]
    s = W[row + own_row(I, c)]
    for t in range(I[I[record.TIED_FROM] + c], I[I[record.TIED_FROM] + c + 1]):
        k = I[I[record.TIED] + t]
        s += W[row + k] * W[r + k * f + c]
    return float(s)


@core
def along_all(I: Numbers, W: Array, by_x: Array, by_v: Array, sign: float, out: Array) -> None:
    """out (r, ≥ 2f) = ± (∂/∂z, ∂/∂ż) of r quantities, from their derivatives by x and v (r, nv): by_x R + by_v V_Z, by_v R."""
    f = I[record.FREEDOM]
    r, v_z = matrix(W, I[record.R], I[record.COUNT_V], f), matrix(W, I[record.V_Z], I[record.COUNT_V], f)
    for c in range(f):
        own = own_row(I, c)
        for i in range(len(by_x)):
            out[i, c] = sign * by_x[i, own]
            out[i, f + c] = sign * by_v[i, own]
        for t in range(I[I[record.TIED_FROM] + c], I[I[record.TIED_FROM] + c + 1]):
            k = I[I[record.TIED] + t]
            turn, rate = sign * r[k, c], sign * v_z[k, c]
            for i in range(len(by_x)):
                out[i, c] += turn * by_x[i, k] + rate * by_v[i, k]
                out[i, f + c] += turn * by_v[i, k]


@core
def differentiate_rates(I: Numbers, W: Array) -> None:
    """S_X: the derivatives of the rates of elements' states with respect to (z, ż, u); they depend on no force and no acceleration."""
    nv, f, k, p, ns = I[record.COUNT_V], I[record.FREEDOM], I[record.FORCES], I[record.VARYING], I[record.STATES]
    out = matrix(W, I[record.S_X], ns, 2 * f + k + p)
    along_all(I, W, matrix(W, I[record.RATE_BY_X], ns, nv), matrix(W, I[record.RATE_BY_V], ns, nv), 1.0, out)
    for i in range(ns):
        for j in range(k):
            out[i, 2 * f + j] = 0.0
        for j in range(p):
            out[i, 2 * f + k + j] = W[I[record.RATE_COLUMNS] + i * p + j]


@core
def differentiate_velocity(I: Numbers, W: Array) -> None:
    """V_Z = ∂v/∂z: the rates of dependent coordinates turn with the loops."""
    n, f, first = I[record.COUNT], I[record.FREEDOM], I[record.COUNT_V] - I[record.COUNT]
    v_z, right, out, dep = I[record.V_Z], I[record.OPEN_CLOSING], I[record.M_A], I[record.DEPENDENT]
    for c in range(first, f):
        for t in range(I[I[record.REACHED_FROM] + c], I[I[record.REACHED_FROM] + c + 1]):
            b = int(I[I[record.REACHED] + t])
            for i in range(I[I[record.BLOCK] + b], I[I[record.BLOCK] + b + 1]):
                e = I[I[record.EQUATION] + i]
                W[right + e] = -along(I, W, I[record.SLOPE_RATES] + e * n - first, c)
            solve_block(I, W, b, right, 1, out)
            for i in range(I[I[record.BLOCK] + b], I[I[record.BLOCK] + b + 1]):
                d = I[I[record.POSITION] + i]
                W[v_z + (first + I[dep + d]) * f + c] = W[out + d]


@core
def differentiate_loops(I: Numbers, W: Array, a_x: Array) -> None:
    """Rows of dependent coordinates of ∂a/∂(z, ż) while z̈ is held: Φ_s ∂a_s = −∂(Φ_q q̈ + b)."""
    nv, m, f, first, dep, out = (
        I[record.COUNT_V],
        I[record.LOOPED],
        I[record.FREEDOM],
        I[record.COUNT_V] - I[record.COUNT],
        I[record.DEPENDENT],
        I[record.M_A],
    )
    by_x, by_v = matrix(W, I[record.LOOPS_BY_X], m, nv), matrix(W, I[record.LOOPS_BY_V], m, nv)
    along_all(I, W, by_x, by_v, -1.0, matrix(W, I[record.LOOPS_RIGHT], m, 2 * f))
    for c in range(first, f):
        for t in range(I[I[record.REACHED_FROM] + c], I[I[record.REACHED_FROM] + c + 1]):
            b = int(I[I[record.REACHED] + t])
            for j in (c, f + c):
                solve_block(I, W, b, I[record.LOOPS_RIGHT] + j, 2 * f, out)
                for i in range(I[I[record.BLOCK] + b], I[I[record.BLOCK] + b + 1]):
                    d = I[I[record.POSITION] + i]
                    a_x[first + I[dep + d], j] = W[out + d]


@core
def respond_all(I: Numbers, W: Array, right: Array, a_x: Array) -> None:
    """:func:`veridyn.mechanics.tree.steps.motion_kernel.respond` of all columns at once; nothing of the prescribed coordinates moves."""
    nv, m, f, first, every = (
        I[record.COUNT_V],
        I[record.LOOPED],
        I[record.FREEDOM],
        I[record.COUNT_V] - I[record.COUNT],
        right.shape[1],
    )
    r, half, z = matrix(W, I[record.R], nv, f), matrix(W, I[record.RM], f, nv), matrix(W, I[record.BOTH], f, every)
    for c in range(f):
        own = own_row(I, c)
        for j in range(every):
            z[c, j] = right[own, j]
        for t in range(I[I[record.TIED_FROM] + c], I[I[record.TIED_FROM] + c + 1]):
            k = I[I[record.TIED] + t]
            share = r[k, c]
            for j in range(every):
                z[c, j] += share * right[k, j]
        for d in range(m):
            k = first + I[I[record.DEPENDENT] + d]
            share = half[c, k]
            for j in range(2 * f):
                z[c, j] -= share * a_x[k, j]
    solve_many(I, W, I[record.MASS], f, I[record.PIVOT_MASS], z)
    for c in range(f):
        own = own_row(I, c)
        for j in range(every):
            a_x[own, j] = z[c, j]
        for t in range(I[I[record.TIED_FROM] + c], I[I[record.TIED_FROM] + c + 1]):
            k = I[I[record.TIED] + t]
            share = r[k, c]
            for j in range(every):
                a_x[k, j] += share * z[c, j]


@core
def differentiate(I: Numbers, W: Array, asked: int) -> None:
    """∂v/∂z, and the derivatives of a and the states' rates with respect to (z, ż, u), at the state whose accelerations were found.

    λ there; where REACTIONS are asked for, its derivatives too.
    """
    nv, m, f, k, p = I[record.COUNT_V], I[record.LOOPED], I[record.FREEDOM], I[record.FORCES], I[record.VARYING]
    every = 2 * f + k + p
    if m > 0:
        hold(I, W, I[record.LOAD], I[record.A], I[record.LAM])
    call_kernel(I, record.TANGENT)
    if m > 0:
        differentiate_velocity(I, W)
    right, a_x = matrix(W, I[record.RIGHT], nv, every), matrix(W, I[record.A_X], nv, every)
    along_all(I, W, matrix(W, I[record.BY_X], nv, nv), matrix(W, I[record.BY_V], nv, nv), -1.0, right)
    for i in range(nv):
        for j in range(k):
            right[i, 2 * f + j] = W[I[record.B] + i * k + j]
        for j in range(p):
            right[i, 2 * f + k + j] = -W[I[record.COLUMNS] + i * p + j]
        for j in range(every):
            a_x[i, j] = 0.0
    if m > 0:
        differentiate_loops(I, W, a_x)
    respond_all(I, W, right, a_x)
    if m > 0 and asked == record.REACTIONS:
        differentiate_reactions(I, W, right, a_x)
    if I[record.STATES] > 0:
        differentiate_rates(I, W)


@core
def differentiate_reactions(I: Numbers, W: Array, right: Array, a_x: Array) -> None:
    """LAM_X: the derivatives of λ, which holds what the dependent rows of the equations leave."""
    every = right.shape[1]
    for j in range(every):
        for i in range(I[record.COUNT_V]):
            W[I[record.NV_A] + i] = right[i, j]
            W[I[record.NV_B] + i] = a_x[i, j]
        hold(I, W, I[record.NV_A], I[record.NV_B], I[record.OPEN_CLOSING])
        for i in range(I[record.LOOPED]):
            W[I[record.LAM_X] + i * every + j] = W[I[record.OPEN_CLOSING] + i]


@core
def rotation_steps(I: Numbers, W: Array) -> None:
    """T₀ = exp(−θ) and T₁ = Jr(θ), the right Jacobian, of the turn θ in DELTA."""
    d, back, right = I[record.DELTA] + 3, I[record.T0], I[record.T1]
    x, y, z = W[d], W[d + 1], W[d + 2]
    square = x * x + y * y + z * z
    if square < 1e-8:
        s, c, k = 1.0 - square / 6.0, 0.5 - square / 24.0, 1.0 / 6.0 - square / 120.0
    else:
        angle = np.sqrt(square)
        s, c, k = np.sin(angle) / angle, (1.0 - np.cos(angle)) / square, (angle - np.sin(angle)) / (angle * square)
    for i in range(3):
        for j in range(3):
            one, outer = (1.0, W[d + i] * W[d + j] - square) if i == j else (0.0, W[d + i] * W[d + j])  # θ̃²
            W[back + 3 * i + j] = one + c * outer
            W[right + 3 * i + j] = one + k * outer
    for at, mirror, value in (
        (7, 5, x),
        (2, 6, y),
        (3, 1, z),
    ):  # θ̃ has `value` at one place and its negative at the mirror image
        W[back + at] -= s * value
        W[back + mirror] += s * value
        W[right + at] -= c * value
        W[right + mirror] += c * value


@core
def turned(I: Numbers, W: Array, row: int, d: int, T: int) -> float:
    """Entry d of a row of derivatives with respect to z that begins at W[row], times T, which turns the attitude's columns."""
    if not I[record.FREE] or d < 3 or d >= 6:
        return float(W[row + d])
    return float(W[row + 3] * W[T + d - 3] + W[row + 4] * W[T + d] + W[row + 5] * W[T + d + 3])


@core
def iteration_matrix(I: Numbers, W: Array, h: float) -> bool:
    """N of Newton's method for (z̈₁, s₁) at the present state, factorised:

    | 1 − h²/4 ∂z̈/∂x T₁ − h/2 ∂z̈/∂ż                −∂z̈/∂s       |
    | −h/2 (h²/4 ∂ṡ/∂x T₁ + h/2 ∂ṡ/∂ż)            1 − h/2 ∂ṡ/∂s  |
    """
    f, ns, every = I[record.FREEDOM], I[record.STATES], 2 * I[record.FREEDOM] + I[record.FORCES] + I[record.VARYING]
    size, last = f + ns, every - ns
    for c in range(size):
        row = I[record.A_X] + own_row(I, c) * every if c < f else I[record.S_X] + (c - f) * every
        weight = 1.0 if c < f else 0.5 * h
        for d in range(f):
            s = 0.25 * h * h * turned(I, W, row, d, I[record.T1]) + 0.5 * h * W[row + f + d]
            W[I[record.N] + c * size + d] = (1.0 if c == d else 0.0) - weight * s
        for d in range(ns):
            W[I[record.N] + c * size + f + d] = (1.0 if c == f + d else 0.0) - weight * W[row + last + d]
    W[I[record.KEPT]], W[I[record.AGE]] = h, 0.0
    if factor(I, W, I[record.N], size, I[record.PIVOT_N]):
        return True
    W[I[record.KEPT]] = 0.0
    return False


@core
def step_derivative(I: Numbers, W: Array, h: float) -> bool:
    """F (2f + s, 2f + k): d(x₁, ż₁, s₁)/d(x₀, ż₀, u), from the derivatives before (BEFORE, BEFORE_S) and after the step (A_X, S_X).

    N (dz̈₀ + dz̈₁, ds₁) = what the start, the unknown quantities and ds₀ give while these are held.
    """
    f, ns, every = I[record.FREEDOM], I[record.STATES], 2 * I[record.FREEDOM] + I[record.FORCES] + I[record.VARYING]
    last, size = every - ns, f + ns
    if I[record.FREE]:
        rotation_steps(I, W)
    if not iteration_matrix(I, W, h):
        return False
    both, out = matrix(W, I[record.BOTH], size, every), matrix(W, I[record.F], 2 * f + ns, every)
    for c in range(size):
        row = I[record.A_X] + own_row(I, c) * every if c < f else I[record.S_X] + (c - f) * every
        start = I[record.BEFORE] + c * every if c < f else I[record.BEFORE_S] + (c - f) * every
        for j in range(f):
            both[c, j] = W[start + j] + turned(I, W, row, j, I[record.T0])
            both[c, f + j] = W[start + f + j] + W[row + f + j] + h * turned(I, W, row, j, I[record.T1])
        for j in range(2 * f, last):
            both[c, j] = W[start + j] + W[row + j]
        for j in range(last, every):
            both[c, j] = W[start + j]
        if c >= f:
            for j in range(every):
                both[c, j] *= 0.5 * h
            both[c, last + c - f] += 1.0
    solve_many(I, W, I[record.N], size, I[record.PIVOT_N], both)
    for c in range(f):
        for j in range(every):
            out[c, j] = 0.25 * h * h * both[c, j]  # dΔ
            out[f + c, j] = 0.5 * h * both[c, j]
        out[c, f + c] += h
        out[f + c, f + c] += 1.0
    for c in range(ns):
        for j in range(every):
            out[2 * f + c, j] = both[f + c, j]
    if I[record.FREE]:  # the attitude's rows of dΔ, turned
        for j in range(every):
            x, y, z = out[3, j], out[4, j], out[5, j]
            for c in range(3):
                T = I[record.T1] + 3 * c
                out[3 + c, j] = W[T] * x + W[T + 1] * y + W[T + 2] * z
    for c in range(f):
        if I[record.FREE] and 3 <= c < 6:
            for i in range(3):
                out[c, 3 + i] += W[I[record.T0] + 3 * (c - 3) + i]
        else:
            out[c, c] += 1.0
    return True
