"""Derivatives of the accelerations of a tree, of its reactions and of the rates of its elements' states, as machine code.

The equations M a + h + Φ_qᵀ λ = Γ and Φ_q q̈ + b = 0 are differentiated at the state in hand; what is left is one solution with the factors
of :mod:`veridyn.mechanics.tree.motion_kernel` for each of (z, ż, u).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.compiled import core
from veridyn.mechanics.tree.layout import (
    A_X,
    BY_V,
    BY_X,
    COLUMNS,
    COUNT,
    COUNT_V,
    DEP,
    DEPENDENT,
    FORCES,
    FREEDOM,
    LAM_X,
    LOOPED,
    LOOPS_BY_V,
    LOOPS_BY_X,
    M_A,
    NV_A,
    NV_B,
    PIVOT_DEP,
    RATE_BY_V,
    RATE_BY_X,
    RATE_COLUMNS,
    S_X,
    SLOPE_RATES,
    STATES,
    TANGENT,
    V_Z,
    VARYING,
    B,
    R,
)
from veridyn.mechanics.tree.motion_kernel import hold, own_row, respond
from veridyn.mechanics.tree.record import call_kernel, solve

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]


@core
def differentiate_rates(I: Numbers, W: Array) -> None:
    """S_X: the derivatives of the rates of elements' states with respect to (z, ż, u); they depend on no force and no acceleration."""
    nv, m, f, k, p = I[COUNT_V], I[LOOPED], I[FREEDOM], I[FORCES], I[VARYING]
    every, r, v_z = 2 * f + k + p, I[R], I[V_Z]
    for i in range(I[STATES]):
        by_x, by_v, out = I[RATE_BY_X] + i * nv, I[RATE_BY_V] + i * nv, I[S_X] + i * every
        for j in range(f):
            s, t = W[by_x + own_row(I, j)], W[by_v + own_row(I, j)]
            if m > 0:
                s, t = 0.0, 0.0
                for b in range(nv):
                    s += W[by_x + b] * W[r + b * f + j] + W[by_v + b] * W[v_z + b * f + j]
                    t += W[by_v + b] * W[r + b * f + j]
            W[out + j] = s
            W[out + f + j] = t
        for j in range(k):
            W[out + 2 * f + j] = 0.0
        for j in range(p):
            W[out + 2 * f + k + j] = W[I[RATE_COLUMNS] + i * p + j]


@core
def differentiate(I: Numbers, W: Array) -> None:
    """∂v/∂z, and the derivatives of a, λ and the states' rates with respect to (z, ż, u), at the state whose accelerations were found."""
    n, nv, m, f, k, p = I[COUNT], I[COUNT_V], I[LOOPED], I[FREEDOM], I[FORCES], I[VARYING]
    first, every = nv - n, 2 * f + k + p
    by_x, by_v, r, v_z, step, dep = I[BY_X], I[BY_V], I[R], I[V_Z], I[M_A], I[DEPENDENT]
    right, answer, turning, closing_x, closing_v = I[NV_A], I[NV_B], I[SLOPE_RATES], I[LOOPS_BY_X], I[LOOPS_BY_V]
    call_kernel(I, TANGENT)
    if m > 0:  # the rates of dependent coordinates turn with the loops
        for c in range(f):
            for i in range(m):
                s = 0.0
                for j in range(n):
                    s -= W[turning + i * n + j] * W[r + (first + j) * f + c]
                W[step + i] = s
            solve(I, W, I[DEP], m, I[PIVOT_DEP], step)
            for i in range(m):
                W[v_z + (first + I[dep + i]) * f + c] = W[step + i]
    for j in range(every):
        for i in range(nv):
            s = 0.0
            if j >= 2 * f + k:
                s = -W[I[COLUMNS] + i * p + j - 2 * f - k]
            elif j >= 2 * f:
                s = W[I[B] + i * k + j - 2 * f]
            elif m == 0:
                s = -W[by_x + i * nv + own_row(I, j)] if j < f else -W[by_v + i * nv + own_row(I, j - f)]
            elif j < f:
                for b in range(nv):
                    s -= W[by_x + i * nv + b] * W[r + b * f + j] + W[by_v + i * nv + b] * W[v_z + b * f + j]
            else:
                for b in range(nv):
                    s -= W[by_v + i * nv + b] * W[r + b * f + j - f]
            W[right + i] = s
            W[answer + i] = 0.0
        if m > 0 and j < 2 * f:
            for i in range(m):
                s = 0.0
                for b in range(nv):
                    if j < f:
                        s -= (
                            W[closing_x + i * nv + b] * W[r + b * f + j]
                            + W[closing_v + i * nv + b] * W[v_z + b * f + j]
                        )
                    else:
                        s -= W[closing_v + i * nv + b] * W[r + b * f + j - f]
                W[step + i] = s
            solve(I, W, I[DEP], m, I[PIVOT_DEP], step)
            for i in range(m):
                W[answer + first + I[dep + i]] = W[step + i]
        respond(I, W, right, answer)
        for i in range(nv):
            W[I[A_X] + i * every + j] = W[answer + i]
        if m > 0:
            hold(I, W, right, answer, step)
            for i in range(m):
                W[I[LAM_X] + i * every + j] = W[step + i]
    if I[STATES] > 0:
        differentiate_rates(I, W)
