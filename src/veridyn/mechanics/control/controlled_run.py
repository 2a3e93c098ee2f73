"""A machine that follows commands by its own controllers, as machine code: all instants of a run without returning to Python.

For open machines on a fixed base and fixed steps of Kutta's rule. Commands, and what a model adds along them, are known before the run.
Only forces, signals and loads that are functions of Python are asked for at each stage.
:class:`~veridyn.mechanics.control.sampled.SampledControl` states the same for all other machines and integrators.

The machine is that of :mod:`veridyn.mechanics.system.run_kernel`, whose record (I, W) holds its state. Between two nodes of a grid, which
are instants of controllers and samples, it makes equal steps. At a node measurements are read, laws tick by their kernels
(:mod:`veridyn.mechanics.control.law`), and what they hold stands in BEFORE, which acts until it changes.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.mechanics.compiled import core, kept, only_for
from veridyn.mechanics.control.law import (
    CURRENT,
    CURRENT_INTEGRAL,
    CURRENT_INTEGRAL_AFTER,
    FORCE,
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
    WIDTH,
    Numbers,
    Q,
    R,
    connect_law,
    measurement_slots,
    schedule,
)
from veridyn.mechanics.control.sampled import (
    SampledControl,
    commands_at,
    driven,
    driving,
    other_drives,
    refuse_odd,
    with_law,
)
from veridyn.mechanics.system import run_record as record
from veridyn.mechanics.system.compiled_run import CompiledRun
from veridyn.mechanics.system.fixed_steps import is_plain, python_inputs, signals_at_samples
from veridyn.mechanics.system.integrate import (
    check_given_loads,
    check_given_signals,
    initial_state,
    inner_start,
    on_samples,
)
from veridyn.mechanics.system.run_kernel import is_positive, smooth_step
from veridyn.mechanics.system.run_record import call_part
from veridyn.mechanics.system.run_stages import rate, set_instant
from veridyn.mechanics.system.simulation import Inputs, Method, Trajectory
from veridyn.mechanics.tree.dynamics.forward import NEAR_SINGULAR
from veridyn.mechanics.tree.dynamics.instant import ActingInputs
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.inputs import complete_values
from veridyn.mechanics.tree.steps.record import call_kernel
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.progress import Progress, silent

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
    T.rows[c, FORCE] = T.rows[c, FORCE_AFTER]
    force = T.rows[c, OUT]
    if T.places[c, VOLTAGE_PLACE] >= 0:
        T.rows[c, WANTED] = force / T.gears[c]
    else:
        W[I[record.BEFORE] + joint] = T.others[joint] + force
    return bool(np.isfinite(force))


@core
def act_on_current(I: Numbers, W: Array, T: ControlTables, c: int) -> bool:
    """Let the current loop of controller c hold its voltage; False where that is no finite number."""
    n = I[record.COUNT]
    T.rows[c, CURRENT] = W[I[record.Y] + 2 * n + T.places[c, CURRENT_PLACE]]
    call_kernel(T.codes, c * CODES + VOLTAGE_CODE)
    T.rows[c, CURRENT_INTEGRAL] = T.rows[c, CURRENT_INTEGRAL_AFTER]
    W[I[record.BEFORE] + n + T.places[c, VOLTAGE_PLACE]] = T.rows[c, VOLTS]
    return bool(np.isfinite(T.rows[c, VOLTS]))


@core
def reach(I: Numbers, W: Array, T: ControlTables, G: ControlGrid, i: int, reached: Array) -> int:
    """All that happens at node i, in the state Y."""
    n, first, last = I[record.COUNT], G.first[i], G.first[i + 1]
    for e in range(first, last):
        if G.events[e, WHAT] == READ:
            for j in range(2 * n):
                T.past[G.events[e, SLOT], j] = W[I[record.Y] + j]
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
    return record.DONE


@core
def keep_sample(I: Numbers, W: Array, out: ControlSamples, sample: int) -> int:
    """What is kept of the state Y at an instant that is a sample."""
    n = I[record.COUNT]
    status = (
        call_part(I, record.FRICTION_CODE, W, record.SETTLE, 0.0, 0.0, 0) if I[record.COMBINATIONS] else record.DONE
    )
    if status == record.DONE:
        status = rate(I, W, I[record.Y], I[record.SLOPES])
    if status != record.DONE:
        return int(status)
    for j in range(I[record.SIZE]):
        out.y[sample, j] = W[I[record.Y] + j]
    for j in range(n):
        out.qdd[sample, j] = W[I[record.SLOPES] + n + j]
        out.acting[sample, j] = W[I[record.FORCE] + j]
    for j in range(I[record.SIGNALS] - I[record.STATES]):
        out.heard[sample, j] = W[I[record.GIVEN] + 4 * n + j]
    return record.DONE


@core
def begin(I: Numbers, W: Array, T: ControlTables, initial: Array) -> bool:
    """The start of a run: nothing is held, nothing has moved; False where the mass matrix is not positive."""
    n = I[record.COUNT]
    I[record.FRESH] = 0
    for i in range(I[record.COMBINATIONS]):
        W[I[record.SHARE] + i] = 0.0
        I[I[record.PENDING] + i] = 0
    for j in range(n):
        W[I[record.PUSH] + j] = 0.0
        W[I[record.BEFORE] + j] = T.others[j]
        T.accelerations[j] = 0.0
    for j in range(I[record.SIGNALS] - I[record.STATES]):
        W[I[record.BEFORE] + n + j] = 0.0
    for j in range(I[record.SIZE]):
        W[I[record.Y] + j] = initial[j]
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
    clock, status = I[record.CLOCK], record.DONE
    if first == 0 and not begin(I, W, T, initial):
        reached[0] = 0.0
        return record.ESCAPED
    for i in range(first, last):
        W[clock + record.INTERVAL_TIME] = G.time[i]
        set_instant(I, W, 0.0)
        status = reach(I, W, T, G, i, reached)
        if status != record.DONE:
            return int(status)
        set_instant(I, W, 0.0)
        if G.sample[i] >= 0:
            status = keep_sample(I, W, out, G.sample[i])
        for s in range(G.steps[i]):
            if status == record.DONE:
                if I[record.COMBINATIONS]:
                    status = call_part(I, record.FRICTION_CODE, W, record.STEP, s * G.step[i], G.step[i], 0)
                else:
                    known = 1 if s == 0 and G.sample[i] >= 0 else 0
                    status = smooth_step(I, W, s * G.step[i], G.step[i], 0, known)
        if status != record.DONE:
            reached[0] = G.time[i] + W[clock + record.INSTANT]
            return int(status)
    return record.DONE


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


NODES_A_CALL = 20_000  # of the grid, between two reports of progress


def can_be_compiled(machine: Machine, given: Inputs, method: Method) -> bool:
    """Whether :func:`controlled_run` runs this machine under these inputs besides its controllers."""
    return machine.formulation == "tree" and is_plain(tree_of(machine), given, method)


def controlled_run(
    law: SampledControl,
    t: Array,
    q: ArrayLike,
    qd: ArrayLike,
    given: Inputs,
    method: Method,
    progress: Progress = silent,
) -> Trajectory:
    """The motion from (q, q̇) at t[0] under the controllers of `law`, sampled at the times t, as ``integrate`` gives it.

    Its steps are those of ``integrate`` with ``Inputs.sampled``: equal ones from node to node, none longer than method.step.
    """
    machine = law.machine
    tree, n = tree_of(machine), machine.n
    y0 = np.concatenate([initial_state(tree, t, q, qd, None, method), inner_start(tree, {})])
    acting = ActingInputs(tree, with_law(machine, law, given))
    law.instants(float(t[0]), float(t[-1]))  # nothing is held yet
    check_given_loads(acting, float(t[0]))
    check_given_signals(acting, float(t[0]), y0[:n], y0[n : 2 * n])
    run = CompiledRun(machine, friction_speed=method.friction_speed)
    run.set_values(tree, complete_values(tree))
    laws = {r.joint: r.law for r in law.running}
    load, backdrive = (
        np.array([laws[j].constant(key) if j in laws else 0.0 for j in range(n)])
        for key in ("load_friction", "backdrive_friction")
    )
    run.set_load(load, backdrive)
    measured = [name for name in tree.signals if name not in {s.name for s in tree.states}]
    grid, slots = _grid(law, t, method.step)
    tables, held = _tables(law, measured, slots, given)
    voltages = {r.motor.signal for r in law.running if r.motor is not None}
    called = python_inputs(run, given, driving(law, given), voltages)
    I, W = run.record.I, run.record.W
    I[record.HOLDS], I[record.LAW] = 1, 0 if called is None else called.address
    nearest = I[record.CLOCK] + record.NEAREST
    W[I[record.CLOCK] + record.START_TIME], W[nearest] = float(t[0]), NEAR_SINGULAR
    out = ControlSamples(*(np.empty((len(t), k)) for k in (len(y0), n, n, len(measured))))
    reached, nodes, first = np.zeros(3), len(grid.time), 0
    code = compiled_control_run()
    while first < nodes:
        last = min(first + NODES_A_CALL, nodes)
        status = code(I, W, tables, grid, y0, out, first, last, reached)
        time = float(t[0] + reached[0])
        if status in (ODD_FORCE, ODD_VOLTAGE):
            what = "force" if status == ODD_FORCE else "voltage"
            refuse_odd(law.running[int(reached[1])].law, what, float(reached[2]), time)
        if (
            status == record.ESCAPED
            and W[I[record.CLOCK] + record.NEAREST] < math.inf
            and run.is_near_singular(tree, complete_values(tree))
        ):
            W[I[record.CLOCK] + record.NEAREST], first = math.inf, 0
            continue
        if status != record.DONE:
            run.refuse(status, time, called)
        progress("simulating", float(grid.time[last - 1]), float(t[-1] - t[0]))
        first = last
    del held
    return _trajectory(law, t, out, given, measured)


def _trajectory(law: SampledControl, t: Array, out: ControlSamples, given: Inputs, measured: list[str]) -> Trajectory:
    tree, n = tree_of(law.machine), law.machine.n
    q, qd = out.y[:, :n], out.y[:, n : 2 * n]
    signals = signals_at_samples(given, t, q, qd)
    signals |= {
        r.motor.signal: out.heard[:, measured.index(r.motor.signal)] for r in law.running if r.motor is not None
    }
    states = {state.name: out.y[:, 2 * n + j] for j, state in enumerate(tree.states)}
    motion = Motion(t, q, qd, out.qdd, None, out.acting, signals={**signals, **states})
    return Trajectory(motion, states=states)


def _grid(law: SampledControl, t: Array, step: float) -> tuple[ControlGrid, int]:
    """The nodes of a run with what happens at them, and how many measurements may be on their way at once."""
    start, end = float(t[0]), float(t[-1])
    laws = [r.law for r in law.running]
    found = schedule(laws, start, end)
    marks = np.array(on_samples(found.time, t))
    time = np.union1d(marks, t)
    length = np.diff(time, append=end)
    count = np.maximum(1, np.ceil(length / step - 1e-9)).astype(np.int64)
    count[-1] = 0
    sample = np.full(len(time), -1, dtype=np.int64)
    sample[np.searchsorted(time, t)] = np.arange(len(t))
    node = np.repeat(np.searchsorted(time, marks), np.diff(found.first))
    first = np.searchsorted(node, np.arange(len(time) + 1))
    slot, slots = measurement_slots(found, len(laws))
    row = np.zeros(len(found.what), dtype=np.int64)
    ticks = found.what == LAW
    row[ticks] = np.arange(int(ticks.sum()))
    events = np.column_stack([found.what, found.controller, slot, row]).astype(np.int64)
    when = np.repeat(found.time, np.diff(found.first))[ticks]
    commands = commands_at(law, when, found.controller[ticks], start)
    steps = length / np.maximum(count, 1)
    return ControlGrid(time - start, steps, count, sample, first.astype(np.int64), events, commands), slots


def _tables(law: SampledControl, measured: list[str], slots: int, given: Inputs) -> tuple[ControlTables, list[object]]:
    """The controllers' tables, and what must be kept alive while they are used."""
    machine, n, running = law.machine, law.machine.n, law.running
    states = [s.name for s in tree_of(machine).states]
    rows = np.zeros((len(running), WIDTH))
    places = np.full((len(running), len(PLACES)), -1, dtype=np.int64)
    gears, codes, held = np.ones(len(running)), [], []
    for j, r in enumerate(running):
        addresses, alive = connect_law(r.law, rows[j])
        codes += addresses
        held += alive
        places[j, :3] = r.joint, r.law.kind == "computed_torque", r.law.feedforward == "gravity"
        if r.motor is not None:
            places[j, 3:] = measured.index(r.motor.signal), states.index(f"{r.motor.parameter_name}.i")
            gears[j] = r.motor.value * r.motor.on[r.law.on]
    varying = given.forces is not None or given.loads is not None
    others = np.zeros(n) if varying else driven(machine, other_drives(machine), {})
    model = (np.zeros(7, dtype=np.int64), np.zeros(3 * n), np.zeros(n)) if law.model is None else law.model.inverse_call
    tables = ControlTables(
        np.array(codes, dtype=np.int64), rows, places, gears, others, np.zeros((slots, 2 * n)), np.zeros(n), *model
    )
    return tables, held
