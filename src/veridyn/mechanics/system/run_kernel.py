"""Whole runs as machine code: all samples of all runs in one call, with dry friction that holds and with sensitivities.

The work record is that of :mod:`veridyn.mechanics.system.run_record`; nothing returns to Python in between, except to a control law that
is a function of Python. Code that only runs with friction that holds, or with sensitivities, need is called at its address: a run
without them does not wait for its compilation.

Sampled joint controllers run in between, PD and PID with a limit, on a measurement that is some steps old, with sensitivities. Every
`ticks` steps each joint gets, and holds until the next tick, with e = r − (q + zero) of the state that is `age` seconds old (the initial
one before the start)

    Γ = Γ_ff + k_p e + k_d ė + I   within ±limit,     I⁺ = I + k_i e T, unless it would grow further into the limit

The age need not be a whole number of steps: positions are read off the cubic through two states, speeds off a line. The record holds the
gains, the ring of past states, and the same of the sensitivities, which are by the gains, the zero, the age, and the delay of the command,
whose slope is given with it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics.compiled import core, kept, only_for
from veridyn.mechanics.system import run_record as record
from veridyn.mechanics.system.run_blocks import GAINS
from veridyn.mechanics.system.run_record import call_part
from veridyn.mechanics.system.run_stages import advance, copy, rate, set_command, set_instant, set_state
from veridyn.mechanics.tree.dynamics.forward import SINGULAR_PIVOT
from veridyn.mechanics.tree.steps.record import call_kernel, view

Numbers = NDArray[np.int64]
GAIN_COUNT = len(GAINS)


@core
def begin_servo(I: Numbers, W: Array) -> None:
    """No integral, and no sensitivity of force or integral, at the start of a run."""
    n = I[record.COUNT]
    for j in range(n):
        W[I[record.INTEGRAL] + j] = 0.0
    for j in range(I[I[record.SERVO_AT] + n]):
        W[I[record.S_INTEGRAL] + j] = 0.0
        W[I[record.S_FORCE] + j] = 0.0


@core
def remember(I: Numbers, W: Array, count: int, sensitive: bool) -> None:
    """Keep the state Y of step `count` in the ring of past ones, and its sensitivities."""
    n = I[record.COUNT]
    wide, slot = I[I[record.SERVO_AT] + n], count % (I[record.LAG] + 1)
    past, now = view(W, I[record.PAST] + slot * 2 * n, 2 * n), view(W, I[record.Y], 2 * n)
    for j in range(2 * n):
        past[j] = now[j]
    if not sensitive:
        return
    for b in range(I[record.BLOCKS]):
        first = I[I[record.COORDINATE_FROM] + b]
        nb = I[I[record.COORDINATE_FROM] + b + 1] - first
        P = I[I[record.COLUMN_FROM] + b + 1] - I[I[record.COLUMN_FROM] + b]
        for a in range(nb):
            at = I[record.S_PAST] + slot * 2 * wide + I[I[record.SERVO_AT] + I[I[record.COORDINATE] + first + a]]
            s = I[record.S] + I[I[record.BLOCK_AT] + b] + a * P
            q, qd, by_q, by_qd = view(W, at, P), view(W, at + wide, P), view(W, s, P), view(W, s + nb * P, P)
            for p in range(P):
                q[p] = by_q[p]
                qd[p] = by_qd[p]


@core
def past_steps(I: Numbers, W: Array, j: int, count: int, h: float) -> tuple[int, int, float]:
    """The steps before and after the instant at which coordinate j is read at step `count`, and the share of a step between them."""
    ago = float(W[I[record.AGE] + j] / h)
    whole = min(int(ago), I[record.LAG])
    later = max(count - whole, 0)
    return max(later - 1, 0), later, 1.0 - (ago - whole) if count > whole else 1.0


@core
def tick_now(I: Numbers, W: Array, h: float) -> None:
    """FORCE of a tick that reads the state Y, and the integral after it."""
    n = I[record.COUNT]
    q, qd, zero = view(W, I[record.Y], n), view(W, I[record.Y] + n, n), view(W, I[record.ZERO], n)
    r, rd, feed = view(W, I[record.WANTED], n), view(W, I[record.WANTED] + n, n), view(W, I[record.FEED], n)
    kp, kd, ki = view(W, I[record.KP], n), view(W, I[record.KD], n), view(W, I[record.KI], n)
    limit, integral, force = view(W, I[record.LIMIT], n), view(W, I[record.INTEGRAL], n), view(W, I[record.FORCE], n)
    period = I[record.TICKS] * h
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
    n = I[record.COUNT]
    if I[record.LAG] == 0 and not sensitive:
        if count % I[record.TICKS] == 0:
            tick_now(I, W, h)
        return
    remember(I, W, count, sensitive)
    if count % I[record.TICKS] != 0:
        return
    wide = I[I[record.SERVO_AT] + n]
    for j in range(n):
        first, last, s = past_steps(I, W, j, count, h)
        before, after = first % (I[record.LAG] + 1), last % (I[record.LAG] + 1)
        q0, q1 = W[I[record.PAST] + before * 2 * n + j], W[I[record.PAST] + after * 2 * n + j]
        v0, v1 = W[I[record.PAST] + before * 2 * n + n + j], W[I[record.PAST] + after * 2 * n + n + j]
        # The cubic through both positions and speeds, and the line through both speeds.
        a0, b0, b1 = (1.0 + 2.0 * s) * (1.0 - s) ** 2, h * s * (1.0 - s) ** 2, -h * s * s * (1.0 - s)
        q, v = a0 * q0 + (1.0 - a0) * q1 + b0 * v0 + b1 * v1, (1.0 - s) * v0 + s * v1
        e = W[I[record.WANTED] + j] - (q + W[I[record.ZERO] + j])
        ed = W[I[record.WANTED] + n + j] - v
        raw = W[I[record.FEED] + j] + W[I[record.KP] + j] * e + W[I[record.KD] + j] * ed + W[I[record.INTEGRAL] + j]
        force = min(max(raw, -W[I[record.LIMIT] + j]), W[I[record.LIMIT] + j])
        growth = W[I[record.KI] + j] * e
        grows = 0.0 if (raw - force) * growth > 0.0 else I[record.TICKS] * h
        W[I[record.FORCE] + j] = force
        W[I[record.INTEGRAL] + j] += grows * growth
        if not sensitive:
            continue
        start, free = I[I[record.SERVO_AT] + j], 1.0 if force == raw else 0.0
        old, new = I[record.S_PAST] + before * 2 * wide + start, I[record.S_PAST] + after * 2 * wide + start
        P, kp, kd, ki = (
            I[I[record.SERVO_AT] + j + 1] - start,
            W[I[record.KP] + j],
            W[I[record.KD] + j],
            W[I[record.KI] + j],
        )
        q_old, q_new, v_old, v_new = view(W, old, P), view(W, new, P), view(W, old + wide, P), view(W, new + wide, P)
        by_force, by_integral = view(W, I[record.S_FORCE] + start, P), view(W, I[record.S_INTEGRAL] + start, P)
        for p in range(P):
            dq = a0 * q_old[p] + (1.0 - a0) * q_new[p] + b0 * v_old[p] + b1 * v_new[p]
            dv = (1.0 - s) * v_old[p] + s * v_new[p]
            by_force[p] = free * (by_integral[p] - kp * dq - kd * dv)
            by_integral[p] -= grows * ki * dq
        by = I[record.GAIN_COLUMN] + GAIN_COUNT * j
        if I[by] >= 0:
            W[I[record.S_FORCE] + start + I[by]] += free * e
        if I[by + 1] >= 0:
            W[I[record.S_INTEGRAL] + start + I[by + 1]] += grows * e
        if I[by + 2] >= 0:
            W[I[record.S_FORCE] + start + I[by + 2]] += free * ed
        # Zero, delay of the command and age of the measurement change the two errors.
        speed = 6.0 * s * (1.0 - s) * (q1 - q0) / h + (1.0 - s) * (1.0 - 3.0 * s) * v0 + s * (3.0 * s - 2.0) * v1
        shift(I, W, j, int(I[by + 3]), free, grows, -1.0, 0.0)
        shift(
            I,
            W,
            j,
            int(I[by + 4]),
            free,
            grows,
            float(-W[I[record.WANTED] + 2 * n + j]),
            float(-W[I[record.WANTED] + 3 * n + j]),
        )
        if count > W[I[record.AGE] + j] / h:  # else it is the initial state that is read
            shift(I, W, j, int(I[by + 5]), free, grows, float(speed), float((v1 - v0) / h))


@core
def shift(I: Numbers, W: Array, j: int, column: int, free: float, grows: float, de: float, ded: float) -> None:
    """Add to a column of coordinate j what a change of its errors by de and ded does; −1 is no column."""
    if column >= 0:
        at = I[I[record.SERVO_AT] + j] + column
        W[I[record.S_FORCE] + at] += free * (W[I[record.KP] + j] * de + W[I[record.KD] + j] * ded)
        W[I[record.S_INTEGRAL] + at] += grows * W[I[record.KI] + j] * de


Numbers = NDArray[np.int64]


@core
def smooth_step(I: Numbers, W: Array, instant: float, h: float, sensitive: int, known: int) -> int:
    """Y after h seconds without friction that holds; `known`: whether its first slope stands in SLOPES."""
    if sensitive:
        status = call_part(I, record.SENSITIVITY_CODE, W, record.DIFFERENTIATE, instant, h, 0)
    else:
        status = advance(I, W, instant, h, I[record.TRIED], known)
    if status == record.DONE:
        copy(W, I[record.STAGE] if sensitive else I[record.END], I[record.SIZE], I[record.Y])
    return int(status)


@core
def put(W: Array, at: int, x: Array) -> None:
    """W[at …] = x."""
    to = view(W, at, len(x))
    for j in range(len(x)):
        to[j] = x[j]


@core
def put_lanes(W: Array, at: int, x: Array, first: int, k: int, lanes: int) -> None:
    """Sample k of the runs x (R, K, m) from `first` on, into the lanes at W[at …]; the last run once more where there are too few."""
    R, m = x.shape[0], x.shape[2]
    to = view(W, at, m * lanes)
    for lane in range(lanes):
        r = min(first + lane, R - 1)
        for j in range(m):
            to[j * lanes + lane] = x[r, k, j]


@core
def take_lanes(W: Array, at: int, out: Array, first: int, k: int, lanes: int) -> None:
    """What lies in lanes at W[at …], into sample k of the runs of `out` (R, K, m) from `first` on."""
    R, m = out.shape[0], out.shape[2]
    of = view(W, at, m * lanes)
    for lane in range(min(lanes, R - first)):
        for j in range(m):
            out[first + lane, k, j] = of[j * lanes + lane]


@core
def keep_sensitivities(I: Numbers, W: Array, out: Array) -> int:
    """The rows of S that are kept, into out (rows, columns)."""
    n = I[record.COUNT]
    if I[record.LAW]:
        status = call_part(I, record.SENSITIVITY_CODE, W, record.LAW_SLOPES, 0.0, 0.0, 0)
        if status != record.DONE:
            return int(status)
    for o in range(I[record.ROWS]):
        of, row = I[I[record.OUT_ROW] + 2 * o], I[I[record.OUT_ROW] + 2 * o + 1]
        b = of if of >= 0 else -1 - of
        at, P = I[I[record.COLUMN_FROM] + b], I[I[record.COLUMN_FROM] + b + 1] - I[I[record.COLUMN_FROM] + b]
        for p in range(P):
            column = I[I[record.COLUMN] + at + p]
            if column < 0:
                continue
            if of < 0 and I[record.SERVO]:
                out[o, column] = W[I[record.S_FORCE] + I[I[record.SERVO_AT] + row] + p]
                continue
            if of >= 0:
                out[o, column] = W[I[record.S] + I[I[record.BLOCK_AT] + b] + row * P + p]
                continue
            total = 0.0  # the force of a law, which ties all coordinates into one block
            for j in range(2 * n):
                total += W[I[record.BY_LAW] + row * 2 * n + j] * W[I[record.S] + j * P + p]
            out[o, column] = total
    return record.DONE


@core
def is_positive(I: Numbers, W: Array) -> bool:
    """Whether the mass matrix of the state Y is positive, by its pivots, relative to their diagonal entries; of all lanes."""
    lanes = I[record.LANES]
    n = I[record.COUNT] // lanes
    set_state(I, W, I[record.Y])
    call_kernel(I, record.MASS_KERNEL)
    positive = True
    for lane in range(lanes):
        A = I[record.MASS] + lane
        for k in range(n):
            W[I[record.ACC] + k] = W[A + (k * n + k) * lanes]
        for k in range(n):
            pivot = W[A + (k * n + k) * lanes]
            positive = positive and pivot > SINGULAR_PIVOT**2 * W[I[record.ACC] + k]
            for i in range(k + 1, n):
                share = W[A + (i * n + k) * lanes] / pivot
                for j in range(k + 1, n):
                    W[A + (i * n + j) * lanes] -= share * W[A + (k * n + j) * lanes]
    # Entries that the kernel does not write are zero, and elimination fills some of them.
    for j in range(n * n * lanes):
        W[I[record.MASS] + j] = 0.0
    return bool(positive)


@kept
def run(
    I: Numbers,
    W: Array,
    start: Array,
    initial: Array,
    forces: Array,
    signals: Array,
    sets: Array,
    step: float,
    substeps: int,
    y: Array,
    qdd: Array,
    acting: Array,
    sensitivities: Array,
    reached: Array,
) -> int:
    """R runs of K samples every `step` seconds: y (R, K, size), q̈ and forces (R, K, n), sensitivities (R, K, rows, columns).

    On a free base q̈ (R, K, 6 + n) begins with its accelerations v̇ − g and ω̇, in its own axes. Loops are closed after every step.

    Forces (R, K, n) at the samples, and measured signals with commands (R, K, ·) behind them. `sets` (⌈R / lanes⌉, ·): parameters of the
    runs, from P_FORWARD on, or (0, ·) where those of the record serve all; `start` (R,) in seconds, `initial` (R, 1, size). q̈ and forces
    are (R, K, 0) where they are not wanted, and then not computed at the samples. How it ended;
    `reached` (2,): the run, or the first of those side by side, and the time in it where it ended early.
    """
    n, m, lanes = I[record.COUNT], I[record.COMBINATIONS], I[record.LANES]
    R, K = y.shape[0], y.shape[1]
    sensitive = sensitivities.size > 0
    clock, h, status = I[record.CLOCK], step / substeps, record.DONE
    heard = signals.shape[2] * lanes
    wanted = qdd.shape[2] + acting.shape[2] > 0 or I[record.LAW] != 0
    W[clock + record.INTERVAL] = step
    for j in range(n):
        W[I[record.PUSH] + j] = 0.0
    for group in range((R + lanes - 1) // lanes):
        r = group * lanes
        I[record.FRESH] = 0
        W[clock + record.START_TIME] = start[r]
        for i in range(m):
            W[I[record.SHARE] + i] = 0.0
            I[I[record.PENDING] + i] = 0
        put_lanes(W, I[record.Y], initial, r, 0, lanes)
        if group < sets.shape[0]:
            put(W, I[record.P_FORWARD], sets[group])
        if sensitive:
            call_part(I, record.SENSITIVITY_CODE, W, record.BEGIN, 0.0, 0.0, 0)
        if I[record.SERVO]:
            begin_servo(I, W)
        if I[record.BOUND_CODE] == 0 and not is_positive(I, W):
            reached[0], reached[1] = r, 0.0
            return record.ESCAPED
        status = call_part(I, record.BOUND_CODE, W, record.CLOSE, 0.0, 0.0, 0) if I[record.EQUATIONS] else record.DONE
        for k in range(K):
            if k == 0:
                put_lanes(W, I[record.AFTER], forces, r, 0, lanes)
                put_lanes(W, I[record.AFTER] + n, signals, r, 0, lanes)
            copy(W, I[record.AFTER], n + heard, I[record.BEFORE])
            if k < K - 1:
                put_lanes(W, I[record.AFTER], forces, r, k + 1, lanes)
                put_lanes(W, I[record.AFTER] + n, signals, r, k + 1, lanes)
            W[clock + record.INTERVAL_TIME] = k * step
            set_instant(I, W, 0.0)
            if I[record.SERVO]:
                set_command(I, W, sensitive)
                tick(I, W, k * substeps, h, sensitive)
            known = wanted or (
                m == 0 and I[record.WRITTEN_OUT] == 0
            )  # the rate at a sample, which may be the first slope of a step
            if known and m and status == record.DONE:
                status = call_part(I, record.FRICTION_CODE, W, record.SETTLE, 0.0, 0.0, 0)
            if known and status == record.DONE:
                status = rate(I, W, I[record.Y], I[record.SLOPES])
            if status == record.DONE:
                take_lanes(W, I[record.Y], y, r, k, lanes)
                take_lanes(W, I[record.ACC], qdd, r, k, lanes)
                take_lanes(W, I[record.FORCE], acting, r, k, lanes)
                if sensitive:
                    status = keep_sensitivities(I, W, sensitivities[r, k])
            if k < K - 1:
                for s in range(substeps):
                    if status == record.DONE:
                        if I[record.SERVO] and s > 0:
                            set_instant(I, W, s * h)
                            set_command(I, W, sensitive)
                            tick(I, W, k * substeps + s, h, sensitive)
                        if m:
                            status = call_part(I, record.FRICTION_CODE, W, record.STEP, s * h, h, int(sensitive))
                        else:
                            status = smooth_step(I, W, s * h, h, int(sensitive), 1 if known and s == 0 else 0)
                        if I[record.EQUATIONS] + I[record.LED] and status == record.DONE:
                            status = call_part(I, record.BOUND_CODE, W, record.CLOSE, 0.0, 0.0, 0)
            if status != record.DONE:
                reached[0], reached[1] = r, k * step + W[clock + record.INSTANT]
                return int(status)
    return record.DONE


@kept
def rate_of(I: Numbers, W: Array, time: float) -> int:
    """SLOPES: the rate of the state Y at a time, under forces and signals BEFORE and the law."""
    W[I[record.CLOCK] + record.START_TIME], W[I[record.CLOCK] + record.INTERVAL_TIME] = time, 0.0
    set_instant(I, W, 0.0)
    return rate(I, W, I[record.Y], I[record.SLOPES])


@cache
def compiled_rate() -> Any:
    """:func:`rate_of`, compiled or loaded now."""
    d1 = types.Array(types.float64, 1, "C")
    return only_for(rate_of, (types.Array(types.int64, 1, "C"), d1, types.float64))


@cache
def compiled_run() -> Any:
    """:func:`run` for arrays in one piece, compiled or loaded now."""
    d1, d2, d3, d4 = (types.Array(types.float64, k, "C") for k in (1, 2, 3, 4))
    return only_for(
        run, (types.Array(types.int64, 1, "C"), d1, d1, d3, d3, d3, d2, types.float64, types.int64, d3, d3, d3, d4, d1)
    )
