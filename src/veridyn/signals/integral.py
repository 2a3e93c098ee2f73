"""Integrals of sampled signals whose gain is known: y(ω) = G(ω) x(ω) / jω, with G real.

- "trapezoid": f_i(t_k) = f_i(t_{k−1}) + T_e/2 (f(t_k) + f(t_{k−1})), equation (30). G = (ωT/2) cot(ωT/2).
- "compensated": the same recursion, each step integrating the polynomial through 8 samples on either side of it.

A sensor's offset integrates to a ramp and its noise to a random walk, so a measurement is integrated together with
a high-pass filter (:func:`integrate`): zero phase, no constant, and nothing below the filter's cutoff.
Time runs along axis 0, `rate` is in Hz, the result is in units of `x` times seconds.
Reference: Venture et al. 2006, IEEE T-ITS 7(3), section IV.C.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import correlate1d

from veridyn.errors import DataError, Fault, did_you_mean
from veridyn.signals.butterworth import Butterworth, zero_phase
from veridyn.signals.samples import as_rate, as_samples
from veridyn.signals.stencil import apply, integral_weights

Array = NDArray[np.float64]
Method = Literal["trapezoid", "compensated"]

HALF = 8  # samples on each side of a step in the compensated rule


def trapezoid(x: ArrayLike, rate: float, initial: ArrayLike = 0.0, where: str = "signal") -> Array:
    """The running integral by equation (30), same shape as `x`, starting at `initial`."""
    rate = as_rate(rate, where)
    samples = as_samples(x, least=2, where=where)
    return _accumulate((samples[1:] + samples[:-1]) / (2.0 * rate), initial)


def integral(
    x: ArrayLike, rate: float, initial: ArrayLike = 0.0, method: Method = "trapezoid", where: str = "signal"
) -> Array:
    """The running integral along axis 0, same shape as `x`, starting at `initial`, by either rule."""
    _check(method, where)
    if method == "trapezoid":
        return trapezoid(x, rate, initial, where)
    rate = as_rate(rate, where)
    samples = as_samples(x, least=2 * HALF, where=where)
    offsets = tuple(range(1 - HALF, HALF + 1))
    # 2·HALF taps correlate about their entry HALF; the step from k to k+1 must be centred on k + 1/2.
    steps = correlate1d(samples, np.asarray(integral_weights(offsets)), axis=0, mode="nearest")[1:]
    for d in range(HALF - 1):
        near = tuple(range(-d, d + 2)) if d >= 1 else (0, 1, 2, 3)
        weights = integral_weights(near)
        steps[d] = apply(samples, near, weights, d)
        steps[-1 - d] = apply(samples[::-1], near, weights, d)
    return _accumulate(steps / rate, initial)


def integral_gain(frequency: ArrayLike, rate: float, method: Method = "trapezoid") -> Array:
    """Integral found over true integral, for a sinusoid at `frequency` (Hz, any shape), away from the ends."""
    _check(method, "integral gain")
    half = np.pi * np.asarray(frequency, dtype=np.float64) / as_rate(rate)  # ωT/2
    if method == "trapezoid":
        step = np.cos(half)
    else:
        weights = np.asarray(integral_weights(tuple(range(1 - HALF, HALF + 1))))[HALF:]  # symmetric: the later half
        step = 2.0 * np.cos(half[..., None] * (2 * np.arange(1, HALF + 1) - 1)) @ weights
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(half == 0.0, 1.0, half / np.sin(half) * step)


def integrate(
    x: ArrayLike, rate: float, highpass: Butterworth, method: Method = "trapezoid", where: str = "signal"
) -> Array:
    """The zero-phase product of the running integral and a forward-backward high-pass: gain G · |H|² / jω.

    `highpass` is a high or band filter. The mean is removed first and the filter acts last, so the result has no
    constant of integration. One or two periods of the cutoff at either end carry the filter's transients.
    """
    if highpass.kind == "low":
        raise DataError(
            Fault(
                "an integral needs a filter that stops its drift.",
                where,
                "a Butterworth of kind 'high' or 'band'",
                "kind 'low'",
                "For the plain running integral call veridyn.signals.integral.integral.",
            )
        )
    samples = as_samples(x, least=2, where=where)
    running = integral(samples - samples.mean(axis=0), rate, 0.0, method, where)
    return zero_phase(running, rate, highpass, where)


def _accumulate(steps: Array, initial: ArrayLike) -> Array:
    start = np.broadcast_to(np.asarray(initial, dtype=np.float64), steps.shape[1:])
    return np.concatenate([start[None], start + np.cumsum(steps, axis=0)])


def _check(method: str, where: str) -> None:
    if method not in ("trapezoid", "compensated"):
        raise DataError(
            Fault(
                f"there is no integration method '{method}'.",
                where,
                hint=did_you_mean(method, ("trapezoid", "compensated")),
            )
        )
