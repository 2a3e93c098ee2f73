"""A machine with its sensors, as filters see it, in any formulation.

The state holds the whole configuration, so that a machine never changes its assembly unnoticed; a change of state is one of the
independent coordinates, their rates, the unknown forces and parameters, and the biases:

    x = (q, q̇, u, b, number)       d = (dz, dż, du, db)       x ⊞ d: position problem, then velocity problem, then acceleration problem

The last number of x says which set of independent coordinates d is of, where a formulation has several. Three error models carry
covariances. "integrator" is the F of the thesis' errorEKF (paper 003, equation 54, with Δt I): an error of acceleration does not depend
on the pose. "forward" adds the exact derivatives of the accelerations to it, in first order over a step (Sanjurjo, Dopico, Luaces and
Naya, MSSP 106, 2018, 210-228). "exact" is the derivative of the trapezoidal step itself:

    d⁺ = (dz + Δt dż + Δt²/2 a, dż + Δt a, du),    a = 0 + z̈_u du    or    a = z̈_z dz + z̈_ż dż + z̈_u du

Unknown forces and parameters walk at random: the torque pulse, the wrong mass and the wrong gravity of the thesis are such forces.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics.formulation import Instant, MachineModel, Readings
from veridyn.model.parameters import Uncertainty
from veridyn.observe.filters.compiled_step import CompiledStep
from veridyn.observe.filters.filter import ErrorModel
from veridyn.observe.process_noise import DriftingStates, ProcessNoise
from veridyn.observe.result import Belief
from veridyn.observe.settings import ParameterBounds

TURNS = slice(3, 6)  # of a free base, among the columns of ∂h/∂q


class SystemStep(NamedTuple):
    """A state moved by a step, and the instant there over the set `number`; changes to that set before, and to the state's own after."""

    x: Array
    found: Instant
    number: int
    before: Array | None
    after: Array | None


