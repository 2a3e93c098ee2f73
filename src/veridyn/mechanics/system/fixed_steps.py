"""Integration in fixed steps as machine code: the runs of ``integrate`` that need no Python between two steps.

Open machines on a fixed base under forces, drives and signals; those that are functions of Python are called at each stage of a step.
What is not compiled is stepped in Python by :func:`~veridyn.mechanics.system.integrate.integrate`, with the same rule: loops, free bases,
prescribed coordinates, tyres, wrenches, contacts, loads at places, and samples at unequal times.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection

import numpy as np

from veridyn.arrays import Array
from veridyn.mechanics.system.compiled_run import CalledLaw, CompiledRun
from veridyn.mechanics.system.simulation import Inputs, Method, Trajectory, odd_signal
from veridyn.mechanics.tree.dynamics.state_rates import ActingInputs
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.load import Drive
from veridyn.model.motion import Motion
from veridyn.progress import Progress

EQUAL_INTERVALS = 1e-9  # relative: by how much intervals between samples may differ and count as equal


def is_plain(tree: Tree, given: Inputs, method: Method) -> bool:
    """Whether steps of this machine under these inputs can be compiled."""
    acts = (given.wrenches, given.contacts, given.prescribed, given.road)
    bound = tree.loops or tree.base == "free" or tree.held or tree.wheels
    placed = any(not isinstance(load, Drive) for load in tree.loads)
    return method.name == "RK4" and not bound and not placed and all(x is None for x in acts)


def has_equal_intervals(clock: Array) -> bool:
    """Whether samples are equally far apart, to rounding."""
    intervals = np.diff(clock)
    return bool(np.ptp(intervals) <= EQUAL_INTERVALS * intervals.mean())


def python_inputs(
    run: CompiledRun,
    given: Inputs,
    driving: Callable[[float], Array] | None,
    held_signals: Collection[str] = (),
    progress: Callable[[float], None] | None = None,
) -> CalledLaw | None:
    """What functions of Python do, besides what compiled code holds itself; for it to call at each stage. None where there are none.

    `driving`: what drives do at a time (n,), where no forces are given; `held_signals` are not asked for.
    """
    if given.forces is None and given.signals is None and driving is None:
        return None
    tree, W, at = run.tree, run.record.W, run.at
    n, own = tree.n, {s.name for s in tree.states}
    held, first = W[at["BEFORE"] : at["BEFORE"] + n], at["GIVEN"] + 4 * n
    asked = [(first + j, name) for j, name in enumerate(tree.signals) if name not in own and name not in held_signals]

    def acting(time: float, q: Array, qd: Array) -> Array:
        if progress is not None:
            progress(time)
        if given.signals is not None and asked:
            values = given.signals(time, q, qd)
            for place, name in asked:
                W[place] = values[name]
                if not math.isfinite(W[place]):
                    raise odd_signal(name, W[place], time)
        if given.forces is not None:
            found = np.asarray(given.forces(time, q, qd), dtype=np.float64)
            return held + found if found.shape == held.shape else found  # what called it names another shape
        return held if driving is None else held + driving(time)

    return CalledLaw(acting, W, at, tree.coordinates)


def signals_at_samples(given: Inputs, t: Array, q: Array, qd: Array) -> dict[str, Array]:
    """What the given function of signals says at samples, (N,) by name."""
    if given.signals is None:
        return {}
    found = [given.signals(*x) for x in zip(t.tolist(), q, qd, strict=True)]
    return {name: np.array([x[name] for x in found], dtype=np.float64) for name in found[0]}


def compiled_steps(
    acting: ActingInputs, clock: Array, y0: Array, method: Method, values: Array, progress: Progress
) -> Trajectory:
    """The motion from y0 = (q, q̇, z) at clock[0], for a machine and inputs that are plain, at samples with equal intervals."""
    tree, given = acting.tree, acting.inputs
    n, K, step = tree.n, len(clock), float((clock[-1] - clock[0]) / (len(clock) - 1))
    run = CompiledRun(tree, friction_speed=method.friction_speed)
    varying = given.forces is None and given.loads is not None
    forces = np.zeros((1, K, n))
    if given.forces is None and not varying:
        forces += acting.driving(float(clock[0]))

    def report(time: float) -> None:
        progress("simulating", time - float(clock[0]), float(clock[-1] - clock[0]))

    called = python_inputs(run, given, acting.driving if varying else None, progress=report)
    own = {s.name for s in tree.states}
    idle = {name: np.zeros((1, K)) for name in tree.signals if name not in own}
    found, _ = run.run(
        step,
        y0[None],
        forces,
        idle,
        parameters=values,
        start=clock[:1],
        hold="zero",
        substeps=max(1, math.ceil(step / method.step - 1e-9)),
        called=called,
    )
    report(float(clock[-1]))
    q, qd = found.q[0], found.qd[0]
    states = {s.name: found.signals[s.name][0] for s in tree.states}
    signals = {**signals_at_samples(given, clock, q, qd), **states}
    motion = Motion(clock, q, qd, found.qdd[0], None, found.forces[0], signals=signals)
    return Trajectory(motion, states=states)
