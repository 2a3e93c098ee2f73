"""Motion of a mechanism in natural coordinates over time: driven by loads, or led along a motion of its independent coordinates.

Driven, its equations are integrated in one of five formulations: four by the trapezoidal rule, one by an explicit rule.

index3      positions from the index-3 augmented Lagrangian, velocities and accelerations projected; the default
explicit    a Runge-Kutta rule of order 4, 5 or 8 on exact accelerations, then back to the constraints; quickest where nothing is stiff
penalty     index-1 penalty; constraint errors of the order of 1/α stay
augmented   index-1 augmented Lagrangian; what the integrator leaves open dies out with ω
r_matrix    independent coordinates; positions and velocities of all others solved at every step

Led, positions, rates and accelerations follow from the constraints, and the drives push with what that takes: with R of q̇ = R ż, the
equations Rᵀ (M q̈ − Q₀) = Rᵀ B u hold no constraint forces, so they give u.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.errors import DataError, Faults, SimulationError, did_you_mean
from veridyn.mechanics.ground.road import Road
from veridyn.mechanics.natural.equations.dynamics import (
    NaturalState,
    Stabilisation,
    accelerations,
    refuse_vehicle,
    solve_accelerations,
)
from veridyn.mechanics.natural.equations.position import (
    acceleration,
    independent,
    position,
    r_matrix,
    start_of,
    velocity,
)
from veridyn.mechanics.natural.equations.system import NaturalSystem
from veridyn.mechanics.natural.steps.explicit import ExplicitRun, explicit_steps
from veridyn.mechanics.natural.steps.index3 import index3_steps
from veridyn.mechanics.system.simulation import clock
from veridyn.mechanics.system.stepper import RULES, tableau
from veridyn.model.load import Drive
from veridyn.model.motion import Reference
from veridyn.progress import Progress, silent

Formulation = Literal["index3", "explicit", "penalty", "augmented", "r_matrix"]
FORMULATIONS = ("index3", "explicit", "penalty", "augmented", "r_matrix")
RUNAWAY = 1e6  # a repetition that moves the state by this many times its size will not come back
AT_ONCE = 1000  # steps in one call of machine code, at the least, where there are as many
Loads = Callable[[float], Mapping[str, ArrayLike]]
Prescribed = Callable[[float], Mapping[str, ArrayLike]]  # of a time: name → place, rate and acceleration


@dataclass(frozen=True)
class NaturalMethod:
    """How to integrate: the formulation, the longest step (s), how constraints are held, and the `rule` of the explicit form.

    Index-3 and explicit steps are machine code; the other formulations are NumPy.
    """

    formulation: Formulation = "index3"
    step: float = 1e-3
    stabilisation: Stabilisation = field(default_factory=Stabilisation)
    rule: Literal["RK4", "RK45", "DOP853"] = "RK4"

    @property
    def compiles(self) -> bool:
        """Whether steps are machine code."""
        return self.formulation in ("explicit", "index3")

    @property
    def times(self) -> Array:
        """When a step asks for loads, in steps from its beginning."""
        return np.append(tableau(self.rule).c, 1.0) if self.formulation == "explicit" else np.ones(1)


@dataclass(frozen=True, eq=False)
class NaturalMotion:
    """A simulated motion: (N, n) positions, rates and accelerations in the order of `coordinates`, (N, m) multipliers, slips of tyres."""

    coordinates: tuple[str, ...]
    t: Array
    q: Array
    qd: Array
    qdd: Array
    multipliers: Array
    slips: Array = field(default_factory=lambda: np.zeros((0, 0)))  # (N, 2w) of tyres

    def __len__(self) -> int:
        return len(self.t)

    def state(self, k: int) -> NaturalState:
        """One of its instants."""
        slips = self.slips[k] if len(self.slips) else np.zeros(0)
        return NaturalState(float(self.t[k]), self.q[k], self.qd[k], self.qdd[k], self.multipliers[k], slips)

    def column(self, coordinate: str) -> Array:
        """The history (N,) of one coordinate."""
        try:
            return self.q[:, self.coordinates.index(coordinate)]
        except ValueError:
            raise DataError(
                f"there is no coordinate '{coordinate}'.", expected="one of " + ", ".join(self.coordinates)
            ) from None


def _compiled_steps(
    system: NaturalSystem,
    state: NaturalState,
    steps: Array,
    values: Array,
    how: NaturalMethod,
    motion: Array | None,
    road: Road | None,
) -> Array:
    """Rows q, q̇, q̈, λ, slips after each step; `values` (steps or 1, times or 1, loads), `motion` (steps, 3, p) of what is prescribed."""
    if how.formulation == "explicit":
        return explicit_steps(system, state, steps, values, how.rule, how.stabilisation)
    packed = None if road is None else road.packed
    return index3_steps(system, state, steps, values[:, -1], how.stabilisation, motion, packed)


def _unpacked(system: NaturalSystem, t: float, x: Array) -> NaturalState:
    return NaturalState(t, *(part.copy() for part in _parts(system, x)))


def _parts(system: NaturalSystem, x: Array) -> list[Array]:
    """q, q̇, q̈, λ and slips of rows (…, 3n + m + 2w)."""
    n = system.n
    return np.split(x, [n, 2 * n, 3 * n, 3 * n + system.constraints.m], axis=-1)


def integrate_natural(
    system: NaturalSystem,
    t: ArrayLike,
    start: NaturalState,
    loads: Loads | None = None,
    *,
    method: NaturalMethod | None = None,
    prescribed: Prescribed | None = None,
    road: Road | None = None,
    progress: Progress = silent,
) -> NaturalMotion:
    """The motion from a consistent state (:func:`~veridyn.mechanics.natural.equations.dynamics.initial_state`), sampled at the times t.

    Each interval of t is cut into equal steps no longer than the method's. `loads` gives the loads by name at a time; those it does
    not name keep the model's value. `prescribed` gives place, rate and acceleration of prescribed coordinates by name at a time, without
    it they stay as the system holds them. Tyres roll on the `road`, a level one at their constant ROAD where it is not given. A step that
    does not converge raises :class:`~veridyn.errors.SimulationError` with its time.
    """
    how = method or NaturalMethod()
    clock = np.asarray(t, dtype=np.float64)
    faults = Faults()
    if clock.ndim != 1 or len(clock) < 2 or not (np.diff(clock) > 0).all():
        faults.add("the times do not increase.", where="t", expected="at least two increasing times")
    if how.formulation not in FORMULATIONS:
        faults.add(
            f"there is no formulation '{how.formulation}'.",
            where="method",
            expected="one of " + ", ".join(FORMULATIONS),
        )
    if how.rule not in RULES:
        faults.add(f"there is no rule '{how.rule}'.", where="method.rule", expected="one of " + ", ".join(RULES))
    if not 0.0 < how.step < math.inf:
        faults.add("a step needs its length.", where="method.step", expected="a positive time", found=f"{how.step}")
    faults.raise_if_any(DataError, system.mechanism.name)
    if how.formulation != "index3":
        refuse_vehicle(system, f"formulation {how.formulation}")
    for part in ("q", "qd", "qdd"):
        system.vector(getattr(start, part), part)
    slips = start.slips if len(start.slips) else np.zeros(2 * len(system.mechanism.tyres))
    state = NaturalState(float(clock[0]), start.q, start.qd, start.qdd, start.multipliers, slips)
    if how.compiles:
        return compiled_motion(system, clock, state, loads, how, prescribed, road, progress)
    states = [state]
    for begin, end in itertools.pairwise(clock.tolist()):
        count, h = _cut(begin, end, how.step)
        for k in range(1, count + 1):
            state = _fixed_point(system, state, h, _acting(system, loads, begin + (k - 1) * h, h, how)[-1], how)
        states.append(state)
        progress("simulating", end - clock[0], clock[-1] - clock[0])
    return NaturalMotion(
        system.coordinates,
        clock,
        np.array([s.q for s in states]),
        np.array([s.qd for s in states]),
        np.array([s.qdd for s in states]),
        np.array([s.multipliers for s in states]),
        np.array([s.slips for s in states]),
    )


def _cut(begin: float, end: float, longest: float) -> tuple[int, float]:
    count = max(1, math.ceil((end - begin) / longest - 1e-9))
    return count, (end - begin) / count


def _acting(system: NaturalSystem, loads: Loads | None, begin: float, h: float, how: NaturalMethod) -> Array:
    """Loads at the method's times in the step from `begin`, (times, loads); one row where they are constant."""
    if loads is None:
        return system.forces.values[None]
    return np.array([system.forces.load_values(loads(begin + c * h)) for c in how.times.tolist()])


