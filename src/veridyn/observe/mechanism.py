"""A mechanism in natural coordinates with its sensors, as filters see it.

The state holds the whole pose, so that a mechanism never changes its assembly unnoticed; a change of state is one of the independent
coordinates, their rates, the unknown forces and the biases:

    x = (q, q̇, u, b)       d = (dz, dż, du, db)       x ⊞ d: position problem, then velocity problem, then acceleration problem

The last number of x says which set of independent coordinates d is of: a body that turns round has no single one, so sets take over from
each other (:mod:`veridyn.mechanics.natural.charts`). What is reported are always the coordinates of the first.

Three error models carry covariances. "integrator" is the F of the thesis' errorEKF (paper 003, equation 54, with Δt I): an error of
acceleration does not depend on the pose. "forward" adds the exact derivatives of the accelerations to it, in first order over a step
(Sanjurjo, Dopico, Luaces and Naya, MSSP 106, 2018, 210-228). "exact" is the derivative of the trapezoidal step itself:

    d⁺ = (dz + Δt dż + Δt²/2 a, dż + Δt a, du),    a = 0 + z̈_u du    or    a = z̈_z dz + z̈_ż dż + z̈_u du

Unknown forces walk at random: the torque pulse, the wrong mass and the wrong gravity of the thesis are such forces.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, SimulationError
from veridyn.mechanics.measurement import Readout
from veridyn.mechanics.natural.charts import Charts
from veridyn.mechanics.natural.minimal import Instant, Minimal
from veridyn.observe.result import Belief
from veridyn.observe.unsure import Unsure, sizes

if TYPE_CHECKING:
    from veridyn.observe.filter import CompiledStep

Array = NDArray[np.float64]
ErrorModel = Literal["exact", "forward", "integrator"]


@dataclass(frozen=True, eq=False)
class MechanismSystem:
    """A mechanism with the sensors of `table`, as a :class:`~veridyn.observe.system.System`.

    Made by :func:`~veridyn.observe.mechanism_setup.mechanism_system`. `inputs` names the loads whose values come with the measurements.
    `one_set`: keep to the first set of independent coordinates.
    """

    charts: Charts
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
    one_set: bool = False
    _known: list[tuple[bytes, Instant]] = field(default_factory=list, init=False, repr=False)
    _loads: list[tuple[bytes, tuple[Array, Array]]] = field(default_factory=list, init=False, repr=False)
    _same: dict[tuple[float, int], Array] = field(default_factory=dict, init=False, repr=False)
    _carry: list[tuple[tuple[bytes, bytes, float], tuple[Array, Array, Array]]] = field(
        default_factory=list, init=False, repr=False
    )

    @property
    def f(self) -> int:
        return self.model.f

    @property
    def model(self) -> Minimal:
        """The mechanism over the first set."""
        return self.charts.first

    def split(self, x: Array) -> tuple[Array, Array, Array, Array]:
        """q, q̇, unknown forces and biases of states (…, N)."""
        n, k = self.model.system.n, len(self.model.unknown)
        return x[..., :n], x[..., n : 2 * n], x[..., 2 * n : 2 * n + k], x[..., 2 * n + k : -1]

    def join(self, q: Array, qd: Array, u: Array, b: Array, number: int = 0) -> Array:
        mark = np.full((*q.shape[:-1], 1), float(number))
        return np.concatenate([q, qd, u, b, mark], axis=-1)

    def set_of(self, x: Array) -> int:
        """The number of the set of independent coordinates that changes of a state, or of the first of many, are counted in."""
        return int(x[-1] if x.ndim == 1 else x.reshape(-1, x.shape[-1])[0, -1])

    def reduced(self, x: Array, number: int = 0) -> Array:
        """(z, ż, u, b) of states (…, N), z of the first set or of another."""
        n, z = self.model.system.n, self.charts[number].z
        return np.concatenate([x[..., z], x[..., n + z], x[..., 2 * n : -1]], axis=-1)

    def reported(self, x: Array, P: Array) -> Array:
        """The covariance of (z, ż, u, b) of the first set, from that in the set of x."""
        if self.set_of(x) == 0:
            return P
        T = self.between(x, self.named(x))
        return T @ P @ T.T

    def named(self, x: Array) -> Array:
        """The same state with changes counted in the first set, the one that names the states."""
        return np.append(x[:-1], 0.0)

    def between(self, a: Array, b: Array) -> Array:
        """How a change of the state a is written as one of b: different only where their sets are."""
        if self.set_of(a) == self.set_of(b):
            return np.eye(len(self.states))
        return self._whole(self.charts.change(self.instant(a, np.zeros(0)), self.set_of(b)))

    def _whole(self, change: Array) -> Array:
        """A change of (z, ż) as one of all states: forces and biases stay."""
        T = np.eye(len(self.states))
        T[: 2 * self.f, : 2 * self.f] = change
        return T

    def instant(self, x: Array, inputs: Array) -> Instant:
        """Accelerations, multipliers and all derivatives at a state."""
        key = x.tobytes() + inputs.tobytes()
        if self._known and self._known[0][0] == key:
            return self._known[0][1]
        q, qd, u, _ = self.split(x)
        model = self.charts[self.set_of(x)]
        found = model.instant(q, q[model.z], qd[model.z], u, self._acting(inputs))
        self._remember(key, found)
        return found

    def move(self, x: Array, u: Array, t: float, dt: float) -> Array:
        count = self.count(dt)
        for _ in range(count):
            x = self._step(x, u, dt / count, derivative=False).x
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
        count = self.count(dt)
        h = dt / count
        at, F, Q = x, np.eye(len(self.states)), np.zeros((len(self.states), len(self.states)))
        for k in range(count):
            step = self._step(at, u, h)
            push = step.found.F[self.f :, 2 * self.f :] / h  # (Rᵀ M R)⁻¹ of the forces, over the step
            G, added = self._transition(step, push, h), self._noise(push, h, step.number)
            if step.before is not None:
                G = G @ self._whole(step.before)
            if step.after is not None:
                T = self._whole(step.after)
                G, added = T @ G, T @ added @ T.T
            at = step.x
            F, Q = (G, added) if k == 0 else (G @ F, G @ Q @ G.T + added)
        self._carry[:] = [(key, (at, F, Q))]
        return at, F, Q

    def count(self, dt: float) -> int:
        """Steps of the integration in dt seconds."""
        return max(1, int(np.ceil(dt / self.longest - 1e-9)))

    def _transition(self, step: _Step, push: Array, h: float) -> Array:
        f, moved = self.f, 2 * self.f + len(self.model.unknown)
        F = np.eye(len(self.states))
        if self.error_model == "exact":
            F[: 2 * f, :moved] = step.found.F
            return F
        if self.error_model == "forward":
            a = step.found.qdd_x[self.charts[step.number].z]
        else:
            a = np.hstack([np.zeros((f, 2 * f)), push])
        i = np.arange(f)
        F[i, f + i] = h  # (54)
        F[:f, :moved] += 0.5 * h**2 * a
        F[f : 2 * f, :moved] += h * a
        return F

    def _noise(self, push: Array, dt: float, number: int) -> Array:
        Q = self._quiet(dt, number)
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

    def _quiet(self, dt: float, number: int) -> Array:
        """The part of Q that does not depend on the pose; steps of one length share it."""
        known = self._same.get((dt, number))
        if known is not None:
            return known
        f, k = self.f, len(self.model.unknown)
        position, white, force, bias = np.split(self.density, [f, 2 * f, 2 * f + k])
        if number:
            position, white = np.split(self.unsure.coordinate_densities(self.charts[number].names), 2)
        Q = np.diag(np.concatenate([position * dt + white * dt**3 / 3.0, white * dt, force * dt, bias * dt]))
        i = np.arange(f)
        Q[i, f + i] = Q[f + i, i] = white * dt**2 / 2.0
        if len(self._same) > 16:
            self._same.clear()
        self._same[dt, number] = Q
        return Q

    def sense(self, x: Array, u: Array, t: float) -> Array:
        q, qd, force, b = self.split(x)
        qdd = qd
        if self.table.accelerates:
            model = self.charts[self.set_of(x)]
            z = model.z
            qdd = model.instant(q, q[..., z], qd[..., z], force, self._acting(u), derivative=False).qdd
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
        q, qd, u, b = self.split(x if d.ndim == 1 else np.broadcast_to(x, (*d.shape[:-1], len(x))))
        f, k, number = self.f, len(self.model.unknown), self.set_of(x)
        forces = u + d[..., 2 * f : 2 * f + k]

        def go(number: int, d: Array) -> Instant:
            z = self.charts[number].z
            aim, speed = q[..., z] + d[..., :f], qd[..., z] + d[..., f : 2 * f]
            return self.charts[number].instant(q, aim, speed, forces, self._still, derivative=False)

        try:
            at = go(number, d)
        except (
            DataError,
            SimulationError,
        ):  # beyond the range of a coordinate, which is no end of the way in another set
            other = number if self.one_set else self.charts.best(x[: self.model.system.n])
            if other == number:
                raise
            at = go(other, d @ self._whole(self.charts.change(self.instant(x, np.zeros(0)), other)).T)
        return self.join(at.q, at.qd, forces, b + d[..., 2 * f + k :], number)

    def subtract(self, a: Array, b: Array) -> Array:
        """The way from b to a, in the sets of b."""
        a, b = np.broadcast_arrays(a, b)
        sets = np.unique(b[..., -1])
        if len(sets) == 1:
            number = int(sets[0])
            return self.reduced(a, number) - self.reduced(b, number)
        out = np.empty((*b.shape[:-1], len(self.states)))
        for number in sets.astype(int).tolist():
            here = b[..., -1] == number
            out[here] = self.reduced(a[here], number) - self.reduced(b[here], number)
        return out

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

    def compiled_step(self, gate: float | None, about: Array | None = None) -> CompiledStep:
        """Filter steps by machine code, for one caller; `about`: along the tangent at this state."""
        from veridyn.observe.natural_step import NaturalStep

        return NaturalStep(self, gate, about)

    def _step(self, x: Array, inputs: Array, dt: float, derivative: bool = True) -> _Step:
        number, before = self.set_of(x), None
        q, qd, u, b = self.split(x)

        def go(number: int) -> Instant:
            z = self.charts[number].z
            return self.charts[number].step(q, q[..., z], qd[..., z], u, dt, self._acting(inputs), derivative)

        try:
            found = go(number)
        except SimulationError:
            other = number if self.one_set else self.charts.best(_first(q))
            if other == number:
                raise
            if derivative:
                before = self.charts.change(self.instant(x, inputs), other)
            number = other
            found = go(number)
        moved = self.join(found.q, found.qd, u, b, number)
        if derivative:
            self._remember(moved.tobytes() + inputs.tobytes(), found)
        if self.one_set:
            return _Step(moved, found, number, before, None)
        better = self.charts.better(number, _first(found.q), found.R.reshape(-1, *found.R.shape[-2:])[0])
        if better is None:
            return _Step(moved, found, number, before, None)
        moved[..., -1] = better
        return _Step(moved, found, number, before, self.charts.change(found, better) if derivative else None)

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


class _Step(NamedTuple):
    """A state moved by a step, and the instant there over the set `number`; changes to that set before, and to the state's own after."""

    x: Array
    found: Instant
    number: int
    before: Array | None
    after: Array | None


def _first(of_many: Array) -> Array:
    return of_many if of_many.ndim == 1 else of_many.reshape(-1, of_many.shape[-1])[0]
