"""Signal conditioning: derivatives and integrals whose gain is known, where to cut a motion, what the low-pass makes of ends, and signals
brought to one band.

Derivatives have y(ω) = G(ω) (jω)^m x(ω), with G real, so that no phase is added:

- "central": f_d(t_k) = (f(t_{k+1}) − f(t_{k−1})) / 2T_e, equation (29); m = 2 applies it twice. G = (sin ωT / ωT)^m.
  At the 12.7 Hz wheel hop and 100 Hz sampling G² is 0.805, which identifies an unsprung mass 24 % too large.
- "compensated": the maximally flat differentiator on 17 points, second derivatives by a 17-point formula of their own.
  At the same 12.7 Hz its error is 1e-7 at 100 Hz and 3e-4 at 62.5 Hz.

Neither removes noise: low-pass with :func:`veridyn.signals.butterworth.zero_phase`, which commutes with both. Time runs along axis 0,
`rate` is in Hz, the result is in units of `x` per second^m. The 8 samples at either end use shorter formulas (centred while two neighbours
remain, then one-sided of fourth order) and follow a band less far. The weights w of offsets o_j (in samples) satisfy
Σ w_j o_j^p = d^m/do^m o^p at 0 for every power p below the number of points. On a centred set these are the maximally flat filters: all
derivatives of the gain's error vanish at zero frequency (B. Fornberg, "Generation of finite difference formulas on arbitrarily spaced
grids", Math. Comp. 51, 1988). Reference: Venture et al. 2006, IEEE T-ITS 7(3), section IV.C.

A motion is cut where its spectrum sinks into the noise:

    S(f) = S_motion(f) + S_0,     noise of the m-th derivative = ∫ S_0 (2πf)^{2m} G_m(f)² H(f)² df

Motion of machines has its power at low frequencies and quantisation or electrical noise is white, so S_0 is the level of the spectrum in
the upper half of the band. Motion reaches as far as the spectrum stands above S_0 without a gap: the quantisation of a slow joint has
humps of its own far above. S is a periodogram with a Kaiser window whose side
lobes lie below 1e-16 of the largest line, so that what leaks does not look like motion; of each group of neighbouring frequencies the
median is taken, so that single lines (mains, a switching drive) are not taken for motion.

Ends are samples that a zero-phase low-pass knows too little of, by one rule for logs and for studies. Beyond an end the filter continues
the signal by its odd reflection, so that accelerations of an end in motion are wrong there. What is wrong decays with the slowest pole of
one pass: that of a Butterworth filter of order n and cut-off f decays by exp(−2π f t sin(π/2n)), to exp(−π²/2), 0.7 %, after t = n/(2f),
which is n/2 periods of the cut-off.

A sensor and its conditioning pass y = H x, with H a Butterworth low-pass that lags (:class:`Band`). Equations that add signals of several
sensors hold after filtering only where every signal has met the same filter. Where H is known it can be divided out:

    equalised = (L / H) y,     L the zero-phase filter that is common to all

L must fall faster than H, or the noise of the slow sensors is all that is left: :func:`noise_gain` says by how much it grows. Signals of N
samples are filtered whole, by their spectrum; a straight line between their ends passes by itself, and both ends are continued by
reflection, so that the first and last few periods of a cutoff are known less well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import correlate1d

from veridyn.arrays import Array
from veridyn.errors import DataError, DataWarning, Fault, Faults, did_you_mean, warn
from veridyn.model.motion import Motion, band_ends
from veridyn.signals.butterworth import Butterworth, as_rate, as_samples

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


Response = Callable[[Array], NDArray[np.complex128]]
GAIN_GRID_POINTS = 2049  # frequencies at which a gain is averaged
WINDOW_BETA = 28.0  # of the Kaiser window: side lobes at 1e-10 of an amplitude and far below
SMOOTHED_SHARE, SMOOTHED_BINS = 1 / 64, 32  # of all frequencies, and at least: neighbours whose median is taken
LONGEST_SEGMENT, MOST_SEGMENTS = 32768, 8  # samples; of a longer signal some segments are looked at
MIN_SAMPLES = 256  # of a signal whose spectrum is looked at: four bands
ABOVE_NOISE = 4.0  # times the noise is motion: the median of so many frequencies does not come there by chance
CUTOFF_MARGIN = 1.5  # times the band of the motion: a zero-phase filter of order 4 then takes 4 % at its edge (chosen)
DERIVATIVE_BANDS = 2048  # in which the noise of a derivative is stated
HARMLESS_NOISE = 3e-3  # of the rms of a derivative: below it noise biases nothing, and no filter is needed (chosen)
Trim = float | Literal["auto"]
AT_REST = 0.02  # of its largest speed: a joint that stays below it for that long is at rest at an end of a log


@dataclass(frozen=True)
class Band:
    """A causal low-pass of Butterworth's kind: −3 dB at `cutoff` Hz, `order` poles; it delays low frequencies by `delay`."""

    cutoff: float
    order: int = 2

    def __post_init__(self) -> None:
        faults = Faults()
        if not (np.isfinite(self.cutoff) and self.cutoff > 0.0):
            faults.add("its cutoff is not usable.", where="band", expected="Hz above zero", found=f"{self.cutoff}")
        if not (isinstance(self.order, int) and 1 <= self.order <= 12):
            faults.add(
                "its order is not usable.", where="band", expected="a whole number, 1 to 12", found=f"{self.order}"
            )
        faults.raise_if_any(DataError)

    def response(self, frequency: ArrayLike) -> NDArray[np.complex128]:
        """H at frequencies in Hz, any shape."""
        s = 1j * np.asarray(frequency, dtype=np.float64) / self.cutoff
        k = np.arange(self.order)
        poles = np.exp(0.5j * np.pi * (2 * k + self.order + 1) / self.order)
        return np.prod(-poles / (s[..., None] - poles), axis=-1)

    @property
    def delay(self) -> float:
        """Seconds by which a slow signal comes late: −dφ/dω at zero."""
        k = np.arange(self.order)
        return float(np.sin(0.5 * np.pi * (2 * k + 1) / self.order).sum() / (2.0 * np.pi * self.cutoff))


