"""Integration over time: the motion of a tree under forces, with a fixed step or with SciPy's integrators, from a start checked by name.

The state is (q, q̇), and for a free base also its position and attitude in the ground's frame, its velocity there and its ω in
its own frame. Attitude is a quaternion, so no orientation is singular.

States that elements have of their own can also be integrated along a measured motion (:func:`element_states`): their rates depend on
positions and rates of the machine and on measured signals, not on forces. Between samples positions and rates are cubic, signals linear.
Stiff laws are no obstacle; the start decays, or is given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.errors import DataError, Faults, SimulationError, did_you_mean
from veridyn.mechanics.system.compiled_run import NearSingular
from veridyn.mechanics.system.dry_friction import DryFriction, HoldingSteps, dry_friction
from veridyn.mechanics.system.fixed_steps import (
    CLOSING_RATE,
    compiled_rates,
    compiled_steps,
    has_equal_intervals,
    has_jumps,
    is_plain,
    refuse_crossing,
    stepped_by_python,
    trajectory_of,
)
from veridyn.mechanics.system.simulation import (
    SAME_INSTANT_S,
    BaseState,
    Forces,
    Inputs,
    Method,
    Trajectory,
    spline_at,
)
from veridyn.mechanics.system.stepper import adaptive_path, check_size, march, tableau
from veridyn.mechanics.tree.dynamics.engine import Engine
from veridyn.mechanics.tree.dynamics.forward import with_held_forces
from veridyn.mechanics.tree.dynamics.instant import ActingInputs, StateAccelerations, StateRates
from veridyn.mechanics.tree.loops.closing import loop_values
from veridyn.mechanics.tree.loops.dynamics import check_closed_state
from veridyn.mechanics.tree.of_machine import takes_machine, tree_of
from veridyn.mechanics.tree.recursion.inputs import complete_values
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.progress import Progress, silent

START_TOLERANCE = 1e-9  # relative: by how much the start of a prescribed coordinate may differ from what is prescribed
SCIPY = ("RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA")
__all__ = ["BaseState", "Inputs", "Method", "Trajectory", "integrate"]


def inner_start(tree: Tree, given: Mapping[str, float]) -> Array:
    """The start of the states that elements have of their own."""
    names, faults = [s.name for s in tree.states], Faults()
    for name, value in given.items():
        if name not in names:
            faults.add(f"there is no state '{name}'.", where="states", hint=did_you_mean(name, names))
        elif not math.isfinite(value):
            faults.add("it cannot start there.", where=f"states['{name}']", found=f"{value}")
    faults.raise_if_any(DataError, tree.name)
    return np.array([float(given.get(name, 0.0)) for name in names])


def check_prescribed(system: ActingInputs, start: float, y: Array) -> None:
    """Refuse prescribed coordinates without a motion, motions of others, and a start that is not as prescribed."""
    tree, given, faults = system.tree, system.inputs.prescribed, Faults()
    named = {} if given is None else dict(given(start))
    for name in tree.prescribed:
        if name not in named:
            faults.add(
                "it is prescribed, and its motion is not given.",
                where=f"coordinate '{name}'",
                expected="Inputs(prescribed=…): time → {name: (q, qd, qdd)}",
            )
    for name in named:
        if name not in tree.prescribed:
            faults.add(
                "its motion is given, and it is not prescribed.",
                where=f"coordinate '{name}'",
                hint="Add it with tree.with_prescribed, or leave it out.",
            )
    faults.raise_if_any(DataError, tree.name)
    off = np.abs(system.with_prescribed(start, y) - y)
    if off.max() > START_TOLERANCE * (1.0 + np.abs(y).max()):
        number, at = int(np.argmax(off)), 7 if system.free else 0
        k = number - at if number < at + tree.n else number - (len(y) - system.own - tree.n)
        raise DataError(
            f"the start of the prescribed coordinate '{tree.coordinates[k]}' is not what is prescribed.",
            where=tree.name,
            expected="q and qd as Inputs.prescribed gives them at the first time",
            found=f"a difference of {off.max():.3g}",
        )


def check_given_loads(system: ActingInputs, start: float) -> None:
    """Refuse values of loads that the machine does not have, or of another size."""
    if system.inputs.loads is None:
        return
    tree, faults = system.tree, Faults()
    sizes = {load.name: load.components for load in tree.loads}
    for name, value in system.inputs.loads(start).items():
        if name not in sizes:
            faults.add(f"there is no load '{name}'.", where="Inputs.loads", hint=did_you_mean(name, list(sizes)))
        elif np.size(value) != sizes[name]:
            faults.add(
                "its value has another size.",
                where=f"load '{name}'",
                expected=f"{sizes[name]} numbers",
                found=f"{np.size(value)}",
            )
    faults.raise_if_any(DataError, tree.name)


def check_given_signals(system: ActingInputs, start: float, q: Array, qd: Array) -> None:
    """Refuse a run of a machine whose elements need signals that nothing gives, by name."""
    tree, given = system.tree, system.inputs.signals
    known = {*tree.road_signals, *(s.name for s in tree.states), *(() if given is None else given(start, q, qd))}
    missing = [name for name in tree.signals if name not in known]
    if missing:
        raise DataError(
            "its elements need signals that are not given.",
            where=tree.name,
            expected="Inputs(signals=…): time, q, qd → {name: value}",
            found=f"nothing for {', '.join(missing)}",
        )


def initial_state(tree: Tree, t: ArrayLike, q: ArrayLike, qd: ArrayLike, base: BaseState | None, how: Method) -> Array:
    """The state vector at the start, without elements' own states; refused where it is none of this machine."""
    faults = Faults()
    clock = np.asarray(t, dtype=np.float64)
    if clock.ndim != 1 or len(clock) < 2 or not (np.diff(clock) > 0).all():
        faults.add("the times do not increase.", where="t", expected="at least two increasing times")
    start = [np.asarray(x, dtype=np.float64) for x in (q, qd)]
    for name, x in zip(("q", "qd"), start, strict=True):
        if x.shape != (tree.n,) or not np.isfinite(x).all():
            faults.add(
                "the start is not a state of this machine.", where=name, expected=f"({tree.n},) finite", found=f"{x}"
            )
    if how.name not in (*SCIPY, "RK4"):
        faults.add(f"there is no integrator '{how.name}'.", where="method", expected="RK4 or " + ", ".join(SCIPY))
    if how.name == "RK4" and not (0 < how.step < math.inf):
        faults.add(
            "a fixed step needs its length.", where="method.step", expected="a positive time", found=f"{how.step}"
        )
    if tree.base == "free" and base is None:
        base = BaseState()
    if tree.base == "fixed" and base is not None:
        faults.add("the base is fixed and has no state.", where="base")
    faults.raise_if_any(DataError, tree.name)
    if tree.loops:
        q0, qd0 = start[0][None], start[1][None]
        check_closed_state(tree, loop_values(tree, q0, qd0), qd0)
    if base is None:
        return np.concatenate(start)
    p, e, v, w = (np.asarray(x, dtype=np.float64) for x in (base.position, base.quaternion, base.velocity, base.omega))
    return np.concatenate([p, e / np.linalg.norm(e), start[0], v, w, start[1]])


