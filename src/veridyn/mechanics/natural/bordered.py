"""The one linear system of all augmented Lagrangian forms.

(A + α Jᵀ J) x = a − α Jᵀ b is the first row of

    [ A   Jᵀ   ] [x]   [ a ]
    [ J  −1/α I] [μ] = [−b ],      μ = α (J x + b),

and μ is the growth of the multipliers. Solved as it stands, no product with α is formed, so α may be as large as one likes without
losing digits, and redundant rows of J do no harm.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import get_lapack_funcs

Array = NDArray[np.float64]
_factor, _solve = get_lapack_funcs(("getrf", "getrs"), dtype=np.float64)


class Bordered:
    """A factorised system; A may be singular where J holds what it lets go."""

    def __init__(self, A: Array, J: Array, alpha: float) -> None:
        n, m = len(A), len(J)
        B = np.zeros((n + m, n + m), order="F")
        B[:n, :n] = A
        B[:n, n:] = J.T
        B[n:, :n] = J
        B[range(n, n + m), range(n, n + m)] = -1.0 / alpha
        self.n = n
        self.lu, self.pivots, self.info = _factor(B, overwrite_a=1)

    def solve(self, a: Array, b: Array) -> tuple[Array, Array]:
        """x and μ; not finite where the system is singular."""
        if self.info:
            return np.full(len(a), np.nan), np.full(len(b), np.nan)
        x = _solve(self.lu, self.pivots, np.concatenate([a, -b]))[0]
        return x[: self.n], x[self.n :]
