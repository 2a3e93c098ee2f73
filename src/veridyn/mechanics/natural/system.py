"""A mechanism made ready for computing: geometry, constraints, mass and forces, built once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault
from veridyn.mechanics.natural.constraints import Constraints, constraints_of
from veridyn.mechanics.natural.forces import ForceTable, forces_of
from veridyn.mechanics.natural.geometry import Geometry
from veridyn.mechanics.natural.mass import mass_matrix_of
from veridyn.model.natural import Mechanism

if TYPE_CHECKING:
    from veridyn.mechanics.natural.elimination import Elimination
    from veridyn.mechanics.natural.parameter_slopes import ParameterSlopes
    from veridyn.mechanics.natural.terms import Tables

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class NaturalSystem:
    """What the functions of ``mechanics/natural/`` compute with; made by :func:`system_of`."""

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

    @cached_property
    def tables(self) -> Tables:
        """The constants of the compiled step; loading the compiler waits until somebody asks."""
        from veridyn.mechanics.natural.terms import tables_of

        return tables_of(self.mass, self.constraints, self.forces)

    @cached_property
    def elimination(self) -> Elimination:
        """The order in which the compiled step eliminates, planned when somebody asks."""
        from veridyn.mechanics.natural.elimination import elimination_of

        return elimination_of(self.mass, self.constraints, self.forces, self.tables, self.guess)

    def select(self, names: Iterable[str]) -> Indices:
        """Numbers of coordinates by name."""
        return np.array([self.mechanism.index(name) for name in names], dtype=np.intp)

    def vector(self, values: object, what: str) -> Array:
        """A vector over the coordinates, checked."""
        x = np.asarray(values, dtype=np.float64)
        if x.shape != (self.n,) or not np.isfinite(x).all():
            raise DataError(
                Fault(
                    f"this is no {what} of this mechanism.",
                    where=self.mechanism.name,
                    expected=f"({self.n},) finite",
                    found=f"shape {x.shape}" + ("" if np.isfinite(x).all() else " with values that are not finite"),
                )
            )
        return x


def system_of(mechanism: Mechanism) -> NaturalSystem:
    """Constraints, mass matrix and forces of a mechanism; what contradicts itself in the description is refused by name."""
    geometry = Geometry(mechanism)
    return NaturalSystem(mechanism, geometry, constraints_of(geometry), mass_matrix_of(geometry), forces_of(geometry))
