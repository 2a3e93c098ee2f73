"""Sampled joint controllers of a compiled run: PD and PID with a limit, on a measurement that is some steps old, with sensitivities.

Every `ticks` steps each joint gets, and holds until the next tick, with e = r − (q + zero) of the state that is `age` seconds old (the
initial one before the start)

    Γ = Γ_ff + k_p e + k_d ė + I   within ±limit,     I⁺ = I + k_i e T, unless it would grow further into the limit

The age need not be a whole number of steps: positions are read off the cubic through two states, speeds off a line.
:mod:`veridyn.mechanics.system.run_record` holds the gains, the ring of past states, and the same of the sensitivities, which are by the
gains, the zero, the age, and the delay of the command, whose slope is given with it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics.compiled import core
from veridyn.mechanics.system.run_blocks import GAINS
from veridyn.mechanics.system.run_record import (
    AGE,
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
    ZERO,
    S,
    Y,
)
from veridyn.mechanics.tree.steps.record import view

Numbers = NDArray[np.int64]
GAIN_COUNT = len(GAINS)


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
    past, now = view(W, I[PAST] + slot * 2 * n, 2 * n), view(W, I[Y], 2 * n)
    for j in range(2 * n):
        past[j] = now[j]
    if not sensitive:
        return
    for b in range(I[BLOCKS]):
        first = I[I[COORDINATE_FROM] + b]
        nb = I[I[COORDINATE_FROM] + b + 1] - first
        P = I[I[COLUMN_FROM] + b + 1] - I[I[COLUMN_FROM] + b]
        for a in range(nb):
            at = I[S_PAST] + slot * 2 * wide + I[I[SERVO_AT] + I[I[COORDINATE] + first + a]]
            s = I[S] + I[I[BLOCK_AT] + b] + a * P
            q, qd, by_q, by_qd = view(W, at, P), view(W, at + wide, P), view(W, s, P), view(W, s + nb * P, P)
            for p in range(P):
                q[p] = by_q[p]
                qd[p] = by_qd[p]


@core
def past_slots(I: Numbers, W: Array, j: int, count: int, h: float) -> tuple[int, int, float]:
    """Where the states before and after the instant that coordinate j is read at lie in the ring, and the share of a step between them."""
    ago = float(W[I[AGE] + j] / h)
    whole = min(int(ago), I[LAG])
    later = max(count - whole, 0)
    return max(later - 1, 0) % (I[LAG] + 1), later % (I[LAG] + 1), 1.0 - (ago - whole) if count > whole else 1.0


@core
def tick_now(I: Numbers, W: Array, h: float) -> None:
    """FORCE of a tick that reads the state Y, and the integral after it."""
    n = I[COUNT]
    q, qd, zero = view(W, I[Y], n), view(W, I[Y] + n, n), view(W, I[ZERO], n)
    r, rd, feed = view(W, I[WANTED], n), view(W, I[WANTED] + n, n), view(W, I[FEED], n)
    kp, kd, ki = view(W, I[KP], n), view(W, I[KD], n), view(W, I[KI], n)
    limit, integral, force = view(W, I[LIMIT], n), view(W, I[INTEGRAL], n), view(W, I[FORCE], n)
    period = I[TICKS] * h
    for j in range(n):
        e = r[j] - (q[j] + zero[j])
        raw = feed[j] + kp[j] * e + kd[j] * (rd[j] - qd[j]) + integral[j]
        limited = min(max(raw, -limit[j]), limit[j])
        growth = ki[j] * e
        force[j] = limited
        integral[j] += (0.0 if (raw - limited) * growth > 0.0 else period) * growth


@core
def tick(I: Numbers, W: Array, count: int, h: float, sensitive: bool) -> None:
    """FORCE of a tick at step `count`, where it is one, and the integral after it; steps are h seconds long."""
    n = I[COUNT]
    if I[LAG] == 0 and not sensitive:
        if count % I[TICKS] == 0:
            tick_now(I, W, h)
        return
    remember(I, W, count, sensitive)
    if count % I[TICKS] != 0:
        return
    wide = I[I[SERVO_AT] + n]
    for j in range(n):
        before, after, s = past_slots(I, W, j, count, h)
        q0, q1 = W[I[PAST] + before * 2 * n + j], W[I[PAST] + after * 2 * n + j]
        v0, v1 = W[I[PAST] + before * 2 * n + n + j], W[I[PAST] + after * 2 * n + n + j]
        # The cubic through both positions and speeds, and the line through both speeds.
        a0, b0, b1 = (1.0 + 2.0 * s) * (1.0 - s) ** 2, h * s * (1.0 - s) ** 2, -h * s * s * (1.0 - s)
        q, v = a0 * q0 + (1.0 - a0) * q1 + b0 * v0 + b1 * v1, (1.0 - s) * v0 + s * v1
        e = W[I[WANTED] + j] - (q + W[I[ZERO] + j])
        ed = W[I[WANTED] + n + j] - v
        raw = W[I[FEED] + j] + W[I[KP] + j] * e + W[I[KD] + j] * ed + W[I[INTEGRAL] + j]
        force = min(max(raw, -W[I[LIMIT] + j]), W[I[LIMIT] + j])
        growth = W[I[KI] + j] * e
        grows = 0.0 if (raw - force) * growth > 0.0 else I[TICKS] * h
        W[I[FORCE] + j] = force
        W[I[INTEGRAL] + j] += grows * growth
        if not sensitive:
            continue
        start, free = I[I[SERVO_AT] + j], 1.0 if force == raw else 0.0
        old, new = I[S_PAST] + before * 2 * wide + start, I[S_PAST] + after * 2 * wide + start
        P, kp, kd, ki = I[I[SERVO_AT] + j + 1] - start, W[I[KP] + j], W[I[KD] + j], W[I[KI] + j]
        q_old, q_new, v_old, v_new = view(W, old, P), view(W, new, P), view(W, old + wide, P), view(W, new + wide, P)
        by_force, by_integral = view(W, I[S_FORCE] + start, P), view(W, I[S_INTEGRAL] + start, P)
        for p in range(P):
            dq = a0 * q_old[p] + (1.0 - a0) * q_new[p] + b0 * v_old[p] + b1 * v_new[p]
            dv = (1.0 - s) * v_old[p] + s * v_new[p]
            by_force[p] = free * (by_integral[p] - kp * dq - kd * dv)
            by_integral[p] -= grows * ki * dq
        by = I[GAIN_COLUMN] + GAIN_COUNT * j
        if I[by] >= 0:
            W[I[S_FORCE] + start + I[by]] += free * e
        if I[by + 1] >= 0:
            W[I[S_INTEGRAL] + start + I[by + 1]] += grows * e
        if I[by + 2] >= 0:
            W[I[S_FORCE] + start + I[by + 2]] += free * ed
        # Zero, delay of the command and age of the measurement change the two errors.
        speed = 6.0 * s * (1.0 - s) * (q1 - q0) / h + (1.0 - s) * (1.0 - 3.0 * s) * v0 + s * (3.0 * s - 2.0) * v1
        shift(I, W, j, int(I[by + 3]), free, grows, -1.0, 0.0)
        shift(I, W, j, int(I[by + 4]), free, grows, float(-W[I[WANTED] + 2 * n + j]), float(-W[I[WANTED] + 3 * n + j]))
        if count > W[I[AGE] + j] / h:  # else it is the initial state that is read
            shift(I, W, j, int(I[by + 5]), free, grows, float(speed), float((v1 - v0) / h))


@core
def shift(I: Numbers, W: Array, j: int, column: int, free: float, grows: float, de: float, ded: float) -> None:
    """Add to a column of coordinate j what a change of its errors by de and ded does; −1 is no column."""
    if column >= 0:
        at = I[I[SERVO_AT] + j] + column
        W[I[S_FORCE] + at] += free * (W[I[KP] + j] * de + W[I[KD] + j] * ded)
        W[I[S_INTEGRAL] + at] += grows * W[I[KI] + j] * de
