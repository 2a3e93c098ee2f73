"""Spectra: power spectral densities, which integrate to the variance of a signal, Σ_k S_k Δf.

One signal (N,) at `rate` Hz; one-sided frequencies from 0 to Nyquist. The mean is taken out first.
Peaks carry a frequency finer than the grid (a parabola through the logarithms), and may be given the names of the
machine's modes. The cutoff proposed for a low-pass is where the density sinks into the noise floor for good.
Reference: P. D. Welch, IEEE Trans. Audio Electroacoust. 15 (1967).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.ndimage import median_filter
from scipy.special import chdtri  # χ² quantiles from above; scipy.stats takes a second to import

from veridyn.arrays import Array
from veridyn.errors import DataError
from veridyn.signals.butterworth import as_rate, as_samples

LINE_WIDTH_BINS = 7  # frequencies whose median removes what is up to three wide, as a line under a Hann window is


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
