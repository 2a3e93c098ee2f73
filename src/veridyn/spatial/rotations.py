"""Rotation matrices, unit quaternions and where a frame sits in another, numerically; right angles come out exact.

``R`` takes a vector from the inner to the outer frame. Quaternions are ``(w, x, y, z)``. A frame sits in another by the
six modified Denavit-Hartenberg parameters, or by a rotation and a position.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arguments import as_array, checked, checked_record
from veridyn.arrays import Array
from veridyn.errors import DataError

# Rounding of cos(pi/2) and the like; a true geometric angle this close to a right angle is a right angle.
SNAP = 1e-14


def snapped(values: ArrayLike) -> Array:
    """The same numbers with 0, 1 and −1 exact where rounding missed them, so that they fold."""
    a = np.array(values, dtype=np.float64)
    for exact in (0.0, 1.0, -1.0):
        a[np.abs(a - exact) < SNAP] = exact
    return a


@checked
def rot_x(angle: float) -> Array:
    """The rotation matrix (3, 3) of a turn about x by `angle` (rad)."""
    c, s = np.cos(angle), np.sin(angle)
    return snapped([[1, 0, 0], [0, c, -s], [0, s, c]])


@checked
def rot_y(angle: float) -> Array:
    """The rotation matrix (3, 3) of a turn about y by `angle` (rad)."""
    c, s = np.cos(angle), np.sin(angle)
    return snapped([[c, 0, s], [0, 1, 0], [-s, 0, c]])


@checked
def rot_z(angle: float) -> Array:
    """The rotation matrix (3, 3) of a turn about z by `angle` (rad)."""
    c, s = np.cos(angle), np.sin(angle)
    return snapped([[c, -s, 0], [s, c, 0], [0, 0, 1]])


@checked
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
    try:
        w, x, y, z = quaternion.tolist()
        s = 2.0 / (w * w + x * x + y * y + z * z)
    except (AttributeError, TypeError, ValueError, ZeroDivisionError):
        four = as_array(quaternion, "rotation_of, quaternion", (4,))
        if not four.any():
            raise DataError("it is no rotation.", where="rotation_of, quaternion", found="0") from None
        return rotation_of(four)
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


def angles_of(R: ArrayLike) -> Array:
    """Roll, pitch and yaw (..., 3) of rotation matrices (..., 3, 3): R = Rz(yaw) Ry(pitch) Rx(roll)."""
    A = np.asarray(R, dtype=np.float64)
    roll = np.arctan2(A[..., 2, 1], A[..., 2, 2])
    pitch = np.arctan2(-A[..., 2, 0], np.hypot(A[..., 2, 1], A[..., 2, 2]))
    return np.stack([roll, pitch, np.arctan2(A[..., 1, 0], A[..., 0, 0])], axis=-1)


def rotation_vector(R: ArrayLike) -> Array:
    """The rotation vector θ (..., 3) with R = exp(θ̃), of length at most π."""
    A = np.asarray(R, dtype=np.float64)
    twice = np.stack([A[..., 2, 1] - A[..., 1, 2], A[..., 0, 2] - A[..., 2, 0], A[..., 1, 0] - A[..., 0, 1]], axis=-1)
    sine, cosine = 0.5 * np.linalg.norm(twice, axis=-1), 0.5 * (np.trace(A, axis1=-2, axis2=-1) - 1.0)
    angle = np.arctan2(sine, cosine)
    near = sine < 1e-7
    out = twice * np.where(near, 0.5, 0.5 * angle / np.where(near, 1.0, sine))[..., None]
    half_turn = near & (cosine < 0.0)
    if half_turn.any():  # the axis is the column of R + 1 with the largest diagonal
        S = 0.5 * (A + np.eye(3))
        column = np.argmax(np.diagonal(S, axis1=-2, axis2=-1), axis=-1)
        axis = np.take_along_axis(S, column[..., None, None], axis=-1)[..., 0]
        axis = axis / np.maximum(np.linalg.norm(axis, axis=-1, keepdims=True), 1e-300)
        out = np.where(half_turn[..., None], axis * angle[..., None], out)
    return out


def right_jacobian(theta: ArrayLike) -> Array:
    """Jr (..., 3, 3) of rotation vectors θ (..., 3): exp(θ + dθ) = exp(θ) exp(Jr dθ) to first order."""
    t = np.asarray(theta, dtype=np.float64)
    square = (t**2).sum(axis=-1)[..., None, None]
    angle = np.sqrt(square)
    small = square < 1e-6
    safe = np.where(small, 1.0, angle)
    first = np.where(small, 0.5 - square / 24.0, (1.0 - np.cos(safe)) / safe**2)
    second = np.where(small, 1.0 / 6.0 - square / 120.0, (safe - np.sin(safe)) / safe**3)
    tilde = np.zeros((*t.shape, 3))
    tilde[..., 0, 1], tilde[..., 0, 2], tilde[..., 1, 2] = -t[..., 2], t[..., 1], -t[..., 0]
    tilde -= np.swapaxes(tilde, -1, -2)
    return np.eye(3) - first * tilde + second * tilde @ tilde


def quaternion(R: ArrayLike) -> Array:
    """(w, x, y, z) of a rotation matrix, by the largest of the four (Shepperd 1978)."""
    m = np.asarray(R, dtype=np.float64)
    d = np.array([m[0, 0] + m[1, 1] + m[2, 2], m[0, 0], m[1, 1], m[2, 2]])
    k = int(np.argmax(d))
    if k == 0:
        q = np.array([1.0 + d[0], m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]])
    else:
        i, j, n = k - 1, k % 3, (k + 1) % 3
        q = np.empty(4)
        q[0] = m[n, j] - m[j, n]
        q[1 + i] = 1.0 + m[i, i] - m[j, j] - m[n, n]
        q[1 + j] = m[j, i] + m[i, j]
        q[1 + n] = m[n, i] + m[i, n]
    return q / np.linalg.norm(q)


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


@checked_record
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


@checked
def rotation_to_axis(axis: ArrayLike) -> Array:
    """A rotation whose z axis is `axis`: what places a joint that acts along any direction."""
    z = as_array(axis, "rotation_to_axis, axis", (3,))
    if not 0.0 < np.linalg.norm(z) < np.inf:
        raise DataError("it has no direction.", where="rotation_to_axis, axis", found=f"{z.tolist()}")
    z = z / np.linalg.norm(z)
    helper = np.eye(3)[int(np.argmin(np.abs(z)))]
    x = np.cross(helper, z)
    x /= np.linalg.norm(x)
    return snapped(np.column_stack([x, np.cross(z, x), z]))


def _cleaned(p: Array) -> Array:
    """A position whose rounding dust, relative to its own length, is exact zero."""
    scale = np.abs(p).max()
    return np.where(np.abs(p) < 1e-15 * scale, 0.0, p)
