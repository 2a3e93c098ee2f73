"""Runs of a machine under its own sampled controllers as machine code: from instant to instant of their schedule in one call.

The machine is that of :mod:`veridyn.mechanics.system.run_kernel`, whose record (I, W) holds its state. Between two nodes of a grid, which
are instants of controllers and samples, it makes equal steps. At a node measurements are read, laws tick by their kernels
(:mod:`veridyn.mechanics.control.law`), and what they hold stands in BEFORE, which acts until it changes.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics.compiled import core, kept, only_for
from veridyn.mechanics.control.law import (
    CURRENT,
    CURRENT_INTEGRAL,
    CURRENT_INTEGRAL_AFTER,
    FORCE_AFTER,
    INTEGRAL,
    INTEGRAL_AFTER,
    LAW,
    MODEL,
    OUT,
    QD,
    RAW,
    READ,
    VOLTS,
    WANTED,
    Q,
    R,
)
from veridyn.mechanics.control.law import (
    FORCE as LAST_FORCE,
)
from veridyn.mechanics.system.run_kernel import is_positive, smooth_step
from veridyn.mechanics.system.run_record import (
    BEFORE,
    CLOCK,
    COMBINATIONS,
    COUNT,
    DONE,
    ESCAPED,
    FORCE,
    FRESH,
    FRICTION_CODE,
    GIVEN,
    INSTANT,
    INTERVAL_TIME,
    PENDING,
    PUSH,
    SETTLE,
    SHARE,
    SIGNALS,
    SIZE,
    SLOPES,
    STATES,
    STEP,
    Y,
    call_part,
)
from veridyn.mechanics.system.run_stages import rate, set_instant
from veridyn.mechanics.tree.steps.record import call_kernel

Numbers = NDArray[np.int64]
ODD_FORCE, ODD_VOLTAGE = 10, 11  # how a run ended besides: a controller makes what is no finite number
# Of a controller: its joint, whether it computes torques of the model or adds the model's gravity, and of a motor the place of its
# voltage among measured signals and that of its current among states of elements; −1 without one.
JOINT, COMPUTED, GRAVITY, VOLTAGE_PLACE, CURRENT_PLACE = PLACES = range(5)
REQUEST_CODE, LIMIT_CODE, VOLTAGE_CODE, CODES = 0, 6, 12, 18  # addresses of its kernels
WHAT, OF, SLOT, ROW = range(4)  # of an event: what happens, to which controller, its measurement, its command
AHEAD = 3  # column of commands behind r, ṙ and r̈: what the model adds along the command
START_SLOT = 0  # of past states: the start, which is read before there is anything else


class ControlTables(NamedTuple):
    """What ticks read and write.

    Addresses of kernels; rows of fields; places; gear times torque constant of motors (1 without); what drives besides (n,); past states
    (slots, 2n); accelerations that computed torques ask for (n,); their model: address, what it reads, forces.
    """

    codes: Numbers
    rows: Array
    places: Numbers
    gears: Array
    others: Array
    past: Array
    accelerations: Array
    model: Numbers
    model_given: Array
    model_forces: Array


class ControlGrid(NamedTuple):
    """Nodes: time since the start, length and number of the steps behind each, the sample that it is or −1; events, and their commands."""

    time: Array
    step: Array
    steps: Numbers
    sample: Numbers
    first: Numbers
    events: Numbers
    commands: Array


class ControlSamples(NamedTuple):
    """At the samples: states (K, size), q̈ and forces (K, n), measured signals (K, ·)."""

    y: Array
    qdd: Array
    acting: Array
    heard: Array


@core
def call_model(T: ControlTables, slot: int, moving: int) -> None:
    """Γ of the controllers' model at a measured state, of the accelerations that are asked for; at rest without `moving`."""
    n = len(T.accelerations)
    for j in range(n):
        T.model_given[j] = T.past[slot, j]
        T.model_given[n + j] = T.past[slot, n + j] if moving else 0.0
        T.model_given[2 * n + j] = T.accelerations[j] if moving else 0.0
    call_kernel(T.model, 0)


