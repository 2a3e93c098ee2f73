"""The linearised trapezoidal step of a tree, as machine code: the matrix of its Newton's method, and the derivative of its end.

The equations are those of :mod:`veridyn.mechanics.tree.step_kernel`; derivatives of z̈ and ṡ come from
:mod:`veridyn.mechanics.tree.tangent_kernel`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.compiled import core
from veridyn.mechanics.tree.layout import (
    A_X,
    AGE,
    BEFORE,
    BEFORE_S,
    BOTH,
    DELTA,
    FORCES,
    FREE,
    FREEDOM,
    KEPT,
    PIVOT_N,
    S_X,
    STATES,
    T0,
    T1,
    VARYING,
    F,
    N,
)
from veridyn.mechanics.tree.motion_kernel import own_row
from veridyn.mechanics.tree.record import factor, matrix, solve_many

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]


@core
def rotation_steps(I: Numbers, W: Array) -> None:
    """T₀ = exp(−θ) and T₁ = Jr(θ), the right Jacobian, of the turn θ in DELTA."""
    d, back, right = I[DELTA] + 3, I[T0], I[T1]
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
    if not I[FREE] or d < 3 or d >= 6:
        return float(W[row + d])
    return float(W[row + 3] * W[T + d - 3] + W[row + 4] * W[T + d] + W[row + 5] * W[T + d + 3])


@core
def iteration_matrix(I: Numbers, W: Array, h: float) -> bool:
    """N of Newton's method for (z̈₁, s₁) at the present state, factorised:

    | 1 − h²/4 ∂z̈/∂x T₁ − h/2 ∂z̈/∂ż                −∂z̈/∂s       |
    | −h/2 (h²/4 ∂ṡ/∂x T₁ + h/2 ∂ṡ/∂ż)            1 − h/2 ∂ṡ/∂s  |
    """
    f, ns, every = I[FREEDOM], I[STATES], 2 * I[FREEDOM] + I[FORCES] + I[VARYING]
    size, last = f + ns, every - ns
    for c in range(size):
        row = I[A_X] + own_row(I, c) * every if c < f else I[S_X] + (c - f) * every
        weight = 1.0 if c < f else 0.5 * h
        for d in range(f):
            s = 0.25 * h * h * turned(I, W, row, d, I[T1]) + 0.5 * h * W[row + f + d]
            W[I[N] + c * size + d] = (1.0 if c == d else 0.0) - weight * s
        for d in range(ns):
            W[I[N] + c * size + f + d] = (1.0 if c == f + d else 0.0) - weight * W[row + last + d]
    W[I[KEPT]], W[I[AGE]] = h, 0.0
    if factor(I, W, I[N], size, I[PIVOT_N]):
        return True
    W[I[KEPT]] = 0.0
    return False


@core
def step_derivative(I: Numbers, W: Array, h: float) -> bool:
    """F (2f + s, 2f + k): d(x₁, ż₁, s₁)/d(x₀, ż₀, u), from the derivatives before (BEFORE, BEFORE_S) and after the step (A_X, S_X).

    N (dz̈₀ + dz̈₁, ds₁) = what the start, the unknown quantities and ds₀ give while these are held.
    """
    f, ns, every = I[FREEDOM], I[STATES], 2 * I[FREEDOM] + I[FORCES] + I[VARYING]
    last, size = every - ns, f + ns
    if I[FREE]:
        rotation_steps(I, W)
    if not iteration_matrix(I, W, h):
        return False
    both, out = matrix(W, I[BOTH], size, every), matrix(W, I[F], 2 * f + ns, every)
    for c in range(size):
        row = I[A_X] + own_row(I, c) * every if c < f else I[S_X] + (c - f) * every
        start = I[BEFORE] + c * every if c < f else I[BEFORE_S] + (c - f) * every
        for j in range(f):
            both[c, j] = W[start + j] + turned(I, W, row, j, I[T0])
            both[c, f + j] = W[start + f + j] + W[row + f + j] + h * turned(I, W, row, j, I[T1])
        for j in range(2 * f, last):
            both[c, j] = W[start + j] + W[row + j]
        for j in range(last, every):
            both[c, j] = W[start + j]
        if c >= f:
            for j in range(every):
                both[c, j] *= 0.5 * h
            both[c, last + c - f] += 1.0
    solve_many(I, W, I[N], size, I[PIVOT_N], both)
    for c in range(f):
        for j in range(every):
            out[c, j] = 0.25 * h * h * both[c, j]  # dΔ
            out[f + c, j] = 0.5 * h * both[c, j]
        out[c, f + c] += h
        out[f + c, f + c] += 1.0
    for c in range(ns):
        for j in range(every):
            out[2 * f + c, j] = both[f + c, j]
    if I[FREE]:  # the attitude's rows of dΔ, turned
        for j in range(every):
            x, y, z = out[3, j], out[4, j], out[5, j]
            for c in range(3):
                T = I[T1] + 3 * c
                out[3 + c, j] = W[T] * x + W[T + 1] * y + W[T + 2] * z
    for c in range(f):
        if I[FREE] and 3 <= c < 6:
            for i in range(3):
                out[c, 3 + i] += W[I[T0] + 3 * (c - 3) + i]
        else:
            out[c, c] += 1.0
    return True
