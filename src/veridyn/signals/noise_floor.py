"""Where motion ends and noise begins: the white noise of a sampled signal and the band above it, from its own spectrum.

    S(f) = S_motion(f) + S_0,     noise of the m-th derivative = ∫ S_0 (2πf)^{2m} G_m(f)² H(f)² df

Motion of machines has its power at low frequencies and quantisation or electrical noise is white, so S_0 is the level of the spectrum in
the upper half of the band. Motion reaches as far as the spectrum stands above S_0. S is a periodogram with a Kaiser window whose side
lobes lie below 1e-16 of the largest line, so that what leaks does not look like motion; of each group of neighbouring frequencies the
median is taken, so that single lines (mains, a switching drive) are not taken for motion.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.model.motion import band_ends
from veridyn.signals.butterworth import Butterworth
from veridyn.signals.derivative import Method, derivative_gain

Array = NDArray[np.float64]
WINDOW_BETA = 28.0  # of the Kaiser window: side lobes at 1e-10 of an amplitude and far below
SMOOTHED_SHARE, SMOOTHED_BINS = 1 / 64, 32  # of all frequencies, and at least: neighbours whose median is taken
LONGEST_SEGMENT, MOST_SEGMENTS = 32768, 8  # samples; of a longer signal some segments are looked at
MIN_SAMPLES = 256  # of a signal whose spectrum is looked at: four bands
ABOVE_NOISE = 4.0  # times the noise is motion: the median of so many frequencies does not come there by chance
CUTOFF_MARGIN = 1.5  # times the band of the motion: a zero-phase filter of order 4 then takes 4 % at its edge (chosen)
BANDS = 2048  # in which the noise of a derivative is stated
HARMLESS_NOISE = 3e-3  # of the rms of a derivative: below it noise biases nothing, and no filter is needed (chosen)


@dataclass(frozen=True)
class NoiseFloor:
    """White noise of density `density` (unit²/Hz, one-sided) of a signal at `rate` Hz, and `band` (Hz) of the motion above it."""

    density: float
    band: float
    rate: float

    def derivative_noise(self, order: int, method: Method, low: Butterworth | None) -> float:
        """Standard deviation of the noise of a derivative behind a low-pass, in units of the signal per s^order."""
        return float(np.sqrt(np.sum(self.derivative_variances(order, method, low))))

    def derivative_variances(self, order: int, method: Method, low: Butterworth | None) -> Array:
        """The same as a variance (BANDS,) for each of equal bands from 0 Hz to half the rate, of which it is the sum."""
        f = band_ends(self.rate, BANDS)
        gain = (2.0 * np.pi * f) ** order * derivative_gain(f, self.rate, method, order)
        if low is not None:
            gain = gain * low.gain(f, self.rate)
        return np.asarray(self.density * gain**2 * f[0], dtype=np.float64)


def noise_floor(x: Array, rate: float) -> NoiseFloor | None:
    """That of a signal (N,); None where it is too short or never changes."""
    length = min(len(x), LONGEST_SEGMENT)
    if length < MIN_SAMPLES or not np.ptp(x) > 0.0:
        return None
    starts = np.unique(np.linspace(0, len(x) - length, min(MOST_SEGMENTS, -(-len(x) // length))).astype(int))
    window = np.kaiser(length, WINDOW_BETA)
    power = np.mean([_periodogram(x[s : s + length], window) for s in starts], axis=0) * 2.0 / (rate * window @ window)
    bins = max(SMOOTHED_BINS, int(SMOOTHED_SHARE * len(power)))
    count = len(power) // bins
    level = np.median(power[: count * bins].reshape(count, bins), axis=1) / np.log(
        2.0
    )  # the median of white noise is ln 2 of its mean
    density = float(np.median(level[count // 2 :]))
    motion = np.flatnonzero(level > ABOVE_NOISE * density)
    reach = (motion[-1] + 1) * bins * rate / length if len(motion) else bins * rate / length
    return NoiseFloor(density, float(reach), rate)


def _periodogram(x: Array, window: Array) -> Array:
    ends = np.linspace(x[0], x[-1], len(x))  # a drift is no motion of its own
    return np.abs(np.fft.rfft((x - ends) * window)) ** 2


def chosen_cutoff(floors: list[NoiseFloor], rate: float) -> float | None:
    """The cut-off (Hz) that keeps the motion of all signals; None where they fill the band, so that no filter separates anything."""
    cutoff = CUTOFF_MARGIN * max(f.band for f in floors)
    return float(f"{cutoff:.3g}") if cutoff < 0.4 * rate else None
