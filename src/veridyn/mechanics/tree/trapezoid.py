"""States and steps of a tree for callers in Python, many at once, and what goes into its work record and out of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.compiled import core, kept
from veridyn.mechanics.tree.layout import (
    A_X,
    ADVANCE,
    CLOCK,
    COUNT_V,
    DELTA,
    DONE,
    EXTRA,
    FORCES,
    FREEDOM,
    LAM,
    LAM_X,
    LOOPED,
    RATE,
    REACTIONS,
    SLOT_MOTION,
    SLOT_TANGENT,
    START,
    STATE,
    STATES,
    UNKNOWN,
    V_Z,
    VARYING,
    A,
    B,
    F,
    R,
    V,
    X,
)
from veridyn.mechanics.tree.record import call_step

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]


@core
def set_unknown(I: Numbers, W: Array) -> None:
    """Generalised forces B u of UNKNOWN are added to EXTRA, and values of what varies and of states put where the kernels read them."""
    k, u = I[FORCES], I[UNKNOWN]
    for j in range(k):
        for i in range(I[COUNT_V]):
            W[I[EXTRA] + i] += W[I[B] + i * k + j] * W[u + j]
    for j in range(I[VARYING]):
        motion, tangent = I[I[SLOT_MOTION] + j], I[I[SLOT_TANGENT] + j]
        if motion >= 0:
            W[motion] = W[u + k + j]
        if tangent >= 0:
            W[tangent] = W[u + k + j]


@core
def put(I: Numbers, W: Array, section: int, values: Array) -> None:
    """Write a section."""
    for i in range(len(values)):
        W[I[section] + i] = values[i]


@core
def get(I: Numbers, W: Array, section: int, out: Array) -> None:
    """Read a section, row by row, into an array of its size."""
    flat = out.reshape(out.size)
    for i in range(len(flat)):
        flat[i] = W[I[section] + i]


@kept
def tree_trapezoid(
    I: Numbers,
    W: Array,
    x: Array,
    delta: Array,
    rate: Array,
    extra: Array,
    unknown: Array,
    since: float,
    h: float,
    derivative: bool,
) -> tuple[int, Array, Array, Array, Array, Array, Array, Array, Array, Array, Array]:
    """From each state x (N, nq) ⊞ delta (N, f) with rates `rate` (N, f) one step h on, or for h = 0 that state itself.

    `since`: the time that has passed since the values of prescribed coordinates were given. First DONE, SINGULAR or UNSETTLED; then
    (N, …) of x, v, a, λ, R, ∂v/∂z, ∂a/∂(z, ż, u), ∂λ/∂(z, ż, u), F, and of the unknown quantities, of which states of elements have moved.
    """
    many, nv, m, f, u = len(x), I[COUNT_V], I[LOOPED], I[FREEDOM], 2 * I[FREEDOM] + I[FORCES] + I[VARYING]
    xs, v, a, lam = np.empty((many, x.shape[1])), np.empty((many, nv)), np.empty((many, nv)), np.empty((many, m))
    size = many if derivative else 0
    r, v_z, a_x = np.empty((many, nv, f)), np.empty((size, nv, f)), np.empty((size, nv, u))
    lam_x, F_, state = np.empty((size, m, u)), np.empty((size, 2 * f + I[STATES], u)), 0
    after = np.empty(unknown.shape)
    for i in range(many):
        put(I, W, EXTRA, extra)
        put(I, W, UNKNOWN, unknown[i])
        set_unknown(I, W)
        put(I, W, START, x[i])
        put(I, W, X, x[i])
        put(I, W, DELTA, delta[i])
        put(I, W, RATE, rate[i])
        W[I[CLOCK]] = since
        state = call_step(I, ADVANCE, W, h, REACTIONS if derivative else STATE)
        if state != DONE:
            break
        get(I, W, X, xs[i])
        get(I, W, V, v[i])
        get(I, W, A, a[i])
        get(I, W, LAM, lam[i])
        get(I, W, R, r[i])
        get(I, W, UNKNOWN, after[i])
        if derivative:
            get(I, W, V_Z, v_z[i])
            get(I, W, A_X, a_x[i])
            get(I, W, LAM_X, lam_x[i])
            get(I, W, F, F_[i])
    return state, xs, v, a, lam, r, v_z, a_x, lam_x, F_, after
