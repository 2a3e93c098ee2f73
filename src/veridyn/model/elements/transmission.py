"""Motors that drive joints through gears and couplings: q = T q_m, and so Γ_m = Tᵀ Γ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.errors import DataError, part_at

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Transmission:
    """`matrix` (n_joints, n_motors) takes motor coordinates to those of `joints`; square and regular.

    A wrist in which motor 6 also moves with joint 5 has an entry off the diagonal. Virtual work fixes the forces:
    Γ_mᵀ q̇_m = Γᵀ q̇ for every motion, so Γ_m = Tᵀ Γ and Γ = T⁻ᵀ Γ_m.
    """

    motors: tuple[str, ...]
    joints: tuple[str, ...]
    matrix: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "matrix", np.array(self.matrix, dtype=np.float64))
        n, m = len(self.joints), len(self.motors)
        if self.matrix.shape != (n, m) or n != m:
            raise DataError(
                "the transmission matrix does not fit its motors and joints.",
                where=part_at("transmission"),
                expected=f"as many motors as joints and a matrix ({n}, {n})",
                found=f"{m} motors and {self.matrix.shape}",
            )
        for kind, names in (("motor", self.motors), ("joint", self.joints)):
            twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
            if twice:
                raise DataError(f"the {kind} '{twice[0]}' is named twice.", where=part_at("transmission"))
        if not np.isfinite(self.matrix).all():
            raise DataError("the transmission matrix holds NaN or infinite numbers.", where=part_at("transmission"))
        condition = np.linalg.cond(self.matrix)
        if not np.isfinite(condition) or condition > 1e12:
            raise DataError(
                "the transmission matrix is singular: some joint motion moves no motor.",
                where=part_at("transmission"),
                found=f"condition {condition:.3g}",
            )

    def joints_from_motors(self, motors: ArrayLike) -> Array:
        """(N, m) motor positions, velocities or accelerations to those of the joints."""
        return np.asarray(motors, dtype=np.float64) @ self.matrix.T

    def motors_from_joints(self, joints: ArrayLike) -> Array:
        return np.asarray(np.linalg.solve(self.matrix, np.asarray(joints, dtype=np.float64).T).T, dtype=np.float64)

    def joint_forces(self, motor_forces: ArrayLike) -> Array:
        """(N, m) motor forces to joint forces."""
        solved = np.linalg.solve(self.matrix.T, np.asarray(motor_forces, dtype=np.float64).T)
        return np.asarray(solved.T, dtype=np.float64)

    def motor_forces(self, joint_forces: ArrayLike) -> Array:
        return np.asarray(joint_forces, dtype=np.float64) @ self.matrix
