"""Energies in natural coordinates along a motion, and by how much constraints are open: what a state is checked by."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.natural.constraints import Constraints
from veridyn.mechanics.natural.dynamics import natural_energy
from veridyn.mechanics.natural.system import NaturalSystem

Array = NDArray[np.float64]


def natural_energies(system: NaturalSystem, q: Array, qd: Array) -> Array:
    """Kinetic, gravity's and elastic energy (J), (N, 3), of coordinates and rates (N, n)."""
    found = [natural_energy(system, a, b) for a, b in zip(q, qd, strict=True)]
    return np.array([[e.kinetic, e.gravity, e.elastic] for e in found])


def constraint_errors(
    c: Constraints, q: Array, qd: Array, qdd: Array, rows: NDArray[np.intp] | slice = slice(None)
) -> tuple[float, float, float]:
    """The largest |Φ|, |Φ_q q̇| and |Φ_q q̈ + Φ̇_q q̇| of these rows at one state."""
    phi, J = c.evaluate(q)
    rates = (phi, J @ qd, J @ qdd + c.jacobian_rate(q, qd) @ qd)
    first, second, third = (float(np.abs(x[rows]).max(initial=0.0)) for x in rates)
    return first, second, third
