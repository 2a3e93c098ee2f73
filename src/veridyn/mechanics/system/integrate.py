"""Motion from forces: a tree integrated over time, with a fixed step or with SciPy's integrators.

The state is (q, q̇), and for a free base also its position and attitude in the ground's frame, its velocity there and its ω in
its own frame. Attitude is a quaternion, so no orientation is singular.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import solve_ivp

from veridyn.errors import DataError, SimulationError
from veridyn.mechanics.system.dry_friction import DryFriction, dry_friction
from veridyn.mechanics.system.holding_steps import HoldingSteps
from veridyn.mechanics.system.integration_check import (
    check_given_loads,
    check_prescribed,
    initial_state,
    inner_start,
    refuse_crossing,
)
from veridyn.mechanics.system.simulation import BaseState, Forces, Inputs, Method, Trajectory
from veridyn.mechanics.system.stepper import march
from veridyn.mechanics.system.tableau import tableau
from veridyn.mechanics.tree.accept import takes_machine
from veridyn.mechanics.tree.dynamics.engine import Engine
from veridyn.mechanics.tree.dynamics.forward import with_held_forces
from veridyn.mechanics.tree.dynamics.instant import StateAccelerations
from veridyn.mechanics.tree.dynamics.state_rates import StateRates
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.samples import complete_values
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.machine import Machine
from veridyn.model.motion import BaseMotion, Motion
from veridyn.progress import Progress, silent
from veridyn.spatial.rotations import matrix_of

__all__ = ["BaseState", "Inputs", "Method", "Trajectory", "integrate"]
Array = NDArray[np.float64]
CLOSING_RATE = 10.0  # rad/s, with which openings of loops die out like a damped spring


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
    dry = dry_friction(tree, values) if how.name == "RK4" and how.friction_speed == 0.0 else None
    instant = StateAccelerations(
        tree,
        values if dry is None else dry.smooth_values,
        how.friction_speed,
        engine,
        CLOSING_RATE if tree.loops else 0.0,
    )
    system = StateRates(tree, inputs if isinstance(inputs, Inputs) else Inputs(inputs), instant)
    check_prescribed(system, clock[0], y0)
    check_given_loads(system, clock[0])

    def rate(time: float, y: Array, friction: Array | None = None) -> Array:
        if not np.isfinite(y).all():
            raise SimulationError(
                f"the motion is no longer finite at {time:.6g} s.", where=tree.name, hint="Try a smaller step."
            )
        progress("simulating", time - clock[0], clock[-1] - clock[0])
        try:
            return system.rate(time, y, friction)
        except DataError as error:
            raise SimulationError(
                f"the motion {'cannot go on' if tree.loops else 'has run away'} at {time:.6g} s: {error.faults[0].what}",
                where=tree.name,
                found=error.faults[0].found,
                hint=(error.faults[0].hint if tree.loops else "")
                or "Try a smaller step, or look for a force that feeds on itself.",
            ) from error

    holding = None
    if how.name == "RK4":
        mend = system.mended if tree.loops or tree.held else None
        holding = None if dry is None else _holding(system, dry, rate)
        path = march(tableau("RK4"), rate, clock, y0, how.step, mend, None if holding is None else _alone(holding))
    else:
        hint = "Look for a stiff spring, dry friction at standstill (friction_speed=), or a force that runs away."
        path = adaptive_path(rate, clock, y0, how, tree.name, hint)
    if tree.loops or tree.held:
        path = system.mended(clock, path)
    if tree.loops:
        refuse_crossing(system, clock, path)
    found = _trajectory(system, clock, path, holding)
    return replace(found, motion=with_held_forces(tree, found.motion, values))


def adaptive_path(
    rate: Callable[[float, Array], Array], clock: Array, start: Array, how: Method, where: str, hint: str
) -> Array:
    """The states (N, …) at times `clock` by a method of SciPy that chooses its steps, refused with `hint` where it stops early."""
    solution = solve_ivp(
        rate, (clock[0], clock[-1]), start, how.name, clock, rtol=how.rtol, atol=how.atol, max_step=how.step
    )
    if not solution.success:
        raise SimulationError(
            f"{how.name} stopped at {solution.t[-1] if len(solution.t) else clock[0]:.6g} s: {solution.message}",
            where=where,
            expected=f"{clock[-1]:.6g} s",
            hint=hint,
        )
    return solution.y.T


def _holding(system: StateRates, dry: DryFriction, rate: Callable[[float, Array, Array | None], Array]) -> HoldingSteps:
    """Steps of one state with friction that holds."""

    def rates(time: float, y: Array, friction: Array) -> Array:
        return rate(time, y[0], friction[0])[None]

    tree = system.tree
    speeds = slice(-system.own - tree.n, -system.own or None)
    return HoldingSteps(dry, rates, speeds, 1, tree.name)


def _alone(holding: HoldingSteps) -> Callable[[float, Array, float], Array]:
    return lambda t, y, h: holding.step(t, y[None], h)[0]


def _trajectory(system: StateRates, clock: Array, y: Array, holding: HoldingSteps | None) -> Trajectory:
    n = system.tree.n

    def friction(t: float, state: Array) -> Array | None:
        if holding is None:
            return None
        return holding.friction.forces(state[None, holding.speeds], holding.at_instant(t, state[None]))[0]

    found = [system.accelerations(t, state, friction(t, state)) for t, state in zip(clock, y, strict=True)]
    a = np.array([f[0] for f in found])
    forces = np.array([f[1] for f in found])
    wrenches = {body: np.array([f[2][body] for f in found]) for body in found[0][2]}
    signals = {name: np.array([f[3][name] for f in found]) for name in found[0][3]}
    states = {s.name: signals[s.name] for s in system.tree.states}
    placed = [system.values_of_loads(t) for t in clock.tolist()] if system.placed else []
    loads = {load.name: np.array([values[load.name] for values in placed]) for load in system.placed}
    y = y[:, : y.shape[1] - system.own]
    if not system.free:
        return Trajectory(
            Motion(clock, y[:, :n], y[:, n:], a, None, forces, wrenches=wrenches, signals=signals),
            states=states,
            loads=loads,
        )
    quaternion = y[:, 3:7] / np.linalg.norm(y[:, 3:7], axis=1, keepdims=True)
    R = matrix_of(quaternion)
    velocity = np.einsum("nji,nj->ni", R, y[:, 7 + n : 10 + n])
    base = BaseMotion(y[:, 10 + n : 13 + n], a[:, 3:6], a[:, :3], velocity, position=y[:, :3], quaternion=quaternion)
    motion = Motion(clock, y[:, 7 : 7 + n], y[:, 13 + n :], a[:, 6:], base, forces, wrenches=wrenches, signals=signals)
    return Trajectory(motion, y[:, :3], R, states, loads)
