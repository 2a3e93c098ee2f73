"""A machine in natural coordinates over the freedoms of its base: accelerations, their exact derivatives, steps and retractions.

The same surface as :class:`veridyn.mechanics.tree.steps.model.TreeModel`, with the same freedoms, errors and names: what an observer does
with the one it does with the other. At a state, with M q̈ + Φ_qᵀ λ = Q and Φ_q q̈ = γ, one factorisation serves all of

    R = X (E X)⁻¹,   M X + Φ_qᵀ Λ = Eᵀ,  Φ_q X = 0
    M dq̈ + Φ_qᵀ dλ = dQ − ∂(Φ_qᵀ λ)/∂q dq,   Φ_q dq̈ = −Φ_qq[dq, q̈] − 2 Φ_qq[q̇, dq̇] − Φ_qqq[dq, q̇, q̇]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.errors import DataError, ModelError, did_you_mean
from veridyn.mechanics.formulation import FRICTION_SPEED, Instant, ModelStep
from veridyn.mechanics.natural.description.of_machine import mechanism_of, rounded
from veridyn.mechanics.natural.equations.dynamics import NaturalState, Stabilisation
from veridyn.mechanics.natural.equations.freedoms import (
    BorderedFactors,
    Freedoms,
    FreeInputs,
    FreeInstant,
    freedoms_of,
    pose_of_tree,
)
from veridyn.mechanics.natural.equations.geometry import compact
from veridyn.mechanics.natural.equations.system import NaturalSystem, system_of
from veridyn.mechanics.natural.equations.wheels import WheelForces
from veridyn.mechanics.natural.steps.index3 import index3_steps
from veridyn.mechanics.natural.steps.model import InPoints
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.steps.states import OverFreedoms, independent_joints, led_inputs, named_start
from veridyn.model.machine import Machine
from veridyn.model.parameter_set import Constant
from veridyn.model.parameters import Uncertainty
from veridyn.spatial.rotations import angles_of, matrix_of

CLOSED_RATIO = 1e-12  # of constraints, relative to the square of the machine's size
MAX_CLOSING_STEPS = 20
EXACT_MULTIPLIERS = Stabilisation(penalty=1e16)  # the penalty of steps: large, for some constraints hold little mass


@dataclass(frozen=True, eq=False, kw_only=True)
class FreeModel(InPoints, OverFreedoms):
    """A machine over `freedoms`; made by :func:`free_model`. `unknown` names forces on freedoms that belong to the state, before slips."""

    machine: Machine
    freedoms: Freedoms
    unknown: tuple[str, ...]
    varying: tuple[str, ...] = ()
    uncertainty: Uncertainty | None = None
    constants: tuple[Constant, ...] = ()  # that could vary
    form: Any = None  # the formulation that prepared it

    @property
    def kernel(self) -> str:
        """The layout of its compiled tables."""
        return "freedoms"

    @property
    def name(self) -> str:
        return self.machine.name

    @property
    def names(self) -> tuple[str, ...]:
        return self.freedoms.names

    @property
    def f(self) -> int:
        """The number of degrees of freedom."""
        return self.freedoms.f

    @property
    def n(self) -> int:
        """The number of coordinates."""
        return self.system.n

    @property
    def free(self) -> bool:
        return self.freedoms.free

    @property
    def placed(self) -> bool:
        """That a pose is that of an instant: closed, with prescribed coordinates where the inputs have them."""
        return True

    @property
    def prescribed(self) -> tuple[str, ...]:
        return self.system.mechanism.prescribed

    @cached_property
    def sizes(self) -> Array:
        """Typical sizes (n,) of the coordinates."""
        return np.ones(self.n)

    def unit_of(self, coordinate: str) -> str:
        """The unit of a coordinate by name."""
        if coordinate.startswith("base."):
            return "m" if coordinate in self.names[:3] else "rad"
        return self.system.mechanism.unit_of(coordinate)

    def force_unit(self, name: str) -> str:
        """The unit of an unknown force or an input by name."""
        if self.free and name in self.names[:6]:
            return "N" if name in self.names[:3] else "N*m"
        return self.system.mechanism.force_unit(name)

    def varying_unit(self, name: str) -> str:
        """The unit of a slip: nothing else varies."""
        return "1"

    @property
    def inner(self) -> tuple[str, ...]:
        """The slips of tyres."""
        return self.system.wheels.states

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """What may act from outside: numbers of loads, and q.C, qd.C and qdd.C of prescribed coordinates."""
        return (*self.system.forces.places, *led_inputs(self.prescribed))

    def loads(self, given: Mapping[str, ArrayLike] | None = None) -> FreeInputs:
        """What the inputs by name do; not given, loads are as in the model and prescribed coordinates at zero."""
        places, led = self.system.forces.places, led_inputs(self.prescribed)
        values, motion = self.system.forces.values.copy(), np.zeros(len(led))
        for name, value in (given or {}).items():
            if name not in self.inputs:
                raise DataError(f"there is no input '{name}'.", where=self.name, hint=did_you_mean(name, self.inputs))
            into, at = (values, places[name]) if name in places else (motion, led.index(name))
            into[at] = float(np.asarray(value, dtype=np.float64))
        return FreeInputs(values, motion.reshape(3, -1))

    @cached_property
    def start_unknown(self) -> Array:
        return np.zeros(len(self.unknown) + len(self.inner))

    def held(self, acting: FreeInputs) -> NaturalSystem:
        """The system with prescribed coordinates as they are led."""
        names = self.system.mechanism.prescribed
        return self.system.holding({name: acting.motion[:, k] for k, name in enumerate(names)})

    def closed(self, system: NaturalSystem, q: Array, qd: Array) -> tuple[Array, Array]:
        """The nearest pose and rates that satisfy the constraints, in the metric M."""
        size = max(1.0, float(np.abs(q).max()))
        n = self.n
        for _ in range(MAX_CLOSING_STEPS):
            phi, J = system.constraints.evaluate(q)
            if not np.isfinite(phi).all():
                break
            solved = BorderedFactors(system, J)
            if np.abs(phi).max(initial=0.0) <= CLOSED_RATIO * size * size:
                off = J @ qd - system.constraints.rates
                return q, qd + solved(np.concatenate([np.zeros(n), -off])[:, None])[:n, 0]
            q = q + solved(np.concatenate([np.zeros(n), -phi])[:, None])[:n, 0]
        raise DataError(
            "the machine cannot reach this state.",
            where=self.name,
            expected="all constraints closed",
            found="no closed pose near it" if np.isfinite(q).all() else "a state that is not finite",
            hint="Look at the correction that leads here: a wild reading without a gate, or a start far from the truth.",
        )

    def instant(
        self, q: Array, qd: Array, u: Array, acting: FreeInputs, derivative: bool = True, *, number: int = 0
    ) -> FreeInstant:
        """Accelerations, multipliers and all derivatives at the closed state nearest to this one."""
        system, n, f, k = self.held(acting), self.n, self.f, len(u)
        q, qd = self.closed(system, q, qd)
        J = system.constraints.jacobian(q)
        solved, E = BorderedFactors(system, J), self.freedoms.rows(q)
        tyres = system.wheels.evaluate(q, qd, u[len(self.unknown) :])
        Q = system.forces.forces(q, qd, acting.values) + tyres.Q + self._columns(E).T @ u[: len(self.unknown)]
        both = solved(np.concatenate([Q, system.constraints.second_rates(q, qd)])[:, None])[:, 0]
        qdd, lam = both[:n], both[n:]
        if not derivative:
            none = np.zeros((0, 0))
            return FreeInstant(q, qd, qdd, lam, none, none, none, none, none, u, none)
        X = solved(np.vstack([E.T, np.zeros((len(J), f))]))[:n]
        R = X @ np.linalg.inv(E @ X)
        c = system.constraints
        bent = np.column_stack([c.jacobian_rate(q, R[:, j]) @ qd for j in range(f)])
        p = solved(np.vstack([np.zeros((n, f)), -bent]))[:n]
        turned = np.column_stack([self.freedoms.bend(R[:, j], qd) for j in range(f)])
        qd_z = p - R @ (turned + E @ p)
        dq = np.hstack([R, np.zeros((n, f + k))])
        dqd = np.hstack([qd_z, R, np.zeros((n, k))])
        right = self._slopes(system, q, qd, qdd, lam, u, acting, tyres, E, dq, dqd)
        both_x = solved(right)
        qdd_x = both_x[:n]
        slopes = np.zeros((f + len(tyres.rates), 2 * f + k))
        slopes[:f] = E @ qdd_x + np.column_stack([self.freedoms.bend(x, qdd) for x in dq.T])
        slopes[f:] = tyres.rates_q @ dq + tyres.rates_qd @ dqd
        slopes[f:, 2 * f + len(self.unknown) :] += tyres.rates_s
        return FreeInstant(q, qd, qdd, lam, R, qd_z, qdd_x, both_x[n:], np.zeros((0, 0)), u, slopes)

    def posed(
        self, q: Array, qd: Array, u: Array, acting: FreeInputs, *, number: int = 0, accelerates: bool = True
    ) -> tuple[Array, Array, Array]:
        """q, q̇ and q̈ that sensors read: prescribed coordinates are where the inputs have them, and what they move follows."""
        if q.ndim > 1:
            rows = [x.reshape(-1, x.shape[-1]) for x in (q, qd, u)]
            found = [self.posed(rows[0][k], rows[1][k], rows[2][k], acting) for k in range(len(rows[0]))]
            parts = [np.array(part).reshape(*q.shape[:-1], -1) for part in zip(*found, strict=True)]
            return parts[0], parts[1], parts[2]
        at = self.instant(q, qd, u, acting, derivative=False)
        return at.q, at.qd, at.qdd

    def _columns(self, E: Array) -> Array:
        """Rows of E of the unknown forces."""
        return E[[self.names.index(name) for name in self.unknown]]

    def _slopes(
        self,
        system: NaturalSystem,
        q: Array,
        qd: Array,
        qdd: Array,
        lam: Array,
        u: Array,
        acting: FreeInputs,
        tyres: WheelForces,
        E: Array,
        dq: Array,
        dqd: Array,
    ) -> Array:
        """The right sides (n + m, 2f + k) of what accelerations and multipliers change by."""
        c, f = system.constraints, self.f
        K, C = system.forces.tangents(q, qd, acting.values)
        K = K - tyres.Q_q + c.curvature(q, lam)
        for force, name in zip(u, self.unknown, strict=False):
            at = self.names.index(name)
            if self.free and 3 <= at < 6:
                K = K - force * self.freedoms.turning[at - 3, :-1].T
        C = C - tyres.Q_qd
        top = -K @ dq - C @ dqd
        top[:, 2 * f : 2 * f + len(self.unknown)] += self._columns(E).T
        top[:, 2 * f + len(self.unknown) :] += tyres.Q_s
        bottom = np.column_stack(
            [
                -c.jacobian_rate(q, a) @ qdd - 2.0 * (c.jacobian_rate(q, qd) @ b) - c.third(q, a, qd)
                for a, b in zip(dq.T, dqd.T, strict=True)
            ]
        )
        return np.vstack([top, bottom])

    def step(
        self, q: Array, qd: Array, u: Array, h: float, acting: FreeInputs, derivative: bool = True, since: float = 0.0
    ) -> FreeInstant:
        """The instant an index-3 step h later; `F` (2f + 2w, 2f + k) by the trapezoidal rule on the derivatives here and there."""
        before = self.instant(q, qd, u, acting.later(since), derivative)
        end = acting.later(since + h)
        forces, n, m = u[: len(self.unknown)], self.n, self.system.constraints.m
        push = self._columns(self.freedoms.rows(before.q)).T @ forces
        start = NaturalState(0.0, before.q, before.qd, before.qdd, before.multipliers, u[len(self.unknown) :])
        _ = self.system.elimination  # planned here once: systems that are held take it over
        one, values = np.array([h]), acting.values[None]
        row = index3_steps(self.held(end), start, one, values, EXACT_MULTIPLIERS, push=push)[0]
        after = self.instant(row[:n], row[n : 2 * n], np.concatenate([forces, row[3 * n + m :]]), end, derivative)
        return self._with_transition(before, after, h) if derivative else after

    def advanced(
        self, q: Array, qd: Array, u: Array, h: float, acting: FreeInputs, derivative: bool, since: float, number: int
    ) -> ModelStep:
        """:meth:`step` as all formulations give it."""
        found = self.step(q, qd, u, h, acting, derivative, since)
        return ModelStep(found, found.u)

    def accelerated(self, found: Instant, number: int = 0) -> Array:
        """∂z̈/∂(z, ż, u) of an instant."""
        assert isinstance(found, FreeInstant)
        return found.slopes[: self.f]

    def _with_transition(self, before: FreeInstant, after: FreeInstant, h: float) -> FreeInstant:
        (A0, B0), (A1, B1) = (self._linear(x) for x in (before, after))
        one = np.eye(len(A0))
        left = np.linalg.solve(one - 0.5 * h * A1, np.hstack([one + 0.5 * h * A0, 0.5 * h * (B0 + B1)]))
        f, s, k = self.f, len(self.inner), len(self.unknown)
        F = np.hstack([left[:, : 2 * f], left[:, 2 * f + s :], left[:, 2 * f : 2 * f + s]])
        assert F.shape[1] == 2 * f + k + s
        return replace(after, F=F)

    def _linear(self, at: FreeInstant) -> tuple[Array, Array]:
        """A and B of δξ˙ = A δξ + B δu with ξ = (z, ż, slips); a turn of the base is carried along, δθ˙ = δω − ω × δθ."""
        f, s, k = self.f, len(self.inner), len(self.unknown)
        A, B = np.zeros((2 * f + s, 2 * f + s)), np.zeros((2 * f + s, k))
        A[:f, f : 2 * f] = np.eye(f)
        if self.free:
            x, y, z = (self.freedoms.rows(at.q) @ at.qd)[3:6]
            A[3:6, 3:6] = [[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]]
        A[f:, : 2 * f], A[f:, 2 * f :] = at.slopes[:, : 2 * f], at.slopes[:, 2 * f + k :]
        B[f:] = at.slopes[:, 2 * f : 2 * f + k]
        return A, B

    def moved(self, q: Array, qd: Array, d: Array, u: Array) -> tuple[Array, Array]:
        """x ⊞ d: pose and rates changed by d (2f,) along R, then closed; prescribed coordinates stay where they are."""
        names = self.system.mechanism.prescribed
        at = [self.system.mechanism.index(name) for name in names]
        still = FreeInputs(self.system.forces.values, np.array([q[at], qd[at], np.zeros(len(at))]))
        found, f = self.instant(q, qd, u, still), self.f
        return self.closed(self.held(still), q + found.R @ d[:f], qd + found.qd_z @ d[:f] + found.R @ d[f:])

    def changed(self, q: Array, qd: Array, u: Array, d: Array, number: int = 0) -> tuple[Array, Array]:
        """q and q̇ of :meth:`moved`, by one change (2f + k,) or many."""
        if d.ndim == 1:
            return self.moved(q, qd, d[: 2 * self.f], u)
        every = (np.broadcast_to(x, (*d.shape[:-1], x.shape[-1])) for x in (q, qd, u))
        found = [self.changed(*one) for one in zip(*every, d, strict=True)]
        return np.array([a for a, _ in found]), np.array([b for _, b in found])

    def constraint_errors(self, q: Array, qd: Array, qdd: Array) -> tuple[float, float, float]:
        """The largest error of the constraints but those of prescribed coordinates, of their rates and second rates."""
        c = self.system.constraints
        return c.errors(q, qd, qdd, np.setdiff1d(np.arange(c.m), c.held))

    def local(self, q: Array, qd: Array, number: int = 0) -> Array:
        """(z, ż) (…, 2f) as they are reported: the attitude of the base as roll, pitch and yaw."""
        joints = [self.system.mechanism.index(name) for name in self.names[6 if self.free else 0 :]]
        parts = [self.freedoms.position(q), angles_of(self.attitude(q))] if self.free else []
        rates = np.einsum("fn,...n->...f", self.freedoms.linear, qd)
        if self.free:
            y = np.concatenate([q, np.ones((*q.shape[:-1], 1))], axis=-1)
            rates[..., 3:6] = np.einsum("...k,akl,...l->...a", y, self.freedoms.turning, qd)
        return np.concatenate([*parts, q[..., joints], rates], axis=-1)

    def difference(self, qa: Array, qda: Array, qb: Array, qdb: Array, number: int = 0) -> Array:
        """The change (…, 2f) that leads from the state b to the state a."""
        out = self.local(qa, qda) - self.local(qb, qdb)
        if self.free:
            out[..., 3:6] = self.turn(qa, qb)
        return out

    def attitude(self, q: Array) -> Array:
        """The rotation (…, 3, 3) of a free base."""
        return self.freedoms.attitude(q)

    def start_of(
        self, given: Mapping[str, float] | None = None, rates: Mapping[str, float] | None = None
    ) -> tuple[Array, Array]:
        """Pose and rates from freedoms by name; what is not given is at home, and at rest. Loops are closed as on the tree."""
        tree, first = tree_of(self.machine), 6 if self.free else 0
        q, zd, _ = named_start(tree, [tree.coordinates.index(c) for c in self.names[first:]], given, rates)
        pose = (q[:3], matrix_of(q[3:7])) if self.free else (None, None)
        x = pose_of_tree(self.system, tree, q[-tree.n :], *pose)
        led = {name: x[self.system.mechanism.index(name)] for name in self.system.mechanism.prescribed}
        return x, self.freedoms.rates(self.system.holding(led), x, zd)


def free_model(
    machine: Machine,
    *,
    independents: tuple[str, ...] = (),
    unknown: tuple[str, ...] | None = (),
    friction_speed: float = FRICTION_SPEED,
) -> FreeModel:
    """A machine in natural coordinates over the freedoms that it has as a tree; `unknown`: freedoms whose force belongs to the state,
    None for all.

    `independents`: joint coordinates that determine it, by default the actuated ones. `friction_speed`: below it (rad/s, m/s) dry friction
    is rounded off.
    """
    tree = tree_of(machine)
    joints = tuple(tree.coordinates[k] for k in independent_joints(tree, independents)[0])
    system = system_of(rounded(compact(mechanism_of(machine)), friction_speed))
    freedoms = freedoms_of(system, tree, joints)
    forces = freedoms.names if unknown is None else tuple(unknown)
    for name in forces:
        if name not in freedoms.names:
            hint = did_you_mean(name, freedoms.names)
            raise ModelError(f"'{name}' is no freedom of it.", where=machine.name, hint=hint)
    return FreeModel(machine=machine, system=system, freedoms=freedoms, unknown=forces)
