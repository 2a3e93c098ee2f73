"""Where a frame sits in another: the six modified Denavit-Hartenberg parameters, or a rotation and a position."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.spatial.rotations import rot_x, rot_z, snapped


@dataclass(frozen=True)
class MDH:
    """iTj = Rz(γ) Tz(b) Rx(α) Tx(d) Rz(θ) Tz(r) at q = 0; the joint adds its coordinate to θ (turning) or r (sliding).

    γ and b place an auxiliary axis where body i carries several branches (Khalil and Kleinfinger 1986); both are zero in a chain.
    """

    gamma: float = 0.0
    b: float = 0.0
    alpha: float = 0.0
    d: float = 0.0
    theta: float = 0.0
    r: float = 0.0

    @property
    def rotation(self) -> Array:
        return snapped(rot_z(self.gamma) @ rot_x(self.alpha) @ rot_z(self.theta))

    @property
    def position(self) -> Array:
        axes = rot_z(self.gamma) @ rot_x(self.alpha)
        along = axes @ np.array([self.d, 0.0, self.r])
        return _cleaned(along + np.array([0.0, 0.0, self.b]))


@dataclass(frozen=True)
class Placement:
    """Any rotation (3, 3) and position (3,) of the body's frame in its antecedent's, at q = 0. The joint acts along the frame's z."""

    rotation: Array
    position: Array

    def __init__(self, rotation: ArrayLike | None = None, position: ArrayLike = (0.0, 0.0, 0.0)) -> None:
        object.__setattr__(self, "rotation", snapped(np.eye(3) if rotation is None else rotation))
        object.__setattr__(self, "position", np.array(position, dtype=np.float64))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Placement)
            and np.array_equal(self.rotation, other.rotation)
            and np.array_equal(self.position, other.position)
        )

    def __hash__(self) -> int:
        return hash((self.rotation.tobytes(), self.position.tobytes()))


def rotation_to_axis(axis: ArrayLike) -> Array:
    """A rotation whose z axis is `axis`: what places a joint that acts along any direction."""
    z = np.asarray(axis, dtype=np.float64)
    z = z / np.linalg.norm(z)
    helper = np.eye(3)[int(np.argmin(np.abs(z)))]
    x = np.cross(helper, z)
    x /= np.linalg.norm(x)
    return snapped(np.column_stack([x, np.cross(z, x), z]))


def _cleaned(p: Array) -> Array:
    """A position whose rounding dust, relative to its own length, is exact zero."""
    scale = np.abs(p).max()
    return np.where(np.abs(p) < 1e-15 * scale, 0.0, p)