@takes_machine
def integrate(
    machine: Machine | Tree,
    t: ArrayLike,
    q: ArrayLike,
    qd: ArrayLike,
    inputs: Inputs | Forces | None = None,
    *,
    base: BaseState | None = None,
    states: Mapping[str, float] | None = None,
    method: Method | None = None,
    parameters: Array | None = None,
    engine: Engine = "compiled",
    progress: Progress = silent,
) -> Trajectory:
    """The motion from (q, q̇) at t[0], sampled at the times t, with exact accelerations and the forces that acted.

    The equations are Γ = D φ of :func:`~veridyn.mechanics.tree.dynamics.inverse.inverse_dynamics` solved for the accelerations, elements
    included. An integration that does not reach its end raises :class:`~veridyn.errors.SimulationError` with the time it reached.

    States that elements have of their own start from `states`, by name ("fl_q1.z"), zero where not given, and are in the result.
    Prescribed coordinates move as ``inputs.prescribed`` says, and the forces they need are in ``motion.forces`` of the result.

    A machine with loops starts closed, in positions and rates, and forces on passive joints are zero. While it moves, openings die out with
    `CLOSING_RATE`, and the state goes back to closure after each step of RK4 and at every sample
    (:mod:`veridyn.mechanics.tree.loops.dynamics`).
    """
    tree = tree_of(machine)
    how = method or Method()
    clock, y0 = np.asarray(t, dtype=np.float64), initial_state(tree, t, q, qd, base, how)
    y0 = np.concatenate([y0, inner_start(tree, states or {})])
    values = complete_values(tree, parameters)
    acting = ActingInputs(tree, inputs if isinstance(inputs, Inputs) else Inputs(inputs))
    check_prescribed(acting, clock[0], y0)
    check_given_loads(acting, clock[0])
    check_given_signals(acting, clock[0], np.asarray(q, dtype=np.float64), np.asarray(qd, dtype=np.float64))
    plain = acting.inputs.sampled is None and is_plain(tree, acting.inputs, how)
    if engine == "compiled" and plain and has_equal_intervals(clock):
        return compiled_steps(acting, clock, y0, how, values, progress)
    dry = dry_friction(tree, values) if how.name == "RK4" and how.friction_speed == 0.0 else None
    instant = StateAccelerations(
        tree,
        values if dry is None else dry.smooth_values,
        how.friction_speed,
        engine,
        CLOSING_RATE if tree.loops else 0.0,
    )
    system = StateRates(tree, acting.inputs, instant)
    names, positions = system.names, slice(7, 7 + tree.n) if system.free else slice(0, tree.n)

    def report(time: float) -> None:
        progress("simulating", time - clock[0], clock[-1] - clock[0])

    def rate(time: float, y: Array, friction: Array | None = None) -> Array:
        check_size(time, y, positions, tree.name, names)
        report(time)
        try:
            return system.rate(time, y, friction)
        except DataError as error:
            raise ended(time, error) from error

    def mended(times: Array, y: Array) -> Array:
        try:
            return system.mended(times, y)
        except DataError as error:
            raise ended(float(times[0]), error) from error

    def ended(time: float, error: DataError) -> SimulationError:
        return SimulationError(
            f"the motion {'cannot go on' if tree.loops else 'has run away'} at {time:.6g} s: {error.faults[0].what}",
            where=tree.name,
            found=error.faults[0].found,
            hint=(error.faults[0].hint if tree.loops else "")
            or "Try a smaller step, or look for a force that feeds on itself.",
        )

    python = stepped_by_python(tree, acting.inputs, how, clock) if how.name == "RK4" else ""
    if how.name == "RK4" and engine == "compiled" and not python:
        rate(float(clock[0]), y0)  # a start without accelerations is named by its singular values
        try:
            found = compiled_steps(system, clock, y0, how, values, progress)
        except NearSingular:  # stepped below, each state by its singular values
            python = "a position that is nearly singular"
        else:
            if tree.loops:
                refuse_crossing(tree, clock, found.motion.q)
            return replace(found, motion=with_held_forces(tree, found.motion, values))
    holding = None
    rates: Callable[[float, Array], Array] = rate
    if engine == "compiled" and not has_jumps(tree, how):
        if acting.inputs.sampled is None:  # which holds nothing yet
            rate(float(clock[0]), y0)  # a start without accelerations is named
        rates = compiled_rates(acting, float(clock[0]), y0, values, how, rate, report)
    if how.name == "RK4":
        mend = mended if tree.loops or tree.held else None
        holding = None if dry is None else _holding(system, dry, rate)
        advance = None if holding is None else _alone(holding)

        def path_along(times: Array, y: Array) -> Array:
            return march(tableau("RK4"), rates, times, y, how.step, mend, advance)
    else:
        hint = "Look for a stiff spring, dry friction at standstill (friction_speed=), or a force that runs away."

        def path_along(times: Array, y: Array) -> Array:
            return adaptive_path(rates, times, y, how, tree.name, hint, names)

    path = path_along(clock, y0) if system.inputs.sampled is None else _sampled_path(path_along, system, clock, y0)
    if tree.loops or tree.held:
        path = system.mended(clock, path)
    if tree.loops:
        refuse_crossing(tree, clock, path[:, positions])
    found = _trajectory(system, clock, path, holding)
    return replace(found, motion=with_held_forces(tree, found.motion, values), stepped_by_python=python)


