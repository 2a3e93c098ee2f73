"""Derivatives of the accelerations of a tree, of its reactions and of the rates of its elements' states, as machine code.

The equations M a + h + Φ_qᵀ λ = Γ and Φ_q q̈ + b = 0 are differentiated at the state in hand; what is left is one solution with the factors
of :mod:`veridyn.mechanics.tree.motion_kernel`, of all columns (z, ż, u) at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.compiled import core
from veridyn.mechanics.tree.layout import (
    A_X,
    BLOCK,
    BOTH,
    BY_V,
    BY_X,
    COLUMNS,
    COUNT,
    COUNT_V,
    DEPENDENT,
    EQUATION,
    FORCES,
    FREEDOM,
    LAM,
    LAM_X,
    LOAD,
    LOOPED,
    LOOPS_BY_V,
    LOOPS_BY_X,
    LOOPS_RIGHT,
    M_A,
    MASS,
    NV_A,
    NV_B,
    OPEN_CLOSING,
    PIVOT_MASS,
    POSITION,
    RATE_BY_V,
    RATE_BY_X,
    RATE_COLUMNS,
    REACHED,
    REACHED_FROM,
    REACTIONS,
    RIGHT,
    RM,
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
from veridyn.mechanics.tree.loop_kernel import solve_block
from veridyn.mechanics.tree.motion_kernel import hold, own_row
from veridyn.mechanics.tree.record import call_kernel, matrix, solve_many

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]


@core
def along(I: Numbers, W: Array, row: int, c: int) -> float:
    """Entry c of (row of derivatives by v at W[row]) R."""
    f, r = I[FREEDOM], I[R]
    s = W[row + own_row(I, c)]
    for t in range(I[I[TIED_FROM] + c], I[I[TIED_FROM] + c + 1]):
        k = I[I[TIED] + t]
        s += W[row + k] * W[r + k * f + c]
    return float(s)


@core
def along_all(I: Numbers, W: Array, by_x: Array, by_v: Array, sign: float, out: Array) -> None:
    """out (r, ≥ 2f) = ± (∂/∂z, ∂/∂ż) of r quantities, from their derivatives by x and v (r, nv): by_x R + by_v V_Z, by_v R."""
    f = I[FREEDOM]
    r, v_z = matrix(W, I[R], I[COUNT_V], f), matrix(W, I[V_Z], I[COUNT_V], f)
    for c in range(f):
        own = own_row(I, c)
        for i in range(len(by_x)):
            out[i, c] = sign * by_x[i, own]
            out[i, f + c] = sign * by_v[i, own]
        for t in range(I[I[TIED_FROM] + c], I[I[TIED_FROM] + c + 1]):
            k = I[I[TIED] + t]
            turn, rate = sign * r[k, c], sign * v_z[k, c]
            for i in range(len(by_x)):
                out[i, c] += turn * by_x[i, k] + rate * by_v[i, k]
                out[i, f + c] += turn * by_v[i, k]


@core
def differentiate_rates(I: Numbers, W: Array) -> None:
    """S_X: the derivatives of the rates of elements' states with respect to (z, ż, u); they depend on no force and no acceleration."""
    nv, f, k, p, ns = I[COUNT_V], I[FREEDOM], I[FORCES], I[VARYING], I[STATES]
    out = matrix(W, I[S_X], ns, 2 * f + k + p)
    along_all(I, W, matrix(W, I[RATE_BY_X], ns, nv), matrix(W, I[RATE_BY_V], ns, nv), 1.0, out)
    for i in range(ns):
        for j in range(k):
            out[i, 2 * f + j] = 0.0
        for j in range(p):
            out[i, 2 * f + k + j] = W[I[RATE_COLUMNS] + i * p + j]


@core
def differentiate_velocity(I: Numbers, W: Array) -> None:
    """V_Z = ∂v/∂z: the rates of dependent coordinates turn with the loops."""
    n, f, first = I[COUNT], I[FREEDOM], I[COUNT_V] - I[COUNT]
    v_z, right, out, dep = I[V_Z], I[OPEN_CLOSING], I[M_A], I[DEPENDENT]
    for c in range(first, f):
        for t in range(I[I[REACHED_FROM] + c], I[I[REACHED_FROM] + c + 1]):
            b = int(I[I[REACHED] + t])
            for i in range(I[I[BLOCK] + b], I[I[BLOCK] + b + 1]):
                e = I[I[EQUATION] + i]
                W[right + e] = -along(I, W, I[SLOPE_RATES] + e * n - first, c)
            solve_block(I, W, b, right, 1, out)
            for i in range(I[I[BLOCK] + b], I[I[BLOCK] + b + 1]):
                d = I[I[POSITION] + i]
                W[v_z + (first + I[dep + d]) * f + c] = W[out + d]


