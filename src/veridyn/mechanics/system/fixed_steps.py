"""Integration in fixed steps as machine code: the runs of ``integrate`` that need no Python between two steps.

Machines under forces, drives, signals, wrenches, contacts, loads at places and prescribed motions, on tyres, open or with loops, on a fixed
base or a free one; what is a function of Python is called at each stage of a step. A motion begins again where bodies are pushed that
nothing pushed before. What is not compiled is stepped in Python by :func:`~veridyn.mechanics.system.integrate.integrate`, with the same
rule: samples at unequal times, laws that act at instants of their own, bristles but on open machines under forces and signals alone,
friction that holds on a free base, and runs that come near a singular position, where singular values decide.

Integrators that choose their steps are SciPy's, in Python; the rates that they ask for are one call of machine code each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import SimulationError
from veridyn.mechanics.system.compiled_run import CalledLaw, CompiledRun
from veridyn.mechanics.system.dry_friction import KINDS
from veridyn.mechanics.system.run_bound import Acting, OtherBodies, Outside, called_outside, wrenches_of
from veridyn.mechanics.system.run_record import DONE, FROM_STATE
from veridyn.mechanics.system.simulation import Inputs, Method, Trajectory, odd_signal
from veridyn.mechanics.tree.dynamics.instant import ORIGIN, ActingInputs, StateRates
from veridyn.mechanics.tree.loops.dynamics import first_crossing
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.load import Drive
from veridyn.model.motion import BaseMotion, Motion
from veridyn.progress import Progress
from veridyn.spatial.rotations import matrix_of

CLOSING_RATE = 10.0  # rad/s, with which openings of loops die out like a damped spring
Rate = Callable[[float, Array], Array]
EQUAL_INTERVALS = 1e-9  # relative: by how much intervals between samples may differ and count as equal


def is_plain(tree: Tree, given: Inputs, method: Method) -> bool:
    """Whether steps of this machine, which is open and on a fixed base, can be compiled under these inputs."""
    return method.name == "RK4" and not is_bound(tree) and acts_plainly(tree, given)


def stepped_by_python(tree: Tree, given: Inputs, method: Method, clock: Array) -> str:
    """Why steps of a fixed length of this machine are made in Python; nothing where they are machine code."""
    if given.sampled is not None:
        return "a law that acts at instants of its own"
    if not has_equal_intervals(clock):
        return "samples at unequal intervals"
    if acts_plainly(tree, given) and not is_bound(tree):
        return ""
    if tree.base == "free" and has_jumps(tree, method):
        return "dry friction that holds on a free base"
    if any(e.kind == "lugre" and e.on for e in tree.elements):
        return "bristles of a machine that is not open, on a fixed base and under forces and signals alone"
    return ""


def has_jumps(tree: Tree, method: Method) -> bool:
    """Whether dry friction is not rounded off."""
    return method.friction_speed == 0.0 and any(e.kind in KINDS and e.on for e in tree.elements)


def is_bound(tree: Tree) -> bool:
    """Whether it has loops or a free base."""
    return bool(tree.loops) or tree.base == "free"


def acts_plainly(tree: Tree, given: Inputs) -> bool:
    """Whether forces, drives and signals are all that acts, on a machine without tyres and prescribed coordinates."""
    acts = (given.wrenches, given.contacts, given.prescribed, given.road)
    placed = any(not isinstance(load, Drive) for load in tree.loads)
    return not tree.held and not tree.wheels and not placed and all(x is None for x in acts)


def has_equal_intervals(clock: Array) -> bool:
    """Whether samples are equally far apart, to rounding."""
    intervals = np.diff(clock)
    return bool(np.ptp(intervals) <= EQUAL_INTERVALS * intervals.mean())


def refuse_crossing(tree: Tree, clock: Array, q: Array, run: str = "") -> None:
    """A fixed step may leap over a singular position; what comes behind it is one of several motions, and nobody knows which."""
    k = first_crossing(tree, q)
    if k is not None:
        raise SimulationError(
            f"the motion goes through a singular position between {clock[k]:.6g} s and {clock[k + 1]:.6g} s.",
            where=tree.name + run,
            hint="Behind it the machine may go on in more than one way. End before it, or lead the motion around it.",
        )


def python_inputs(
    run: CompiledRun,
    given: Inputs,
    driving: Callable[[float], Array] | None,
    held_signals: Collection[str] = (),
    progress: Callable[[float], None] | None = None,
    outside: Acting | None = None,
) -> CalledLaw | None:
    """What functions of Python do, besides what compiled code holds itself; for it to call at each stage. None where there are none.

    `driving`: what drives do at a time (n,), where no forces are given; `held_signals` are not asked for; `outside` comes first.
    """
    if given.forces is None and given.signals is None and driving is None and outside is None:
        return None
    tree, W, at = run.tree, run.record.W, run.at
    road = set(tree.road_signals)
    n, own = tree.n, {s.name for s in tree.states}
    held, first = W[at["BEFORE"] : at["BEFORE"] + n], at["GIVEN"] + 4 * n
    asked = [(first + j, name) for j, name in enumerate(tree.signals) if name not in own and name not in held_signals]

    def acting(time: float, q: Array, qd: Array) -> Array:
        if progress is not None:
            progress(time)
        if outside is not None:
            outside(time, q, qd)
        if given.signals is not None and asked:
            values = given.signals(time, q, qd)
            for place, name in asked:
                W[place] = values.get(name, 0.0) if name in road else values[name]
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
    """The motion from the state y0 at clock[0], for a machine and inputs that are plain, at samples with equal intervals."""
    tree, given = acting.tree, acting.inputs
    n, K, step = tree.n, len(clock), float((clock[-1] - clock[0]) / (len(clock) - 1))
    forces = np.zeros((1, K, n))
    if given.forces is None and given.loads is None:
        forces += acting.driving(float(clock[0]))
        forces[:, :, list(tree.held)] = 0.0

    def report(time: float) -> None:
        progress("simulating", time - float(clock[0]), float(clock[-1] - clock[0]))

    run, called = _prepared(acting, float(clock[0]), y0, method, progress=report)
    own = {s.name for s in tree.states}
    idle = {name: np.zeros((1, K)) for name in tree.signals if name not in own}
    made = run.room(1, K)
    bodies: tuple[str, ...] = ()
    while True:
        try:
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
                into=made,
            )
            break
        except OtherBodies as other:
            bodies += other.names
            run, called = _prepared(acting, float(clock[0]), y0, method, bodies, progress=report)
    report(float(clock[-1]))
    states = {s.name: found.signals[s.name][0] for s in tree.states}
    signals = signals_at_samples(given, clock, found.q[0], found.qd[0])
    signals |= {**_road_at_samples(acting, made[0][0], found.q[0]), **states}
    pushed, placed = _pushing_at_samples(acting, clock, made[0][0], found.q[0], found.qd[0])
    return trajectory_of(
        acting, clock, made[0][0], made[1][0], made[2][0], signals=signals, wrenches=pushed, loads=placed
    )


def _prepared(
    acting: ActingInputs,
    start: float,
    y: Array,
    method: Method,
    bodies: Sequence[str] = (),
    *,
    rates_alone: bool = False,
    progress: Callable[[float], None] | None = None,
) -> tuple[CompiledRun, CalledLaw | None]:
    """A run for these inputs, and what it calls of Python. `bodies` have wrenches besides those that have some at the start."""
    tree, given, at = acting.tree, acting.inputs, 7 if acting.free else 0
    q, qd = y[at : at + tree.n], y[len(y) - acting.own - tree.n : len(y) - acting.own]
    outside = None
    if not acts_plainly(tree, given):
        pushed = wrenches_of(acting, start, y[: len(y) - acting.own], q, qd)
        outside = Outside.of(acting, {*bodies, *pushed})
    closing = CLOSING_RATE if is_bound(tree) or outside is not None else None
    run = CompiledRun(
        tree, friction_speed=method.friction_speed, closing_rate=closing, rates_alone=rates_alone, outside=outside
    )
    said = None if outside is None else called_outside(outside, acting, run.record, run.at)
    if said is not None:
        run.record.I[FROM_STATE] = run.at["Y"]
        run.record.W[run.at["Y"] : run.at["Y"] + len(y)] = y
        said(start, q.copy(), qd.copy())  # prescribed coordinates are led before the first call
    driving = remembered(acting.driving) if given.forces is None and given.loads is not None else None
    return run, python_inputs(run, given, driving, progress=progress, outside=said)


def remembered(function: Callable[[float], Array]) -> Callable[[float], Array]:
    """The same function of time, which is asked once for each time: stages of a step share theirs."""
    last: tuple[float, Array] = (math.nan, np.empty(0))

    def found(time: float) -> Array:
        nonlocal last
        if time != last[0]:
            last = (time, function(time))
        return last[1]

    return found


def _road_at_samples(acting: ActingInputs, y: Array, q: Array) -> dict[str, Array]:
    """What tyres read of the road at states (N, size)."""
    if not isinstance(acting, StateRates) or acting.packed_road is None:
        return {}
    poses = y[:, :7] if acting.free else np.tile(ORIGIN, (len(y), 1))
    found = [acting.under_wheels(*at) for at in zip(q, poses, strict=True)]
    return {name: np.array([one[name] for one in found]) for name in found[0]}


def _pushing_at_samples(
    acting: ActingInputs, t: Array, y: Array, q: Array, qd: Array
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Wrenches on bodies and values of loads at places, at samples, by name."""
    y, times = y[:, : y.shape[1] - acting.own], t.tolist()
    found = [wrenches_of(acting, *at) for at in zip(times, y, q, qd, strict=True)]
    placed = [acting.values_of_loads(time) for time in times] if acting.placed else []
    return (
        {body: np.array([one[body] for one in found]) for body in found[0]},
        {load.name: np.array([one[load.name] for one in placed]) for load in acting.placed},
    )


