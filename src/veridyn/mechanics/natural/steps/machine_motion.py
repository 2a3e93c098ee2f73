"""A machine in natural coordinates that moves under inputs: methods, inputs and results are those of ``system/integrate.py``.

    M q̈ + Φ_qᵀ λ = Q(q, q̇) + Q_u,    Φ_q q̈ = −Φ̇_q q̇ − 2 ω Φ̇ − ω² Φ,    ω = `CLOSING_RATE`

All points, vectors and added coordinates are integrated, and brought back to the constraints at every sample (after every step of RK4). The
result is given in the coordinates that the machine has as a tree, whichever way it was computed. Where a description by points does not
have some of them, they follow from closing the loops of the tree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from veridyn.arrays import Array
from veridyn.errors import CapabilityError, DataError, Fault, ModelError, SimulationError, did_you_mean
from veridyn.mechanics.natural.description.of_machine import mechanism_of, mechanism_with, rounded
from veridyn.mechanics.natural.equations.dynamics import Bordered, Stabilisation, solve_accelerations
from veridyn.mechanics.natural.equations.geometry import compact
from veridyn.mechanics.natural.equations.position import independent
from veridyn.mechanics.natural.equations.system import NaturalSystem, system_of
from veridyn.mechanics.natural.equations.wheels import Plane, plane_of
from veridyn.mechanics.natural.inputs import wrench_maps
from veridyn.mechanics.natural.steps.explicit import onto_constraints
from veridyn.mechanics.natural.steps.freedoms import Freedoms, freedoms_of, pose_of_tree
from veridyn.mechanics.system.adaptive import adaptive_path, check_size
from veridyn.mechanics.system.integrate import (
    CLOSING_RATE,
    check_given_loads,
    check_prescribed,
    initial_state,
)
from veridyn.mechanics.system.simulation import BaseState, Forces, Inputs, Method, Trajectory
from veridyn.mechanics.system.stepper import march, tableau
from veridyn.mechanics.tree.dynamics.forward import with_held_forces
from veridyn.mechanics.tree.dynamics.state_rates import ActingInputs
from veridyn.mechanics.tree.loops.closure import closed_motion
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.inputs import complete_values
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.load import Drive, Load, Torque
from veridyn.model.machine import Machine
from veridyn.model.motion import BaseMotion, Motion
from veridyn.progress import Progress, silent
from veridyn.spatial.rotations import rotation_of

EXACT = Stabilisation(penalty=1e16)  # some constraints hold little mass


@dataclass(frozen=True, eq=False)
class NaturalMachine:
    """A machine in natural coordinates beside its tree; made by :func:`natural_machine`.

    `both`: numbers of the coordinates of the tree that the mechanism has too; `places`: theirs in the mechanism.
    """

    machine: Machine
    tree: Tree
    system: NaturalSystem
    freedoms: Freedoms
    both: tuple[int, ...]
    places: tuple[int, ...]

    @property
    def complete(self) -> bool:
        """Whether the mechanism has every coordinate of the tree."""
        return len(self.both) == self.tree.n

    def start(self, q: Array, qd: Array, base: BaseState | None) -> tuple[Array, Array]:
        """Natural coordinates and rates of a state of the tree."""
        pose: tuple[Array | None, Array | None] = (None, None)
        moving = np.zeros(0)
        if base is not None:
            pose = np.asarray(base.position, dtype=np.float64), rotation_of(_unit(base.quaternion))
            moving = np.concatenate([np.asarray(base.velocity), np.asarray(base.omega)]).astype(np.float64)
        x = pose_of_tree(self.system, self.tree, q, *pose)
        m = self.system.mechanism
        led = {n: (x[m.index(n)], qd[self.tree.coordinates.index(n)], 0.0) for n in m.prescribed}
        rates = np.concatenate([moving, qd[list(self.both)]])
        return x, self.freedoms.rates(self.system.holding(led), x, rates)

    def on_tree(self, t: Array, x: Array, xd: Array, xdd: Array, start: Array) -> tuple[Array, Array, Array]:
        """Coordinates, rates and accelerations (N, n) of the tree; `start` (n,) is where it stood at the first, or near it."""
        at = list(self.places)
        if self.complete:
            found = np.zeros((3, len(x), self.tree.n))
            for k, part in enumerate((x, xd, xdd)):
                found[k][:, list(self.both)] = part[:, at]
            return found[0], found[1], found[2]
        names = [self.tree.coordinates[k] for k in self.both]
        own = [n for n in independent(self.system, x[0], names) if n in names]
        columns = [self.system.mechanism.index(n) for n in own]
        motion = closed_motion(self.tree, t, x[:, columns], xd[:, columns], xdd[:, columns], at=own, start=start)
        return motion.q, motion.qd, motion.qdd


def natural_machine(machine: Machine, friction_speed: float = 0.0) -> NaturalMachine:
    """A machine in natural coordinates with, as far as it can have them, all coordinates of its tree; refused where it has no tree.

    `friction_speed`: below it (rad/s, m/s) dry friction is rounded off.
    """
    try:
        tree = tree_of(machine)
    except ModelError as error:
        raise CapabilityError(
            "natural",
            "motion in joint coordinates",
            "its coordinates have no names that a motion could be given by, for it has no tree",
            "Simulate it by a study file (veridyn simulate), which starts it by the coordinates of its points.",
            where=machine.name,
            found="; ".join(f.what for f in error.faults),
        ) from error
    if machine.description is not None:
        mechanism = mechanism_of(machine)
    else:
        mechanism = compact(mechanism_with(machine, "all"))
    system = system_of(rounded(mechanism, friction_speed))
    both = tuple(k for k, c in enumerate(tree.coordinates) if c in mechanism.coordinates)
    names = [tree.coordinates[k] for k in both]
    places = tuple(mechanism.index(c) for c in names)
    if len(both) < tree.n:
        _refuse_undetermined(machine, tree, system, names)
    return NaturalMachine(machine, tree, system, freedoms_of(system, tree, names), both, places)


def _refuse_undetermined(machine: Machine, tree: Tree, system: NaturalSystem, names: list[str]) -> None:
    """Refuse points whose added coordinates do not determine the others of the tree, by closing its loops."""
    own = independent(system, system.guess, names)
    if tree.loops and set(own) <= set(names):
        return
    missing = [c for c in tree.coordinates if c not in names]
    raise CapabilityError(
        "natural",
        "motion in joint coordinates",
        f"its points do not have the coordinate '{missing[0]}', and {len(own)} freedoms need an angle or distance each",
        "Add them to the coordinates of the model, or simulate with_formulation('tree').",
        where=machine.name,
        found=", ".join(names) or "none",
    )


class _Rates:
    """The rates of (q, q̇, slips) in natural coordinates under inputs."""

    def __init__(self, model: NaturalMachine, acting: ActingInputs, start: Array) -> None:
        self.model, self.acting, self.start = model, acting, start
        self.system = model.system
        self.alpha = EXACT.alpha(model.system)
        road = acting.inputs.road
        self.plane: Plane | None = None if road is None else plane_of(road)
        self.slips = 2 * len(model.system.mechanism.tyres)
        act = acting.inputs
        self.wrenches: dict[str, Array] = {}
        self.signals = tuple(dict.fromkeys(e.signal for e in model.system.mechanism.gains))
        self.by_state = act.forces is not None or act.wrenches is not None or act.contacts is not None

    def split(self, y: Array) -> tuple[Array, Array, Array]:
        n = self.system.n
        return y[:n], y[n : 2 * n], y[2 * n :]

    def held(self, t: float) -> NaturalSystem:
        """The system with prescribed coordinates as they are led at a time."""
        names = self.system.mechanism.prescribed
        if not names:
            return self.system
        q, qd, qdd = self.acting.prescribed(t)
        at = {n: self.model.tree.coordinates.index(n) for n in names}
        return self.system.holding({n: (q[k], qd[k], qdd[k]) for n, k in at.items()})

    def on_tree(self, x: Array, xd: Array) -> tuple[Array, Array]:
        """The state of the tree at one of natural coordinates."""
        q, qd, _ = self.model.on_tree(np.zeros(1), x[None], xd[None], np.zeros((1, len(x))), self.start)
        self.start = q[0]
        return q[0], qd[0]

    def pushing(self, t: float, x: Array, xd: Array) -> tuple[Array, Array, Array, dict[str, Array]]:
        """Values of the loads, further generalised forces, and what of them the tree calls forces (n,) and wrenches."""
        act, tree = self.acting.inputs, self.model.tree
        values, own = self.system.forces.values.copy(), self.acting.values_of_loads(t)
        for load in self.model.machine.loads:
            if act.forces is None or not isinstance(load, Drive):
                values[self.system.forces.loads[load.name]] = _own_components(load, own[load.name])
            else:
                values[self.system.forces.loads[load.name]] = 0.0
        extra, wrenches = np.zeros(self.system.n), dict[str, Array]()
        if self.signals:
            given = {} if act.signals is None else act.signals(t, *self.on_tree(x, xd))
            for name in self.signals:
                values[self.system.forces.loads[f"signal.{name}"]] = self._heard(given, name)
        if not self.by_state:
            return values, extra, self.acting.driving(t), wrenches
        q, qd = self.on_tree(x, xd)
        forces = self.acting.driving(t)
        if act.forces is not None:
            forces = self.acting.given_forces(t, q, qd)
            forces[list(tree.held)] = 0.0
            self._refuse_elsewhere(forces)
            extra[list(self.model.places)] = forces[list(self.model.both)]
        if act.wrenches is not None:
            wrenches = {body: np.asarray(w, dtype=np.float64) for body, w in act.wrenches(t, q, qd).items()}
        if act.contacts is not None:
            for body, w in act.contacts(t, self.base_state(x, xd), q, qd).items():
                wrenches[body] = wrenches.get(body, 0.0) + np.asarray(w, dtype=np.float64)
        for body, w in wrenches.items():
            extra += self.wrench(body, w, x)
        return values, extra, forces, wrenches

    def _heard(self, given: Mapping[str, float], signal: str) -> float:
        if signal not in given:
            fault = Fault(
                f"no input gives the signal '{signal}'.", self.model.machine.name, hint="Give Inputs.signals."
            )
            raise DataError(fault)
        return float(given[signal])

    def _refuse_elsewhere(self, forces: Array) -> None:
        model = self.model
        odd = [model.tree.coordinates[k] for k in np.flatnonzero(forces) if k not in model.both]
        if odd:
            raise DataError(
                f"a force acts on '{odd[0]}', which its points do not have as a coordinate.",
                where=model.machine.name,
                hint="Add it to the coordinates of the model, or simulate with_formulation('tree').",
            )

    def base_state(self, x: Array, xd: Array) -> BaseState:
        f = self.model.freedoms
        if not f.free:
            return BaseState()
        moving = f.rows(x) @ xd
        return BaseState(f.position(x), _quaternions(f.attitude(x)[None])[0], moving[:3], moving[3:6])

    def wrench(self, body: str, w: Array, x: Array) -> Array:
        """The generalised force (n,) of a wrench in a body's frame, at its origin."""
        known = [b.name for b in self.system.mechanism.bodies]
        if body not in known:
            raise DataError(
                f"a wrench acts on '{body}', which is no body.",
                where=self.model.machine.name,
                hint=did_you_mean(body, known),
            )
        if body not in self.wrenches:
            self.wrenches[body] = wrench_maps(self.system.geometry, body)
        return np.einsum("a,aij,j->i", w, self.wrenches[body], np.append(x, 1.0))

    def accelerations(self, t: float, y: Array, closing: float) -> tuple[Array, Array, Array, Array, dict[str, Array]]:
        """q̈ and rates of slips, then values of loads, forces and wrenches that acted."""
        x, xd, slips = self.split(y)
        system = self.held(t)
        values, extra, forces, wrenches = self.pushing(t, x, xd)
        Q, slip_rates = system.forces.forces(x, xd, values) + extra, np.zeros(0)
        if self.slips:
            wheels = system.wheels.evaluate(x, xd, slips, self.plane)
            Q, slip_rates = Q + wheels.Q, wheels.rates
        phi, J = system.constraints.evaluate(x)
        right = system.constraints.second_rates(x, xd)
        right = right - 2.0 * closing * (J @ xd - system.constraints.rates) - closing**2 * phi
        qdd = Bordered(system.mass, J, self.alpha).solve(Q, -right)[0]
        return qdd, slip_rates, values, forces, wrenches

    def rate(self, t: float, y: Array) -> Array:
        qdd, slip_rates, *_ = self.accelerations(t, y, CLOSING_RATE)
        return np.concatenate([self.split(y)[1], qdd, slip_rates])

    def mended(self, t: Array, y: Array) -> Array:
        """States (N, …) at times (N,), back on the constraints."""
        out = y.copy()
        for time, row in zip(t.tolist(), out, strict=True):
            x, xd, _ = self.split(row)
            size = max(1.0, float(np.abs(x).max(initial=0.0)))
            found = onto_constraints(self.held(time), x, xd, EXACT, size)
            if found is None:
                raise SimulationError(
                    f"the motion leaves the constraints too far behind at {time:.6g} s.",
                    where=self.model.machine.name,
                    hint="Try a smaller step or tolerance, or look for a pose where the machine locks.",
                )
            row[: 2 * self.system.n] = np.concatenate(found)
        return out


