"""The R factor of a matrix by NumPy, for those that need no more: nothing is compiled to import it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def triangle_of(A: Array) -> Array:
    """R of a QR factorisation: RᵀR = AᵀA."""
    return np.asarray(np.linalg.qr(A, mode="r"))
