"""Does an observer forget its errors? The closed loop that the gain really makes, along the run.

    e_k = (I − K_k H_k) F_k e_{k−1}

For a constant gain its poles are the eigenvalues of F (I − K H). Along a trajectory eigenvalues decide nothing, so the
growth rates of the product of all steps are found by repeated QR factors: the largest is negative when every error dies
out. The matrix of paper 003, equation 65, is block triangular, its eigenvalues do not contain the gain, and its test is
passed by any gain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.errors import DataError, Fault
from veridyn.observe.result import Estimates

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ClosedLoop:
    """`rates` (n,) in 1/s: how fast errors grow (positive) or die out (negative), the slowest first.

    `radius` (N − 1,): the largest |eigenvalue| of each single step, for a plot.
    """

    rates: Array
    radius: Array

    @property
    def stable(self) -> bool:
        return bool(self.rates[0] < 0.0)

    @property
    def memory(self) -> float:
        """Seconds until the slowest error has fallen to 1/e; infinite where it does not fall."""
        return float(-1.0 / self.rates[0]) if self.stable else float("inf")

    def summary(self) -> str:
        if self.stable:
            return f"stable: errors fall to 1/e within {self.memory:.3g} s"
        return f"not stable: an error grows at {self.rates[0]:.3g} 1/s"


def poles(F: ArrayLike, K: ArrayLike, H: ArrayLike) -> NDArray[np.complex128]:
    """The eigenvalues of F (I − K H): those of the error of an observer with a constant gain."""
    F, K, H = (np.asarray(a, dtype=np.float64) for a in (F, K, H))
    return np.linalg.eigvals(F @ (np.eye(len(F)) - K @ H)).astype(np.complex128)


def closed_loop(estimates: Estimates, scales: ArrayLike | None = None, skip: int = 0) -> ClosedLoop:
    """Growth rates along the run from sample `skip` on. `scales` (n,): typical sizes of the states, so that units compare."""
    estimates.chained("closed-loop stability")
    n = len(estimates.states)
    if len(estimates) - skip < 2:
        raise DataError(Fault("one sample makes no step.", estimates.filter, "at least two samples"))
    s = np.ones(n) if scales is None else np.asarray(scales, dtype=np.float64)
    keep = np.eye(n) - estimates.K[skip + 1 :] @ estimates.H[skip + 1 :]
    steps = (keep @ estimates.F[skip + 1 :]) * (s[None, None, :] / s[None, :, None])
    Q, growth = np.eye(n), np.zeros(n)
    for A in steps:
        Q, R = np.linalg.qr(A @ Q)
        growth += np.log(np.maximum(np.abs(R.diagonal()), np.finfo(np.float64).tiny))
    duration = float(estimates.t[-1] - estimates.t[skip])
    return ClosedLoop(np.sort(growth / duration)[::-1], np.abs(np.linalg.eigvals(steps)).max(axis=1))
