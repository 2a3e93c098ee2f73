"""Machines with loops, on a free base, or on which more acts than forces and signals, in a compiled run: their accelerations, and the way
back to closed loops after each step.

    M a + Φ_qᵀ λ = Γ − h,    Φ_q a = −bias − 2 ω Φ̇ − ω² Φ

A state of a free base is (position, quaternion, q, velocity in the ground's frame, ω in its own, q̇, z), as in
:mod:`veridyn.mechanics.tree.dynamics.instant`; the equations are those of :mod:`veridyn.mechanics.tree.loops.dynamics`, by the factors
of the bordered matrix over the equations that count. A pivot that is nearly zero ends the run: whether the position is singular, or other
equations count there, is decided by singular values. The code is called at its address, so that runs of open machines are compiled
without it.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import carray  # pyright: ignore[reportPrivateImportUsage]
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics import dense
from veridyn.mechanics.compiled import address_of, core, kept
from veridyn.mechanics.system.run_outside import act, lead
from veridyn.mechanics.system.run_record import (
    ACC,
    ACCELERATE,
    BASE,
    BORDER,
    BORDER_RIGHT,
    CLOCK,
    CLOSING,
    COUNT,
    COUNTED,
    DONE,
    EQUATIONS,
    ESCAPED,
    FORCE,
    FORWARD_KERNEL,
    FREE,
    FREED,
    FROM_STATE,
    GIVEN,
    INVERSE,
    INVERSE_KERNEL,
    LAW_FAILED,
    LED,
    LED_AT,
    LED_MOTION,
    LOOP_ROW,
    LOOPS,
    LOOPS_KERNEL,
    MASS,
    MASS_KERNEL,
    NEAREST,
    PART,
    PIVOT_BORDER,
    PUSH,
    RATES,
    RATES_KERNEL,
    SIGNALS,
    SINGULAR,
    STATES,
    TO_SLOPE,
    UNIT,
    Y,
)
from veridyn.mechanics.system.run_stages import copy, law_forces
from veridyn.mechanics.tree.dynamics.engine import LARGEST_ANGLE_RAD
from veridyn.mechanics.tree.loops.assembly import CLOSED_TOLERANCE_M
from veridyn.mechanics.tree.loops.dynamics import MAX_NEWTON_STEPS, REGULAR_RCOND
from veridyn.mechanics.tree.steps.record import as_pointer, call_kernel, view

Numbers = NDArray[np.int64]
# in BASE, behind position, quaternion, velocity and ω in its own axes: 0, gravity in the ground's, and the attitude by rows
ZERO, GRAVITY, ATTITUDE, BASE_SIZE = 13, 14, 17, 26


@core
def is_regular(A: Array) -> bool:
    """Whether no pivot of the factors A is nearly zero against the largest."""
    least, most = np.inf, 0.0
    for i in range(len(A)):
        least, most = min(least, abs(A[i, i])), max(most, abs(A[i, i]))
    return bool(least > REGULAR_RCOND * most)


@core
def set_base(I: Numbers, W: Array, y: int) -> None:
    """Pose and motion of a free base where kernels read them, from the state W[y …]."""
    n, base, R = I[COUNT], view(W, I[BASE], ATTITUDE), view(W, I[BASE] + ATTITUDE, 9)
    w, x, u, z = W[y + 3], W[y + 4], W[y + 5], W[y + 6]
    s = 2.0 / (w * w + x * x + u * u + z * z)
    R[0], R[1], R[2] = 1.0 - s * (u * u + z * z), s * (x * u - w * z), s * (x * z + w * u)
    R[3], R[4], R[5] = s * (x * u + w * z), 1.0 - s * (x * x + z * z), s * (u * z - w * x)
    R[6], R[7], R[8] = s * (x * z - w * u), s * (u * z + w * x), 1.0 - s * (x * x + u * u)
    v = y + 7 + n
    for j in range(7):
        base[j] = W[y + j]
    for j in range(3):
        base[7 + j] = R[j] * W[v] + R[3 + j] * W[v + 1] + R[6 + j] * W[v + 2]
        base[10 + j] = W[v + 3 + j]


@core
def loop_accelerations(I: Numbers, W: Array) -> bool:
    """ACC of the state that kernels read under the forces there; False where a pivot is nearly zero."""
    n, counted, first = I[COUNT], I[COUNTED], 6 * I[FREE]
    rows, m, omega, given = n + first, counted + I[LED], W[I[CLOSING]], I[GIVEN]
    call_kernel(I, MASS_KERNEL)
    call_kernel(I, INVERSE_KERNEL)
    call_kernel(I, LOOPS_KERNEL)
    size = rows + m
    K = W[I[BORDER] : I[BORDER] + size * size].reshape(size, size)
    right = view(W, I[BORDER_RIGHT], size)
    unit, mass, h = view(W, I[UNIT], rows), view(W, I[MASS], rows * rows), view(W, I[INVERSE], rows)
    scale = 0.0
    for i in range(rows):
        scale += mass[i * rows + i] / rows
    for i in range(rows):
        for j in range(rows):
            K[i, j] = mass[i * rows + j] * unit[i] * unit[j] / scale
        acting = W[given + 2 * n + i - first] if i >= first else 0.0
        right[i] = (acting - h[i]) * unit[i] / scale
    for e in range(counted):
        loop = view(W, I[LOOPS] + I[I[LOOP_ROW] + e] * (n + 2), n + 2)
        opens = 0.0
        for j in range(first):
            K[rows + e, j] = K[j, rows + e] = 0.0
        for j in range(n):
            K[rows + e, first + j] = K[first + j, rows + e] = loop[j] * unit[first + j]
            opens += loop[j] * W[given + n + j]
        for k in range(m):
            K[rows + e, rows + k] = 0.0
        right[rows + e] = -loop[n + 1] - 2.0 * omega * opens - omega * omega * loop[n]
    for i in range(I[LED]):
        e, at = rows + counted + i, first + I[I[LED_AT] + i]
        for j in range(size):
            K[e, j] = K[j, e] = 0.0
        K[e, at] = K[at, e] = 1.0
        right[e] = W[I[LED_MOTION] + 2 * I[LED] + i] / unit[at]
    pivots = I[I[PIVOT_BORDER] : I[PIVOT_BORDER] + size]
    if not dense.factor(K, pivots) or not is_regular(K):
        return False
    dense.solve(K, pivots, W[I[BORDER_RIGHT] : I[BORDER_RIGHT] + size])
    for i in range(rows):
        W[I[ACC] + i] = right[i] * unit[i]
    return True


@core
def bound_rate(I: Numbers, W: Array, y: int, slope: int) -> int:
    """The rate of the state that begins at W[y], under FORCE or the law and PUSH, into W[slope …]; accelerations stand in ACC."""
    n, free, own, given = I[COUNT], I[FREE], I[STATES], I[GIVEN]
    at, first = 7 * free, 6 * free
    q, v = y + at, y + at + n + first
    copy(W, q, n, given)
    copy(W, v, n, given + n)
    if own:
        copy(W, v + n, own, given + 4 * n + I[SIGNALS] - own)
    if free:
        set_base(I, W, y)
    if law_forces(I, W) != DONE:
        return LAW_FAILED
    lead(I, W, y)
    for j in range(n):
        W[given + 2 * n + j] = W[I[FORCE] + j] + W[I[PUSH] + j]
        if not (abs(W[q + j]) < LARGEST_ANGLE_RAD and abs(W[v + j]) < np.inf):
            return ESCAPED
    act(I, W)
    if I[EQUATIONS]:
        if not loop_accelerations(I, W):
            return SINGULAR
    else:
        call_kernel(I, FORWARD_KERNEL)
        if not W[I[ACC] + n + first] < W[I[CLOCK] + NEAREST]:
            return SINGULAR
    for j in range(n + first):
        if not abs(W[I[ACC] + j]) < np.inf:
            return ESCAPED
    copy(W, v, n, slope + at)
    copy(W, I[ACC] + first, n, slope + at + n + first)
    if free:
        w, base, R = view(W, y + 3, 4), view(W, I[BASE], ATTITUDE), view(W, I[BASE] + ATTITUDE, 9)
        a, b, c = base[10], base[11], base[12]
        W[slope + 3] = 0.5 * (-w[1] * a - w[2] * b - w[3] * c)
        W[slope + 4] = 0.5 * (w[0] * a + w[2] * c - w[3] * b)
        W[slope + 5] = 0.5 * (w[0] * b + w[3] * a - w[1] * c)
        W[slope + 6] = 0.5 * (w[0] * c + w[1] * b - w[2] * a)
        for j in range(3):
            W[slope + j] = W[y + 7 + n + j]
            turned = R[3 * j] * W[I[ACC]] + R[3 * j + 1] * W[I[ACC] + 1] + R[3 * j + 2] * W[I[ACC] + 2]
            W[slope + 7 + n + j] = turned + base[GRAVITY + j]
            W[slope + 10 + n + j] = W[I[ACC] + 3 + j]
    if own:
        call_kernel(I, RATES_KERNEL)
        copy(W, I[RATES], own, slope + at + n + first + n)
    return DONE


@core
def close_loops(I: Numbers, W: Array, y: int) -> int:
    """Move the state W[y …] to the nearest closed one, steps of least norm in the coordinates' units."""
    n, m, given = I[COUNT], I[COUNTED], I[GIVEN]
    q, v = y + 7 * I[FREE], y + 13 * I[FREE] + n
    unit = view(W, I[FREED], n)
    square, right = W[I[BORDER] : I[BORDER] + m * m].reshape(m, m), W[I[BORDER_RIGHT] : I[BORDER_RIGHT] + m]
    pivots = I[I[PIVOT_BORDER] : I[PIVOT_BORDER] + m]
    for _ in range(MAX_NEWTON_STEPS):
        copy(W, q, n, given)
        copy(W, v, n, given + n)
        for j in range(n):
            if not (abs(W[q + j]) < LARGEST_ANGLE_RAD and abs(W[v + j]) < np.inf):
                return ESCAPED
        call_kernel(I, LOOPS_KERNEL)
        widest = 0.0
        for e in range(I[EQUATIONS]):
            widest = max(widest, abs(W[I[LOOPS] + e * (n + 2) + n]))
        closed = widest <= 1e-3 * CLOSED_TOLERANCE_M
        for i in range(m):
            of = view(W, I[LOOPS] + I[I[LOOP_ROW] + i] * (n + 2), n + 2)
            right[i] = of[n]
            if closed:
                right[i] = 0.0
                for j in range(n):
                    right[i] += of[j] * W[v + j]
            for k in range(m):
                other = view(W, I[LOOPS] + I[I[LOOP_ROW] + k] * (n + 2), n + 2)
                total = 0.0
                for j in range(n):
                    total += of[j] * other[j] * unit[j] * unit[j]
                square[i, k] = total
        if not dense.factor(square, pivots) or not is_regular(square):
            return SINGULAR
        dense.solve(square, pivots, right)
        to = v if closed else q
        for i in range(m):
            of = view(W, I[LOOPS] + I[I[LOOP_ROW] + i] * (n + 2), n + 2)
            for j in range(n):
                W[to + j] -= unit[j] * unit[j] * of[j] * right[i]
        if closed:
            return DONE
    return SINGULAR


@kept
def bound_part(i_at: int, i_size: int, w_at: int, w_size: int, what: int, instant: float, h: float, unused: int) -> int:
    """ACCELERATE: rates of the state FROM_STATE. CLOSE: Y as prescribed and with closed loops. I and W by address and length."""
    I = carray(as_pointer(i_at), (i_size,), np.int64)
    W = carray(as_pointer(w_at), (w_size,), np.float64)
    if what == ACCELERATE:
        return bound_rate(I, W, I[FROM_STATE], I[TO_SLOPE])
    lead(I, W, I[Y])
    return close_loops(I, W, I[Y]) if I[EQUATIONS] else DONE


@cache
def bound_address() -> int:
    """Where the machine code of :func:`bound_part` stands in this process; compiled or loaded now."""
    return address_of(bound_part, PART)