def integrate_natural_machine(
    machine: Machine,
    t: ArrayLike,
    q: ArrayLike,
    qd: ArrayLike,
    inputs: Inputs | Forces | None = None,
    *,
    base: BaseState | None = None,
    method: Method | None = None,
    progress: Progress = silent,
) -> Trajectory:
    """:func:`~veridyn.mechanics.system.integrate.integrate` of a machine in natural coordinates: the same arguments, and the same motion.

    Both agree to the tolerance of the method. Dry friction is rounded off below `friction_speed`, and refused where that is zero.
    """
    how = method or Method()
    model = natural_machine(machine, how.friction_speed)
    tree = model.tree
    clock, y0 = np.asarray(t, dtype=np.float64), initial_state(tree, t, q, qd, base, how)
    acting = ActingInputs(tree, inputs if isinstance(inputs, Inputs) else Inputs(inputs))
    check_prescribed(acting, clock[0], np.concatenate([y0, np.zeros(acting.own)]))
    check_given_loads(acting, clock[0])
    q0, qd0 = np.asarray(q, dtype=np.float64), np.asarray(qd, dtype=np.float64)
    at = (base or BaseState()) if tree.base == "free" else None
    x, xd = model.start(q0, qd0, at)
    rates = _Rates(model, acting, q0)
    solve_accelerations(rates.held(float(clock[0])), x, xd)  # refuses what moves no mass, by name
    state = np.concatenate([x, xd, np.zeros(rates.slips)])
    names = [*2 * rates.system.coordinates, *(rates.system.wheels.states if rates.slips else ())]

    def rate(time: float, y: Array) -> Array:
        progress("simulating", time - clock[0], clock[-1] - clock[0])
        check_size(time, y, slice(0, len(x)), machine.name, names)
        found = rates.rate(time, y)
        check_size(time, found, slice(0, 0), machine.name, names)
        return found

    if how.name == "RK4":
        path = march(tableau("RK4"), rate, clock, state, how.step, rates.mended)
    else:
        hint = "Look for a stiff spring, or a force that runs away."
        path = adaptive_path(rate, clock, state, how, machine.name, hint, names)
    return _trajectory(rates, clock, rates.mended(clock, path), q0)