def _leading(system: NaturalSystem, prescribed: Prescribed, begin: float, h: float, how: NaturalMethod) -> Array:
    """Motions of prescribed coordinates (times, 3, p) at the method's times in the step from `begin`."""
    return np.array([system.holding(prescribed(begin + c * h)).constraints.motion for c in how.times.tolist()])


def compiled_motion(
    system: NaturalSystem,
    clock: Array,
    state: NaturalState,
    loads: Loads | None,
    how: NaturalMethod,
    prescribed: Prescribed | None,
    road: Road | None,
    progress: Progress,
    run: ExplicitRun | None = None,
) -> NaturalMotion:
    """The motion in few calls of machine code: loads and prescribed motions depend on time alone and are computed ahead.

    `run`: what makes the explicit steps, where it is more than a mechanism without tyres and prescribed coordinates.
    """
    rows = [np.concatenate([state.q, state.qd, state.qdd, state.multipliers, state.slips])]
    steps: list[float] = []
    ends: list[int] = []
    values: list[Array] = []
    led: list[Array] = []
    for begin, end in itertools.pairwise(clock.tolist()):
        count, h = _cut(begin, end, how.step)
        steps += [h] * count
        ends.append(len(steps) - 1)
        if loads is not None:
            values += [_acting(system, loads, begin + k * h, h, how) for k in range(count)]
        if prescribed is not None:
            led += [_leading(system, prescribed, begin + k * h, h, how) for k in range(count)]
        if len(steps) < AT_ONCE and end < clock[-1]:
            continue
        given = np.array(values) if values else _acting(system, None, begin, 0.0, how)[None]
        lengths, motion = np.array(steps), np.array(led) if led else None
        if run is None:
            found = _compiled_steps(system, state, lengths, given, how, None if motion is None else motion[:, -1], road)
        else:
            found = run.steps(rows[-1], state.t, lengths, given, motion)
        rows += list(found[ends])
        state = _unpacked(system, end, found[-1])
        steps, ends, values, led = [], [], [], []
        progress("simulating", end - clock[0], clock[-1] - clock[0])
    return NaturalMotion(system.coordinates, clock, *(x.copy() for x in _parts(system, np.array(rows))))


