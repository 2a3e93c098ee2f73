"""Autoregressions from autocovariances, each of the order that its samples are worth.

A process with Σ_k a_k y_(t−k) = e_t, a_0 = 1, has the autocovariances R of Yule and Walker's equations Σ_k a_k R_|l−k| = 0 for l = 1, 2 …
The order has the least AICc, n ln σ² + 2 k n/(n − k − 2) for n samples (Hurvich and Tsai, 1989, Biometrika 76), σ² the variance of the
news e.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import get_lapack_funcs

from veridyn.arrays import Array

NO_POWER = 1e-300  # of no noise at all
# scipy.linalg.cholesky does not return the part before a failure, and its wrappers take longer than these small systems
CHOLESKY, SOLVE_TRIANGULAR = get_lapack_funcs(("potrf", "trtrs"))


def autoregressions(R: Array, samples: Array, penalty: Array | None = None) -> list[tuple[Array, float]]:
    """Of each row of autocovariances R_0 … R_L (rows, L + 1) the coefficients (1, a_1 … a_k) and the variance of the news.

    With the Toeplitz matrix T = L Lᵀ of a row, the squares of L's diagonal are the variances of the news of every order. Orders end where
    R is no longer that of a stationary process; k has the least AICc for so many samples, of which the :func:`penalties` are a part.
    """
    if penalty is None:
        penalty = penalties(samples, R.shape[1] - 1)
    T = R[:, _lags(R.shape[1])]
    try:
        L = np.linalg.cholesky(T)
    except np.linalg.LinAlgError:  # of some row, if only of one without noise
        return [_autoregression(*own) for own in zip(T, samples, penalty, strict=True)]
    news = np.maximum(np.diagonal(L, axis1=1, axis2=2) ** 2, NO_POWER)
    best = np.argmin(samples[:, None] * np.log(news) + penalty, axis=1)
    return [_of_order(*own) for own in zip(L, news, best.tolist(), strict=True)]


def penalties(samples: Array, most: int) -> Array:
    """What AICc charges for orders 0 … `most` (rows, orders) with so many samples (rows,)."""
    orders = np.arange(most + 1)
    spare = samples[:, None] - orders - 2.0  # the mean and the variance are not free either
    return np.where(spare > 0.0, 2.0 * orders * samples[:, None] / np.maximum(spare, 1e-9), np.inf)


@lru_cache(maxsize=64)
def _lags(size: int) -> NDArray[np.intp]:
    """|i − j| of a matrix."""
    orders = np.arange(size)
    return np.abs(orders[:, None] - orders)


def _autoregression(T: Array, samples: float, penalty: Array) -> tuple[Array, float]:
    """That of one row, whose Toeplitz matrix may lose its sign at some order."""
    if T[0, 0] <= NO_POWER:
        return np.ones(1), NO_POWER
    L, failed = CHOLESKY(T, lower=1, clean=0)
    if failed:
        L, _ = CHOLESKY(T[: failed - 1, : failed - 1], lower=1, clean=0)
    news = np.maximum(np.diagonal(L) ** 2, NO_POWER)
    return _of_order(L, news, int(np.argmin(samples * np.log(news) + penalty[: len(news)])))


def _of_order(L: Array, news: Array, k: int) -> tuple[Array, float]:
    """Coefficients and the variance of the news of order k, from the triangle of the Toeplitz matrix."""
    last = np.zeros(k + 1)
    last[k] = L[k, k]
    a, _ = SOLVE_TRIANGULAR(L[: k + 1, : k + 1], last, lower=1, trans=1)
    return np.asarray(a[::-1], dtype=np.float64), float(news[k])
