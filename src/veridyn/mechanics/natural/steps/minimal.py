"""A mechanism over independent coordinates: its state from a few numbers, the trapezoidal step, and exact derivatives of both.

All other coordinates follow from the position, then the velocity, then the acceleration problem. The step is
:mod:`veridyn.mechanics.natural.steps.trapezoid`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.arrays import Array
from veridyn.errors import DataError, Fault, Faults, ModelError, SimulationError, did_you_mean
from veridyn.mechanics.compiled import Bound
from veridyn.mechanics.formulation import Instant
from veridyn.mechanics.natural.equations.freedoms import Reduced, independent_rows
from veridyn.mechanics.natural.equations.position import independent, position, r_matrix
from veridyn.mechanics.natural.equations.system import NaturalSystem
from veridyn.mechanics.natural.kernels.law_code import law_rows
from veridyn.mechanics.natural.kernels.room import Model, Slopes, desk_of, no_slopes
from veridyn.mechanics.natural.steps.trapezoid import ITERATIONS, trapezoid

Numbers = NDArray[np.int64]
MASSLESS_RATIO = 1e-14  # of the largest reduced inertia: one below it is none


class _Desks(threading.local):
    """Room for the kernels, made once for each thread that computes with a model."""

    made: Bound | None = None
    shifted: Bound | None = None

    def bound(self, model: Minimal) -> Bound:
        if self.made is None:
            t = model.system.tables
            sizes = (model.system.n, len(model.dependent), model.f, model.B.shape[1], len(t.places), law_rows(t.laws))
            self.made = Bound(desk_of(*sizes))
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
                hint="Try a smaller step, or look for a pose where the mechanism locks.",
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


def start_of(
    system: NaturalSystem, given: Mapping[str, float] | None = None, rates_: Mapping[str, float] | None = None
) -> tuple[Array, Array]:
    """A consistent pose and velocity from coordinates and rates by name; rates that are left out are zero."""
    q = position(system, given)
    names = independent(system, q, tuple(rates_ or ()))
    R = r_matrix(system, q, names)
    unknown = [n for n in rates_ or () if n not in names]
    if unknown:
        system.select(unknown)  # refuses a name that does not exist
        raise DataError(
            Fault(
                f"the rate of '{unknown[0]}' follows from the others.",
                where=system.mechanism.name,
                at=("rates", unknown[0]),
                expected=f"rates of at most {len(names)} independent coordinates, such as {', '.join(names)}",
            )
        )
    return q, R @ np.array([float((rates_ or {}).get(n, 0.0)) for n in names])


def _stacked(instants: Sequence[Instant]) -> Instant:
    """Instants of single states as one of many."""
    return Instant(*(np.array([getattr(at, field.name) for at in instants]) for field in fields(Instant)))


def _rows(x: Array, one: bool) -> Array:
    return np.array(x[None] if one else x, dtype=np.float64, order="C")