def constraint_errors(system: NaturalSystem, motion: NaturalMotion) -> Array:
    """The largest |Φ|, |Φ_q q̇| and |Φ_q q̈ + Φ̇_q q̇| at each instant, (N, 3), but for the rows of prescribed coordinates."""
    c = system.constraints
    own = np.setdiff1d(np.arange(c.m), c.held)
    return np.array([c.errors(*at, own) for at in zip(motion.q, motion.qd, motion.qdd, strict=True)])


def _fixed_point(
    system: NaturalSystem, state: NaturalState, h: float, values: Array, how: NaturalMethod
) -> NaturalState:
    """The trapezoidal rule (19, corrected) on accelerations, repeated until positions and velocities rest."""
    stab, form = how.stabilisation, how.formulation
    assert form not in ("index3", "explicit")
    names = independent(system, state.q) if form == "r_matrix" else ()
    z = system.select(names)
    q, qd = state.q + h * state.qd + 0.5 * h * h * state.qdd, state.qd + h * state.qdd
    qdd, lam = state.qdd, state.multipliers
    size = max(1.0, float(np.abs(q).max(initial=0.0)), float(np.abs(qd).max(initial=0.0)))
    moved = np.inf
    for _ in range(stab.iterations):
        if form == "r_matrix":
            q = position(system, dict(zip(names, q[z].tolist(), strict=True)), q)
            qd = velocity(system, q, dict(zip(names, qd[z].tolist(), strict=True)))
        qdd, lam = accelerations(system, q, qd, values, form, stabilisation=stab, multipliers=lam, independents=names)
        new_qd = state.qd + 0.5 * h * (state.qdd + qdd)
        new_q = state.q + h * state.qd + 0.25 * h * h * (state.qdd + qdd)
        watched = z if form == "r_matrix" else np.arange(system.n)
        moved = max(
            float(np.abs(new_q - q)[watched].max(initial=0.0)), float(np.abs(new_qd - qd)[watched].max(initial=0.0))
        )
        if moved <= stab.tolerance * size:
            return NaturalState(state.t + h, q, qd, qdd, lam)
        if not moved < RUNAWAY * size:
            break
        q, qd = new_q, new_qd
    raise SimulationError(
        f"the step to {state.t + h:.6g} s does not converge in {stab.iterations} iterations.",
        where=system.mechanism.name,
        expected=f"a last change below {stab.tolerance * size:.3g}",
        found=f"{moved:.3g}",
        hint="Try a smaller step, or the index3 formulation, which takes stiff springs.",
    )


