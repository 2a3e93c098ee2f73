"""A machine in natural coordinates made ready for computing: geometry, constraints, mass and forces, built once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.errors import DataError, did_you_mean
from veridyn.mechanics.natural.constraints import Constraints, constraints_of
from veridyn.mechanics.natural.forces import ForceTable, forces_of
from veridyn.mechanics.natural.geometry import Geometry
from veridyn.mechanics.natural.mass import mass_matrix_of
from veridyn.mechanics.natural.mechanism import Mechanism
from veridyn.mechanics.natural.of_machine import mechanism_of
from veridyn.model.machine import Machine

if TYPE_CHECKING:
    from veridyn.mechanics.natural.elimination import Elimination
    from veridyn.mechanics.natural.parameter_slopes import ParameterSlopes
    from veridyn.mechanics.natural.terms import Tables
    from veridyn.mechanics.natural.wheels import WheelTable

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class NaturalSystem:
    """What the functions of ``mechanics/natural/`` compute with; made by :func:`natural_system` of a machine."""

    mechanism: Mechanism
    geometry: Geometry
    constraints: Constraints
    mass: Array
    forces: ForceTable
    parameters: ParameterSlopes | None = field(default=None, kw_only=True)  # those whose uncertainty is known

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
        from veridyn.mechanics.natural.wheels import wheels_of

        return wheels_of(self.geometry)

    @cached_property
    def tables(self) -> Tables:
        """The constants of the compiled step; loading the compiler waits until somebody asks."""
        from veridyn.mechanics.natural.terms import tables_of

        return tables_of(self.mass, self.constraints, self.forces)

    @cached_property
    def elimination(self) -> Elimination:
        """The order in which the compiled step eliminates, planned when somebody asks."""
        from veridyn.mechanics.natural.elimination import elimination_of

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
