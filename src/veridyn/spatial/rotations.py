"""Rotation matrices and unit quaternions, numerically; right angles come out exact.

``R`` takes a vector from the inner to the outer frame. Quaternions are ``(w, x, y, z)``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

# Rounding of cos(pi/2) and the like; a true geometric angle this close to a right angle is a right angle.
SNAP = 1e-14


def snapped(values: ArrayLike) -> Array:
    """The same numbers with 0, 1 and −1 exact where rounding missed them, so that they fold."""
    a = np.array(values, dtype=np.float64)
    for exact in (0.0, 1.0, -1.0):
        a[np.abs(a - exact) < SNAP] = exact
    return a


def rot_x(angle: float) -> Array:
    c, s = np.cos(angle), np.sin(angle)
    return snapped([[1, 0, 0], [0, c, -s], [0, s, c]])


def rot_y(angle: float) -> Array:
    c, s = np.cos(angle), np.sin(angle)
    return snapped([[c, 0, s], [0, 1, 0], [-s, 0, c]])


def rot_z(angle: float) -> Array:
    c, s = np.cos(angle), np.sin(angle)
    return snapped([[c, -s, 0], [s, c, 0], [0, 0, 1]])


def rpy(roll: float, pitch: float, yaw: float) -> Array:
    """Rz(yaw) Ry(pitch) Rx(roll), the fixed-axis order of URDF."""
    return snapped(rot_z(yaw) @ rot_y(pitch) @ rot_x(roll))


def is_rotation(R: ArrayLike, tolerance: float = 1e-9) -> bool:
    """RᵀR = 1 and det R = +1, within tolerance."""
    a = np.asarray(R, dtype=np.float64)
    return a.shape == (3, 3) and bool(np.abs(a.T @ a - np.eye(3)).max() < tolerance and np.linalg.det(a) > 0)


def matrix_of(quaternion: ArrayLike) -> Array:
    """The rotation matrices (..., 3, 3) of unit quaternions (..., 4)."""
    w, x, y, z = np.moveaxis(np.asarray(quaternion, dtype=np.float64), -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def rotation_of(quaternion: Array) -> Array:
    """The rotation matrix (3, 3) of one quaternion of any length: :func:`matrix_of`, quickly, for integrators."""
    w, x, y, z = quaternion.tolist()
    s = 2.0 / (w * w + x * x + y * y + z * z)
    return np.array(
        [
            [1 - s * (y * y + z * z), s * (x * y - w * z), s * (x * z + w * y)],
            [s * (x * y + w * z), 1 - s * (x * x + z * z), s * (y * z - w * x)],
            [s * (x * z - w * y), s * (y * z + w * x), 1 - s * (x * x + y * y)],
        ]
    )


def quaternion_rate(quaternion: Array, omega: Array) -> Array:
    """q̇ = ½ q ∘ (0, ω), with ω in the body's own frame."""
    w, x, y, z = quaternion
    a, b, c = omega
    return 0.5 * np.array([-x * a - y * b - z * c, w * a + y * c - z * b, w * b + z * a - x * c, w * c + x * b - y * a])
