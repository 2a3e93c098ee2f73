"""A machine that follows commands by its own controllers, as machine code: all instants of a run without returning to Python.

For open machines on a fixed base and fixed steps of Kutta's rule. Commands, and what a model adds along them, are known before the run;
laws and machine are :mod:`veridyn.mechanics.control.control_kernel`. Only forces, signals and loads that are functions of Python are asked
for at each stage. :class:`~veridyn.mechanics.control.sampled.SampledControl` states the same for all other machines and integrators.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.arrays import Array
from veridyn.mechanics.control.control_kernel import (
    ODD_FORCE,
    ODD_VOLTAGE,
    PLACES,
    ControlGrid,
    ControlSamples,
    ControlTables,
    compiled_control_run,
)
from veridyn.mechanics.control.law import LAW, READ, WIDTH, Schedule, connect_law, schedule
from veridyn.mechanics.control.sampled import SampledControl, driven, other_drives, refuse_odd, with_law
from veridyn.mechanics.system.compiled_run import CompiledRun
from veridyn.mechanics.system.fixed_steps import is_plain, python_inputs, signals_at_samples
from veridyn.mechanics.system.integrate import (
    check_given_loads,
    check_given_signals,
    initial_state,
    inner_start,
    on_samples,
)
from veridyn.mechanics.system.run_record import CLOCK, DONE, ESCAPED, HOLDS, NEAREST, START_TIME
from veridyn.mechanics.system.run_record import LAW as PYTHON_LAW
from veridyn.mechanics.system.simulation import Inputs, Method, Trajectory
from veridyn.mechanics.tree.dynamics.forward import NEAR_SINGULAR
from veridyn.mechanics.tree.dynamics.instant import ActingInputs
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.inputs import complete_values
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.progress import Progress, silent

Numbers = NDArray[np.int64]
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
    called = python_inputs(run, given, _driving(law, given), voltages)
    I, W = run.record.I, run.record.W
    I[HOLDS], I[PYTHON_LAW] = 1, 0 if called is None else called.address
    W[I[CLOCK] + START_TIME], W[I[CLOCK] + NEAREST] = float(t[0]), NEAR_SINGULAR
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
        if status == ESCAPED and W[I[CLOCK] + NEAREST] < math.inf and run.is_near_singular(tree, complete_values(tree)):
            W[I[CLOCK] + NEAREST], first = math.inf, 0
            continue
        if status != DONE:
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
    slot, slots = _slots(found, len(laws))
    row = np.zeros(len(found.what), dtype=np.int64)
    ticks = found.what == LAW
    row[ticks] = np.arange(int(ticks.sum()))
    events = np.column_stack([found.what, found.controller, slot, row]).astype(np.int64)
    when = np.repeat(found.time, np.diff(found.first))[ticks]
    commands = _commands(law, when, found.controller[ticks], start)
    steps = length / np.maximum(count, 1)
    return ControlGrid(time - start, steps, count, sample, first.astype(np.int64), events, commands), slots


def _slots(found: Schedule, controllers: int) -> tuple[Numbers, int]:
    """Of every event the place of its measurement among past states, the first of which is the start; and their number."""
    slot, base = np.zeros(len(found.what), dtype=np.int64), 1
    for j in range(controllers):
        own = found.controller == j
        reads = np.flatnonzero(own & (found.what == READ))
        ticks = np.flatnonzero(own & (found.what == LAW))
        if len(reads) == 0:
            continue
        # A measurement is on its way from its event to that of its tick.
        first = int(found.number[reads[0]])
        waiting = np.searchsorted(reads, ticks[-len(reads) :]) - np.arange(len(reads))
        deep = int(waiting.max()) + 1
        slot[reads] = base + found.number[reads] % deep
        later = ticks[found.number[ticks] >= first]
        slot[later] = base + found.number[later] % deep
        base += deep
    return slot, base


def _commands(law: SampledControl, time: Array, controller: Numbers, start: float) -> Array:
    """(ticks, 4): r, ṙ and r̈ of every tick of a law, and what the model adds along the command."""
    out = np.zeros((len(time), 4))
    places = [r.joint for r in sorted(law.running, key=lambda r: r.column)]
    for j, r in enumerate(law.running):
        own = np.flatnonzero(controller == j)
        asked = law.command.at(np.maximum(time[own] - r.law.constant("command_delay"), start))
        out[own, :3] = np.column_stack([x[:, r.column] for x in asked])
        odd = np.flatnonzero(~np.isfinite(out[own, :3]).all(axis=1))
        if len(odd):
            law.refuse_command(r, out[own[odd[0]], :3].tolist(), float(time[own[odd[0]]]))
        if r.law.feedforward == "model":
            assert law.model is not None  # feed-forward uses a model
            motion = np.zeros((3, len(own), law.machine.n))
            motion[:, :, places] = asked
            idle = {name: np.zeros(len(own)) for name in law.model.tree.signals}
            model = Motion(time[own], motion[0], motion[1], motion[2], signals=idle)
            out[own, 3] = inverse_dynamics(law.model.tree, model, parameters=law.model.values)[:, r.joint]
    return out


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


def _driving(law: SampledControl, given: Inputs) -> Callable[[float], Array] | None:
    """What drives of other coordinates do at a time, where that is a function of Python."""
    drives, loads = other_drives(law.machine), given.loads
    if loads is None or given.forces is not None:
        return None
    return lambda time: driven(law.machine, drives, loads(time))
