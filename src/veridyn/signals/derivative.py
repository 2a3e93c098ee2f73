"""Derivatives and integrals of sampled signals whose gain is known: y(ω) = G(ω) (jω)^m x(ω), with G real, so no phase is added.

- "central": f_d(t_k) = (f(t_{k+1}) − f(t_{k−1})) / 2T_e, equation (29); m = 2 applies it twice. G = (sin ωT / ωT)^m.
  At the 12.7 Hz wheel hop and 100 Hz sampling G² is 0.805, which identifies an unsprung mass 24 % too large.
- "compensated": the maximally flat differentiator on 17 points, second derivatives by a 17-point formula of their own.
  At the same 12.7 Hz its error is 1e-7 at 100 Hz and 3e-4 at 62.5 Hz.

Neither removes noise: low-pass with :func:`veridyn.signals.butterworth.zero_phase`, which commutes with both.
Time runs along axis 0, `rate` is in Hz, the result is in units of `x` per second^m. The 8 samples at either end use
shorter formulas (centred while two neighbours remain, then one-sided of fourth order) and follow a band less far.

The weights w of offsets o_j (in samples) satisfy Σ w_j o_j^p = d^m/do^m o^p at 0 for every power p below the number of points. On a centred
set these are the maximally flat filters: all derivatives of the gain's error vanish at zero frequency (B. Fornberg, "Generation of finite
difference formulas on arbitrarily spaced grids", Math. Comp. 51, 1988).
Reference: Venture et al. 2006, IEEE T-ITS 7(3), section IV.C.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.ndimage import correlate1d

from veridyn.arrays import Array
from veridyn.errors import DataError, DataWarning, Fault, did_you_mean, warn
from veridyn.signals.butterworth import as_rate, as_samples

Method = Literal["compensated", "central"]

HALF = 8  # neighbours on each side of the compensated formula
GRID = 513  # frequencies at which a band is searched for its worst gain


def central_difference(x: ArrayLike, rate: float, where: str = "signal") -> Array:
    """(x[k+1] − x[k−1]) · rate/2 along axis 0, equation (29); one-sided of second order at the two ends."""
    rate = as_rate(rate, where)
    samples = as_samples(x, least=3, where=where)
    return np.gradient(samples, 1.0 / rate, axis=0, edge_order=2)


def derivative(
    x: ArrayLike, rate: float, order: int = 1, method: Method = "compensated", where: str = "signal"
) -> Array:
    """The `order`-th derivative (1 or 2) of `x` along axis 0, same shape as `x`."""
    _check(method, order, where)
    rate = as_rate(rate, where)
    if method == "central":
        once = central_difference(x, rate, where)
        return once if order == 1 else central_difference(once, rate, where)
    samples = as_samples(x, least=2 * HALF + 1, where=where)
    weights = derivative_weights(centred(HALF), order)
    out = correlate1d(samples, np.asarray(weights), axis=0, mode="nearest")
    for d in range(HALF):
        offsets = _near_end(d, order)
        near = derivative_weights(offsets, order)
        out[d] = apply(samples, offsets, near, d)
        # Time reversed, an odd derivative changes sign.
        out[-1 - d] = (-1) ** order * apply(samples[::-1], offsets, near, d)
    return out * rate**order


def central_gain(frequency: ArrayLike, rate: float, times: int = 1) -> Array:
    """(sin ωT / ωT)^times: what equation (29), applied so many times, makes of a sinusoid's true derivative."""
    return np.sinc(2.0 * np.asarray(frequency, dtype=np.float64) / as_rate(rate)) ** times


def derivative_gain(frequency: ArrayLike, rate: float, method: Method = "compensated", order: int = 1) -> Array:
    """Derivative found over true derivative, for a sinusoid at `frequency` (Hz, any shape), away from the ends."""
    _check(method, order, "derivative gain")
    if method == "central":
        return central_gain(frequency, rate, times=order)
    angle = 2.0 * np.pi * np.asarray(frequency, dtype=np.float64) / as_rate(rate)  # ωT
    weights = derivative_weights(centred(HALF), order)[HALF:]
    k = np.arange(1, HALF + 1)
    side = np.asarray(weights[1:])
    phase = angle[..., None] * k
    with np.errstate(invalid="ignore", divide="ignore"):
        if order == 1:
            gain = 2.0 * np.sin(phase) @ side / angle
        else:  # 1 − cos = 2 sin², which keeps its digits at low frequency
            gain = 4.0 * np.sin(phase / 2.0) ** 2 @ side / angle**2
    return np.where(angle == 0.0, 1.0, gain)


