"""Is a residual white? Its power, summed over frequency, must grow as a straight line.

    C(f_k) = Σ_{i≤k} I(f_i) / Σ_i I(f_i),   f_k = k·rate/N,   k = 1 … M,  0 < f_k < rate/2

For white Gaussian noise C(f_1) … C(f_{M−1}) are ordered uniform numbers, so the largest distance from the line follows
Kolmogorov and Smirnov's law with M − 1 observations, exactly (:mod:`veridyn.signals.kolmogorov`). What is left of the model's error
after a fit shows where it leaves the band: there is structure at that frequency.
The residual (N,) is sampled at `rate` Hz; its mean is taken out.
Reference: M. S. Bartlett, "An Introduction to Stochastic Processes", 1955, section 9.3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from veridyn.errors import DataError, Fault
from veridyn.signals.kolmogorov import exceeded, quantile
from veridyn.signals.samples import as_rate, as_samples

Array = NDArray[np.float64]


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


@dataclass(frozen=True)
class Autocorrelation:
    """`values` at the lags `lag` (seconds), 1 at lag 0; white noise stays within ±`band` at each lag by itself."""

    lag: Array
    values: Array
    band: float
    level: float

    @property
    def outside(self) -> float:
        """The share of the lags after 0 that leave the band; near `level` for white noise."""
        return float(np.mean(np.abs(self.values[1:]) > self.band))

    def summary(self) -> str:
        share, expected = 100.0 * self.outside, 100.0 * self.level
        return f"{share:.3g} % of {len(self.lag) - 1} lags outside ±{self.band:.3g}, where {expected:g} % are expected"


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


def is_white(x: ArrayLike, rate: float, level: float = 0.05, where: str = "residual") -> bool:
    """Whether the cumulative periodogram of `x` stays in its band at `level`."""
    return cumulative_periodogram(x, rate, level, where).is_white


def autocorrelation(
    x: ArrayLike, rate: float, lags: int | None = None, level: float = 0.05, where: str = "residual"
) -> Autocorrelation:
    """ρ_k = Σ x_n x_{n+k} / Σ x_n² for k = 0 … `lags` (default: a tenth of the samples)."""
    samples = _residual(x, 8, where)
    rate = as_rate(rate, where)
    _check_level(level, where)
    size = len(samples)
    lags = max(size // 10, 1) if lags is None else lags
    if not 1 <= lags < size:
        raise DataError(Fault("that many lags do not fit.", where, f"1 to {size - 1}", f"{lags}"))
    padded = np.fft.rfft(samples, 2 * size)  # twice the length, so that the ends do not meet
    products = np.fft.irfft(np.abs(padded) ** 2, 2 * size)[: lags + 1]
    band = -float(ndtri(level / 2.0)) / np.sqrt(size)
    return Autocorrelation(np.arange(lags + 1) / rate, products / products[0], float(band), level)


def _residual(x: ArrayLike, least: int, where: str) -> Array:
    samples = as_samples(x, least=least, where=where)
    if samples.ndim != 1:
        raise DataError(
            Fault("whiteness is tested on one signal at a time.", where, "shape (N,)", f"shape {samples.shape}")
        )
    centred = samples - samples.mean()
    if np.abs(centred).max() <= 1e-14 * np.abs(samples).max():
        raise DataError(
            Fault("it is constant, so it is neither white nor coloured.", where, found=f"{samples[0]:g} throughout")
        )
    return centred


def _check_level(level: float, where: str) -> None:
    if not 0.0 < level < 1.0:
        raise DataError(Fault("the level is not a probability.", where, "between 0 and 1", f"{level:g}"))
