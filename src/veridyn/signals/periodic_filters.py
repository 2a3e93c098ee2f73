"""Four ways from one period of positions to positions, rates and accelerations.

- :func:`dft_filter`, explicit: the DFT, bins above a number of harmonics set to zero, the rest times jω and −ω².
- :func:`fourier_fit`, implicit: least squares of a Fourier series, (17) and (18) of paper 002 with the minus sign its cosines need. Over
  exactly one period of uniform samples this is the same as the explicit filter, bin for bin.
- :func:`zero_phase_periodic`: a zero-phase Butterworth filter in the time domain, then compensated differences.
- :func:`unfiltered`: central differences of what was measured.

All take x (N, …) over one period, time along axis 0, and return x, ẋ, ẍ of the same shape; the ends are joined, since the data repeat.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.arguments import checked
from veridyn.errors import DataError, Fault
from veridyn.signals.butterworth import Butterworth, overlap, zero_phase
from veridyn.signals.derivative import HALF, derivative
from veridyn.signals.samples import as_rate, as_samples
from veridyn.signals.trajectory import FourierTrajectory

Array = NDArray[np.float64]
Three = tuple[Array, Array, Array]


@checked
def dft_filter(x: ArrayLike, rate: float, harmonics: int) -> Three:
    """The mean and the first `harmonics` bins of the DFT of one period, and their exact derivatives (paper 002, 3.3)."""
    samples, rate = as_samples(x, least=3, where="one period"), as_rate(rate, "one period")
    N = len(samples)
    _check(harmonics, N)
    X = np.fft.rfft(samples, axis=0)
    X[harmonics + 1 :] = 0.0
    jw = (2j * np.pi * rate / N * np.arange(len(X))).reshape(-1, *[1] * (samples.ndim - 1))
    back = tuple(np.fft.irfft(jw**order * X, N, axis=0) for order in range(3))
    return back[0], back[1], back[2]


@checked
def fourier_fit(x: ArrayLike, t: ArrayLike, frequency: float, harmonics: int) -> FourierTrajectory:
    """Ξ̂ = (BᵀB)⁻¹Bᵀx (18) at the given frequency, over any number of samples (N, k) at the times t (N,)."""
    samples = as_samples(x, least=3, where="periodic data")
    table = samples.reshape(len(samples), -1)
    times = np.asarray(t, dtype=np.float64)
    _check(harmonics, len(samples))
    angle = 2.0 * np.pi * frequency * times[:, None] * np.arange(1, harmonics + 1)
    B = np.column_stack([np.ones(len(times)), np.sin(angle), np.cos(angle)])  # (17) in amplitudes of x
    C = np.asarray(np.linalg.lstsq(B, table, rcond=None)[0], dtype=np.float64)
    return FourierTrajectory(C[0], C[1 : harmonics + 1].T, C[harmonics + 1 :].T, frequency)


def zero_phase_periodic(x: ArrayLike, rate: float, butterworth: Butterworth) -> Three:
    """The filter run over as many joined periods as its memory needs, and compensated differences of the result."""
    samples = as_samples(x, least=3, where="one period")
    N = len(samples)
    turns = -(-max(overlap(butterworth, rate), 2 * HALF + 1) // N)
    smooth = zero_phase(np.concatenate([samples] * (2 * turns + 1)), rate, butterworth)
    one = slice(turns * N, (turns + 1) * N)
    return smooth[one], derivative(smooth, rate)[one], derivative(smooth, rate, 2)[one]


def unfiltered(x: ArrayLike, rate: float) -> Three:
    """What was measured, and its central differences, the second applied twice (29)."""
    samples = as_samples(x, least=3, where="one period")

    def once(y: Array) -> Array:
        return (np.roll(y, -1, axis=0) - np.roll(y, 1, axis=0)) * (0.5 * rate)

    first = once(samples)
    return samples, first, once(first)


def advanced(x: ArrayLike, rate: float, seconds: float) -> Array:
    """What a signal with this one period (N, …) is `seconds` later, between samples too: each harmonic turned by its angle."""
    samples, rate = as_samples(x, least=3, where="one period"), as_rate(rate, "one period")
    N = len(samples)
    X = np.fft.rfft(samples, axis=0)
    turn = np.exp(2j * np.pi * rate / N * seconds * np.arange(len(X))).reshape(-1, *[1] * (samples.ndim - 1))
    return np.asarray(np.fft.irfft(turn * X, N, axis=0), dtype=np.float64)


def amplitudes(x: ArrayLike) -> Array:
    """The amplitude of each harmonic of one period, 0 first: (N//2 + 1, …)."""
    samples = as_samples(x, least=3, where="one period")
    X = 2.0 * np.abs(np.fft.rfft(samples, axis=0)) / len(samples)
    X[0] *= 0.5
    return X


def _check(harmonics: int, samples: int) -> None:
    if not 0 <= harmonics <= (samples - 1) // 2:
        raise DataError(
            Fault(
                "there are no such harmonics in these samples.",
                where="periodic data",
                expected=f"0 to {(samples - 1) // 2} for {samples} samples of a period",
                found=f"{harmonics}",
            )
        )
