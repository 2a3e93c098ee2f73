"""A mechanism in natural coordinates with its sensors, as filters see it.

The state holds the whole pose, so that a mechanism never changes its assembly unnoticed; a change of state is one of the independent
coordinates, their rates, the unknown forces and the biases:

    x = (q, q̇, u, b)       d = (dz, dż, du, db)       x ⊞ d: position problem, then velocity problem, then acceleration problem

Two error models carry covariances: "exact", the derivative of the trapezoidal step with all couplings, and "integrator", the F of the
thesis' errorEKF (paper 003, equation 54, with Δt I), which knows nothing of the mechanism but its reduced mass. Unknown forces walk at
random: the torque pulse, the wrong mass and the wrong gravity of the thesis are such forces.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault, Faults, ModelError, did_you_mean
from veridyn.mechanics.measurement import Readout, readout
from veridyn.mechanics.natural.minimal import Instant, Minimal, minimal, start_of
from veridyn.mechanics.natural.system import NaturalSystem, system_of
from veridyn.model.natural import Mechanism
from veridyn.observe.noise import as_covariance
from veridyn.observe.result import Belief

Array = NDArray[np.float64]
ErrorModel = Literal["exact", "integrator"]
Size = float | Mapping[str, float]


@dataclass(frozen=True)
class Unsure:
    """How far a model is trusted; each one number for all coordinates (or forces), or a number by name.

    Densities, added while it moves: `position` (unit²/s), `acceleration`, white ((unit/s²)²/Hz), and `force`, the walk of the unknown
    forces ((N or N*m)²/s). Deviations at the start: `start` of the coordinates, `start_rate`, `start_force`.
    """

    position: Size = 0.0
    acceleration: Size = 0.0
    force: Size = 0.0
    start: Size = 1.0
    start_rate: Size = 1.0
    start_force: Size = 0.0


@dataclass(frozen=True, eq=False)
class MechanismSystem:
    """The mechanism `model` with the sensors of `table`, as a :class:`~veridyn.observe.system.System`; made by :func:`mechanism_system`.

    `inputs` names the loads whose values come with the measurements.
    """

    model: Minimal
    table: Readout
    unsure: Unsure
    error_model: ErrorModel
    inputs: tuple[str, ...]
    states: tuple[str, ...]
    outputs: tuple[str, ...]
    drifting: tuple[int, ...]  # outputs whose bias is a state
    R: Array
    density: Array  # of position, acceleration (f each), force (k), bias (p)
    selector: Array  # (m, p): which bias belongs to which output
    wraps: NDArray[np.bool_]
    longest: float  # step (s) of the integration
    _known: list[tuple[bytes, Instant]] = field(default_factory=list, repr=False)
    _loads: list[tuple[bytes, tuple[Array, Array]]] = field(default_factory=list, repr=False)
    _same: dict[float, Array] = field(default_factory=dict, repr=False)
    _carry: list[tuple[tuple[bytes, bytes, float], tuple[Array, Array, Array]]] = field(
        default_factory=list, repr=False
    )

    @property
    def f(self) -> int:
        return self.model.f

    def split(self, x: Array) -> tuple[Array, Array, Array, Array]:
        """q, q̇, unknown forces and biases of states (…, N)."""
        n, k = self.model.system.n, len(self.model.unknown)
        return x[..., :n], x[..., n : 2 * n], x[..., 2 * n : 2 * n + k], x[..., 2 * n + k :]

    def join(self, q: Array, qd: Array, u: Array, b: Array) -> Array:
        return np.concatenate([q, qd, u, b], axis=-1)

    def reduced(self, x: Array) -> Array:
        """(z, ż, u, b) of states (…, N): what changes are counted in."""
        n, z = self.model.system.n, self.model.z
        return np.concatenate([x[..., z], x[..., n + z], x[..., 2 * n :]], axis=-1)

    def instant(self, x: Array, inputs: Array) -> Instant:
        """Accelerations, multipliers and all derivatives at a state."""
        key = x.tobytes() + inputs.tobytes()
        if self._known and self._known[0][0] == key:
            return self._known[0][1]
        q, qd, u, _ = self.split(x)
        z = self.model.z
        found = self.model.instant(q, q[z], qd[z], u, self._acting(inputs))
        self._remember(key, found)
        return found

    def move(self, x: Array, u: Array, t: float, dt: float) -> Array:
        count = self._count(dt)
        for _ in range(count):
            x = self._step(x, u, dt / count, derivative=False)[0]
        return x

    def move_and_jacobian(self, x: Array, u: Array, t: float, dt: float) -> tuple[Array, Array]:
        moved, F, _ = self._carried(x, u, dt)
        return moved, F

    def noise(self, x: Array, u: Array, t: float, dt: float) -> Array:
        """White acceleration, and forces that walk: both integrated over the step."""
        return self._carried(x, u, dt)[2]

    def _carried(self, x: Array, u: Array, dt: float) -> tuple[Array, Array, Array]:
        """The state after dt, its derivative and the noise of the way there, which filters ask for one after the other."""
        key = (x.tobytes(), u.tobytes(), dt)
        for known, found in self._carry:
            if known == key:
                return found
        count = self._count(dt)
        h = dt / count
        at, F, Q = x, np.eye(len(self.states)), np.zeros((len(self.states), len(self.states)))
        for k in range(count):
            at, found = self._step(at, u, h)
            push = found.F[self.f :, 2 * self.f :] / h  # (Rᵀ M R)⁻¹ of the forces, over the step
            G, added = self._transition(found.F, push, h), self._noise(push, h)
            F, Q = (G, added) if k == 0 else (G @ F, G @ Q @ G.T + added)
        self._carry[:] = [(key, (at, F, Q))]
        return at, F, Q

    def _count(self, dt: float) -> int:
        return max(1, int(np.ceil(dt / self.longest - 1e-9)))

    def _transition(self, exact: Array, push: Array, h: float) -> Array:
        f, k = self.f, len(self.model.unknown)
        F = np.eye(len(self.states))
        if self.error_model == "exact":
            F[: 2 * f, : 2 * f + k] = exact
        else:
            i = np.arange(f)
            F[i, f + i] = h  # (54)
            F[:f, 2 * f : 2 * f + k] = 0.5 * h**2 * push
            F[f : 2 * f, 2 * f : 2 * f + k] = h * push
        return F

    def _noise(self, push: Array, dt: float) -> Array:
        Q = self._quiet(dt)
        f, k = self.f, len(self.model.unknown)
        force = self.density[2 * f : 2 * f + k]
        if not force.any():
            return Q
        pushed = push * force
        both = pushed @ push.T
        a, b, c = slice(0, f), slice(f, 2 * f), slice(2 * f, 2 * f + k)
        Q = Q.copy()
        Q[a, a] += both * (dt**5 / 20.0)
        Q[a, b] += both * (dt**4 / 8.0)
        Q[b, a] = Q[a, b].T
        Q[b, b] += both * (dt**3 / 3.0)
        Q[a, c], Q[b, c] = pushed * (dt**3 / 6.0), pushed * (dt**2 / 2.0)
        Q[c, a], Q[c, b] = Q[a, c].T, Q[b, c].T
        return Q

    def _quiet(self, dt: float) -> Array:
        """The part of Q that does not depend on the pose; steps of one length share it."""
        known = self._same.get(dt)
        if known is not None:
            return known
        f, k = self.f, len(self.model.unknown)
        position, white, force, bias = np.split(self.density, [f, 2 * f, 2 * f + k])
        Q = np.diag(np.concatenate([position * dt + white * dt**3 / 3.0, white * dt, force * dt, bias * dt]))
        i = np.arange(f)
        Q[i, f + i] = Q[f + i, i] = white * dt**2 / 2.0
        if len(self._same) > 16:
            self._same.clear()
        self._same[dt] = Q
        return Q

    def sense(self, x: Array, u: Array, t: float) -> Array:
        q, qd, force, b = self.split(x)
        qdd = qd
        if self.table.accelerates:
            z = self.model.z
            qdd = self.model.instant(q, q[..., z], qd[..., z], force, self._acting(u), derivative=False).qdd
        return self.table.read(q, qd, qdd) + b @ self.selector.T

    def sense_and_jacobian(self, x: Array, u: Array, t: float) -> tuple[Array, Array]:
        q, qd, _, b = self.split(x)
        at = self.instant(x, u)
        return self.table.read(q, qd, at.qdd) + self.selector @ b, self.chained(
            at, *self.table.derivatives(q, qd, at.qdd)
        )

    def chained(self, at: Instant, h_q: Array, h_qd: Array, h_qdd: Array, h_lam: Array | None = None) -> Array:
        """The derivative (m, states) of a quantity of q, q̇, q̈ and λ with respect to a change of state; biases as the outputs have them."""
        f, k = self.f, len(self.model.unknown)
        H = np.zeros((len(h_q), len(self.states)))
        H[:, :f] = h_q @ at.R + h_qd @ at.qd_z
        H[:, f : 2 * f] = h_qd @ at.R
        H[:, : 2 * f + k] += h_qdd @ at.qdd_x
        if h_lam is not None:
            H[:, : 2 * f + k] += h_lam @ at.multipliers_x
        elif len(H) == len(self.selector):
            H[:, 2 * f + k :] = self.selector
        return H

    def sensor_noise(self, t: float) -> Array:
        return self.R

    def add(self, x: Array, d: Array) -> Array:
        q, qd, u, b = self.split(np.broadcast_to(x, (*d.shape[:-1], len(x))))
        f, k, z = self.f, len(self.model.unknown), self.model.z
        forces = u + d[..., 2 * f : 2 * f + k]
        aim, speed = q[..., z] + d[..., :f], qd[..., z] + d[..., f : 2 * f]
        at = self.model.instant(q, aim, speed, forces, self._still, derivative=False)
        return self.join(at.q, at.qd, forces, b + d[..., 2 * f + k :])

    def subtract(self, a: Array, b: Array) -> Array:
        return self.reduced(a) - self.reduced(b)

    def residual(self, y: Array, expected: Array) -> Array:
        e = y - expected
        return np.where(self.wraps, (e + np.pi) % (2.0 * np.pi) - np.pi, e) if self.wraps.any() else e

    def belief(self, q: Array, qd: Array, t: float | None = None, u: Array | None = None) -> Belief:
        """The start that `unsure` describes, around a pose and velocity."""
        names, forces = self.model.names, self.model.unknown
        deviations = np.concatenate(
            [
                sizes(self.unsure.start, names, "start"),
                sizes(self.unsure.start_rate, names, "start_rate"),
                sizes(self.unsure.start_force, forces, "start_force"),
                [self.table.instruments[self.table.owner[j]].bias_sigma for j in self.drifting],
            ]
        )
        x = self.join(q, qd, np.zeros(len(forces)) if u is None else u, np.zeros(len(self.drifting)))
        return Belief(x, deviations**2, t)

    def _step(self, x: Array, inputs: Array, dt: float, derivative: bool = True) -> tuple[Array, Instant]:
        q, qd, u, b = self.split(x)
        z = self.model.z
        found = self.model.step(q, q[..., z], qd[..., z], u, dt, self._acting(inputs), derivative)
        moved = self.join(found.q, found.qd, u, b)
        if derivative:
            self._remember(moved.tobytes() + inputs.tobytes(), found)
        return moved, found

    def _remember(self, key: bytes, found: Instant) -> None:
        self._known[:] = [(key, found)]

    @property
    def _still(self) -> tuple[Array, Array]:
        return self._acting(np.zeros(0))

    def _acting(self, inputs: Array) -> tuple[Array, Array]:
        key = inputs.tobytes()
        for known, loads in self._loads:
            if known == key:
                return loads
        given = dict(zip(self.inputs, inputs.tolist()))
        loads = self.model.loads(given)
        self._loads[:] = [(key, loads)]
        return loads


def sizes(given: Size, names: tuple[str, ...], what: str) -> Array:
    """One number per name, from one for all or a mapping; refused by name where one is negative or belongs to nothing."""
    faults = Faults()
    if isinstance(given, Mapping):
        for name in given:
            if name not in names:
                faults.add(f"there is no '{name}' here.", where=what, hint=did_you_mean(name, names))
        values = [float(given.get(name, 0.0)) for name in names]
    else:
        values = [float(given)] * len(names)
    for name, value in zip(names, values):
        if not (np.isfinite(value) and value >= 0.0):
            faults.add(f"that of '{name}' is not usable.", where=what, expected="zero or more", found=f"{value:g}")
    faults.raise_if_any(ModelError)
    return np.array(values, dtype=np.float64)


def mechanism_system(
    machine: Mechanism | NaturalSystem,
    unsure: Unsure,
    *,
    error_model: ErrorModel = "exact",
    unknown: tuple[str, ...] | None = None,
    independents: tuple[str, ...] = (),
    sensors: Readout | None = None,
    inputs: tuple[str, ...] = (),
    start: Mapping[str, float] | None = None,
    rates: Mapping[str, float] | None = None,
    step: float = 0.01,
) -> tuple[MechanismSystem, Array, Array]:
    """The system, and the pose and velocity it starts from.

    `unknown`: names of independent coordinates or loads whose force is estimated, None for one on every independent coordinate. `start` and
    `rates`: coordinates and rates by name; what is not given is as the description has it, and at rest. `step`: the longest of the
    integration (s); longer pauses between readings are gone in several.
    """
    if not 0.0 < step < np.inf:
        raise ModelError(Fault("the longest step is not usable.", "observe", "a positive time", f"{step:g} s"))
    system = machine if isinstance(machine, NaturalSystem) else system_of(machine)
    table = readout(system) if sensors is None else sensors
    if not table.names:
        raise ModelError(
            Fault(
                "it has no sensors, so there is nothing to observe it by.",
                where=system.mechanism.name,
                hint="Give it some: a section `sensors` in its file, or sensors=.",
            )
        )
    q, qd = start_of(system, start, rates)
    model = minimal(system, q, independents, unknown)
    if model.f == 0:
        raise ModelError(Fault("it cannot move.", where=system.mechanism.name, found="no degree of freedom"))
    for name in inputs:
        system.forces.load_values({name: _value(system, name)})
    drifting = tuple(j for j, k in enumerate(table.owner) if table.instruments[k].drifts)
    states = (
        *model.names,
        *(f"{name}_dot" for name in model.names),
        *(f"force.{name}" for name in model.unknown),
        *(f"bias.{table.names[j]}" for j in drifting),
    )
    density = np.concatenate(
        [
            sizes(unsure.position, model.names, "position"),
            sizes(unsure.acceleration, model.names, "acceleration"),
            sizes(unsure.force, model.unknown, "force"),
            [table.instruments[table.owner[j]].bias_walk for j in drifting],
        ]
    )
    wraps = np.array([table.instruments[k].turns for k in table.owner], dtype=np.bool_)
    found = MechanismSystem(
        model,
        table,
        unsure,
        error_model,
        tuple(inputs),
        states,
        table.names,
        drifting,
        as_covariance(table.variances, table.names, "measurement noise", definite=True),
        density,
        np.eye(len(table.names))[:, list(drifting)],
        wraps,
        step,
    )
    return found, q, qd


def _value(system: NaturalSystem, name: str) -> Array:
    """The present value of a load, so that a name that is none is refused where it is given."""
    loads = system.forces.loads
    if name not in loads:
        raise DataError(
            Fault(f"there is no load '{name}'.", where=system.mechanism.name, hint=did_you_mean(name, list(loads)))
        )
    if loads[name].stop - loads[name].start != 1:
        raise DataError(Fault("an input is one number.", where=f"load '{name}'", found="several"))
    return system.forces.values[loads[name]]
