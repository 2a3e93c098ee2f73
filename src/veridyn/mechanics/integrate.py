"""Motion from forces: a tree integrated over time, with a fixed step or with SciPy's integrators.

The state is (q, q̇), and for a free base also its position and attitude in the ground's frame, its velocity there and its ω in
its own frame. Attitude is a quaternion, so no orientation is singular.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import solve_ivp

from veridyn.errors import DataError, Fault, Faults, SimulationError, did_you_mean
from veridyn.mechanics.engine import Engine
from veridyn.mechanics.forward import with_held_forces
from veridyn.mechanics.ground.road import Road, fill_surface
from veridyn.mechanics.instant import ORIGIN, StateAccelerations
from veridyn.mechanics.loading import load_matrix
from veridyn.mechanics.loops.assembly import loop_values
from veridyn.mechanics.loops.dynamics import check_closed_state, first_crossing, onto_closure
from veridyn.mechanics.samples import complete_values
from veridyn.mechanics.stepper import march
from veridyn.mechanics.tableau import tableau
from veridyn.model.accept import accepts_machine
from veridyn.model.load import Drive, Load, components
from veridyn.model.motion import BaseMotion, Motion
from veridyn.model.tree import Tree
from veridyn.progress import Progress, silent
from veridyn.spatial.rotations import matrix_of, quaternion_rate, rotation_of

Array = NDArray[np.float64]
Forces = Callable[[float, Array, Array], ArrayLike]
NOTHING = np.zeros(0)
START_TOLERANCE = 1e-9  # relative: by how much the start of a prescribed coordinate may differ from what is prescribed
CLOSING_RATE = 10.0  # rad/s, with which openings of loops die out like a damped spring
SCIPY = ("RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA")


@dataclass(frozen=True)
class BaseState:
    """Where a free base is and how it moves: position and velocity in the ground's frame, ω in the base's own."""

    position: ArrayLike = (0.0, 0.0, 0.0)
    quaternion: ArrayLike = (1.0, 0.0, 0.0, 0.0)
    velocity: ArrayLike = (0.0, 0.0, 0.0)
    omega: ArrayLike = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Inputs:
    """What acts from outside, each a function of time, q and q̇: forces (n,) on the coordinates, wrenches by body, signals by name.

    `prescribed`: a function of time → name → (q, q̇, q̈) of every prescribed coordinate of the machine. `loads`: a function of time →
    name → value of the machine's loads; what it does not name keeps the value of the model. A drive is the actuator of its coordinate:
    where `forces` are given, they are what the drives do. `contacts`: a function of time, the base's state, q and q̇ → wrenches by body,
    such as those of the ground on a machine whose base is free; they add to `wrenches`. `road`: what tyres roll on, above the height that
    they have as a constant; a wheel meets the plane that touches the road below its centre.
    """

    forces: Forces | None = None
    wrenches: Callable[[float, Array, Array], Mapping[str, ArrayLike]] | None = None
    signals: Callable[[float, Array, Array], Mapping[str, float]] | None = None
    prescribed: Callable[[float], Mapping[str, tuple[float, float, float]]] | None = None
    loads: Callable[[float], Mapping[str, ArrayLike]] | None = None
    contacts: Callable[[float, BaseState, Array, Array], Mapping[str, ArrayLike]] | None = None
    road: Road | None = None


@dataclass(frozen=True)
class Method:
    """How to integrate: "RK4" with `step`, or one of SciPy's methods, where `step` is the longest step allowed.

    `friction_speed`: dry friction is a jump at standstill, which no integrator of fixed order follows; where given, sign(v) becomes
    v/(v⁸ + friction_speed⁸)^⅛, and the difference from the jump is the simulator's, not the model's.
    """

    name: str = "DOP853"
    step: float = math.inf
    rtol: float = 1e-9
    atol: float = 1e-10
    friction_speed: float = 0.0


@dataclass(frozen=True)
class Trajectory:
    """A simulated motion, with the pose of a free base in the ground's frame.

    `states`: those that elements have of their own, (N,) by name ("fl_q1.z"); they are among the signals of the motion too.
    `loads`: forces and torques that acted at places and on bodies, (N, 3) by name; drives are among the forces of the motion.
    """

    motion: Motion
    base_position: Array | None = None
    base_rotation: Array | None = None
    states: Mapping[str, Array] = field(default_factory=dict)
    loads: Mapping[str, Array] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class _System:
    tree: Tree
    inputs: Inputs
    instant: StateAccelerations

    @property
    def free(self) -> bool:
        return self.tree.base == "free"

    @property
    def own(self) -> int:
        """How many states elements have of their own; they are the last of a state vector."""
        return len(self.tree.states)

    def accelerations(self, t: float, y: Array) -> tuple[Array, Array, dict[str, Array], Mapping[str, float]]:
        """All accelerations, and the forces, wrenches and signals that cause them, elements' own states among the latter."""
        n = self.tree.n
        own, y = y[len(y) - self.own :], y[: len(y) - self.own]
        at = 7 if self.free else 0
        q, qd = y[at : at + n], y[len(y) - n :]
        act = self.inputs
        forces = self.driving(t) if act.forces is None else np.array(act.forces(t, q, qd), dtype=np.float64)
        forces[list(self.tree.held)] = 0.0  # what they need is found afterwards
        wrenches = {} if act.wrenches is None else act.wrenches(t, q, qd)
        wrenches = {k: np.asarray(w, dtype=np.float64) for k, w in wrenches.items()}
        if act.contacts is not None:
            for body, w in act.contacts(t, self.base_state(y), q, qd).items():
                wrenches[body] = wrenches.get(body, 0.0) + np.asarray(w, dtype=np.float64)
        acting, pushed = forces, wrenches
        if self.placed:
            acting, pushed = self.pushed(t, y[: at + n], forces, wrenches)
        signals = {} if act.signals is None else act.signals(t, q, qd)
        pose = y[:7] if self.free else ORIGIN
        if self.packed_road is not None:
            signals = {**signals, **self.under_wheels(q, pose)}
        if self.own:
            signals = {**signals, **{s.name: float(x) for s, x in zip(self.tree.states, own, strict=True)}}
        v = w = np.zeros(3)
        if self.free:
            v, w = rotation_of(y[3:7]).T @ y[7 + n : 10 + n], y[10 + n : 13 + n]
        qdd = self.prescribed(t)[2] if self.tree.held else None
        return self.instant(q, qd, acting, w, v, pushed, signals, qdd, pose), forces, wrenches, signals

    @cached_property
    def packed_road(self) -> Array | None:
        """The road for compiled code, where there are a road and tyres."""
        road = self.inputs.road
        return None if road is None or not self.tree.wheels else road.packed

    def under_wheels(self, q: Array, pose: Array) -> dict[str, float]:
        """What tyres read of the road: height at the ground's origin and slopes of the plane below each wheel."""
        assert self.packed_road is not None  # the caller looked
        places, out = self.instant.wheel_places(q, pose), np.empty((3, len(self.tree.wheels)))
        x, y = np.ascontiguousarray(places.T)
        fill_surface(self.packed_road, x, y, out)
        out[0] -= out[1] * x + out[2] * y
        return dict(zip(self.tree.road_signals, out.T.reshape(-1).tolist(), strict=True))

    def base_state(self, y: Array) -> BaseState:
        """Where a free base is and how it moves; at rest in the origin where it is fixed."""
        if not self.free:
            return BaseState()
        n = self.tree.n
        return BaseState(y[:3], y[3:7] / np.linalg.norm(y[3:7]), y[7 + n : 10 + n], y[10 + n : 13 + n])

    @cached_property
    def placed(self) -> tuple[Load, ...]:
        """The loads that act at places and on bodies."""
        return tuple(load for load in self.tree.loads if not isinstance(load, Drive))

    def values_of_loads(self, t: float) -> dict[str, Array]:
        """The value of every load at a time."""
        given = {} if self.inputs.loads is None else self.inputs.loads(t)
        return {
            load.name: np.atleast_1d(np.asarray(given.get(load.name, load.value), dtype=np.float64))
            for load in self.tree.loads
        }

    def driving(self, t: float) -> Array:
        """(n,): what the drives of the machine do at a time."""
        forces = np.zeros(self.tree.n)
        if self.tree.loads:
            values = self.values_of_loads(t)
            for load in self.tree.loads:
                if isinstance(load, Drive):
                    forces[self.tree.coordinates.index(load.coordinate)] += values[load.name][0]
        return forces

    def pushed(self, t: float, q: Array, forces: Array, wrenches: dict[str, Array]) -> tuple[Array, dict[str, Array]]:
        """Forces and wrenches with what the placed loads add to them, in the configuration q: Q = B u."""
        values = self.values_of_loads(t)
        if self.free:
            q = np.concatenate([q[:3], q[3:7] / np.linalg.norm(q[3:7]), q[7:]])
        Q = load_matrix(self.tree, q[None], self.placed)[0] @ np.concatenate([values[x.name] for x in self.placed])
        if not self.free:
            return forces + Q, wrenches
        root = self.tree.bodies[0].name
        return forces + Q[6:], {**wrenches, root: wrenches.get(root, np.zeros(6)) + Q[:6]}

    def prescribed(self, t: float) -> Array:
        """(3, n): q, q̇ and q̈ of the prescribed coordinates at a time, zero elsewhere."""
        assert self.inputs.prescribed is not None  # the start was checked
        given, out = self.inputs.prescribed(t), np.zeros((3, self.tree.n))
        for k in self.tree.held:
            out[:, k] = given[self.tree.coordinates[k]]
        return out

    def with_prescribed(self, t: float, y: Array) -> Array:
        """A state with its prescribed coordinates and rates as they are prescribed at a time."""
        if not self.tree.held:
            return y
        held, out, at = np.array(self.tree.held), y.copy(), 7 if self.free else 0
        given = self.prescribed(t)
        out[at + held], out[len(y) - self.own - self.tree.n + held] = given[0, held], given[1, held]
        return out

    def mended(self, t: Array, y: Array) -> Array:
        """States (N, …) at times (N,): as prescribed, and of a machine with loops the nearest that keeps them closed."""
        n, at = self.tree.n, 7 if self.free else 0
        out = np.array([self.with_prescribed(time, state) for time, state in zip(t.tolist(), y, strict=True)])
        if self.tree.loops:
            places, rates = slice(at, at + n), slice(out.shape[1] - self.own - n, out.shape[1] - self.own)
            one = self.instant.closest(out[0, places], out[0, rates]) if len(out) == 1 else None
            if one is not None:
                out[0, places], out[0, rates] = one
                return out
            engine = "compiled" if self.instant.compile else "numpy"
            out[:, places], out[:, rates] = onto_closure(self.tree, out[:, places], out[:, rates], engine)
        return out

    def rate(self, t: float, y: Array) -> Array:
        n = self.tree.n
        y = self.with_prescribed(t, y)
        a, _, _, signals = self.accelerations(t, y)
        if self.own:
            y = y[: len(y) - self.own]
            at = 7 if self.free else 0
            base = ()
            if self.free:
                base = (y[10 + n : 13 + n], rotation_of(y[3:7]).T @ y[7 + n : 10 + n], y[:7])
            inner = self.instant.state_rates(y[at : at + n], y[len(y) - n :], signals, *base)
        else:
            inner = NOTHING
        if not self.free:
            return np.concatenate([y[n:], a, inner])
        quaternion, velocity, omega = y[3:7], y[7 + n : 10 + n], y[10 + n : 13 + n]
        R = rotation_of(quaternion)
        return np.concatenate(
            [velocity, quaternion_rate(quaternion, omega), y[13 + n :], R @ a[:3] + self.tree.gravity, a[3:], inner]
        )