@dataclass(frozen=True, eq=False, kw_only=True)
class MachineSystem:
    """A machine with the sensors of `table`, as a :class:`~veridyn.observe.system.System`; made by
    :func:`~veridyn.observe.observer_setup.machine_system`.

    `model` is the machine over its (first) set of independent coordinates, in any formulation. `inputs` names the loads whose values come
    with the measurements, `varying` the parameters that are states, behind the unknown forces, and `inner` the states that elements have of
    their own, behind those. `bounds` hold estimated parameters.
    """

    model: MachineModel
    table: Readings
    process_noise: ProcessNoise
    error_model: ErrorModel
    inputs: tuple[str, ...]
    states: tuple[str, ...]
    outputs: tuple[str, ...]
    drifting: tuple[int, ...]  # outputs whose bias is a state
    R: Array
    density: Array  # of position, acceleration (f each), force (k), parameters (p), states of elements, bias; white force (k)
    deviations: Array  # of the states at the start, zero where `carried` or `uncertainty` has a covariance
    selector: Array  # (m, p): which bias belongs to which output
    wraps: NDArray[np.bool_]
    longest: float  # step (s) of the integration
    varying: tuple[str, ...] = ()
    inner: tuple[str, ...] = ()
    bounds: ParameterBounds | None = None
    uncertainty: Uncertainty | None = None  # of the last of `varying`, which are considered and not estimated
    carried: Uncertainty | None = None  # at the start, of drifting and considered parameters together
    frozen: tuple[str, ...] = ()  # drifting parameters that no reading corrects
    attitude_rows: NDArray[np.bool_] | None = None  # (m,) outputs whose H is ∂h/∂q at constant q̇ and q̈ (equation 116)
    place_rows: NDArray[np.bool_] | None = None  # (m,) outputs whose H leaves out how a free base turns (equation 89)
    along_tangent: bool = False  # corrections of q by the velocity problem alone, which leaves constraints open (58)
    steps: Callable[[MachineSystem, float, Array | None], CompiledStep | None] | None = None  # by machine code
    _known: list[tuple[bytes, Instant]] = field(default_factory=list, init=False, repr=False)
    _loads: list[tuple[bytes, Any]] = field(default_factory=list, init=False, repr=False)
    _same: dict[tuple[float, int], Array] = field(default_factory=dict, init=False, repr=False)
    _carry: list[tuple[tuple[bytes, bytes, float], tuple[Array, Array, Array]]] = field(
        default_factory=list, init=False, repr=False
    )

    @property
    def name(self) -> str:
        """Of the machine."""
        return self.model.name

    @property
    def formulation(self) -> str:
        """That of the machine: "tree" or "natural"."""
        return self.model.form.word

    @property
    def nq(self) -> int:
        """How many numbers a configuration has."""
        return self.model.nq

    @property
    def nv(self) -> int:
        """How many rates there are."""
        return self.model.nv

    def reduced(self, x: Array, number: int = 0) -> Array:
        """(z, ż, u, b) of states (…, N) as they are reported, z of the first set or of another."""
        q, qd, u, b = self.split(x)
        return np.concatenate([self.model.local(q, qd, number), u, b], axis=-1)

    def reported(self, x: Array, P: Array) -> Array:
        """The covariance of what :meth:`reduced` reports, from that of changes of x."""
        if self.set_of(x):
            T = self.between(x, self.named(x))
            return T @ P @ T.T
        change = self.model.reporting(self.split(x)[0])
        if change is None:
            return P
        T = self.whole(change)
        return T @ P @ T.T

    def named(self, x: Array) -> Array:
        """The same state with changes counted in the first set, the one that names the states."""
        return np.append(x[:-1], 0.0)

    def between(self, a: Array, b: Array) -> Array:
        """How a change of the state a is written as one of b: different only where their sets are."""
        if self.set_of(a) == self.set_of(b):
            return np.eye(len(self.states))
        return self.whole(self.model.change(self.instant(a, np.zeros(0)), self.set_of(b)))

    def instant_of(self, x: Array, inputs: Array) -> Instant:
        """Accelerations, multipliers and all derivatives at a state, computed anew."""
        q, qd, u, _ = self.split(x)
        return self.model.instant(q, qd, u, self.acting(inputs), number=self.set_of(x))

    def accelerations(self, x: Array, inputs: Array) -> Array:
        """Accelerations alone, of one state or many."""
        q, qd, u, _ = self.split(x)
        return self.model.posed(q, qd, u, self.acting(inputs), number=self.set_of(x))[2]

    def add(self, x: Array, d: Array) -> Array:
        """The state x changed by d (n,) or (k, n)."""
        f, k, number = self.f, self.extra, self.set_of(x)
        if d.ndim > 1:
            x = np.broadcast_to(x, (*d.shape[:-1], len(x)))
        q, qd, u, b = self.split(x)
        if self.along_tangent:
            q, qd = self._moved_along_tangent(q, qd, u, d[..., : 2 * f + k], number)
        else:
            q, qd = self.model.changed(q, qd, u, d[..., : 2 * f + k], number)
        return self.join(q, qd, u + d[..., 2 * f : 2 * f + k], b + d[..., 2 * f + k :], number)

    def _moved_along_tangent(self, q: Array, qd: Array, u: Array, d: Array, number: int) -> tuple[Array, Array]:
        """q + R dz and R (ż + dż), R of the velocity problem at q: equation 58 of paper 003 as printed, with d = (dz, dż, …)."""
        f, way, faster = self.f, np.zeros_like(d), d.copy()
        way[..., f : 2 * f], faster[..., :f] = d[..., :f], 0.0
        along = self.model.changed(q, np.zeros_like(qd), u, way, number)[1]  # the rates R ż, with dz for ż
        return q + along, self.model.changed(q, qd, u, faster, number)[1]

    def subtract(self, a: Array, b: Array) -> Array:
        """The change (…, n) that leads from the state b to the states a, in the sets of b."""
        a, b = np.broadcast_arrays(a, b)
        sets = np.unique(b[..., -1])
        if len(sets) == 1:
            return self._difference(a, b, int(sets[0]))
        out = np.empty((*b.shape[:-1], len(self.states)))
        for number in sets.astype(int).tolist():
            here = b[..., -1] == number
            out[here] = self._difference(a[here], b[here], number)
        return out

    def _difference(self, a: Array, b: Array, number: int) -> Array:
        (qa, qda, ua, ba), (qb, qdb, ub, bb) = self.split(a), self.split(b)
        return np.concatenate([self.model.difference(qa, qda, qb, qdb, number), ua - ub, ba - bb], axis=-1)

    def one_step(self, x: Array, inputs: Array, dt: float, derivative: bool = True, since: float = 0.0) -> SystemStep:
        """One step of the integration, `since` seconds after the inputs were given."""
        q, qd, u, b = self.split(x)
        step = self.model.advanced(q, qd, u, dt, self.acting(inputs), derivative, since, self.set_of(x))
        moved = self.join(step.found.q, step.found.qd, step.u, b, step.after)
        if step.settled:
            self.remember(moved, inputs, step.found)
        return SystemStep(moved, step.found, step.number, step.into, step.onto)

    def compiled_step(self, limit: float, about: Array | None = None) -> CompiledStep | None:
        """Filter steps by machine code, for one caller; `about`: along the tangent at this state. None where there are none such."""
        return None if self.steps is None else self.steps(self, limit, about)

    def later(self, inputs: Array, dt: float | Array) -> Array | None:
        """The inputs (…, p) of a moment dt (…) seconds later, where none are given then; None without any.

        Prescribed coordinates go on with q̈.
        """
        if not self.model.prescribed or not inputs.shape[-1]:
            return None
        out, place = inputs.copy(), {name: k for k, name in enumerate(self.inputs)}
        for name in self.model.prescribed:
            q, qd, qdd = (place.get(f"{symbol}.{name}", -1) for symbol in ("q", "qd", "qdd"))
            rate, rising = (inputs[..., k] if k >= 0 else 0.0 for k in (qd, qdd))
            if q >= 0:
                out[..., q] += dt * rate + 0.5 * dt**2 * rising
            if qd >= 0:
                out[..., qd] += dt * rising
        return out

    def densities(self, number: int) -> tuple[Array, Array]:
        """Spectral densities of the positions and accelerations of a set."""
        if number == 0:
            return self.density[: self.f], self.density[self.f : 2 * self.f]
        position, white = np.split(self.process_noise.coordinate_densities(self.model.names_in(number)), 2)
        return position, white

    @property
    def reports_changes(self) -> bool:
        """Whether what is reported changes as the state does, so that deviations are those of changes."""
        return not self.model.free

    @property
    def f(self) -> int:
        """The number of degrees of freedom."""
        return self.model.f

    @property
    def extra(self) -> int:
        """How many unknown forces, parameters and states of elements the state has."""
        return len(self.model.unknown) + len(self.varying) + len(self.inner)

    def split(self, x: Array) -> tuple[Array, Array, Array, Array]:
        """q, q̇, unknown forces with parameters and states of elements, and biases of states (…, N)."""
        a, b = self.nq, self.nq + self.nv
        return x[..., :a], x[..., a:b], x[..., b : b + self.extra], x[..., b + self.extra : -1]

    def join(self, q: Array, qd: Array, u: Array, b: Array, number: int = 0) -> Array:
        mark = np.full((*q.shape[:-1], 1), float(number))
        return np.concatenate([q, qd, u, b, mark], axis=-1)

    def set_of(self, x: Array) -> int:
        """The number of the set of independent coordinates that changes of a state, or of the first of many, are counted in."""
        return int(x[-1] if x.ndim == 1 else x.reshape(-1, x.shape[-1])[0, -1])

    def move(self, x: Array, u: Array, t: float, dt: float) -> Array:
        count = self.count(dt)
        for k in range(count):
            x = self.one_step(x, u, dt / count, derivative=False, since=k * dt / count).x
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
            step = self.one_step(at, u, h, since=k * h)
            push = step.found.F[self.f : 2 * self.f, 2 * self.f :] / h  # (Rᵀ M R)⁻¹ of the forces, over the step
            G, added = self._transition(step, push, h), self._noise(push, h, step.number)
            if step.before is not None:
                G = G @ self.whole(step.before)
            if step.after is not None:
                T = self.whole(step.after)
                G, added = T @ G, T @ added @ T.T
            at = step.x
            F, Q = (G, added) if k == 0 else (G @ F, G @ Q @ G.T + added)
        self._carry[:] = [(key, (at, F, Q))]
        return at, F, Q

    def count(self, dt: float) -> int:
        """Steps of the integration in dt seconds."""
        return max(1, int(np.ceil(dt / self.longest - 1e-9)))

    def whole(self, change: Array) -> Array:
        """A change of (z, ż) as one of all states: forces and biases stay."""
        T = np.eye(len(self.states))
        T[: len(change), : len(change)] = change
        return T

    def _transition(self, step: SystemStep, push: Array, h: float) -> Array:
        f, moved = self.f, 2 * self.f + self.extra
        F = np.eye(len(self.states))
        if self.error_model != "integrator":  # to which errors of elements' states are as independent as all others
            F[moved - len(self.inner) : moved, :moved] = step.found.F[2 * f :]
        if self.error_model == "exact":
            F[: 2 * f, :moved] = step.found.F[: 2 * f]
            return F
        if self.error_model == "forward":
            a = self.model.accelerated(step.found, step.number)
        else:
            a = np.hstack([np.zeros((f, 2 * f)), push])
        i = np.arange(f)
        F[i, f + i] = h  # (54)
        F[:f, :moved] += 0.5 * h**2 * a
        F[f : 2 * f, :moved] += h * a
        return F

    def _noise(self, push: Array, dt: float, number: int) -> Array:
        Q = self._quiet(dt, number)
        f, k = self.f, self.extra
        force, white_force = self.density[2 * f : 2 * f + k], self.density[len(self.states) :]
        if not (force.any() or white_force.any()):
            return Q
        pushed, forces = push * force, push[:, : len(white_force)]
        both, white = pushed @ push.T, forces * white_force @ forces.T
        a, b, c = slice(0, f), slice(f, 2 * f), slice(2 * f, 2 * f + k)
        Q = Q.copy()
        Q[a, a] += both * (dt**5 / 20.0) + white * (dt**3 / 3.0)
        Q[a, b] += both * (dt**4 / 8.0) + white * (dt**2 / 2.0)
        Q[b, a] = Q[a, b].T
        Q[b, b] += both * (dt**3 / 3.0) + white * dt
        Q[a, c], Q[b, c] = pushed * (dt**3 / 6.0), pushed * (dt**2 / 2.0)
        Q[c, a], Q[c, b] = Q[a, c].T, Q[b, c].T
        return Q

    def _quiet(self, dt: float, number: int) -> Array:
        """The part of Q that does not depend on the pose; steps of one length share it."""
        known = self._same.get((dt, number))
        if known is not None:
            return known
        f, k = self.f, self.extra
        force, bias = self.density[2 * f : 2 * f + k], self.density[2 * f + k : len(self.states)]
        position, white = self.densities(number)
        Q = np.diag(np.concatenate([position * dt + white * dt**3 / 3.0, white * dt, force * dt, bias * dt]))
        i = np.arange(f)
        Q[i, f + i] = Q[f + i, i] = white * dt**2 / 2.0
        if len(self._same) > 16:
            self._same.clear()
        self._same[dt, number] = Q
        return Q

    def posed(self, x: Array, inputs: Array) -> tuple[Array, Array, Array]:
        """q, q̇ and q̈ that sensors read at a state, or at many, under the inputs that act now; q̈ only where a sensor depends on it."""
        q, qd, u, _ = self.split(x)
        loads, number = self.acting(inputs), self.set_of(x)
        return self.model.posed(q, qd, u, loads, number=number, accelerates=self.table.accelerates)

    def posed_at(self, x: Array, at: Instant) -> tuple[Array, Array]:
        """q and q̇ that sensors read at a state whose instant is known."""
        return (at.q, at.qd) if self.model.placed else self.split(x)[:2]

    def sense(self, x: Array, u: Array, t: float) -> Array:
        return self.table.read(*self.posed(x, u)) + self.split(x)[3] @ self.selector.T

    def sense_and_jacobian(self, x: Array, u: Array, t: float) -> tuple[Array, Array]:
        b, at = self.split(x)[3], self.instant(x, u)
        q, qd = self.posed_at(x, at)
        by_q, by_qd, by_qdd = self.table.derivatives(q, qd, at.qdd)
        if self.attitude_rows is not None:
            by_qd, by_qdd = (np.where(self.attitude_rows[:, None], 0.0, d) for d in (by_qd, by_qdd))
        if self.place_rows is not None:
            by_q = by_q.copy()
            by_q[self.place_rows, TURNS] = 0.0
        return self.table.read(q, qd, at.qdd) + self.selector @ b, self.chained(at, by_q, by_qd, by_qdd)

    def chained(self, at: Instant, h_q: Array, h_qd: Array, h_qdd: Array, h_lam: Array | None = None) -> Array:
        """The derivative (m, states) of a quantity of q, q̇, q̈ and λ with respect to a change of state; biases as the outputs have them."""
        f, k = self.f, self.extra
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

    def residual(self, y: Array, expected: Array) -> Array:
        e = y - expected
        return np.where(self.wraps, (e + np.pi) % (2.0 * np.pi) - np.pi, e) if self.wraps.any() else e

    def belief(self, q: Array, qd: Array, t: float | None = None, u: Array | None = None) -> Belief:
        """The start that `process_noise` describes, around a configuration and velocity."""
        x = self.join(q, qd, self.model.start_unknown if u is None else u, np.zeros(len(self.drifting)))
        known = self.carried or self.uncertainty
        if known is None:
            return Belief(x, self.deviations**2, t)
        part = [2 * self.f + len(self.model.unknown) + self.varying.index(name) for name in known.names]
        P = np.diag(self.deviations**2)
        P[np.ix_(part, part)] = known.covariance
        return Belief(x, P, t)

    @property
    def estimated(self) -> tuple[str, ...]:
        """The varying loads and parameters that are estimated."""
        count = 0 if self.uncertainty is None else len(self.uncertainty.names)
        return self.varying[: len(self.varying) - count]

    @property
    def drifts(self) -> DriftingStates | None:
        """The drifting parameters; None where there are none."""
        if self.carried is None:
            return None
        names = tuple(name for name in self.estimated if name in self.carried.names)
        places = np.array([2 * self.f + len(self.model.unknown) + self.varying.index(name) for name in names])
        at = [self.carried.names.index(name) for name in names]
        return DriftingStates(names, places, self.carried.covariance.diagonal()[at], self.density[places])

    @cached_property
    def considered(self) -> NDArray[np.bool_] | None:
        """Which states are considered: their uncertainty widens the others', and no reading corrects them (Schmidt); None for none."""
        if self.uncertainty is None and not self.frozen:
            return None
        mask = np.zeros(len(self.states), dtype=np.bool_)
        after = 2 * self.f + len(self.model.unknown)
        mask[after + len(self.estimated) : after + len(self.varying)] = True
        mask[[after + self.varying.index(name) for name in self.frozen]] = True
        return mask

    def instant(self, x: Array, inputs: Array) -> Instant:
        """Accelerations, multipliers and all derivatives at a state; that of the last one asked for is remembered."""
        key = x.tobytes() + inputs.tobytes()
        if not self._known or self._known[0][0] != key:
            self._known[:] = [(key, self.instant_of(x, inputs))]
        return self._known[0][1]

    def remember(self, x: Array, inputs: Array, found: Instant) -> None:
        """That this is the instant of a state."""
        self._known[:] = [(x.tobytes() + inputs.tobytes(), found)]

    def acting(self, inputs: Array) -> Any:
        """What the model takes for these inputs; those that are not given are as it has them."""
        key = inputs.tobytes()
        for known, loads in self._loads:
            if known == key:
                return loads
        given = dict(zip(self.inputs, inputs.tolist()))
        loads = self.model.loads(given)
        self._loads[:] = [(key, loads)]
        return loads
