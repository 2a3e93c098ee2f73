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
    BLOCK,
    BY_V,
    BY_X,
    COLUMNS,
    COUNT,
    COUNT_V,
    DEPENDENT,
    FORCES,
    FREEDOM,
    LAM,
    LAM_X,
    LOAD,
    LOOPED,
    LOOPS_BY_V,
    LOOPS_BY_X,
    M_A,
    NV_A,
    NV_B,
    OPEN_CLOSING,
    POSITION,
    RATE_BY_V,
    RATE_BY_X,
    RATE_COLUMNS,
    REACHED,
    REACHED_FROM,
    REACTIONS,
    S_X,
    SLOPE_RATES,
    STATES,
    TANGENT,
    TIED,
    TIED_FROM,
    V_Z,
    VARYING,
    A,
    B,
    R,
)
from veridyn.mechanics.tree.loop_kernel import solve_block, solve_loops
from veridyn.mechanics.tree.motion_kernel import hold, own_row, respond
from veridyn.mechanics.tree.record import call_kernel

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]


@core
def along(I: Numbers, W: Array, row: int, other: int, turning: int, c: int) -> float:
    """Entry c of (row of derivatives at W[row]) R, and where `turning` ≥ 0 the row at W[other] times ∂v/∂z at W[turning] besides."""
    f, r, own = I[FREEDOM], I[R], own_row(I, c)
    s = W[row + own]
    for t in range(I[I[TIED_FROM] + c], I[I[TIED_FROM] + c + 1]):
        k = I[I[TIED] + t]
        s += W[row + k] * W[r + k * f + c]
        if turning >= 0:
            s += W[other + k] * W[turning + k * f + c]
    return float(s)


@core
def differentiate_rates(I: Numbers, W: Array) -> None:
    """S_X: the derivatives of the rates of elements' states with respect to (z, ż, u); they depend on no force and no acceleration."""
    nv, f, k, p = I[COUNT_V], I[FREEDOM], I[FORCES], I[VARYING]
    every, v_z = 2 * f + k + p, I[V_Z]
    for i in range(I[STATES]):
        by_x, by_v, out = I[RATE_BY_X] + i * nv, I[RATE_BY_V] + i * nv, I[S_X] + i * every
        for j in range(f):
            W[out + j] = along(I, W, by_x, by_v, v_z, j)
            W[out + f + j] = along(I, W, by_v, 0, -1, j)
        for j in range(k):
            W[out + 2 * f + j] = 0.0
        for j in range(p):
            W[out + 2 * f + k + j] = W[I[RATE_COLUMNS] + i * p + j]


@core
def differentiate_velocity(I: Numbers, W: Array) -> None:
    """V_Z = ∂v/∂z: the rates of dependent coordinates turn with the loops."""
    n, m, f, first = I[COUNT], I[LOOPED], I[FREEDOM], I[COUNT_V] - I[COUNT]
    v_z, right, out, dep = I[V_Z], I[OPEN_CLOSING], I[M_A], I[DEPENDENT]
    for c in range(first, f):
        for i in range(m):
            W[right + i] = -along(I, W, I[SLOPE_RATES] + i * n - first, 0, -1, c)
        for t in range(I[I[REACHED_FROM] + c], I[I[REACHED_FROM] + c + 1]):
            b = int(I[I[REACHED] + t])
            solve_block(I, W, b, right, out)
            for i in range(I[I[BLOCK] + b], I[I[BLOCK] + b + 1]):
                d = I[I[POSITION] + i]
                W[v_z + (first + I[dep + d]) * f + c] = W[out + d]


@core
def differentiate(I: Numbers, W: Array, asked: int) -> None:
    """∂v/∂z, and the derivatives of a and the states' rates with respect to (z, ż, u), at the state whose accelerations were found.

    λ there; where REACTIONS are asked for, its derivatives too.
    """
    nv, m, f, k, p = I[COUNT_V], I[LOOPED], I[FREEDOM], I[FORCES], I[VARYING]
    first, every, v_z, dep = nv - I[COUNT], 2 * f + k + p, I[V_Z], I[DEPENDENT]
    right, answer, closing, out = I[NV_A], I[NV_B], I[OPEN_CLOSING], I[M_A]
    if m > 0:
        hold(I, W, I[LOAD], I[A], I[LAM])
    call_kernel(I, TANGENT)
    if m > 0:
        differentiate_velocity(I, W)
    for j in range(every):
        for i in range(nv):
            by_x, by_v, s = I[BY_X] + i * nv, I[BY_V] + i * nv, 0.0
            if j < f:
                s = -along(I, W, by_x, by_v, v_z, j)
            elif j < 2 * f:
                s = -along(I, W, by_v, 0, -1, j - f)
            elif j < 2 * f + k:
                s = W[I[B] + i * k + j - 2 * f]
            else:
                s = -W[I[COLUMNS] + i * p + j - 2 * f - k]
            W[right + i] = s
            W[answer + i] = 0.0
        if m > 0 and j < 2 * f:
            for i in range(m):
                by_x, by_v = I[LOOPS_BY_X] + i * nv, I[LOOPS_BY_V] + i * nv
                W[closing + i] = -along(I, W, by_x, by_v, v_z, j) if j < f else -along(I, W, by_v, 0, -1, j - f)
            solve_loops(I, W, closing, out)
            for i in range(m):
                W[answer + first + I[dep + i]] = W[out + i]
        respond(I, W, right, answer)
        for i in range(nv):
            W[I[A_X] + i * every + j] = W[answer + i]
        if m > 0 and asked == REACTIONS:
            hold(I, W, right, answer, closing)
            for i in range(m):
                W[I[LAM_X] + i * every + j] = W[closing + i]
    if I[STATES] > 0:
        differentiate_rates(I, W)
