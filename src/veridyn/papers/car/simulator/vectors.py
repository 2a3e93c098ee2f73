"""Three-vectors as tuples of floats, for compiled equations: tuples live in registers, arrays in memory."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.compiled import compiled, inner

Array: TypeAlias = NDArray[np.float64]
V3: TypeAlias = tuple[float, float, float]
M3: TypeAlias = tuple[V3, V3, V3]


@compiled
def add(a: V3, b: V3) -> V3:
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


@compiled
def sub(a: V3, b: V3) -> V3:
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


@compiled
def scale(k: float, a: V3) -> V3:
    return (k * a[0], k * a[1], k * a[2])


@compiled
def dot(a: V3, b: V3) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@compiled
def cross(a: V3, b: V3) -> V3:
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


@compiled
def turned(R: M3, a: V3) -> V3:
    """R a."""
    return (dot(R[0], a), dot(R[1], a), dot(R[2], a))


@compiled
def turned_back(R: M3, a: V3) -> V3:
    """Rᵀ a."""
    return add(add(scale(a[0], R[0]), scale(a[1], R[1])), scale(a[2], R[2]))


@inner
def third(a: Array) -> V3:
    """The first three numbers of an array."""
    return (a[0], a[1], a[2])


@inner
def put(a: Array, v: V3) -> None:
    """v in the place of the first three numbers of an array."""
    a[0], a[1], a[2] = v[0], v[1], v[2]


@compiled
def symmetric(J: Array, a: V3) -> V3:
    """J a, with J given as XX XY XZ YY YZ ZZ."""
    return (
        J[0] * a[0] + J[1] * a[1] + J[2] * a[2],
        J[1] * a[0] + J[3] * a[1] + J[4] * a[2],
        J[2] * a[0] + J[4] * a[1] + J[5] * a[2],
    )


@compiled
def attitude(w: float, x: float, y: float, z: float) -> M3:
    """The rotation matrix of a quaternion of length one, scalar first."""
    return (
        (1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)),
        (2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)),
        (2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)),
    )