def _sampled_path(path_along: Callable[[Array, Array], Array], system: StateRates, clock: Array, y: Array) -> Array:
    """The states at the times `clock`, integrated from each instant of a sampled law to the next."""
    law, tree = system.inputs.sampled, system.tree
    assert law is not None  # the caller looked
    at, names = 7 if system.free else 0, [s.name for s in tree.states]

    def reach(time: float, y: Array) -> None:
        inner = y[len(y) - system.own :]
        q, qd = y[at : at + tree.n], y[len(y) - system.own - tree.n : len(y) - system.own]
        law.reach(time, q, qd, dict(zip(names, inner.tolist(), strict=True)))

    start, end = float(clock[0]), float(clock[-1])
    marks = on_samples(law.instants(start, end), clock)
    states, here, done = [y], start, 1
    reach(start, y)
    for there in marks[1:] if marks[-1] == end else [*marks[1:], end]:
        upto = int(np.searchsorted(clock, there, side="right"))
        inside = clock[done:upto]
        ended = len(inside) > 0 and inside[-1] == there
        found = path_along(np.concatenate([[here], inside, [] if ended else [there]]), y)
        states += list(found[1 : 1 + len(inside)])
        y, here, done = found[-1], there, upto
        if there <= marks[-1]:
            reach(there, y)
    return np.array(states)


def on_samples(instants: Sequence[float] | Array, clock: Array) -> list[float]:
    """The instants, those within rounding of a sample at its time, so that no step is as short as rounding."""
    found = np.array(instants)
    k = np.clip(np.searchsorted(clock, found), 1, len(clock) - 1)
    near = np.where(found - clock[k - 1] < clock[k] - found, clock[k - 1], clock[k])
    return np.where(np.abs(near - found) < SAME_INSTANT_S, near, found).tolist()


