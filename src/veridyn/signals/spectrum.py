"""Spectra: power spectral densities, which integrate to the variance of a signal, Σ_k S_k Δf.

One signal (N,) at `rate` Hz; one-sided frequencies from 0 to Nyquist. The mean is taken out first.
Peaks carry a frequency finer than the grid (a parabola through the logarithms), and may be given the names of the
machine's modes. The cutoff proposed for a low-pass is where the density sinks into the noise floor for good.
Reference: P. D. Welch, IEEE Trans. Audio Electroacoust. 15 (1967).

Of a white residual the power, summed over frequency, must grow as a straight line:

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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.ndimage import median_filter
from scipy.special import (
    chdtri,  # χ² quantiles from above; scipy.stats takes a second to import
    gammaln,
    kolmogi,
    smirnov,
)

from veridyn.arrays import Array
from veridyn.errors import DataError
from veridyn.signals.butterworth import as_rate, as_samples

LINE_WIDTH_BINS = 7  # frequencies whose median removes what is up to three wide, as a line under a Hann window is
FAR = 4.0  # n d², from where on one side alone counts
EXACT_UP_TO = 500  # numbers
TERMS = 20  # of the sums of the series; the last ones are zero to rounding
TINY_SHARE = 0.04  # n d², below which P(D < d) is less than 1e-12
ITERATIONS = 60


@dataclass(frozen=True)
class Spectrum:
    """`values` at `frequency` (both (F,), Hz), in `unit`; `averages` is the number of independent estimates in each."""

    frequency: Array
    values: Array
    unit: str
    averages: float = 1.0

    @property
    def resolution(self) -> float:
        """The distance of two frequencies, in Hz."""
        return float(self.frequency[1] - self.frequency[0])

    def summary(self) -> str:
        top = int(np.argmax(self.values))
        return (
            f"density spectrum to {self.frequency[-1]:g} Hz in steps of {self.resolution:.3g} Hz, largest "
            f"{self.values[top]:.4g} {self.unit} at {self.frequency[top]:.4g} Hz"
        )


@dataclass(frozen=True, kw_only=True)
class Peak:
    """A local maximum: where (Hz), how high and how far above its surroundings (`unit`), half-power width (Hz)."""

    frequency: float
    amplitude: float
    prominence: float
    bandwidth: float
    unit: str = "1"
    name: str = ""

    def summary(self) -> str:
        return (
            f"{self.name or 'unnamed'}: {self.frequency:.4g} Hz, {self.amplitude:.4g} {self.unit}, "
            f"bandwidth {self.bandwidth:.3g} Hz"
        )


@dataclass(frozen=True)
class CutoffProposal:
    """`cutoff` (Hz): above it nothing rises over `threshold`, the noise `floor` with its scatter (both in `unit`)."""

    cutoff: float
    floor: float
    threshold: float
    unit: str

    def summary(self) -> str:
        return f"cutoff {self.cutoff:.4g} Hz; noise floor {self.floor:.3g} {self.unit} above it"


def power_spectrum(
    x: ArrayLike, rate: float, unit: str = "1", segment: float | None = None, where: str = "signal"
) -> Spectrum:
    """Power spectral density by Welch's average over half-overlapping segments of `segment` seconds.

    Unit: unit²/Hz. The default segment is an eighth of the signal, the resolution is 1/segment.
    """
    samples = as_samples(x, least=16, where=where)
    if samples.ndim != 1:
        raise DataError(
            "a spectrum takes one signal at a time.", where=where, expected="shape (N,)", found=f"shape {samples.shape}"
        )
    rate = as_rate(rate, where)
    size = len(samples) // 8 if segment is None else round(segment * rate)
    size = max(size, 8) if segment is None else size
    if not 8 <= size <= len(samples):
        expected = f"{8 / rate:.3g} s to {len(samples) / rate:.3g} s"
        raise DataError("the segment does not fit the signal.", where=where, expected=expected, found=f"{segment} s")
    step = size - size // 2
    segments = (len(samples) - size) // step + 1
    weights = 0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(size) / size)  # Hann's window
    parts = np.stack([samples[k * step : k * step + size] for k in range(segments)])
    parts = parts - parts.mean(axis=1, keepdims=True)
    power = np.abs(np.fft.rfft(parts * weights, axis=1)) ** 2 / (rate * weights @ weights)
    values = power.mean(axis=0)
    values[1 : (size + 1) // 2] *= 2.0  # all but zero and Nyquist stand for two frequencies
    frequency = np.arange(len(values), dtype=np.float64) * (rate / size)
    # Segments that share samples are not independent: their estimates correlate by the square of what windows share.
    shared = float(weights[size - size // 2 :] @ weights[: size // 2] / (weights @ weights)) ** 2
    averages = segments / (1.0 + 2.0 * shared * (segments - 1) / segments)
    density = "1/Hz" if unit == "1" else f"({unit})^2/Hz"
    return Spectrum(frequency, values, density, averages)


def peaks(spectrum: Spectrum, count: int | None = None, prominence: float = 0.05) -> tuple[Peak, ...]:
    """Local maxima, highest first, that stand out by at least `prominence` of the largest value; at most `count`."""
    from scipy.signal import find_peaks  # here: importing it takes longer than a study whose page shows spectra

    values = spectrum.values
    where, found = find_peaks(values, prominence=prominence * float(values.max(initial=0.0)) or None)
    out = []
    for k, stands_out in zip(where, found["prominences"], strict=True) if len(where) else ():
        shift, height = _vertex(values[k - 1 : k + 2])
        level = 0.5 * float(values[k])
        width = _crossing(values, k, level, 1) - _crossing(values, k, level, -1)
        frequency = float(spectrum.frequency[k]) + shift * spectrum.resolution
        out.append(
            Peak(
                frequency=frequency,
                amplitude=height,
                prominence=float(stands_out),
                bandwidth=width * spectrum.resolution,
                unit=spectrum.unit,
            )
        )
    out.sort(key=lambda p: -p.amplitude)
    return tuple(out[:count])


def name_modes(found: Sequence[Peak], modes: Mapping[str, float], tolerance: float = 0.1) -> tuple[Peak, ...]:
    """The same peaks, in the same order, named after the nearest mode (name → Hz) within `tolerance` of its frequency.

    A peak bears one name and a name goes to one peak, the closest first. A mode without a peak is absent.
    """
    pairs = sorted(
        (abs(peak.frequency - hz) / hz, i, name)
        for i, peak in enumerate(found)
        for name, hz in modes.items()
        if abs(peak.frequency - hz) <= tolerance * hz
    )
    given: dict[int, str] = {}
    for _, i, name in pairs:
        if i not in given and name not in given.values():
            given[i] = name
    return tuple(replace(peak, name=given.get(i, "")) for i, peak in enumerate(found))


def propose_cutoff(
    spectrum: Spectrum, false_alarm: float = 1e-3, lines: bool = False, where: str = "signal"
) -> CutoffProposal:
    """The highest frequency at which a density still rises above its noise floor.

    The floor is the median of the highest quarter of the band, where the signal is assumed to have ended and the noise
    to be white; what rises there is not looked at. `false_alarm` is the chance that noise alone lifts any frequency
    over the threshold. A line of fewer than four frequencies (mains, a switching drive and what folds back of it) is not taken for the
    signal, unless `lines` says that the signal itself is made of lines, as a multisine is.
    """
    freedom = 2.0 * spectrum.averages
    inner = slice(1, len(spectrum.values) - 1)  # zero was taken out with the mean, and Nyquist has half the freedom
    frequency, values = spectrum.frequency[inner], spectrum.values[inner]
    quiet = len(values) - max(len(values) // 4, 4)
    if quiet < 2 * LINE_WIDTH_BINS:
        expected = f"at least {3 * LINE_WIDTH_BINS} frequencies"
        raise DataError("the spectrum is too coarse.", where=where, expected=expected, found=f"{len(spectrum.values)}")
    floor = float(np.median(values[quiet:])) * freedom / float(chdtri(freedom, 0.5))
    threshold = floor * float(chdtri(freedom, false_alarm / len(values))) / freedom
    above = np.flatnonzero(
        (values[:quiet] if lines else median_filter(values[:quiet], LINE_WIDTH_BINS, mode="nearest")) > threshold
    )
    if len(above) == 0:
        what = "nothing rises above the noise, so no cutoff can be proposed."
        expected = f"a density above {threshold:.3g} {spectrum.unit}"
        hint = "Excite the machine more, or choose the cutoff from its known modes."
        raise DataError(
            what, where=where, expected=expected, found=f"{values.max():.3g} {spectrum.unit} at most", hint=hint
        )
    last = int(above[-1])
    if last >= quiet - LINE_WIDTH_BINS:
        what = "the spectrum never reaches a noise floor."
        expected = f"noise alone above {frequency[quiet]:.4g} Hz"
        hint = "Sample faster, or choose the cutoff from the machine's known modes."
        raise DataError(what, where=where, expected=expected, found=f"signal at {frequency[last]:.4g} Hz", hint=hint)
    return CutoffProposal(float(frequency[last]) + spectrum.resolution, floor, threshold, spectrum.unit)


def _vertex(three: Array) -> tuple[float, float]:
    """Offset (in grid steps, within ±1/2) and height of the parabola through the logarithms of three values."""
    if np.any(three <= 0.0):
        return 0.0, float(three[1])
    a, b, c = np.log(three)
    bend = a - 2.0 * b + c
    shift = 0.5 * (a - c) / bend if bend < 0.0 else 0.0
    return float(shift), float(np.exp(b - 0.25 * (a - c) * shift))


def _crossing(values: Array, k: int, level: float, way: int) -> float:
    """Where, walking from index k in one direction, the values fall to `level`; the end of the array if they do not."""
    i = k
    while 0 <= i + way < len(values) and values[i + way] > level:
        i += way
    if not 0 <= i + way < len(values):
        return float(i)
    return i + way * float((values[i] - level) / (values[i] - values[i + way]))


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
