"""An instant of a machine in natural coordinates over the freedoms of its tree, what acts on it, and the matrix it is solved with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lu_factor, lu_solve

from veridyn.errors import SimulationError
from veridyn.mechanics.formulation import Instant
from veridyn.mechanics.natural.system import NaturalSystem

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FreeInstant(Instant):
    """An instant over freedoms; `u`: unknown forces and slips there, `slopes` (f + 2w, 2f + k): derivatives of z̈ and of slip rates."""

    u: Array
    slopes: Array


@dataclass(frozen=True, eq=False)
class FreeInputs:
    """What acts: `values` of the loads, and place, rate and acceleration (3, p) of prescribed coordinates."""

    values: Array
    motion: Array

    def later(self, dt: float) -> FreeInputs:
        """Prescribed coordinates go on with their accelerations."""
        q, qd, qdd = self.motion
        return FreeInputs(self.values, np.array([q + dt * qd + 0.5 * dt**2 * qdd, qd + dt * qdd, qdd]))


class BorderedFactors:
    """The factorised [M Φ_qᵀ; Φ_q 0] of a system, with rows of one length."""

    def __init__(self, system: NaturalSystem, J: Array) -> None:
        n, m = system.n, len(J)
        B = np.zeros((n + m, n + m))
        B[:n, :n], B[:n, n:], B[n:, :n] = system.mass, J.T, J
        self._factors = lu_factor(B, check_finite=False)
        self._name = system.mechanism.name

    def __call__(self, right: Array) -> Array:
        x = lu_solve(self._factors, right, check_finite=False)
        if not np.isfinite(x).all():
            raise SimulationError(
                "its accelerations are not determined here.",
                where=self._name,
                expected="independent constraints, and mass behind every freedom",
                found="a singular matrix, or a state that is not finite",
            )
        return np.asarray(x, dtype=np.float64)