def within(x: ArrayLike, rate: float, band: Band, where: str = "signal") -> Array:
    """What a sensor of that band makes of the truth `x` (N, ...), sampled at `rate` Hz."""
    return _through(x, rate, band.response, band.delay, where)


def equalised(x: ArrayLike, rate: float, own: Band | None, common: Butterworth, where: str = "signal") -> Array:
    """A signal (N, ...) as if its sensor had no band but `common`, which acts forwards and backwards; own None: it has none."""
    if own is None:
        return _through(x, rate, lambda f: common.gain(f, rate).astype(np.complex128), 0.0, where)
    return _through(x, rate, lambda f: common.gain(f, rate) / own.response(f), -own.delay, where)


def noise_gain(own: Band, common: Butterworth, rate: float) -> float:
    """Standard deviation of white noise after :func:`equalised`, over what `common` alone leaves of it."""
    f = np.linspace(0.0, as_rate(rate) / 2.0, GAIN_GRID_POINTS)
    left = common.gain(f, rate)
    return float(np.sqrt((left**2 / np.abs(own.response(f)) ** 2).sum() / (left**2).sum()))


def _through(x: ArrayLike, rate: float, response: Response, delay: float, where: str) -> Array:
    rate = as_rate(rate, where)
    samples = as_samples(x, least=8, where=where)
    n = len(samples)
    t = np.arange(n).reshape((n,) + (1,) * (samples.ndim - 1))
    slope = (samples[-1] - samples[0]) / (n - 1)
    line = samples[0] + slope * t
    bent = samples - line  # zero at both ends
    around = np.concatenate([bent, -bent[-2:0:-1]], axis=0)  # odd about both ends, so it repeats without a step
    f = np.asarray(np.fft.rfftfreq(len(around), 1.0 / rate), dtype=np.float64)
    H = response(f).reshape((len(f),) + (1,) * (samples.ndim - 1))
    passed = np.fft.irfft(np.fft.rfft(around, axis=0) * H, len(around), axis=0)[:n]
    return passed + line - slope * rate * delay


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
        """The same as a variance (DERIVATIVE_BANDS,) for each of equal bands from 0 Hz to half the rate, of which it is the sum."""
        f = band_ends(self.rate, DERIVATIVE_BANDS)
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
    motion = int(np.argmin(np.append(level > ABOVE_NOISE * density, False)))  # groups before the first that is noise
    return NoiseFloor(density, float(max(motion, 1) * bins * rate / length), rate)


def _periodogram(x: Array, window: Array) -> Array:
    ends = np.linspace(x[0], x[-1], len(x))  # a drift is no motion of its own
    return np.abs(np.fft.rfft((x - ends) * window)) ** 2


def chosen_cutoff(floors: list[NoiseFloor], rate: float) -> float | None:
    """The cut-off (Hz) that keeps the motion of all signals; None where they fill the band, so that no filter separates anything."""
    cutoff = CUTOFF_MARGIN * max(f.band for f in floors)
    return float(f"{cutoff:.3g}") if cutoff < 0.4 * rate else None


def settling_time(low: Butterworth | None) -> float:
    """Seconds after which about 1 % is left of what a low-pass makes of an end: n/2 periods of its cut-off, one at least."""
    return 0.0 if low is None else max(low.order, 2) / 2.0 / float(np.min(low.cutoff))


def ends_in_motion(m: Motion, seconds: float) -> tuple[int, int]:
    """Samples of so many seconds at both ends, at most a quarter of all, and none where the machine rests there."""
    speeds = m.qd if m.base is None else np.hstack([m.qd, m.base.omega])
    if not seconds or not speeds.shape[1]:
        return 0, 0
    count = min(round(seconds * (len(m) - 1) / (m.t[-1] - m.t[0])), len(m) // 4)
    moving = (np.abs(speeds) > AT_REST * np.abs(speeds).max(axis=0)).any(axis=1)
    return count if moving[:count].any() else 0, count if moving[len(m) - count :].any() else 0


def trimmed_ends(m: Motion, trim: Trim, low: Butterworth | None, rate: float) -> tuple[int, int]:
    """Samples cut off the start and the end of a motion that passed `low`: `trim` seconds of both, or by "auto" what the filter takes to
    settle (:func:`settling_time`) of an end in motion, and nothing of one at rest."""
    if trim != "auto":
        return round(trim * rate), round(trim * rate)
    return ends_in_motion(m, settling_time(low))


def trim_note(cut: tuple[int, int], low: Butterworth, rate: float) -> str:
    """What was cut off by itself, in words."""
    where = " and ".join(f"{n / rate:.3g} s ({n} samples) at its {end}" for n, end in zip(cut, ("start", "end")) if n)
    full = settling_time(low)
    short = f" (it takes {full:.3g} s, and a quarter of the log at most is cut)" if max(cut) + 1 < full * rate else ""
    return f"trimmed: {where}, where the low-pass at {low.cutoff:g} Hz still settles{short}; Signals(trim=0) keeps them"