def _trajectory(rates: _Rates, clock: Array, path: Array, start: Array) -> Trajectory:
    model, acting, n = rates.model, rates.acting, rates.system.n
    rates.start = start
    found = [rates.accelerations(time, y, 0.0) for time, y in zip(clock.tolist(), path, strict=True)]
    x, xd, xdd = path[:, :n], path[:, n : 2 * n], np.array([f[0] for f in found])
    q, qd, qdd = model.on_tree(clock, x, xd, xdd, start)
    forces = np.array([f[3] for f in found])
    wrenches = {body: np.array([f[4][body] for f in found]) for body in found[0][4]}
    signals: Mapping[str, Array] = {}
    if acting.inputs.signals is not None:
        read = [acting.inputs.signals(*at) for at in zip(clock.tolist(), q, qd, strict=True)]
        signals = {name: np.array([one[name] for one in read]) for name in read[0]}
    names = rates.system.wheels.states if rates.slips else ()
    states = {name: path[:, 2 * n + k] for k, name in enumerate(names)}
    placed = [acting.values_of_loads(time) for time in clock.tolist()] if acting.placed else []
    loads = {load.name: np.array([values[load.name] for values in placed]) for load in acting.placed}
    base, position, R = _base(model, x, xd, xdd)
    motion = Motion(clock, q, qd, qdd, base, forces, wrenches=wrenches, signals={**signals, **states})
    motion = with_held_forces(model.tree, motion, complete_values(model.tree))
    return Trajectory(motion, position, R, states, loads)