def _holding(system: StateRates, dry: DryFriction, rate: Callable[[float, Array, Array | None], Array]) -> HoldingSteps:
    """Steps of one state with friction that holds."""

    def rates(time: float, y: Array, friction: Array) -> Array:
        return rate(time, y[0], friction[0])[None]

    tree = system.tree
    speeds = slice(-system.own - tree.n, -system.own or None)
    first = -system.own - 2 * tree.n - 6 * (tree.base == "free")
    return HoldingSteps(dry, rates, slice(first, first + tree.n), speeds, 1, tree.name)


def _alone(holding: HoldingSteps) -> Callable[[float, Array, float], Array]:
    return lambda t, y, h: holding.step(t, y[None], h)[0]


def _trajectory(system: StateRates, clock: Array, y: Array, holding: HoldingSteps | None) -> Trajectory:
    def friction(t: float, state: Array) -> Array | None:
        if holding is None:
            return None
        return holding.friction.forces(
            state[None, holding.positions], state[None, holding.speeds], holding.at_instant(t, state[None])
        )[0]

    found = [system.accelerations(t, state, friction(t, state)) for t, state in zip(clock, y, strict=True)]
    a = np.array([f[0] for f in found])
    forces = np.array([f[1] for f in found])
    wrenches = {body: np.array([f[2][body] for f in found]) for body in found[0][2]}
    signals = {name: np.array([f[3][name] for f in found]) for name in found[0][3]}
    placed = [system.values_of_loads(t) for t in clock.tolist()] if system.placed else []
    loads = {load.name: np.array([values[load.name] for values in placed]) for load in system.placed}
    return trajectory_of(system, clock, y, a, forces, wrenches=wrenches, signals=signals, loads=loads)


def element_states(
    machine: Machine | Tree,
    motion: Motion,
    start: Mapping[str, float] | None = None,
    *,
    rtol: float = 1e-8,
    engine: Engine = "compiled",
) -> Motion:
    """The motion with the states of elements among its signals, so that inverse dynamics and regressors can be computed.

    `start`: the states at the first sample by name ("fl_q1.z"), zero where not given. Errors of the measured rates enter the states.
    """
    tree = tree_of(machine)
    y0 = inner_start(tree, start or {})
    names = [s.name for s in tree.states]
    if not names:
        return motion
    heard = [name for name in tree.signals if name in motion.signals and name not in names]
    missing = {name: np.zeros(len(motion)) for name in names}
    tree.check_motion(replace(motion, signals={**motion.signals, **missing}))
    # Only measured motions need splines, which take SciPy a while to load.
    from scipy.interpolate import CubicHermiteSpline

    both, slopes = (np.concatenate(parts, axis=1) for parts in ((motion.q, motion.qd), (motion.qd, motion.qdd)))
    path, n = spline_at(CubicHermiteSpline(motion.t, both, slopes)), tree.n
    base = _base_path(motion) if tree.wheels else None
    instant = StateAccelerations(tree, np.zeros(len(tree.parameters)), engine=engine)

    def rate(time: float, s: Array) -> Array:
        signals = {name: float(np.interp(time, motion.t, motion.signals[name])) for name in heard}
        every = {**signals, **dict(zip(names, s.tolist(), strict=True))}
        here = path(time)
        if base is None:
            return instant.state_rates(here[:n], here[n:], every)
        at = base(time)
        return instant.state_rates(here[:n], here[n:], every, at[:3], at[3:6], at[6:])

    from scipy.integrate import solve_ivp  # here: only logs without these states need it

    found = solve_ivp(rate, (motion.t[0], motion.t[-1]), y0, "LSODA", motion.t, rtol=rtol, atol=1e-4 * rtol)
    if not found.success:
        raise SimulationError(
            f"the states of elements could not be followed: {found.message}", where=f"{tree.name}, {', '.join(names)}"
        )
    return replace(motion, signals={**motion.signals, **dict(zip(names, found.y, strict=True))})


def _base_path(motion: Motion) -> Callable[[float], Array] | None:
    """ω, velocity, position and quaternion of a free base as a function of time, (13,); the quaternion without jumps of its sign."""
    b = motion.base
    if b is None:
        return None
    assert b.velocity is not None and b.position is not None and b.quaternion is not None  # check_motion looked
    from scipy.interpolate import CubicSpline

    turned = np.sign(np.einsum("ni,ni->n", b.quaternion[1:], b.quaternion[:-1]))
    e = b.quaternion * np.cumprod(np.concatenate([[1.0], turned]))[:, None]
    return spline_at(CubicSpline(motion.t, np.concatenate([b.omega, b.velocity, b.position, e], axis=1)))