@core
def differentiate_loops(I: Numbers, W: Array, a_x: Array) -> None:
    """Rows of dependent coordinates of ∂a/∂(z, ż) while z̈ is held: Φ_s ∂a_s = −∂(Φ_q q̈ + b)."""
    nv, m, f, first, dep, out = I[COUNT_V], I[LOOPED], I[FREEDOM], I[COUNT_V] - I[COUNT], I[DEPENDENT], I[M_A]
    by_x, by_v = matrix(W, I[LOOPS_BY_X], m, nv), matrix(W, I[LOOPS_BY_V], m, nv)
    along_all(I, W, by_x, by_v, -1.0, matrix(W, I[LOOPS_RIGHT], m, 2 * f))
    for c in range(first, f):
        for t in range(I[I[REACHED_FROM] + c], I[I[REACHED_FROM] + c + 1]):
            b = int(I[I[REACHED] + t])
            for j in (c, f + c):
                solve_block(I, W, b, I[LOOPS_RIGHT] + j, 2 * f, out)
                for i in range(I[I[BLOCK] + b], I[I[BLOCK] + b + 1]):
                    d = I[I[POSITION] + i]
                    a_x[first + I[dep + d], j] = W[out + d]


@core
def respond_all(I: Numbers, W: Array, right: Array, a_x: Array) -> None:
    """:func:`veridyn.mechanics.tree.motion_kernel.respond` of all columns at once; nothing of the prescribed coordinates moves."""
    nv, m, f, first, every = I[COUNT_V], I[LOOPED], I[FREEDOM], I[COUNT_V] - I[COUNT], right.shape[1]
    r, half, z = matrix(W, I[R], nv, f), matrix(W, I[RM], f, nv), matrix(W, I[BOTH], f, every)
    for c in range(f):
        own = own_row(I, c)
        for j in range(every):
            z[c, j] = right[own, j]
        for t in range(I[I[TIED_FROM] + c], I[I[TIED_FROM] + c + 1]):
            k = I[I[TIED] + t]
            share = r[k, c]
            for j in range(every):
                z[c, j] += share * right[k, j]
        for d in range(m):
            k = first + I[I[DEPENDENT] + d]
            share = half[c, k]
            for j in range(2 * f):
                z[c, j] -= share * a_x[k, j]
    solve_many(I, W, I[MASS], f, I[PIVOT_MASS], z)
    for c in range(f):
        own = own_row(I, c)
        for j in range(every):
            a_x[own, j] = z[c, j]
        for t in range(I[I[TIED_FROM] + c], I[I[TIED_FROM] + c + 1]):
            k = I[I[TIED] + t]
            share = r[k, c]
            for j in range(every):
                a_x[k, j] += share * z[c, j]


@core
def differentiate(I: Numbers, W: Array, asked: int) -> None:
    """∂v/∂z, and the derivatives of a and the states' rates with respect to (z, ż, u), at the state whose accelerations were found.

    λ there; where REACTIONS are asked for, its derivatives too.
    """
    nv, m, f, k, p = I[COUNT_V], I[LOOPED], I[FREEDOM], I[FORCES], I[VARYING]
    every = 2 * f + k + p
    if m > 0:
        hold(I, W, I[LOAD], I[A], I[LAM])
    call_kernel(I, TANGENT)
    if m > 0:
        differentiate_velocity(I, W)
    right, a_x = matrix(W, I[RIGHT], nv, every), matrix(W, I[A_X], nv, every)
    along_all(I, W, matrix(W, I[BY_X], nv, nv), matrix(W, I[BY_V], nv, nv), -1.0, right)
    for i in range(nv):
        for j in range(k):
            right[i, 2 * f + j] = W[I[B] + i * k + j]
        for j in range(p):
            right[i, 2 * f + k + j] = -W[I[COLUMNS] + i * p + j]
        for j in range(every):
            a_x[i, j] = 0.0
    if m > 0:
        differentiate_loops(I, W, a_x)
    respond_all(I, W, right, a_x)
    if m > 0 and asked == REACTIONS:
        differentiate_reactions(I, W, right, a_x)
    if I[STATES] > 0:
        differentiate_rates(I, W)


@core
def differentiate_reactions(I: Numbers, W: Array, right: Array, a_x: Array) -> None:
    """LAM_X: the derivatives of λ, which holds what the dependent rows of the equations leave."""
    every = right.shape[1]
    for j in range(every):
        for i in range(I[COUNT_V]):
            W[I[NV_A] + i] = right[i, j]
            W[I[NV_B] + i] = a_x[i, j]
        hold(I, W, I[NV_A], I[NV_B], I[OPEN_CLOSING])
        for i in range(I[LOOPED]):
            W[I[LAM_X] + i * every + j] = W[I[OPEN_CLOSING] + i]
