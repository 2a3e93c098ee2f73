"""Kolmogorov and Smirnov's law: how far the distribution of n uniform numbers lies from the straight line, D = sup |F_n(u) − u|.

Far out, n d² ≥ 4, both sides cannot be left at once, and P(D ≥ d) = 2 P(D⁺ ≥ d) to 1e-10 of itself. Nearer, P(D < d) is the power of a
matrix (Marsaglia, Tsang and Wang, J. Statistical Software 8(18), 2003) for at most EXACT_UP_TO numbers, and for more of them the series
of Pelz and Good (J. Royal Statistical Society B 38(2), 1976) in 1/√n, which is off by less than 1e-6. SciPy has the same law in
``scipy.stats.kstwo``, which takes longer to import than a study takes to run.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, kolmogi, smirnov

Array = NDArray[np.float64]
FAR = 4.0  # n d², from where on one side alone counts
EXACT_UP_TO = 500  # numbers
TERMS = 20  # of the sums of the series; the last ones are zero to rounding
TINY_SHARE = 0.04  # n d², below which P(D < d) is less than 1e-12
ITERATIONS = 60


def exceeded(d: float, n: int) -> float:
    """P(D ≥ d) of n independent uniform numbers."""
    if d <= 0.5 / n:
        return 1.0
    if d >= 1.0:
        return 0.0
    z2 = n * d * d
    if z2 >= FAR:
        return min(1.0, 2.0 * float(smirnov(n, d)))
    if n <= EXACT_UP_TO:
        return 1.0 - _by_matrix(d, n)
    return 1.0 - _by_series(z2, n) if z2 > TINY_SHARE else 1.0


@lru_cache(maxsize=256)
def quantile(level: float, n: int) -> float:
    """The distance d that D exceeds with probability `level`, to 1e-12 of it, by the secant rule of Illinois."""
    guess = float(kolmogi(level)) / math.sqrt(n)
    low, high = 0.5 / n, min(1.0, guess)  # the law of many numbers is wider than that of n
    f_low, f_high = exceeded(low, n) - level, exceeded(high, n) - level
    for _ in range(ITERATIONS):
        d = high - f_high * (high - low) / (f_high - f_low)
        f = exceeded(d, n) - level
        if f == 0.0 or abs(high - low) <= 1e-12 * d:
            return d
        if (f > 0.0) == (f_high > 0.0):
            f_low *= 0.5
        else:
            low, f_low = high, f_high
        high, f_high = d, f
    return high


def _by_matrix(d: float, n: int) -> float:
    """P(D < d): an element of the n-th power of an almost triangular matrix, n!/nⁿ times."""
    k = int(n * d) + 1
    m, h = 2 * k - 1, k - n * d
    step = np.arange(m)[:, None] - np.arange(m)[None] + 1
    H = np.where(step >= 0, 1.0, 0.0)
    H[:, 0] -= h ** np.arange(1, m + 1)
    H[-1] -= h ** np.arange(m, 0, -1)
    H[-1, 0] += max(2.0 * h - 1.0, 0.0) ** m
    H *= np.exp(-gammaln(np.maximum(step, 0) + 1.0))
    power, scale = _power(H, n)
    value = float(power[k - 1, k - 1])
    return math.exp(math.log(value) + scale + float(gammaln(n + 1.0)) - n * math.log(n)) if value > 0.0 else 0.0


def _power(H: Array, n: int) -> tuple[Array, float]:
    """Hⁿ over e^s, and s, so that no number overflows."""
    out, scale, square, own = np.eye(len(H)), 0.0, H, 0.0
    while n:
        if n % 2:
            out, scale = out @ square, scale + own
            size = float(np.abs(out).max())
            out, scale = out / size, scale + math.log(size)
        square, own = square @ square, 2.0 * own
        size = float(np.abs(square).max())
        square, own, n = square / size, own + math.log(size), n // 2
    return out, scale


def _by_series(z2: float, n: int) -> float:
    """P(D < d) with z² = n d²: K₀ + K₁/√n + K₂/n + K₃/n^(3/2)."""
    z, whole = math.sqrt(z2), math.pi**2 * np.arange(1, TERMS) ** 2
    half = math.pi**2 * (np.arange(TERMS) + 0.5) ** 2  # each stands for k and −k − 1
    e, g = 2.0 * np.exp(-half / (2.0 * z2)), 2.0 * np.exp(-whole / (2.0 * z2))
    z4, z6 = z2 * z2, z2**3
    K0 = e.sum() / z * 2.0
    K1 = ((half - z2) * e).sum() / (6.0 * z4)
    K2 = ((6.0 * z6 + 2.0 * z4 + half * (2.0 * z4 - 5.0 * z2) + half**2 * (1.0 - 2.0 * z2)) * e).sum() / (72.0 * z**7)
    K2 -= (whole * g).sum() / (36.0 * z**3)
    K3 = (
        (
            half**3 * (5.0 - 30.0 * z2)
            + half**2 * (212.0 * z4 - 60.0 * z2)
            + half * (135.0 * z4 - 96.0 * z6)
            - 30.0 * z6
            - 90.0 * z2**4
        )
        * e
    ).sum() / (6480.0 * z**10)
    K3 += ((3.0 * whole * z2 - whole**2) * g).sum() / (108.0 * z6)
    total = 0.5 * K0 + K1 / math.sqrt(n) + K2 / n + K3 / n**1.5
    return float(min(max(math.sqrt(0.5 * math.pi) * total, 0.0), 1.0))