@core
def request(T: ControlTables, c: int, slot: int, command: Array) -> None:
    """RAW of controller c, from its command and the measurement in `slot`."""
    n, joint = len(T.accelerations), T.places[c, JOINT]
    for j in range(AHEAD):
        T.rows[c, R + j] = command[j]
    T.rows[c, Q] = T.past[slot, joint]
    T.rows[c, QD] = T.past[slot, n + joint]
    T.rows[c, MODEL] = command[AHEAD]
    if T.places[c, GRAVITY]:
        call_model(T, slot, 0)
        T.rows[c, MODEL] = T.model_forces[joint]
    call_kernel(T.codes, c * CODES + REQUEST_CODE)
    if T.places[c, COMPUTED]:
        T.accelerations[joint] = T.rows[c, RAW]


@core
def act(I: Numbers, W: Array, T: ControlTables, c: int, slot: int) -> bool:
    """Let controller c hold its force, or ask for its current; False where that is no finite number."""
    joint = T.places[c, JOINT]
    if T.places[c, COMPUTED]:
        call_model(T, slot, 1)
        T.rows[c, RAW] = T.model_forces[joint]
    call_kernel(T.codes, c * CODES + LIMIT_CODE)
    T.rows[c, INTEGRAL] = T.rows[c, INTEGRAL_AFTER]
    T.rows[c, LAST_FORCE] = T.rows[c, FORCE_AFTER]
    force = T.rows[c, OUT]
    if T.places[c, VOLTAGE_PLACE] >= 0:
        T.rows[c, WANTED] = force / T.gears[c]
    else:
        W[I[BEFORE] + joint] = T.others[joint] + force
    return bool(np.isfinite(force))


@core
def act_on_current(I: Numbers, W: Array, T: ControlTables, c: int) -> bool:
    """Let the current loop of controller c hold its voltage; False where that is no finite number."""
    n = I[COUNT]
    T.rows[c, CURRENT] = W[I[Y] + 2 * n + T.places[c, CURRENT_PLACE]]
    call_kernel(T.codes, c * CODES + VOLTAGE_CODE)
    T.rows[c, CURRENT_INTEGRAL] = T.rows[c, CURRENT_INTEGRAL_AFTER]
    W[I[BEFORE] + n + T.places[c, VOLTAGE_PLACE]] = T.rows[c, VOLTS]
    return bool(np.isfinite(T.rows[c, VOLTS]))


@core
def reach(I: Numbers, W: Array, T: ControlTables, G: ControlGrid, i: int, reached: Array) -> int:
    """All that happens at node i, in the state Y."""
    n, first, last = I[COUNT], G.first[i], G.first[i + 1]
    for e in range(first, last):
        if G.events[e, WHAT] == READ:
            for j in range(2 * n):
                T.past[G.events[e, SLOT], j] = W[I[Y] + j]
    for e in range(first, last):
        if G.events[e, WHAT] == LAW:
            request(T, G.events[e, OF], G.events[e, SLOT], G.commands[G.events[e, ROW]])
    for e in range(first, last):
        c = G.events[e, OF]
        if G.events[e, WHAT] == LAW and not act(I, W, T, c, G.events[e, SLOT]):
            reached[0], reached[1], reached[2] = G.time[i], c, T.rows[c, OUT]
            return ODD_FORCE
    for e in range(first, last):
        c = G.events[e, OF]
        if G.events[e, WHAT] != READ and T.places[c, VOLTAGE_PLACE] >= 0 and not act_on_current(I, W, T, c):
            reached[0], reached[1], reached[2] = G.time[i], c, T.rows[c, VOLTS]
            return ODD_VOLTAGE
    return DONE