@accepts_machine
def integrate(
    tree: Tree,
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

    The equations are Γ = D φ of :func:`~veridyn.mechanics.inverse.inverse_dynamics` solved for the accelerations, elements included.
    An integration that does not reach its end raises :class:`~veridyn.errors.SimulationError` with the time it reached.

    States that elements have of their own start from `states`, by name ("fl_q1.z"), zero where not given, and are in the result.
    Prescribed coordinates move as ``inputs.prescribed`` says, and the forces they need are in ``motion.forces`` of the result.

    A machine with loops starts closed, in positions and rates, and forces on passive joints are zero. While it moves, openings die out with
    `CLOSING_RATE`, and the state goes back to closure after each step of RK4 and at every sample (:mod:`veridyn.mechanics.loops.dynamics`).
    """
    how = method or Method()
    clock, y0 = np.asarray(t, dtype=np.float64), _initial(tree, t, q, qd, base, how)
    y0 = np.concatenate([y0, inner_start(tree, states or {})])
    instant = StateAccelerations(
        tree, complete_values(tree, parameters), how.friction_speed, engine, CLOSING_RATE if tree.loops else 0.0
    )
    system = _System(tree, inputs if isinstance(inputs, Inputs) else Inputs(inputs), instant)
    _check_prescribed(system, clock[0], y0)
    _check_given_loads(system, clock[0])

    def rate(time: float, y: Array) -> Array:
        if not np.isfinite(y).all():
            raise SimulationError(
                Fault(f"the motion is no longer finite at {time:.6g} s.", where=tree.name, hint="Try a smaller step.")
            )
        progress("simulating", time - clock[0], clock[-1] - clock[0])
        try:
            return system.rate(time, y)
        except DataError as error:
            raise SimulationError(
                Fault(
                    f"the motion {'cannot go on' if tree.loops else 'has run away'} at {time:.6g} s: {error.faults[0].what}",
                    where=tree.name,
                    found=error.faults[0].found,
                    hint=(error.faults[0].hint if tree.loops else "")
                    or "Try a smaller step, or look for a force that feeds on itself.",
                )
            ) from error

    if how.name == "RK4":
        path = march(tableau("RK4"), rate, clock, y0, how.step, system.mended if tree.loops or tree.held else None)
    else:
        solution = solve_ivp(
            rate, (clock[0], clock[-1]), y0, how.name, clock, rtol=how.rtol, atol=how.atol, max_step=how.step
        )
        path = solution.y.T
        if not solution.success:
            raise SimulationError(
                Fault(
                    f"{how.name} stopped at {solution.t[-1] if len(solution.t) else clock[0]:.6g} s: {solution.message}",
                    where=tree.name,
                    expected=f"{clock[-1]:.6g} s",
                    hint="Look for a stiff spring, dry friction at standstill (friction_speed=), or a force that runs away.",
                )
            )
    if tree.loops or tree.held:
        path = system.mended(clock, path)
    if tree.loops:
        _refuse_crossing(system, clock, path)
    found = _trajectory(system, clock, path)
    return replace(found, motion=with_held_forces(tree, found.motion, instant.values))


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


def _check_prescribed(system: _System, start: float, y: Array) -> None:
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
            Fault(
                f"the start of the prescribed coordinate '{tree.coordinates[k]}' is not what is prescribed.",
                where=tree.name,
                expected="q and qd as Inputs.prescribed gives them at the first time",
                found=f"a difference of {off.max():.3g}",
            )
        )


def _check_given_loads(system: _System, start: float) -> None:
    """Refuse values of loads that the machine does not have, or of another size."""
    if system.inputs.loads is None:
        return
    tree, faults = system.tree, Faults()
    sizes = {load.name: components(load) for load in tree.loads}
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


def _refuse_crossing(system: _System, clock: Array, y: Array) -> None:
    """A fixed step may leap over a singular position; what comes behind it is one of several motions, and nobody knows which."""
    n, at = system.tree.n, 7 if system.free else 0
    k = first_crossing(system.tree, y[:, at : at + n])
    if k is not None:
        raise SimulationError(
            Fault(
                f"the motion goes through a singular position between {clock[k]:.6g} s and {clock[k + 1]:.6g} s.",
                where=system.tree.name,
                hint="Behind it the machine may go on in more than one way. End before it, or lead the motion around it.",
            )
        )


def _initial(tree: Tree, t: ArrayLike, q: ArrayLike, qd: ArrayLike, base: BaseState | None, how: Method) -> Array:
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


def _trajectory(system: _System, clock: Array, y: Array) -> Trajectory:
    n = system.tree.n
    found = [system.accelerations(t, state) for t, state in zip(clock, y, strict=True)]
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
