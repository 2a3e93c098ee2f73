"""What models in natural coordinates share, whichever coordinates are independent: a configuration is all coordinates of the system.

Energies along a motion, and by how much constraints are open, are what a state is checked by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.natural.constraints import Constraints
from veridyn.mechanics.natural.dynamics import natural_energy
from veridyn.mechanics.natural.measurement import Readout, readout
from veridyn.mechanics.natural.system import NaturalSystem
from veridyn.model.sensor import Sensor

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class InPoints:
    """The part of :class:`~veridyn.mechanics.formulation.MachineModel` that follows from the points and vectors of a `system`."""

    system: NaturalSystem

    @property
    def nq(self) -> int:
        """The length of a configuration."""
        return self.system.n

    @property
    def nv(self) -> int:
        """The length of a velocity."""
        return self.system.n

    def readout(self, sensors: Sequence[Sensor]) -> Readout:
        """What sensors read."""
        return readout(self.system, sensors)

    def energies(self, q: Array, qd: Array) -> Array:
        """Kinetic, gravity's and elastic energy (J) along a motion, (N, 3)."""
        found = [natural_energy(self.system, a, b) for a, b in zip(q, qd, strict=True)]
        return np.array([[e.kinetic, e.gravity, e.elastic] for e in found])


def constraint_errors(
    c: Constraints, q: Array, qd: Array, qdd: Array, rows: NDArray[np.intp] | slice = slice(None)
) -> tuple[float, float, float]:
    """The largest |Φ|, |Φ_q q̇| and |Φ_q q̈ + Φ̇_q q̇| of these rows at one state."""
    phi, J = c.evaluate(q)
    rates = (phi, J @ qd, J @ qdd + c.jacobian_rate(q, qd) @ qd)
    first, second, third = (float(np.abs(x[rows]).max(initial=0.0)) for x in rates)
    return first, second, third
