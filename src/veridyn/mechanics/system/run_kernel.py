"""Whole runs as machine code: all samples of all runs in one call, with dry friction that holds and with sensitivities.

The work record is that of :mod:`veridyn.mechanics.system.run_record`; nothing returns to Python in between, except to a control law that
is a function of Python. Code that only runs with friction that holds, or with sensitivities, need is called at its address: a run
without them does not wait for its compilation.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics.compiled import core, kept, only_for
from veridyn.mechanics.system.run_record import (
    ACC,
    AFTER,
    BEFORE,
    BEGIN,
    BLOCK_AT,
    BOUND_CODE,
    BY_LAW,
    CLOCK,
    CLOSE,
    COLUMN,
    COLUMN_FROM,
    COMBINATIONS,
    COUNT,
    DIFFERENTIATE,
    DONE,
    END,
    EQUATIONS,
    ESCAPED,
    FORCE,
    FRESH,
    FRICTION_CODE,
    INSTANT,
    INTERVAL,
    INTERVAL_TIME,
    LANES,
    LAW,
    LAW_SLOPES,
    LED,
    MASS,
    MASS_KERNEL,
    OUT_ROW,
    P_FORWARD,
    PENDING,
    PUSH,
    ROWS,
    S_FORCE,
    SENSITIVITY_CODE,
    SERVO,
    SERVO_AT,
    SETTLE,
    SHARE,
    SIZE,
    SLOPES,
    STAGE,
    START_TIME,
    STEP,
    TRIED,
    WRITTEN_OUT,
    S,
    Y,
    call_part,
)
from veridyn.mechanics.system.run_servo import begin_servo, tick
from veridyn.mechanics.system.run_stages import advance, copy, rate, set_command, set_instant, set_state
from veridyn.mechanics.tree.dynamics.forward import SINGULAR_PIVOT
from veridyn.mechanics.tree.steps.record import call_kernel, view

Numbers = NDArray[np.int64]


@core
def smooth_step(I: Numbers, W: Array, instant: float, h: float, sensitive: int, known: int) -> int:
    """Y after h seconds without friction that holds; `known`: whether its first slope stands in SLOPES."""
    if sensitive:
        status = call_part(I, SENSITIVITY_CODE, W, DIFFERENTIATE, instant, h, 0)
    else:
        status = advance(I, W, instant, h, I[TRIED], known)
    if status == DONE:
        copy(W, I[STAGE] if sensitive else I[END], I[SIZE], I[Y])
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
    n = I[COUNT]
    if I[LAW]:
        status = call_part(I, SENSITIVITY_CODE, W, LAW_SLOPES, 0.0, 0.0, 0)
        if status != DONE:
            return int(status)
    for o in range(I[ROWS]):
        of, row = I[I[OUT_ROW] + 2 * o], I[I[OUT_ROW] + 2 * o + 1]
        b = of if of >= 0 else -1 - of
        at, P = I[I[COLUMN_FROM] + b], I[I[COLUMN_FROM] + b + 1] - I[I[COLUMN_FROM] + b]
        for p in range(P):
            column = I[I[COLUMN] + at + p]
            if column < 0:
                continue
            if of < 0 and I[SERVO]:
                out[o, column] = W[I[S_FORCE] + I[I[SERVO_AT] + row] + p]
                continue
            if of >= 0:
                out[o, column] = W[I[S] + I[I[BLOCK_AT] + b] + row * P + p]
                continue
            total = 0.0  # the force of a law, which ties all coordinates into one block
            for j in range(2 * n):
                total += W[I[BY_LAW] + row * 2 * n + j] * W[I[S] + j * P + p]
            out[o, column] = total
    return DONE


@core
def is_positive(I: Numbers, W: Array) -> bool:
    """Whether the mass matrix of the state Y is positive, by its pivots, relative to their diagonal entries; of all lanes."""
    lanes = I[LANES]
    n = I[COUNT] // lanes
    set_state(I, W, I[Y])
    call_kernel(I, MASS_KERNEL)
    positive = True
    for lane in range(lanes):
        A = I[MASS] + lane
        for k in range(n):
            W[I[ACC] + k] = W[A + (k * n + k) * lanes]
        for k in range(n):
            pivot = W[A + (k * n + k) * lanes]
            positive = positive and pivot > SINGULAR_PIVOT**2 * W[I[ACC] + k]
            for i in range(k + 1, n):
                share = W[A + (i * n + k) * lanes] / pivot
                for j in range(k + 1, n):
                    W[A + (i * n + j) * lanes] -= share * W[A + (k * n + j) * lanes]
    # Entries that the kernel does not write are zero, and elimination fills some of them.
    for j in range(n * n * lanes):
        W[I[MASS] + j] = 0.0
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
    n, m, lanes = I[COUNT], I[COMBINATIONS], I[LANES]
    R, K = y.shape[0], y.shape[1]
    sensitive = sensitivities.size > 0
    clock, h, status = I[CLOCK], step / substeps, DONE
    heard = signals.shape[2] * lanes
    wanted = qdd.shape[2] + acting.shape[2] > 0 or I[LAW] != 0
    W[clock + INTERVAL] = step
    for j in range(n):
        W[I[PUSH] + j] = 0.0
    for group in range((R + lanes - 1) // lanes):
        r = group * lanes
        I[FRESH] = 0
        W[clock + START_TIME] = start[r]
        for i in range(m):
            W[I[SHARE] + i] = 0.0
            I[I[PENDING] + i] = 0
        put_lanes(W, I[Y], initial, r, 0, lanes)
        if group < sets.shape[0]:
            put(W, I[P_FORWARD], sets[group])
        if sensitive:
            call_part(I, SENSITIVITY_CODE, W, BEGIN, 0.0, 0.0, 0)
        if I[SERVO]:
            begin_servo(I, W)
        if I[BOUND_CODE] == 0 and not is_positive(I, W):
            reached[0], reached[1] = r, 0.0
            return ESCAPED
        status = call_part(I, BOUND_CODE, W, CLOSE, 0.0, 0.0, 0) if I[EQUATIONS] else DONE
        for k in range(K):
            if k == 0:
                put_lanes(W, I[AFTER], forces, r, 0, lanes)
                put_lanes(W, I[AFTER] + n, signals, r, 0, lanes)
            copy(W, I[AFTER], n + heard, I[BEFORE])
            if k < K - 1:
                put_lanes(W, I[AFTER], forces, r, k + 1, lanes)
                put_lanes(W, I[AFTER] + n, signals, r, k + 1, lanes)
            W[clock + INTERVAL_TIME] = k * step
            set_instant(I, W, 0.0)
            if I[SERVO]:
                set_command(I, W, sensitive)
                tick(I, W, k * substeps, h, sensitive)
            known = wanted or (
                m == 0 and I[WRITTEN_OUT] == 0
            )  # the rate at a sample, which may be the first slope of a step
            if known and m and status == DONE:
                status = call_part(I, FRICTION_CODE, W, SETTLE, 0.0, 0.0, 0)
            if known and status == DONE:
                status = rate(I, W, I[Y], I[SLOPES])
            if status == DONE:
                take_lanes(W, I[Y], y, r, k, lanes)
                take_lanes(W, I[ACC], qdd, r, k, lanes)
                take_lanes(W, I[FORCE], acting, r, k, lanes)
                if sensitive:
                    status = keep_sensitivities(I, W, sensitivities[r, k])
            if k < K - 1:
                for s in range(substeps):
                    if status == DONE:
                        if I[SERVO] and s > 0:
                            set_instant(I, W, s * h)
                            set_command(I, W, sensitive)
                            tick(I, W, k * substeps + s, h, sensitive)
                        if m:
                            status = call_part(I, FRICTION_CODE, W, STEP, s * h, h, int(sensitive))
                        else:
                            status = smooth_step(I, W, s * h, h, int(sensitive), 1 if known and s == 0 else 0)
                        if I[EQUATIONS] + I[LED] and status == DONE:
                            status = call_part(I, BOUND_CODE, W, CLOSE, 0.0, 0.0, 0)
            if status != DONE:
                reached[0], reached[1] = r, k * step + W[clock + INSTANT]
                return int(status)
    return DONE


@kept
def rate_of(I: Numbers, W: Array, time: float) -> int:
    """SLOPES: the rate of the state Y at a time, under forces and signals BEFORE and the law."""
    W[I[CLOCK] + START_TIME], W[I[CLOCK] + INTERVAL_TIME] = time, 0.0
    set_instant(I, W, 0.0)
    return rate(I, W, I[Y], I[SLOPES])


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
