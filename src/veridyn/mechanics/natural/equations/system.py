"""A machine in natural coordinates made ready for computing: geometry, constraints, mass, forces, and derivatives by its parameters.

The equations are linear in the parameters of the machine, so that their derivatives are exact:

    M q̈ + Φ_qᵀ λ = Q,     M = Σ φ_i M_i + …,     Q = Σ φ_i Q_i(q, q̇) + …      →      −∂(M q̈ − Q)/∂φ_i = Q_i − M_i q̈

M_i is constant; Q_i is a weight, a constant force, or the law of an element with unit parameter. A parameter that the points and
vectors of its body cannot carry is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.arrays import Array
from veridyn.errors import CapabilityError, DataError, Faults, ModelError, did_you_mean, part_at
from veridyn.mechanics.natural.description.mechanism import Mechanism
from veridyn.mechanics.natural.description.of_machine import mechanism_of
from veridyn.mechanics.natural.equations.constraints import Constraints, constraints_of
from veridyn.mechanics.natural.equations.forces import IN_SPAN, ForceTable, forces_of, mass_matrix_of, rotor_mass
from veridyn.mechanics.natural.equations.geometry import Geometry
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.elements.element import Element
from veridyn.model.machine import Machine
from veridyn.model.parameters import Uncertainty
from veridyn.spatial.inertia import INERTIAL, inertia_matrix

Indices = NDArray[np.intp]


if TYPE_CHECKING:
    from veridyn.mechanics.natural.equations.elimination import Elimination
    from veridyn.mechanics.natural.equations.tangent import Slopes
    from veridyn.mechanics.natural.equations.terms import Tables
    from veridyn.mechanics.natural.equations.wheels import WheelTable


@dataclass(frozen=True, eq=False, kw_only=True)
class ParameterSlopes:
    """Parameters that may differ from the `values` the mechanism was made with; `tables` are what the kernels read.

    `uncertainty`: of the last of them, which are considered and not estimated; None where all are estimated.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    values: Array
    uncertainty: Uncertainty | None
    tables: Slopes
    machine: Machine


@dataclass(frozen=True, eq=False)
class NaturalSystem:
    """What the functions of ``mechanics/natural/`` compute with; made by :func:`natural_system` of a machine."""

    mechanism: Mechanism
    geometry: Geometry
    constraints: Constraints
    mass: Array
    forces: ForceTable
    parameters: ParameterSlopes | None = field(default=None, kw_only=True)  # those that may differ

    @property
    def n(self) -> int:
        return self.mechanism.n

    @property
    def coordinates(self) -> tuple[str, ...]:
        return self.mechanism.coordinates

    @property
    def guess(self) -> Array:
        """The coordinates as the description gives them."""
        return self.geometry.guess

    @property
    def turns(self) -> bool:
        """Whether nothing of the mechanism is fixed in space."""
        return self.mechanism.dimension == 3 and not self.geometry.fixed

    @cached_property
    def wheels(self) -> WheelTable:
        """The wheels with tyres; their laws are loaded when somebody asks for forces."""
        from veridyn.mechanics.natural.equations.wheels import wheels_of

        return wheels_of(self.geometry)

    @cached_property
    def tables(self) -> Tables:
        """The constants of the compiled step; loading the compiler waits until somebody asks."""
        from veridyn.mechanics.natural.equations.terms import tables_of

        return tables_of(self.mass, self.constraints, self.forces)

    @cached_property
    def elimination(self) -> Elimination:
        """The order in which the compiled step eliminates, planned when somebody asks."""
        from veridyn.mechanics.natural.equations.elimination import elimination_of

        parts = (self.mass, self.constraints, self.forces, self.wheels, self.tables, self.guess)
        return elimination_of(*parts, len(self.mechanism.added), self.turns)

    def holding(self, motion: Mapping[str, ArrayLike]) -> NaturalSystem:
        """The same system at a moment of its prescribed coordinates: name → place, or place, rate and acceleration."""
        if not motion:
            return self
        given = self.constraints.motion.copy()
        for name, value in motion.items():
            if name not in self.mechanism.prescribed:
                hint = did_you_mean(name, self.mechanism.prescribed)
                raise DataError(f"the coordinate '{name}' is not prescribed.", where=self.mechanism.name, hint=hint)
            numbers = np.atleast_1d(np.asarray(value, dtype=np.float64))
            if numbers.shape not in ((1,), (3,)) or not np.isfinite(numbers).all():
                expected = "a place, or a place, a rate and an acceleration, all finite"
                where = f"{self.mechanism.name}, coordinate '{name}'"
                raise DataError("this is no motion of it.", where=where, expected=expected, found=f"{numbers.tolist()}")
            given[: len(numbers), self.mechanism.prescribed.index(name)] = numbers
        made = replace(self, constraints=replace(self.constraints, motion=given))
        made.__dict__.update(
            {key: self.__dict__[key] for key in ("wheels", "tables", "elimination") if key in self.__dict__}
        )
        return made

    def select(self, names: Iterable[str]) -> Indices:
        """Numbers of coordinates by name."""
        return np.array([self.mechanism.index(name) for name in names], dtype=np.intp)

    def vector(self, values: object, what: str) -> Array:
        """A vector over the coordinates, checked."""
        x = np.asarray(values, dtype=np.float64)
        if x.shape != (self.n,) or not np.isfinite(x).all():
            raise DataError(
                f"this is no {what} of this mechanism.",
                where=self.mechanism.name,
                expected=f"({self.n},) finite",
                found=f"shape {x.shape}" + ("" if np.isfinite(x).all() else " with values that are not finite"),
            )
        return x


