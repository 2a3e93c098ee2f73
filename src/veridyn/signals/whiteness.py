"""Is a residual white? Its power, summed over frequency, must grow as a straight line.

    C(f_k) = Σ_{i≤k} I(f_i) / Σ_i I(f_i),   f_k = k·rate/N,   k = 1 … M,  0 < f_k < rate/2

For white Gaussian noise C(f_1) … C(f_{M−1}) are ordered uniform numbers, so the largest distance from the line follows
Kolmogorov and Smirnov's law with M − 1 observations, exactly. What is left of the model's error
after a fit shows where it leaves the band: there is structure at that frequency.
The residual (N,) is sampled at `rate` Hz; its mean is taken out.
Reference: M. S. Bartlett, "An Introduction to Stochastic Processes", 1955, section 9.3.

That law says how far the distribution of n uniform numbers lies from the straight line, D = sup |F_n(u) − u|. Far out, n d² ≥ 4, both
sides cannot be left at once, and P(D ≥ d) = 2 P(D⁺ ≥ d) to 1e-10 of itself. Nearer, P(D < d) is the power of a matrix (Marsaglia, Tsang
and Wang, J. Statistical Software 8(18), 2003) for at most EXACT_UP_TO numbers, and for more of them the series of Pelz and Good (J. Royal
Statistical Society B 38(2), 1976) in 1/√n, which is off by less than 1e-6. SciPy has the same law in ``scipy.stats.kstwo``, which takes
longer to import than a study takes to run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, kolmogi, smirnov

from veridyn.arrays import Array
from veridyn.errors import DataError
from veridyn.signals.butterworth import as_rate, as_samples

FAR = 4.0  # n d², from where on one side alone counts
EXACT_UP_TO = 500  # numbers
TERMS = 20  # of the sums of the series; the last ones are zero to rounding
TINY_SHARE = 0.04  # n d², below which P(D < d) is less than 1e-12
ITERATIONS = 60


@dataclass(frozen=True, kw_only=True)
class Whiteness:
    """The cumulative periodogram `cumulative` at `frequency` (Hz), the line `expected`, and the half-width `band`.

    `statistic` is the Kolmogorov-Smirnov distance, `p_value` the chance that white noise is at least so far off.
    """

    frequency: Array
    cumulative: Array
    expected: Array
    band: float
    statistic: float
    p_value: float
    level: float

    @property
    def is_white(self) -> bool:
        """Whether white noise explains it, at the chosen level."""
        return self.p_value >= self.level

    @property
    def worst_frequency(self) -> float:
        """Where the curve is furthest from the line, in Hz: an excess of power ends there or a lack of it does."""
        return float(self.frequency[int(np.argmax(np.abs(self.cumulative - self.expected)))])

    def summary(self) -> str:
        verdict = "white" if self.is_white else f"not white (furthest at {self.worst_frequency:.4g} Hz)"
        return (
            f"{verdict}: distance {self.statistic:.3g}, allowed {self.band:.3g} at level {self.level:g}, "
            f"p = {self.p_value:.3g}"
        )


def cumulative_periodogram(x: ArrayLike, rate: float, level: float = 0.05, where: str = "residual") -> Whiteness:
    """The test above, at significance `level`."""
    samples = _residual(x, 8, where)
    rate = as_rate(rate, where)
    _check_level(level, where)
    count = (len(samples) - 1) // 2  # zero and Nyquist are left out: they follow another law
    power = np.abs(np.fft.rfft(samples)[1 : count + 1]) ** 2
    cumulative = np.cumsum(power) / power.sum()
    k = np.arange(1, count + 1)
    uniform, n = cumulative[:-1], count - 1
    above = k[:-1] / n - uniform
    below = uniform - (k[:-1] - 1) / n
    statistic = float(max(above.max(), below.max()))
    return Whiteness(
        frequency=k * rate / len(samples),
        cumulative=cumulative,
        expected=k / count,
        band=quantile(level, n),
        statistic=statistic,
        p_value=exceeded(statistic, n),
        level=level,
    )


def _residual(x: ArrayLike, least: int, where: str) -> Array:
    samples = as_samples(x, least=least, where=where)
    if samples.ndim != 1:
        what = "whiteness is tested on one signal at a time."
        raise DataError(what, where=where, expected="shape (N,)", found=f"shape {samples.shape}")
    centred = samples - samples.mean()
    if np.abs(centred).max() <= 1e-14 * np.abs(samples).max():
        raise DataError(
            "it is constant, so it is neither white nor coloured.", where=where, found=f"{samples[0]:g} throughout"
        )
    return centred


def _check_level(level: float, where: str) -> None:
    if not 0.0 < level < 1.0:
        raise DataError("the level is not a probability.", where=where, expected="between 0 and 1", found=f"{level:g}")


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