def compiled_rates(
    acting: ActingInputs,
    start: float,
    y0: Array,
    values: Array,
    method: Method,
    otherwise: Rate,
    progress: Callable[[float], None],
) -> Rate:
    """Rates of a state in machine code, for dry friction that is rounded off; the motion starts at `start` from y0.

    Where a state needs a closer look, or a name for what is wrong with it, they are those of `otherwise`.
    """
    given, tree = acting.inputs, acting.tree
    still = given.forces is None and given.loads is None
    forces = acting.driving(start) if still else np.zeros(tree.n)
    bodies: tuple[str, ...] = ()

    def prepared() -> tuple[CompiledRun, CalledLaw | None]:
        run, called = _prepared(acting, start, y0, method, bodies, rates_alone=True)
        run.hold_inputs(values, forces, called)
        return run, called

    run, called = prepared()

    def rate(time: float, y: Array) -> Array:
        nonlocal run, called, bodies
        status, found = run.rate_at(time, y)
        if called is not None and called.error is not None:
            if not isinstance(called.error, OtherBodies):
                raise called.error
            bodies += called.error.names
            run, called = prepared()
            return rate(time, y)
        progress(time)
        return found if status == DONE else otherwise(time, y)

    return rate


def trajectory_of(
    acting: ActingInputs,
    clock: Array,
    y: Array,
    a: Array,
    forces: Array,
    *,
    signals: Mapping[str, Array],
    wrenches: Mapping[str, Array] | None = None,
    loads: Mapping[str, Array] | None = None,
) -> Trajectory:
    """A motion from its states y (N, size), accelerations a (N, rows) and what acted."""
    n, pushed, placed = acting.tree.n, dict(wrenches or {}), dict(loads or {})
    states = {s.name: signals[s.name] for s in acting.tree.states}
    y = y[:, : y.shape[1] - acting.own]
    if not acting.free:
        motion = Motion(clock, y[:, :n], y[:, n:], a, None, forces, wrenches=pushed, signals=dict(signals))
        return Trajectory(motion, states=states, loads=placed)
    quaternion = y[:, 3:7] / np.linalg.norm(y[:, 3:7], axis=1, keepdims=True)
    R = matrix_of(quaternion)
    velocity = np.einsum("nji,nj->ni", R, y[:, 7 + n : 10 + n])
    base = BaseMotion(y[:, 10 + n : 13 + n], a[:, 3:6], a[:, :3], velocity, position=y[:, :3], quaternion=quaternion)
    motion = Motion(
        clock, y[:, 7 : 7 + n], y[:, 13 + n :], a[:, 6:], base, forces, wrenches=pushed, signals=dict(signals)
    )
    return Trajectory(motion, y[:, :3], R, states, placed)