def system_of(mechanism: Mechanism) -> NaturalSystem:
    """Constraints, mass matrix and forces of a mechanism; what contradicts itself in the description is refused by name."""
    geometry = Geometry(mechanism)
    return NaturalSystem(mechanism, geometry, constraints_of(geometry), mass_matrix_of(geometry), forces_of(geometry))


def natural_system(machine: Machine) -> NaturalSystem:
    """A machine in natural coordinates, whatever its own formulation, made ready for computing."""
    return system_of(mechanism_of(machine))


def with_parameter_slopes(
    system: NaturalSystem, machine: Machine, estimated: tuple[str, ...] = (), consider: bool = True
) -> NaturalSystem:
    """The same system of a machine, with slopes by its `estimated` parameters, then by the others whose uncertainty the machine has.

    `consider`: whether those others are meant as well.
    """
    considered = machine.uncertainty.without(estimated) if consider and machine.uncertainty is not None else None
    names = (*estimated, *(() if considered is None else considered.names))
    if not names:
        return replace(system, parameters=None)
    p = machine.parameters
    _refuse_estimated(machine, estimated)
    places = [p.index(name) for name in _refuse_constants(machine, names)]
    return replace(
        system,
        parameters=ParameterSlopes(
            names=names,
            units=tuple(p.units[k] for k in places),
            values=p.values[places],
            uncertainty=considered,
            tables=slopes_of(system, machine, names),
            machine=machine,
        ),
    )


def slopes_of(system: NaturalSystem, machine: Machine, names: Sequence[str]) -> Slopes:
    """M_i, constant forces and laws of each parameter by name."""
    bodies = {b.parameter(s): (b.name, k) for b in tree_of(machine).bodies if b.real for k, s in enumerate(INERTIAL)}
    elements = dict(zip(machine.element_names, machine.elements, strict=True))
    found, faults = [], Faults()
    for name in names:
        if name in bodies:
            body, k = bodies[name]
            mass, weight = _of_body(system.geometry, body, np.eye(10)[k])
            if mass is None:
                faults.add(
                    f"the points and vectors of body '{body}' cannot carry '{name}'.",
                    where=part_at("body", body),
                    hint="Observe it in formulation tree (with_formulation('tree')), or give the body points or vectors that span space.",
                )
                continue
            found.append((mass, weight, *_laws(system, None)))
        else:
            found.append(_of_element(system, elements[name], name))
    faults.raise_if_any(ModelError, machine.name)
    parts = zip(*found, strict=True) if found else ()
    made = [np.ascontiguousarray(part) for part in parts]
    from veridyn.mechanics.natural.equations.tangent import Slopes, no_slopes  # loads the compiler

    return Slopes(*made) if made else no_slopes(system.n, system.tables)


def _refuse_estimated(machine: Machine, names: Sequence[str]) -> None:
    """Refuse by name what is no parameter that forces are linear in."""
    for name in names:
        if name in machine.parameters.names:
            continue
        if name in {c.name for c in machine.constants} or name in machine.load_channels:
            raise CapabilityError(
                "natural",
                f"estimated '{name}'",
                "its steps have slopes by the parameters that forces are linear in, which constants of laws and loads are not",
                "Use its tree: with_formulation('tree').",
                where=machine.name,
            )
        hint = did_you_mean(name, machine.parameters.names)
        raise ModelError(f"there is no parameter '{name}'.", where=machine.name, hint=hint)


