"""The loops of a tree as machine code: closed by Newton's method, block by block, and what they make of independent coordinates.

    Φ(x) = 0,    Φ_s R_s = −Φ_z

s are the coordinates that loops tie. Loops that share no such coordinate are blocks (:mod:`veridyn.mechanics.tree.layout`): a vehicle with
four suspensions solves four small systems instead of one large one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.compiled import core
from veridyn.mechanics.dense import factor, solve, solve_transposed
from veridyn.mechanics.tree.layout import (
    BLOCK,
    BLOCKS,
    CLOSING,
    COUNT,
    DEP,
    DEPENDENT,
    EQUATION,
    FACTOR,
    FREE,
    FREEDOM,
    J_CLOSING,
    LOOPED,
    M_A,
    M_B,
    OPEN_CLOSING,
    PIVOT_DEP,
    POSITION,
    REACHED,
    REACHED_FROM,
    UNIT,
    R,
    X,
    Z,
)
from veridyn.mechanics.tree.record import call_kernel

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]
CLOSED_TOLERANCE_M = 1e-13  # m, and of products of unit axes: a loop that is closed to rounding
CLOSING_ITERATIONS = 40
LONGEST_NEWTON_STEP = 0.5  # rad, and of the machine's reach: what one Newton step may change a coordinate


@core
def factor_loops(I: Numbers, W: Array) -> bool:
    """The factors of Φ_s from J_CLOSING; False at a singular position."""
    n = I[COUNT]
    for b in range(I[BLOCKS]):
        start, end, place = I[I[BLOCK] + b], I[I[BLOCK] + b + 1], I[DEP] + I[I[FACTOR] + b]
        size = end - start
        for i in range(size):
            row = I[J_CLOSING] + I[I[EQUATION] + start + i] * n
            for j in range(size):
                W[place + i * size + j] = W[row + I[I[DEPENDENT] + I[I[POSITION] + start + j]]]
        pivot = I[PIVOT_DEP] + start
        if not factor(W[place : place + size * size].reshape(size, size), I[pivot : pivot + size]):
            return False
    return True


@core
def solve_block(I: Numbers, W: Array, b: int, right: int, apart: int, out: int) -> None:
    """Φ_s out = right of the block b: `right` by equation, its entries so far `apart`, `out` by dependent coordinate."""
    start, end, place = I[I[BLOCK] + b], I[I[BLOCK] + b + 1], I[DEP] + I[I[FACTOR] + b]
    size, room, pivot = end - start, I[M_B], I[PIVOT_DEP] + start
    for i in range(size):
        W[room + i] = W[right + apart * I[I[EQUATION] + start + i]]
    block = W[place : place + size * size].reshape(size, size)
    solve(block, I[pivot : pivot + size], W[room : room + size])
    for i in range(size):
        W[out + I[I[POSITION] + start + i]] = W[room + i]


@core
def solve_loops(I: Numbers, W: Array, right: int, out: int) -> None:
    """Φ_s out = right, another place than `out`."""
    for b in range(I[BLOCKS]):
        solve_block(I, W, b, right, 1, out)


@core
def solve_loops_across(I: Numbers, W: Array, right: int, out: int) -> None:
    """Φ_sᵀ out = right: `right` by dependent coordinate, `out`, another place, by equation."""
    room = I[M_B]
    for b in range(I[BLOCKS]):
        start, end, place = I[I[BLOCK] + b], I[I[BLOCK] + b + 1], I[DEP] + I[I[FACTOR] + b]
        size, pivot = end - start, I[PIVOT_DEP] + start
        for i in range(size):
            W[room + i] = W[right + I[I[POSITION] + start + i]]
        block = W[place : place + size * size].reshape(size, size)
        solve_transposed(block, I[pivot : pivot + size], W[room : room + size])
        for i in range(size):
            W[out + I[I[EQUATION] + start + i]] = W[room + i]


@core
def close(I: Numbers, W: Array) -> bool:
    """Dependent coordinates of X by Newton's method, and the factors of Φ_s there; False where no closed position is found."""
    m, at = I[LOOPED], 7 if I[FREE] else 0
    x, opening, step, dep, unit = I[X] + at, I[OPEN_CLOSING], I[M_A], I[DEPENDENT], I[UNIT]
    worst = np.inf
    for _ in range(CLOSING_ITERATIONS):
        call_kernel(I, CLOSING)
        worst, most = 0.0, 0.0
        for i in range(m):
            worst = max(worst, abs(W[opening + i]))
        if not np.isfinite(worst) or not factor_loops(I, W):
            return False
        solve_loops(I, W, opening, step)
        for j in range(m):
            most = max(most, abs(W[step + j]) / W[unit + I[dep + j]])
        if not np.isfinite(most):
            return False
        short = min(1.0, LONGEST_NEWTON_STEP / most) if most > 0.0 else 1.0
        for j in range(m):
            W[x + I[dep + j]] -= short * W[step + j]
        if worst <= CLOSED_TOLERANCE_M or most <= 1e-15:
            return True
    return bool(worst <= 1e3 * CLOSED_TOLERANCE_M)


@core
def spread(I: Numbers, W: Array) -> None:
    """R = ∂x/∂z of dependent coordinates, with the factors that :func:`close` left."""
    n, f, first = I[COUNT], I[FREEDOM], 6 if I[FREE] else 0
    out, dep, r = I[M_A], I[DEPENDENT], I[R]
    for c in range(first, f):
        for t in range(I[I[REACHED_FROM] + c], I[I[REACHED_FROM] + c + 1]):
            b = int(I[I[REACHED] + t])
            solve_block(I, W, b, I[J_CLOSING] + I[I[Z] + c - first], n, out)
            for i in range(I[I[BLOCK] + b], I[I[BLOCK] + b + 1]):
                d = I[I[POSITION] + i]
                W[r + (first + I[dep + d]) * f + c] = -W[out + d]
