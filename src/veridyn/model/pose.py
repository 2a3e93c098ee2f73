"""Where a body is in the world over time, as motion capture measures it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Faults

Array = NDArray[np.float64]
ORTHOGONALITY_ERROR = 1e-6  # by how much RᵀR may differ from 1


@dataclass(frozen=True, eq=False)
class Pose:
    """N samples of a frame in the world: `t` (N,), `rotation` (N, 3, 3) from the frame to the world, `position` (N, 3) of its origin."""

    t: Array
    rotation: Array
    position: Array

    def __post_init__(self) -> None:
        for name in ("t", "rotation", "position"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        faults = Faults()
        N = len(self.t)
        for name, shape in (("t", (N,)), ("rotation", (N, 3, 3)), ("position", (N, 3))):
            value = getattr(self, name)
            if value.shape != shape:
                faults.add("wrong shape.", where=f"pose.{name}", expected=f"{shape}", found=f"{value.shape}")
            elif not np.isfinite(value).all():
                bad = int(np.argmin(np.isfinite(value).reshape(N, -1).all(axis=1)))
                faults.add("it holds NaN or infinite values.", where=f"pose.{name}", found=f"the first at sample {bad}")
        faults.raise_if_any(DataError)
        R = self.rotation
        off = np.abs(np.swapaxes(R, 1, 2) @ R - np.eye(3)).max(axis=(1, 2)) if N else np.zeros(0)
        if (off > ORTHOGONALITY_ERROR).any() or (np.linalg.det(R) < 0.0).any():
            first = int(np.argmax((off > ORTHOGONALITY_ERROR) | (np.linalg.det(R) < 0.0)))
            faults.add(
                "these matrices are no rotations.",
                where="pose.rotation",
                expected="RᵀR = 1 and det R = 1",
                found=f"|RᵀR − 1| = {off[first]:.2g}, det R = {np.linalg.det(R[first]):.6g} at sample {first}",
            )
        if N > 1 and not (np.diff(self.t) > 0.0).all():
            faults.add("the clock stands still or runs backwards.", where="pose.t")
        faults.raise_if_any(DataError)

    def __len__(self) -> int:
        return len(self.t)
