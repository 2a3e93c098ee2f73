"""Unit quaternions (w, x, y, z) of rotation matrices."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


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
