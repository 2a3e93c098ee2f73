"""A machine in natural coordinates that moves under inputs: methods, inputs and results are those of ``system/integrate.py``.

    M q̈ + Φ_qᵀ λ = Q(q, q̇) + Q_u,    Φ_q q̈ = −Φ̇_q q̇ − 2 ω Φ̇ − ω² Φ,    ω = `CLOSING_RATE`

All points, vectors and added coordinates are integrated, and brought back to the constraints at every sample (after every step of RK4), in
machine code: all steps of RK4 in few calls, the rates that SciPy's integrators ask for in one call each. What acts as a function of the
state, forces, signals, wrenches and contacts, is Python's, called at each stage. The result is given in the coordinates that the machine
has as a tree, whichever way it was computed. Where a description by points does not have some of them, they follow from closing the loops
of the tree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from veridyn.arrays import Array
from veridyn.errors import CapabilityError, DataError, Fault, ModelError, SimulationError, did_you_mean
from veridyn.mechanics.natural.channels import wrench_maps
from veridyn.mechanics.natural.description.of_machine import mechanism_of, mechanism_with, rounded
from veridyn.mechanics.natural.equations.dynamics import NaturalState, Stabilisation, solve_accelerations
from veridyn.mechanics.natural.equations.freedoms import Freedoms, freedoms_of, pose_of_tree
from veridyn.mechanics.natural.equations.geometry import compact
from veridyn.mechanics.natural.equations.position import independent
from veridyn.mechanics.natural.equations.system import NaturalSystem, system_of
from veridyn.mechanics.natural.steps.explicit import ExplicitRun
from veridyn.mechanics.natural.steps.integrate import NaturalMethod, compiled_motion
from veridyn.mechanics.system.compiled_run import Called
from veridyn.mechanics.system.integrate import (
    CLOSING_RATE,
    check_given_loads,
    check_prescribed,
    initial_state,
)
from veridyn.mechanics.system.simulation import BaseState, Forces, Inputs, Method, Trajectory
from veridyn.mechanics.system.stepper import adaptive_path, check_size
from veridyn.mechanics.tree.dynamics.forward import with_held_forces
from veridyn.mechanics.tree.dynamics.instant import ActingInputs
from veridyn.mechanics.tree.loops.closure import closed_motion
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.inputs import complete_values
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.load import Drive, Load, Torque
from veridyn.model.machine import Machine
from veridyn.model.motion import BaseMotion, Motion
from veridyn.progress import Progress, silent
from veridyn.spatial.rotations import quaternion, rotation_of

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
    """The rates of (q, q̇, slips) in natural coordinates under inputs, by compiled code."""

    def __init__(self, model: NaturalMachine, acting: ActingInputs, start: Array) -> None:
        self.model, self.acting, self.start = model, acting, start
        self.system, act = model.system, acting.inputs
        self.slips = 2 * len(model.system.mechanism.tyres)
        self.wrenches: dict[str, Array] = {}
        self.signals = tuple(dict.fromkeys(e.signal for e in model.system.mechanism.gains))
        self.by_state = act.forces is not None or act.wrenches is not None or act.contacts is not None
        self.called = Called(self._act) if self.by_state or self.signals else None
        address = np.array([0 if self.called is None else self.called.address], dtype=np.int64)
        road = None if act.road is None else act.road.packed
        self.run = ExplicitRun(model.system, "RK4", EXACT, CLOSING_RATE, road, address)

    def _act(self, time: float) -> None:
        """What functions of Python do at the state that compiled code has reached."""
        room, forces = self.run.room, self.system.forces
        x, xd, _ = self.split(room.now.copy())
        values, extra, *_ = self.pushing(time, x, xd)
        room.load[:], room.factors[:] = forces.constants(values)
        room.load[:] += extra

    def split(self, y: Array) -> tuple[Array, Array, Array]:
        n = self.system.n
        return y[:n], y[n : 2 * n], y[2 * n :]

    def held(self, t: float) -> NaturalSystem:
        """The system with prescribed coordinates as they are led at a time."""
        return self.system.holding(self._prescribed(t)) if self.system.mechanism.prescribed else self.system

    def on_tree(self, x: Array, xd: Array) -> tuple[Array, Array]:
        """The state of the tree at one of natural coordinates."""
        q, qd, _ = self.model.on_tree(np.zeros(1), x[None], xd[None], np.zeros((1, len(x))), self.start)
        self.start = q[0]
        return q[0], qd[0]

    def _loads(self, t: float) -> dict[str, Array]:
        own = self.acting.values_of_loads(t)
        return {load.name: _own_components(load, own[load.name]) for load in self.model.machine.loads}

    def _prescribed(self, t: float) -> dict[str, Array]:
        given, at = self.acting.prescribed(t), self.model.tree.coordinates.index
        return {name: given[:, at(name)] for name in self.system.mechanism.prescribed}

    def pushing(self, t: float, x: Array, xd: Array) -> tuple[Array, Array, Array, dict[str, Array]]:
        """Values of the loads, further generalised forces, and what of them the tree calls forces (n,) and wrenches."""
        act, tree = self.acting.inputs, self.model.tree
        values, drives = self.system.forces.load_values(self._loads(t)).copy(), act.forces is None
        for load in self.model.machine.loads:
            if isinstance(load, Drive) and not drives:
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
        return BaseState(f.position(x), quaternion(f.attitude(x)), moving[:3], moving[3:6])

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

    def inputs(self, times: Array) -> tuple[Array, Array]:
        """Values of loads (N or 1, loads) and motions of prescribed coordinates (N or 1, 3, p) at times."""
        values, led = self.system.forces.values[None], self.system.constraints.motion[None]
        if self.called is None and self.acting.inputs.loads is not None:
            nothing = np.zeros(self.system.n)
            values = np.array([self.pushing(time, nothing, nothing)[0] for time in times.tolist()])
        if self.system.mechanism.prescribed:
            led = np.array([self.held(time).constraints.motion for time in times.tolist()])
        return values, led

    def rate(self, t: float, y: Array) -> Array:
        times = np.array([t])
        made, found = self.run.accelerations(times, y[None].copy(), *self.inputs(times), closing=CLOSING_RATE)
        self.check(made, times)
        return np.concatenate([self.split(y)[1], found[0]])

    def sampled(self, times: Array, path: Array) -> tuple[Array, Array]:
        """States (N, …) back on the constraints, and their accelerations (N, n)."""
        states = path.copy()
        made, found = self.run.accelerations(times, states, *self.inputs(times), mends=True)
        self.check(made, times)
        return states, found[:, : self.system.n]

    def refuse(self) -> None:
        """Raise what a function of Python raised, or refuse a state that is none of a machine, with its time."""
        if self.called is not None and self.called.error is not None:
            raise self.called.error
        self.run.refuse()

    def check(self, made: int, times: Array) -> None:
        """Refuse a state that has no accelerations, with its time."""
        if made < len(times):
            self.refuse()
            raise SimulationError(
                f"the motion leaves the constraints too far behind at {times[made]:.6g} s.",
                where=self.model.machine.name,
                hint="Try a smaller step or tolerance, or look for a pose where the machine locks.",
            )

    def marched(self, clock: Array, state: Array, step: float, progress: Progress) -> tuple[Array, Array]:
        """States (N, …) and accelerations (N, n) by steps of RK4, brought back to the constraints after each."""
        (qdd,), x, xd, slips = self.sampled(clock[:1], state[None])[1], *self.split(state)
        start = NaturalState(float(clock[0]), x, xd, qdd, np.zeros(self.system.constraints.m), slips)
        how, given = NaturalMethod("explicit", step, EXACT, "RK4"), self.acting.inputs
        loads = None if self.called is not None or given.loads is None else self._loads
        prescribed = self._prescribed if self.system.mechanism.prescribed else None
        try:
            found = compiled_motion(self.system, clock, start, loads, how, prescribed, None, progress, self.run)
        except SimulationError:
            self.refuse()
            raise
        return np.concatenate([found.q, found.qd, found.slips], axis=1), found.qdd


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
    if how.name == "RK4":
        return _trajectory(rates, clock, *rates.marched(clock, state, how.step, progress), q0)
    names = [*2 * rates.system.coordinates, *(rates.system.wheels.states if rates.slips else ())]

    def rate(time: float, y: Array) -> Array:
        progress("simulating", time - clock[0], clock[-1] - clock[0])
        found = rates.rate(time, y)
        check_size(time, found, slice(0, 0), machine.name, names)
        return found

    hint = "Look for a stiff spring, or a force that runs away."
    path = adaptive_path(rate, clock, state, how, machine.name, hint, names)
    return _trajectory(rates, clock, *rates.sampled(clock, path), q0)


def _trajectory(rates: _Rates, clock: Array, path: Array, xdd: Array, start: Array) -> Trajectory:
    model, acting, n = rates.model, rates.acting, rates.system.n
    rates.start = start
    x, xd = path[:, :n], path[:, n : 2 * n]
    found = [rates.pushing(*at) for at in zip(clock.tolist(), x, xd, strict=True)]
    q, qd, qdd = model.on_tree(clock, x, xd, xdd, start)
    forces = np.array([f[2] for f in found])
    wrenches = {body: np.array([f[3][body] for f in found]) for body in found[0][3]}
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