SINGULAR_DRIVE = 1e-9  # of the drives' grip on the motion, relative to the largest


@dataclass(frozen=True, eq=False)
class MechanismRun:
    """A motion of a mechanism, and the loads that acted: name → (N, components)."""

    system: NaturalSystem
    motion: NaturalMotion
    loads: Mapping[str, Array]


def driven(
    system: NaturalSystem,
    duration: float,
    rate: float,
    loads: Loads | None = None,
    *,
    start: Mapping[str, float] | None = None,
    rates: Mapping[str, float] | None = None,
    method: NaturalMethod | None = None,
    progress: Progress = silent,
) -> MechanismRun:
    """The motion from coordinates and rates by name (rest, and the model's own pose, where left out) under loads given over time."""
    t = clock(duration, rate)
    q, qd = start_of(system, start, rates)
    qdd, multipliers = solve_accelerations(system, q, qd, None if loads is None else loads(0.0))
    state = NaturalState(0.0, q, qd, qdd, multipliers)
    motion = integrate_natural(system, t, state, loads, method=method, progress=progress)
    return MechanismRun(system, motion, _acted(system, t, loads))


def led(
    system: NaturalSystem,
    duration: float,
    rate: float,
    reference: Reference,
    names: Sequence[str],
    loads: Loads | None = None,
    *,
    progress: Progress = silent,
) -> MechanismRun:
    """The motion in which the coordinates `names` follow a reference exactly; every drive that `loads` does not give does what it takes.

    `names` must determine the mechanism, and there must be one such drive for each of them.
    """
    m, f = system.mechanism, system.forces
    t = clock(duration, rate)
    z, zd, zdd = reference.at(t)
    given = [] if loads is None else list(loads(0.0))
    drives = [load.name for load in m.loads if isinstance(load, Drive) and load.name not in given]
    faults = Faults()
    for name in names:
        if name not in m.coordinates:
            hint = did_you_mean(name, m.coordinates)
            faults.add(f"there is no coordinate '{name}'.", where=m.name, hint=hint)
    if z.shape[1] != len(names) or len(drives) != len(names):
        faults.add(
            "it cannot be led along this motion.",
            where=m.name,
            expected=f"one free drive for each of {', '.join(names)}",
            found=", ".join(drives) or "none",
        )
    faults.raise_if_any(DataError)
    at = [f.loads[name].start for name in drives]
    q, states, forces = system.guess, [], []
    for k, time in enumerate(t.tolist()):
        q = position(system, dict(zip(names, z[k].tolist())), q)
        qd = velocity(system, q, dict(zip(names, zd[k].tolist())))
        qdd = acceleration(system, q, qd, dict(zip(names, zdd[k].tolist())))
        values = f.load_values(None if loads is None else loads(time)).copy()
        values[at] = 0.0
        u = _taken(system, q, qd, qdd, values, at, tuple(names))
        values[at] = u
        _, multipliers = solve_accelerations(system, q, qd, values)
        states.append((q, qd, qdd, multipliers))
        forces.append(values)
        progress("simulating", time, float(t[-1]))
    motion = NaturalMotion(system.coordinates, t, *(np.array(x) for x in zip(*states)))
    table = np.array(forces)
    return MechanismRun(system, motion, {name: table[:, part] for name, part in f.loads.items()})


def _taken(
    system: NaturalSystem, q: Array, qd: Array, qdd: Array, values: Array, at: list[int], names: tuple[str, ...]
) -> Array:
    """What the drives push with, so that the mechanism accelerates so."""
    R = r_matrix(system, q, names)
    B = R.T @ system.forces.constant[:, at]
    s = np.linalg.svd(B, compute_uv=False)
    if s[-1] <= SINGULAR_DRIVE * s[0]:
        raise DataError(
            "its drives cannot move it along this motion: a push of theirs does nothing.",
            where=system.mechanism.name,
            found=f"smallest singular value {s[-1]:.1e} of the largest {s[0]:.1e}",
        )
    needed = R.T @ (system.mass @ qdd - system.forces.forces(q, qd, values))
    return np.asarray(np.linalg.solve(B, needed), dtype=np.float64)


def _acted(system: NaturalSystem, t: Array, loads: Loads | None) -> dict[str, Array]:
    f = system.forces
    table = np.array([f.load_values(None if loads is None else loads(time)) for time in t.tolist()])
    return {name: table[:, part] for name, part in f.loads.items()}