def _refuse_constants(machine: Machine, names: Sequence[str]) -> Sequence[str]:
    for name in names:
        if name not in machine.parameters.names:
            raise ModelError(
                f"the uncertainty of the constant '{name}' cannot be considered in natural coordinates.",
                where=machine.name,
                hint="Observe it in formulation tree: with_formulation('tree').",
            )
    return names


def _of_body(geometry: Geometry, body: str, ten: Array) -> tuple[Array | None, Array]:
    """M_i (n, n) and the weight (n,) of ten inertial parameters of a body; None where its points and vectors do not span them."""
    m, n, basis, dim = geometry.mechanism, geometry.mechanism.n, geometry.bases[body], geometry.mechanism.dimension
    mass, s, o = float(ten[9]), ten[6 : 6 + dim], basis.local_origin
    first = s - mass * o
    if dim == 2:  # only the sum of the two counts: the second direction turns with the first
        if not any((ten[5], *s, mass)):
            return np.zeros((n, n)), np.zeros(n)  # what no planar motion depends on
        second = 0.5 * (ten[5] - 2.0 * o @ s + mass * o @ o) * np.eye(2)
    else:
        J = np.array(inertia_matrix(ten))
        second = 0.5 * np.trace(J) * np.eye(3) - J - np.outer(o, s) - np.outer(s, o) + mass * np.outer(o, o)
    k = basis.local.shape[1]
    T = np.linalg.pinv(basis.local) if k else np.zeros((0, dim))
    outside = np.eye(dim) - basis.local @ T
    size = max(float(np.abs(second).max()), float(np.abs(first).max()), 1e-300)
    if max(np.abs(outside @ second @ outside).max(), np.abs(outside @ first).max()) > IN_SPAN * size:
        return None, np.zeros(n)
    weight = np.array(m.gravity) @ (mass * basis.place + np.tensordot(T @ first, basis.maps, axes=1))
    P = np.empty((k + 1, k + 1))
    P[0, 0] = mass
    P[1:, 0] = P[0, 1:] = T @ first
    P[1:, 1:] = T @ second @ T.T
    N = np.concatenate([basis.place[None], basis.maps])[:, :, :n]
    M = np.asarray(np.einsum("ab,aik,bil->kl", P, N, N), dtype=np.float64)
    return 0.5 * (M + M.T), weight[:n]


def _laws(system: NaturalSystem, changed: NaturalSystem | None, name: str = "") -> tuple[Array, Array, Array]:
    """The laws (3, …) of struts and of coordinates' own springs with the unit parameter, rest lengths as they are, and shares of others."""
    out = []
    for key in ("strut_laws", "line_laws"):
        old = getattr(system.forces, key)
        new = old if changed is None else getattr(changed.forces, key)
        out.append(np.stack([new[0] - old[0], old[1], new[2] - old[2]]))
    shares = [float(e.parameter_name == name) for e in system.mechanism.laws]
    return out[0], out[1], np.array(shares, dtype=np.float64)


def _of_element(system: NaturalSystem, element: Element, name: str) -> tuple[Array, Array, Array, Array, Array]:
    n, m = system.n, system.mechanism
    if element.kind == "drive_gain":
        raise CapabilityError(
            "natural",
            f"considered parameter '{name}'",
            "its slope is the signal that it multiplies, which changes with every sample, and slopes are constants here",
            "Observe it in formulation tree (with_formulation('tree')), or consider=False.",
            where=m.name,
        )
    mass, force = np.zeros((n, n)), np.zeros(n)
    scale = next(iter(element.on.values())) if len(element.on) == 1 else 1.0
    for rotor in m.rotors:
        if rotor.name == name:
            mass = scale**2 * rotor_mass(m, rotor)
    if element.kind == "offset" and all(e.parameter_name != name for e in m.laws):
        force[m.index(next(iter(element.on)))] = -scale
    springs = tuple(replace(s, stiffness=s.stiffness + scale**2) if s.name == name else s for s in m.springs)
    dampers = tuple(replace(d, coefficient=d.coefficient + scale**2) if d.name == name else d for d in m.dampers)
    geometry = Geometry(replace(m, springs=springs, dampers=dampers))
    return mass, force, *_laws(system, replace(system, geometry=geometry, forces=forces_of(geometry)), name)