def _base(
    model: NaturalMachine, x: Array, xd: Array, xdd: Array
) -> tuple[BaseMotion | None, Array | None, Array | None]:
    """How a free base moves, and its pose."""
    f = model.freedoms
    if not f.free:
        return None, None, None
    place, R = f.position(x), f.attitude(x)
    rates = np.array([f.rows(a) @ b for a, b in zip(x, xd, strict=True)])
    bent = np.array([f.rows(a) @ c + f.bend(b, b) for a, b, c in zip(x, xd, xdd, strict=True)])
    into = np.swapaxes(R, 1, 2)
    velocity = np.einsum("nij,nj->ni", into, rates[:, :3])
    specific = np.einsum("nij,nj->ni", into, bent[:, :3] - model.tree.gravity)
    base = BaseMotion(rates[:, 3:6], bent[:, 3:6], specific, velocity, position=place, quaternion=_quaternions(R))
    return base, place, R


def _quaternions(R: Array) -> Array:
    """(N, 4) as (w, x, y, z), without jumps of sign."""
    x, y, z, w = Rotation.from_matrix(R).as_quat().T
    e = np.column_stack([w, x, y, z])
    turned = (e[1:] * e[:-1]).sum(axis=1) < 0.0
    return e * np.concatenate([[1.0], np.cumprod(np.where(turned, -1.0, 1.0))])[:, None]


def _unit(quaternion: ArrayLike) -> Array:
    e = np.asarray(quaternion, dtype=np.float64)
    return e / np.linalg.norm(e)


def _own_components(load: Load, value: Array) -> Array:
    """The numbers of a load of the machine from those that its tree has for it: in the plane fewer."""
    count = 1 if isinstance(load, Drive) else np.size(np.asarray(load.value))
    return value[-count:] if isinstance(load, Torque) else value[:count]
