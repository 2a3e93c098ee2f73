"""Sampled joint controllers of a compiled run: PD and PID with a limit, on a measurement that is some steps old, with sensitivities.

Every `ticks` steps each joint gets, and holds until the next tick, with e = r − q of the state `lag` steps ago (the initial one before)

    Γ = Γ_ff + k_p e + k_d ė + I   within ±limit,     I⁺ = I + k_i e T, unless it would grow further into the limit

:mod:`veridyn.mechanics.system.run_record` holds the gains, the ring of past states, and the same of the sensitivities.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.compiled import core
from veridyn.mechanics.system.run_record import (
    BLOCK_AT,
    BLOCKS,
    COLUMN_FROM,
    COORDINATE,
    COORDINATE_FROM,
    COUNT,
    FEED,
    FORCE,
    GAIN_COLUMN,
    INTEGRAL,
    KD,
    KI,
    KP,
    LAG,
    LIMIT,
    PAST,
    S_FORCE,
    S_INTEGRAL,
    S_PAST,
    SERVO_AT,
    TICKS,
    WANTED,
    S,
    Y,
)

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]


@core
def begin_servo(I: Numbers, W: Array) -> None:
    """No integral, and no sensitivity of force or integral, at the start of a run."""
    n = I[COUNT]
    for j in range(n):
        W[I[INTEGRAL] + j] = 0.0
    for j in range(I[I[SERVO_AT] + n]):
        W[I[S_INTEGRAL] + j] = 0.0
        W[I[S_FORCE] + j] = 0.0


@core
def remember(I: Numbers, W: Array, count: int, sensitive: bool) -> None:
    """Keep the state Y of step `count` in the ring of past ones, and its sensitivities."""
    n = I[COUNT]
    wide, slot = I[I[SERVO_AT] + n], count % (I[LAG] + 1)
    for j in range(2 * n):
        W[I[PAST] + slot * 2 * n + j] = W[I[Y] + j]
    if not sensitive:
        return
    for b in range(I[BLOCKS]):
        first = I[I[COORDINATE_FROM] + b]
        nb = I[I[COORDINATE_FROM] + b + 1] - first
        P = I[I[COLUMN_FROM] + b + 1] - I[I[COLUMN_FROM] + b]
        for a in range(nb):
            at = I[S_PAST] + slot * 2 * wide + I[I[SERVO_AT] + I[I[COORDINATE] + first + a]]
            s = I[S] + I[I[BLOCK_AT] + b] + a * P
            for p in range(P):
                W[at + p] = W[s + p]
                W[at + wide + p] = W[s + nb * P + p]


@core
def tick(I: Numbers, W: Array, count: int, h: float, sensitive: bool) -> None:
    """FORCE of a tick at step `count`, where it is one, and the integral after it; steps are h seconds long."""
    n = I[COUNT]
    remember(I, W, count, sensitive)
    if count % I[TICKS] != 0:
        return
    wide, slot = I[I[SERVO_AT] + n], (count - I[LAG]) % (I[LAG] + 1) if count >= I[LAG] else 0
    for j in range(n):
        e = W[I[WANTED] + j] - W[I[PAST] + slot * 2 * n + j]
        ed = W[I[WANTED] + n + j] - W[I[PAST] + slot * 2 * n + n + j]
        raw = W[I[FEED] + j] + W[I[KP] + j] * e + W[I[KD] + j] * ed + W[I[INTEGRAL] + j]
        force = min(max(raw, -W[I[LIMIT] + j]), W[I[LIMIT] + j])
        growth = W[I[KI] + j] * e
        grows = 0.0 if (raw - force) * growth > 0.0 else I[TICKS] * h
        W[I[FORCE] + j] = force
        W[I[INTEGRAL] + j] += grows * growth
        if not sensitive:
            continue
        start, free = I[I[SERVO_AT] + j], 1.0 if force == raw else 0.0
        past = I[S_PAST] + slot * 2 * wide + start
        for p in range(I[I[SERVO_AT] + j + 1] - start):
            dq, dv = W[past + p], W[past + wide + p]
            W[I[S_FORCE] + start + p] = free * (W[I[S_INTEGRAL] + start + p] - W[I[KP] + j] * dq - W[I[KD] + j] * dv)
            W[I[S_INTEGRAL] + start + p] -= grows * W[I[KI] + j] * dq
        by = I[GAIN_COLUMN] + 3 * j
        if I[by] >= 0:
            W[I[S_FORCE] + start + I[by]] += free * e
        if I[by + 1] >= 0:
            W[I[S_INTEGRAL] + start + I[by + 1]] += grows * e
        if I[by + 2] >= 0:
            W[I[S_FORCE] + start + I[by + 2]] += free * ed
