"""Forces within bounds that stop what they can: a linear complementarity problem with bounds, by pivoting.

Find f with  low ≤ f ≤ high  and  w = b − H f  such that  w_i = 0 where f_i lies between its bounds, w_i ≥ 0 where f_i = high_i and
w_i ≤ 0 where f_i = low_i;  H (m, m) is symmetric and positive semidefinite. It is the optimum of ½ fᵀH f − bᵀf within the bounds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Fault, SimulationError

Array = NDArray[np.float64]
EXCHANGES = (
    10  # of all that is on the wrong side at once, for each unknown; after them one at a time, which cannot cycle
)
ROUNDING = 1e-14  # of the diagonal of H: added to it, so that dependent directions share a force


def solve_bounded(H: Array, b: Array, low: Array, high: Array) -> Array:
    """f (m,) of the problem above, by block pivoting (Júdice and Pires, 1994, Computers & Operations Research 21(5))."""
    m = len(b)
    H = H + ROUNDING * np.diag(np.diag(H))
    side = np.zeros(m, dtype=np.int64)  # 1 at the upper bound, −1 at the lower one, 0 between
    tolerance_f = 1e-12 * np.maximum(high - low, np.finfo(float).tiny)
    tolerance_w = 1e-12 * np.abs(np.diag(H)) * np.maximum(high - low, np.finfo(float).tiny) + 1e-15 * np.abs(b)
    at_once = EXCHANGES * (m + 1)
    for exchange in range(at_once + 50 * (m + 1)):
        f = np.where(side > 0, high, low)
        inner = np.flatnonzero(side == 0)
        bound = np.flatnonzero(side)
        if len(inner):
            rest = b[inner] - H[np.ix_(inner, bound)] @ f[bound]
            f[inner] = np.linalg.solve(H[np.ix_(inner, inner)], rest)
        w = b - H @ f
        above = (side == 0) & (f > high + tolerance_f)
        below = (side == 0) & (f < low - tolerance_f)
        freed = ((side > 0) & (w < -tolerance_w)) | ((side < 0) & (w > tolerance_w))
        wrong = np.flatnonzero(above | below | freed)
        if not len(wrong):
            return np.clip(f, low, high)
        if exchange >= at_once:
            wrong = wrong[-1:]  # Murty's rule
        side[wrong] = np.where(above[wrong], 1, np.where(below[wrong], -1, 0))
    raise SimulationError(
        Fault("no friction forces within their limits were found.", where="dry friction", hint="Take shorter steps.")
    )
