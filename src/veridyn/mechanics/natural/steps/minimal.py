"""A mechanism over independent coordinates: its state from a few numbers, the trapezoidal step, and exact derivatives of both.

All other coordinates follow from the position, then the velocity, then the acceleration problem. The step

    z₁ = z₀ + h ż₀ + h²/4 (z̈₀ + z̈₁),    ż₁ = ż₀ + h/2 (z̈₀ + z̈₁),    z̈ = z̈(z, ż, u)

is solved as machine code by Newton's method with the exact ∂z̈/∂(z, ż), so that stiff springs do no harm; where the matrix of the start
leads there slowly, it is made anew, and changes that lead away are halved. Its derivative is that of these equations.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.errors import DataError, Fault, Faults, ModelError, SimulationError, did_you_mean
from veridyn.mechanics.compiled import Bound, Numbers, core, kept, opened
from veridyn.mechanics.formulation import Instant
from veridyn.mechanics.linear import factor, solve
from veridyn.mechanics.natural.equations.freedoms import Reduced, independent_rows
from veridyn.mechanics.natural.equations.position import independent, r_matrix
from veridyn.mechanics.natural.equations.system import NaturalSystem
from veridyn.mechanics.natural.equations.tangent import (
    Desk,
    Found,
    Model,
    Room,
    Slopes,
    accelerate,
    close,
    desk_of,
    differentiate,
    no_slopes,
)

SETTLED = 1e-11  # of a step's last change, relative to the mechanism's size
ITERATIONS = 30
SLOW_ITERATIONS = 8  # then Newton's matrix is made anew: dry friction that turns round within the step changes it


@core
def _newton(N: Array, z: Numbers, qdd_x: Array, h: float) -> None:
    """N (f, f) = 1 − h²/4 ∂z̈/∂z − h/2 ∂z̈/∂ż."""
    f = len(z)
    for c in range(f):
        for d in range(f):
            N[c, d] = (1.0 if c == d else 0.0) - 0.25 * h * h * qdd_x[z[c], d] - 0.5 * h * qdd_x[z[c], f + d]


@core
def advance(
    m: Model,
    w: Room,
    load: Array,
    turning: Array,
    target: Array,
    rate: Array,
    h: float,
    derivative: bool,
    at: Found,
) -> int:
    """One motion of :func:`trapezoid`, from the pose `at.q` into `at`: 0, 1 at a singular pose, 2 where the step does not settle."""
    z, q, qd, qdd, R, qdd_x = m.z, at.q, at.qd, at.qdd, at.R, at.qdd_x
    n, f, u = len(q), len(z), m.B.shape[1]
    before, N, L, x, a0, a1 = w.before, w.N, w.L, w.column, w.a0, w.a1
    aim, speed, change, size, k = w.aim, w.speed, w.change, 1.0, 0.25 * h * h
    for c in range(f):
        a0[c], a1[c] = 0.0, 0.0
    for i in range(n):
        size = max(size, abs(q[i]))
    done, last = False, np.inf
    for pass_ in range(ITERATIONS + 1):  # the first is the instant itself
        for c in range(f):
            aim[c], speed[c] = target[c], rate[c]
            if pass_ > 0:
                aim[c] += h * rate[c] + k * (a0[c] + a1[c])
                speed[c] += 0.5 * h * (a0[c] + a1[c])
        if not close(m, w, q, aim, R, pass_ > 0):
            return 1
        for i in range(n):
            s = 0.0
            for c in range(f):
                s += R[i, c] * speed[c]
            qd[i] = s
        if not accelerate(m, w, load, turning, at):
            return 1
        settled = pass_ == 0
        if pass_ > SLOW_ITERATIONS:
            off = 0.0
            for c in range(f):
                off = max(off, abs(qdd[z[c]] - a1[c]))
            if not off <= last:
                for c in range(f):
                    change[c] *= 0.5
                    a1[c] -= change[c]
                continue
            last = off
            differentiate(m, w, load, turning, at)
            _newton(N, z, qdd_x, h)
            if not factor(N, w.N_pivot):
                return 1
        if pass_ > 0:
            for c in range(f):
                change[c] = qdd[z[c]] - a1[c]
            solve(N, w.N_pivot, change)
            moved = 0.0
            for c in range(f):
                a1[c] += change[c]
                moved = max(moved, 0.5 * h * abs(change[c]), k * abs(change[c]))
            if not np.isfinite(moved):
                return 1
            settled = moved <= SETTLED * size
        if settled and (derivative or (pass_ == 0 and h > 0.0)):
            differentiate(m, w, load, turning, at)
        if settled and (pass_ > 0 or h == 0.0):
            done = True
            break
        if pass_ > 0:
            continue
        for c in range(f):
            jerk = 0.0
            for d in range(2 * f + u):
                before[c, d] = qdd_x[z[c], d]
            for d in range(f):
                jerk += before[c, d] * rate[d] + before[c, f + d] * qdd[z[d]]
            a0[c] = qdd[z[c]]
            a1[c] = a0[c] + h * jerk  # where the acceleration will be, to first order
        _newton(N, z, qdd_x, h)
        if not factor(N, w.N_pivot):
            return 1
    if not done:
        return 2
    if derivative and h > 0.0:
        for c in range(f):
            for d in range(2 * f):
                L[c, d] = -k * qdd_x[z[c], d] + (1.0 if c == d else 0.0)
                L[f + c, d] = -0.5 * h * qdd_x[z[c], d] + (1.0 if f + c == d else 0.0)
        if not factor(L, w.L_pivot):
            return 1
        for j in range(2 * f + u):
            for c in range(f):
                s = before[c, j] + (qdd_x[z[c], j] if j >= 2 * f else 0.0)
                x[c] = k * s + (1.0 if j == c else 0.0) + (h if j == f + c else 0.0)
                x[f + c] = 0.5 * h * s + (1.0 if j == f + c else 0.0)
            solve(L, w.L_pivot, x)
            for i in range(2 * f):
                at.F[i, j] = x[i]
    return 0


@kept
def trapezoid(
    model: Numbers,
    desk: Numbers,
    load: Array,
    turning: Array,
    q: Array,
    target: Array,
    rate: Array,
    h: float,
    derivative: bool,
) -> tuple[int, Array, Array, Array, Array, Array, Array, Array, Array, Array]:
    """From each pose near q (N, n) with z = `target`, ż = `rate` one step h on, or for h = 0 that instant itself.

    First 0, or 1 at a singular pose, or 2 where a step does not settle; then (N, …) of q, q̇, q̈, λ, R, ∂q̇/∂z, ∂q̈/∂x, ∂λ/∂x and
    ∂(z, ż)/∂x, zeros where no derivative is wanted. `model` and `desk` are the addresses of a bound :class:`Model` and :class:`Desk`;
    `load` (N, n).
    """
    m, w, at = opened(model, Model), opened(desk, Desk).room, opened(desk, Desk).found
    many, n = q.shape
    count, f, x = len(m.dep), len(m.z), 2 * len(m.z) + m.B.shape[1]
    poses, qd, qdd, lam = np.empty((many, n)), np.empty((many, n)), np.empty((many, n)), np.empty((many, count))
    R, qd_z, qdd_x = np.empty((many, n, f)), np.zeros((many, n, f)), np.zeros((many, n, x))
    lam_x, F, state = np.zeros((many, count, x)), np.zeros((many, 2 * f, x)), 0
    for k in range(many):
        at.q[:] = q[k]
        state = advance(m, w, load[k], turning, target[k], rate[k], h, derivative, at)
        if state != 0:
            break
        poses[k] = at.q
        qd[k] = at.qd
        qdd[k] = at.qdd
        lam[k] = at.lam
        R[k] = at.R
        if derivative:
            qd_z[k] = at.qd_z
            qdd_x[k] = at.qdd_x
            lam_x[k] = at.lam_x
        if derivative and h > 0.0:
            F[k] = at.F
    return state, poses, qd, qdd, lam, R, qd_z, qdd_x, lam_x, F


MASSLESS_RATIO = 1e-14  # of the largest reduced inertia: one below it is none


class _Desks(threading.local):
    """Room for the kernels, made once for each thread that computes with a model."""

    made: Bound | None = None
    shifted: Bound | None = None

    def bound(self, model: Minimal) -> Bound:
        if self.made is None:
            self.made = Bound(desk_of(model.system.tables, len(model.dependent), model.f, model.B.shape[1]))
        return self.made

    def model_with(self, model: Minimal, away: Array) -> Bound:
        """The model whose parameters are `away` (p,) from the values that the mechanism was made with."""
        own, s = model.bound.record.t, model.slopes
        if self.shifted is None:
            laws = own.laws._replace(gain=own.laws.gain.copy())
            copies = {name: getattr(own, name).copy() for name in ("mass", "strut_laws", "line_laws")}
            self.shifted = Bound(model.bound.record._replace(t=own._replace(laws=laws, **copies)))
        t = self.shifted.record.t
        t.mass[:] = own.mass + np.tensordot(away, s.mass, axes=1)
        for name in ("strut_laws", "line_laws"):  # stiffness and damping; where a spring is relaxed stays
            getattr(t, name)[::2] = getattr(own, name)[::2] + np.tensordot(away, getattr(s, name)[:, ::2], axes=1)
        t.laws.gain[:] = own.laws.gain + away @ s.law_gains
        return self.shifted

    def __reduce__(self) -> tuple[type[_Desks], tuple[()]]:
        return _Desks, ()  # room does not travel


@dataclass(frozen=True, eq=False)
class Minimal:
    """A mechanism over the independent coordinates `names`; made by :func:`minimal`.

    `unknown` names k forces whose values u come with the state: generalised forces on independent coordinates, or loads of the mechanism.
    `varying` names parameters of the system by which derivatives are computed as well; their values stand behind u, and motions follow
    them. `B` (n, forces and parameters) has zeros in their columns.
    """

    system: NaturalSystem
    names: tuple[str, ...]
    unknown: tuple[str, ...]
    B: Array
    varying: tuple[str, ...] = ()

    @property
    def f(self) -> int:
        """The number of degrees of freedom."""
        return len(self.names)

    @cached_property
    def z(self) -> Numbers:
        return self.system.select(self.names).astype(np.int64)

    @cached_property
    def dependent(self) -> Numbers:
        keep = np.ones(self.system.n, dtype=np.bool_)
        keep[self.z] = False
        return np.flatnonzero(keep).astype(np.int64)

    @cached_property
    def bound(self) -> Bound:
        """This model as the kernels read it; all callers share it."""
        return Bound(Model(self.system.tables, self.z, self.dependent, self.B, self.slopes))

    @cached_property
    def slopes(self) -> Slopes:
        """What the varying parameters do with unit value."""
        known = self.system.parameters
        if known is None or not self.varying:
            return no_slopes(self.system.n, self.system.tables)
        at = [known.names.index(name) for name in self.varying]
        return Slopes(*(np.ascontiguousarray(table[at]) for table in known.tables))

    @cached_property
    def _desks(self) -> _Desks:
        return _Desks()

    def loads(self, given: Mapping[str, ArrayLike] | None = None) -> tuple[Array, Array]:
        """Constant and turning generalised forces (n,), (n, n+1) of the known loads, for the calls below."""
        forces = self.system.forces
        values = forces.load_values(given)
        turning = np.zeros((0, self.system.n + 1))
        if len(forces.active):
            turning = np.tensordot(values[forces.active], forces.turning[forces.active], axes=1)
        return forces.weight[:-1] + forces.constant @ values, turning

    def instant(
        self, q: Array, z: Array, zd: Array, u: Array, loads: tuple[Array, Array], derivative: bool = True
    ) -> Instant:
        """The pose with these z and ż on the assembly of the pose q: position, then velocity, then acceleration problem.

        Here and below, arrays of many states (N, …) make an instant of arrays (N, …).
        """
        return self._run(q, z, zd, u, 0.0, loads, derivative)

    def step(
        self, q: Array, z: Array, zd: Array, u: Array, h: float, loads: tuple[Array, Array], derivative: bool = True
    ) -> Instant:
        """The instant a time h later; `F` is the derivative of its (z, ż) with respect to (z, ż, u) here."""
        return self._run(q, z, zd, u, float(h), loads, derivative)

    def _run(
        self, q: Array, z: Array, zd: Array, u: Array, h: float, loads: tuple[Array, Array], derivative: bool
    ) -> Instant:
        one, known, model = q.ndim == 1, self.system.parameters, self.bound
        load = loads[0] + u @ self.B.T if self.B.shape[1] else np.broadcast_to(loads[0], q.shape)
        if self.varying and known is not None:
            away = u[..., len(self.unknown) :] - known.values
            if away.any():
                if not one:
                    states = zip(q, z, zd, np.broadcast_to(u, (len(q), u.shape[-1])), strict=True)
                    return _stacked([self._run(*state, h, loads, derivative) for state in states])
                load, model = load + away @ self.slopes.force, self._desks.model_with(self, away)
        # One layout means that one compiled version serves every caller: copies, row by row.
        state, *found = trapezoid(
            model.address,
            self._desks.bound(self).address,
            _rows(load, one),
            loads[1],
            _rows(q, one),
            _rows(z, one),
            _rows(zd, one),
            h,
            derivative,
        )
        if state == 0:
            return Instant(*(x[0] for x in found)) if one else Instant(*found)
        if state == 2:
            raise SimulationError(
                f"a step of {h:.6g} s does not converge in {ITERATIONS} iterations.",
                where=self.system.mechanism.name,
                hint=f"Try a shorter step, if the fastest of the independent coordinates, at {np.abs(zd).max(initial=0.0):.3g}/s, is true; "
                "or look for a pose where the mechanism locks.",
            )
        raise self._singular(q, zd) if h else self._unreachable(np.atleast_2d(q)[0], np.atleast_2d(z)[0])

    def _singular(self, q: Array, rates: Array) -> SimulationError:
        fast = float(np.abs(rates).max(initial=0.0))
        hint = f"Choose other independent coordinates; or a shorter step, if the fastest of them, at {fast:.3g}/s, is true."
        if isinstance(self.system, Reduced):
            left = ", ".join(f"'{name}'" for name in self.system.left_out)
            hint += f" Or the constraints kept at the start lose rank here and need one that was left out: {left}; start nearer to here."
        return SimulationError(
            Fault(
                "the independent coordinates do not determine the others here.",
                where=self.system.mechanism.name,
                at=("independents",),
                expected=f"a pose away from where {', '.join(self.names)} lose their hold",
                found="a singular pose" if np.isfinite(q).all() else "a pose that is not finite",
                hint=hint,
            )
        )

    def _unreachable(self, q: Array, z: Array) -> DataError | SimulationError:
        if not (np.isfinite(q).all() and np.isfinite(z).all()):
            return self._singular(q, z)
        wanted = ", ".join(f"{n} = {v:.6g}" for n, v in zip(self.names, z.tolist()))
        here = ", ".join(f"{n} = {v:.6g}" for n, v in zip(self.names, q[self.z].tolist()))
        return DataError(
            "the mechanism cannot reach this pose.",
            where=self.system.mechanism.name,
            expected="all constraints closed with " + wanted,
            found="no closed pose on the way from " + here,
            hint="Look at the correction that asks for it: a wild reading without a gate, or a start far from the truth.",
        )


def minimal(
    system: NaturalSystem,
    q: Array,
    independents: Iterable[str] = (),
    unknown: Iterable[str] | None = (),
    varying: Iterable[str] = (),
) -> Minimal:
    """`system` over independent coordinates that do at the pose q: those chosen, then added ones, then others.

    `unknown`: names of independent coordinates or of loads whose force belongs to the state; None for one on every independent coordinate.
    `varying`: names of the system's parameters by which derivatives are computed as well. Redundant constraints are left out, with a
    warning that names them; refused by name are a singular pose, and a set of coordinates that does not determine the others.
    """
    system = independent_rows(system, q)
    chosen = tuple(independents)
    names = independent(system, q, chosen)
    if chosen and set(names) != set(chosen):
        if len(chosen) <= len(names):
            try:
                r_matrix(system, q, chosen)  # refuses those that do not determine the others, by name
            except DataError as error:
                raise DataError(
                    [replace(fault, at=("independents",)) for fault in error.faults], error.source
                ) from error
        raise ModelError(
            Fault(
                "these are not the independent coordinates.",
                where=system.mechanism.name,
                at=("independents",),
                expected=f"{len(names)}, such as {', '.join(names)}",
                found=", ".join(chosen),
            )
        )
    names = chosen or names
    _refuse_weightless(system, q, names)
    forces = names if unknown is None else tuple(unknown)
    table, columns, faults = system.forces, [], Faults()
    for name in {name for name in forces if forces.count(name) > 1}:
        faults.add(f"the force '{name}' is unknown once only.", where=system.mechanism.name, found="it is named twice")
    for name in forces:
        if name in system.coordinates:
            columns.append(np.eye(system.n)[system.mechanism.index(name)])
        elif name in table.loads and table.loads[name].stop - table.loads[name].start == 1:
            at = table.loads[name].start
            if table.turning[at].any():
                faults.add("a torque that turns with its body cannot be unknown.", where=f"load '{name}'")
            columns.append(table.constant[:, at])
        else:
            faults.add(
                f"'{name}' is neither a coordinate nor a load of one number.",
                where=system.mechanism.name,
                hint=did_you_mean(name, [*names, *table.loads]),
            )
    faults.raise_if_any(ModelError)
    also = tuple(varying)
    columns += [np.zeros(system.n)] * len(also)
    return Minimal(system, names, forces, np.ascontiguousarray(np.array(columns).reshape(-1, system.n).T), also)


def _refuse_weightless(system: NaturalSystem, q: Array, names: tuple[str, ...]) -> None:
    """Rᵀ M R must be definite: a coordinate that moves no mass has no acceleration."""
    R = r_matrix(system, q, names)
    values, vectors = np.linalg.eigh(R.T @ system.mass @ R) if names else (np.ones(1), np.eye(1))
    if values[0] > MASSLESS_RATIO * max(float(values[-1]), 1e-300):
        return
    free = [n for n, share in zip(names, np.abs(vectors[:, 0])) if share > 0.1]
    raise ModelError(
        f"no mass moves with {', '.join(repr(n) for n in free)}, so no force has an acceleration.",
        where=system.mechanism.name,
        expected="bodies with mass on everything that moves",
        found=f"an inertia of {max(float(values[0]), 0.0):.3g} beside {float(values[-1]):.3g}",
        hint="Give the bodies their mass, or join what has none to a body that has some.",
    )


def _stacked(instants: Sequence[Instant]) -> Instant:
    """Instants of single states as one of many."""
    return Instant(*(np.array([getattr(at, field.name) for at in instants]) for field in fields(Instant)))


def _rows(x: Array, one: bool) -> Array:
    return np.array(x[None] if one else x, dtype=np.float64, order="C")