def worst_gain_error(cutoff: float, rate: float, method: Method = "compensated", order: int = 1) -> float:
    """max |G − 1| over 0 … `cutoff` (Hz): the largest relative error of the derivative in that band."""
    nyquist = as_rate(rate) / 2.0
    if not 0.0 < cutoff <= nyquist:
        what = "the band does not fit the rate."
        raise DataError(what, where="derivative gain", expected=f"0 < cutoff ≤ {nyquist:g} Hz", found=f"{cutoff:g} Hz")
    gain = derivative_gain(np.linspace(0.0, cutoff, GRID), rate, method, order)
    return float(np.max(np.abs(gain - 1.0)))


def warn_if_biased(
    cutoff: float, rate: float, method: Method = "central", order: int = 2, percent: float = 1.0, where: str = "signal"
) -> float:
    """The worst error (in percent) of the derivative below `cutoff`; a DataWarning where it is more than `percent`."""
    worst = 100.0 * worst_gain_error(cutoff, rate, method, order)
    if worst > percent:
        name = {1: "first", 2: "second"}[order]
        what = f"the {name} derivative by '{method}' differences is biased in the band kept."
        found = f"{worst:.3g} % at {cutoff:g} Hz with {rate:g} samples per second"
        hint = "Use method='compensated', sample faster, or keep a narrower band."
        warn(DataWarning, Fault(what, where, f"at most {percent:g} % below {cutoff:g} Hz", found, hint))
    return worst


def _near_end(d: int, order: int) -> tuple[int, ...]:
    """Offsets used by the sample that has `d` neighbours on its short side."""
    if d >= 2:
        return centred(d)
    return tuple(range(-d, -d + 4 + order))  # fourth order of accuracy: more points would amplify noise


def _check(method: str, order: int, where: str) -> None:
    if method not in ("compensated", "central"):
        hint = did_you_mean(method, ("compensated", "central"))
        raise DataError(f"there is no derivative method '{method}'.", where=where, hint=hint)
    if order not in (1, 2):
        raise DataError("this derivative is not offered.", where=where, expected="order 1 or 2", found=f"{order!r}")


@lru_cache(maxsize=64)
def derivative_weights(offsets: tuple[int, ...], order: int) -> tuple[float, ...]:
    """Weights (one per offset) of the `order`-th derivative at offset 0, for a step of one, by Fornberg's recursion."""
    # c[j][m]: the weight of offset j in the m-th derivative on the offsets seen so far
    c = [[Fraction(0)] * (order + 1) for _ in offsets]
    c[0][0], before = Fraction(1), 1
    for i in range(1, len(offsets)):
        product = 1
        for j in range(i):
            apart = offsets[i] - offsets[j]
            product *= apart
            if j == i - 1:
                ratio = Fraction(before, product)
                for m in range(order, -1, -1):
                    c[i][m] = ratio * ((m * c[j][m - 1] if m else 0) - offsets[j] * c[j][m])
            for m in range(order, -1, -1):
                c[j][m] = (offsets[i] * c[j][m] - (m * c[j][m - 1] if m else 0)) / apart
        before = product
    return tuple(float(row[order]) for row in c)


def centred(half: int) -> tuple[int, ...]:
    """The offsets −half … half."""
    return tuple(range(-half, half + 1))


def apply(x: Array, offsets: Sequence[int], weights: Sequence[float], at: int) -> Array:
    """Σ_j w_j x[at + o_j] along axis 0, for one sample `at`."""
    picked = x[[at + o for o in offsets]]
    return np.tensordot(np.asarray(weights), picked, axes=1)


def trapezoid(x: ArrayLike, rate: float, initial: ArrayLike = 0.0, where: str = "signal") -> Array:
    """The running integral by equation (30), same shape as `x`, starting at `initial`."""
    rate = as_rate(rate, where)
    samples = as_samples(x, least=2, where=where)
    steps = (samples[1:] + samples[:-1]) / (2.0 * rate)
    start = np.broadcast_to(np.asarray(initial, dtype=np.float64), steps.shape[1:])
    return np.concatenate([start[None], start + np.cumsum(steps, axis=0)])