@core
def record(I: Numbers, W: Array, out: ControlSamples, sample: int) -> int:
    """What is kept of the state Y at an instant that is a sample."""
    n = I[COUNT]
    status = call_part(I, FRICTION_CODE, W, SETTLE, 0.0, 0.0, 0) if I[COMBINATIONS] else DONE
    if status == DONE:
        status = rate(I, W, I[Y], I[SLOPES])
    if status != DONE:
        return int(status)
    for j in range(I[SIZE]):
        out.y[sample, j] = W[I[Y] + j]
    for j in range(n):
        out.qdd[sample, j] = W[I[SLOPES] + n + j]
        out.acting[sample, j] = W[I[FORCE] + j]
    for j in range(I[SIGNALS] - I[STATES]):
        out.heard[sample, j] = W[I[GIVEN] + 4 * n + j]
    return DONE


@core
def begin(I: Numbers, W: Array, T: ControlTables, initial: Array) -> bool:
    """The start of a run: nothing is held, nothing has moved; False where the mass matrix is not positive."""
    n = I[COUNT]
    I[FRESH] = 0
    for i in range(I[COMBINATIONS]):
        W[I[SHARE] + i] = 0.0
        I[I[PENDING] + i] = 0
    for j in range(n):
        W[I[PUSH] + j] = 0.0
        W[I[BEFORE] + j] = T.others[j]
        T.accelerations[j] = 0.0
    for j in range(I[SIGNALS] - I[STATES]):
        W[I[BEFORE] + n + j] = 0.0
    for j in range(I[SIZE]):
        W[I[Y] + j] = initial[j]
    for j in range(2 * n):
        T.past[START_SLOT, j] = initial[j]
    for c in range(len(T.rows)):
        for j in range(T.rows.shape[1]):
            T.rows[c, j] = 0.0
    return is_positive(I, W)


@kept
def control_run(
    I: Numbers,
    W: Array,
    T: ControlTables,
    G: ControlGrid,
    initial: Array,
    out: ControlSamples,
    first: int,
    last: int,
    reached: Array,
) -> int:
    """Go on from node `first` to node `last`, from `initial` where that is the start. How it ended; `reached`: when, controller, value."""
    clock, status = I[CLOCK], DONE
    if first == 0 and not begin(I, W, T, initial):
        reached[0] = 0.0
        return ESCAPED
    for i in range(first, last):
        W[clock + INTERVAL_TIME] = G.time[i]
        set_instant(I, W, 0.0)
        status = reach(I, W, T, G, i, reached)
        if status != DONE:
            return int(status)
        set_instant(I, W, 0.0)
        if G.sample[i] >= 0:
            status = record(I, W, out, G.sample[i])
        for s in range(G.steps[i]):
            if status == DONE:
                if I[COMBINATIONS]:
                    status = call_part(I, FRICTION_CODE, W, STEP, s * G.step[i], G.step[i], 0)
                else:
                    known = 1 if s == 0 and G.sample[i] >= 0 else 0
                    status = smooth_step(I, W, s * G.step[i], G.step[i], 0, known)
        if status != DONE:
            reached[0] = G.time[i] + W[clock + INSTANT]
            return int(status)
    return DONE


@cache
def compiled_control_run() -> Any:
    """:func:`control_run` for arrays in one piece, compiled or loaded now."""
    d1, d2 = (types.Array(types.float64, m, "C") for m in (1, 2))
    i1, i2 = (types.Array(types.int64, m, "C") for m in (1, 2))
    tables = types.NamedTuple((i1, d2, i2, d1, d1, d2, d1, i1, d1, d1), ControlTables)
    grid = types.NamedTuple((d1, d1, i1, i1, i1, i2, d2), ControlGrid)
    return only_for(
        control_run,
        (i1, d1, tables, grid, d1, types.NamedUniTuple(d2, 4, ControlSamples), types.int64, types.int64, d1),
    )
