"""Periodic data: whole periods averaged, the noise they show, and whether they really repeat.

With x_k(t) the k-th of N_m periods of N samples, the mean over periods is x̄ and the covariance of one sample's noise is

    Σ_ij = 1/(N (N_m − 1)) Σ_k Σ_t (x_k,i − x̄_i)(x_k,j − x̄_j)          (paper 002, 3.2, both of its formulas with this factor)

over all channels, so that positions and forces may be correlated with each other. The mean has Σ/N_m. A period that is not the nominal one
turns every harmonic by the same share from period to period; that share is estimated from the phases, with its deviation, and leakage is
the power it puts beside the harmonics. Averages, filters and fits at the nominal frequency are all wrong by it (fact 4.5: 0.5 % of the
period give 1 to 3 % of the acceleration), so it is reported.

One period of positions becomes positions, rates and accelerations in four ways:

- :func:`dft_filter`, explicit: the DFT, bins above a number of harmonics set to zero, the rest times jω and −ω².
- :func:`fourier_fit`, implicit: least squares of a Fourier series, (17) and (18) of paper 002 with the minus sign its cosines need. Over
  exactly one period of uniform samples this is the same as the explicit filter, bin for bin.
- :func:`zero_phase_periodic`: a zero-phase Butterworth filter in the time domain, then compensated differences.
- :func:`unfiltered`: central differences of what was measured.

All take x (N, …) over one period, time along axis 0, and return x, ẋ, ẍ of the same shape; the ends are joined, since the data repeat.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arguments import as_array, checked
from veridyn.arrays import Array
from veridyn.errors import DataError, DataWarning, Fault, Faults, warn
from veridyn.signals.butterworth import Butterworth, as_rate, as_samples, overlap, zero_phase
from veridyn.signals.conditioning import HALF, derivative
from veridyn.signals.trajectory import FourierTrajectory

WRONG_PERIOD_SIGMAS = 5.0  # deviations from which a period counts as wrong
RELEVANT_PERIOD_ERROR = 1e-5  # of the period: smaller errors are reported in the estimate alone
LEAKAGE_RATIO = 10.0  # times the power of noise beside the harmonics
MIN_HARMONIC_RATIO = 100.0  # times the variance of noise: a harmonic whose phase counts
MIN_NOISE_BINS = 4  # bins beyond the harmonics that say how strong noise is
MAX_HARMONICS = 12  # harmonics whose phases are looked at
Three = tuple[Array, Array, Array]


@dataclass(frozen=True, eq=False, kw_only=True)
class Periods:
    """N_m periods of k channels, averaged.

    `mean` (N, k); `covariance` (k, k) of the noise of one sample, not of the mean; `deviations` (N_m, N, k) from the mean, whose noise has
    (1 − 1/N_m) Σ. `period_error`: the share by which the true period is longer than the nominal one, and `period_error_sigma` its
    deviation. `leakage`: power beside the harmonics over that of noise farther away, the largest of all channels; 1 where nothing leaks.
    """

    names: tuple[str, ...]
    rate: float
    mean: Array
    covariance: Array
    deviations: Array
    period_error: float
    period_error_sigma: float
    leakage: float

    @property
    def periods(self) -> int:
        return len(self.deviations)

    @property
    def samples(self) -> int:
        """Of one period."""
        return len(self.mean)

    @property
    def frequency(self) -> float:
        return self.rate / self.samples

    @property
    def t(self) -> Array:
        """(N,) from the start of a period."""
        return np.arange(self.samples) / self.rate

    @property
    def repeats(self) -> bool:
        """Whether the data are as periodic as they should be."""
        wrong = abs(self.period_error) > max(WRONG_PERIOD_SIGMAS * self.period_error_sigma, RELEVANT_PERIOD_ERROR)
        return not wrong and self.leakage < LEAKAGE_RATIO

    def part(self, names: Sequence[str]) -> Periods:
        """Some of the channels."""
        at = [self.names.index(name) for name in names]
        return Periods(
            names=tuple(names),
            rate=self.rate,
            mean=self.mean[:, at],
            covariance=self.covariance[np.ix_(at, at)],
            deviations=self.deviations[:, :, at],
            period_error=self.period_error,
            period_error_sigma=self.period_error_sigma,
            leakage=self.leakage,
        )


def samples_of_period(rate: float, frequency: float) -> int:
    """How many samples a period has; refused where that is not a whole number."""
    count = rate / frequency if frequency > 0.0 else np.nan
    if not (np.isfinite(count) and abs(count - round(count)) <= 1e-6 * count and round(count) >= 2):
        what = "the period does not fit the sampling, so periods cannot be averaged."
        expected = f"a whole number of samples at {rate:g} Hz"
        hint = "Sample synchronously, or resample the log at a whole multiple of its frequency."
        raise DataError(
            what, where="periodic data", expected=expected, found=f"{count:.9g} at {frequency:g} Hz", hint=hint
        )
    return round(count)


@checked
def averaged(
    channels: Mapping[str, ArrayLike] | ArrayLike,
    rate: float,
    frequency: float,
    *,
    skip: int = 0,
    names: Sequence[str] = (),
) -> Periods:
    """Whole periods of all channels, (T,) each or (T, k) together, from sample `skip` on; a rest behind the last whole period is left out.

    Refused: channels of different length, a period that does not fit the sampling, and a single period, which cannot show its own noise.
    A period that differs from the given one is warned of.
    """
    table, own = _table(channels, names)
    if skip < 0:
        raise DataError("it is no number of samples.", where="averaged, skip", expected="0 or more", found=f"{skip}")
    count = samples_of_period(rate, frequency)
    periods = (len(table) - skip) // count
    if periods < 2:
        what = "there is only one whole period." if periods == 1 else "there is no whole period."
        expected = f"at least two periods of {count} samples, which show their noise by their difference"
        shown = f"{len(table) - skip} samples" + (f" behind the first {skip}" if skip else "")
        hint = "Record more periods; with one alone, give the noise's covariance to the estimator."
        raise DataError(what, where="periodic data", expected=expected, found=shown, hint=hint)
    x = table[skip : skip + periods * count].reshape(periods, count, -1)
    mean = x.mean(axis=0)
    deviations = x - mean
    flat = deviations.reshape(-1, x.shape[2])
    covariance = flat.T @ flat / (count * (periods - 1))
    error, sigma = _period_error(x)
    found = Periods(
        names=own,
        rate=float(rate),
        mean=mean,
        covariance=covariance,
        deviations=deviations,
        period_error=error,
        period_error_sigma=sigma,
        leakage=_leakage(x),
    )
    if not found.repeats:
        warn(
            DataWarning,
            Fault(
                "the data do not repeat with the stated period.",
                where="periodic data",
                expected=f"{count / rate:.9g} s",
                found=f"{(1.0 + error) * count / rate:.9g} s ± {sigma * count / rate:.2g}, leakage {found.leakage:.3g} times the noise",
                hint="Sample synchronously, resample with the true period, or leave out the start, where the motion is not yet periodic.",
            ),
        )
    return found


def _table(channels: Mapping[str, ArrayLike] | ArrayLike, names: Sequence[str]) -> tuple[Array, tuple[str, ...]]:
    faults = Faults()
    if isinstance(channels, Mapping):
        columns = {str(name): np.asarray(x, dtype=np.float64).ravel() for name, x in channels.items()}
        longest = max((len(x) for x in columns.values()), default=0)
        for name, x in columns.items():
            if len(x) < longest:
                what = f"the log of '{name}' is shorter than the others."
                hint = "Cut all channels to the common time, or read them from one log with vd.resample."
                faults.add(what, where="periodic data", expected=f"{longest} samples", found=f"{len(x)}", hint=hint)
        faults.raise_if_any(DataError)
        if not columns:
            raise DataError("there is no channel.", where="periodic data", expected="one or more", found="none")
        table, own = np.column_stack(list(columns.values())), tuple(columns)
    else:
        table = as_array(channels, "periodic data")
        table = as_array(table, "periodic data", (None,)) if table.ndim == 0 else table
        table = table[:, None] if table.ndim == 1 else table
        own = tuple(names) or tuple(f"channel {k + 1}" for k in range(table.shape[1]))
    if table.ndim != 2 or len(own) != table.shape[1]:
        found = f"{table.shape} and {len(own)} names"
        faults.add("it is not a table of channels.", where="periodic data", expected="(T, k) and k names", found=found)
    elif not np.isfinite(table).all():
        first = int(np.argmin(np.isfinite(table).all(axis=0)))
        faults.add("it holds values that are not finite.", where=f"periodic data, '{own[first]}'")
    faults.raise_if_any(DataError)
    return table, own


def _period_error(x: Array) -> tuple[float, float]:
    """The share by which the period is too short or long, from how the phases of harmonics turn from period to period.

    A motion of period (1 + ε) T seen through windows of T turns harmonic h by −2πhε from one to the next. Each turning angle is weighed by
    what noise allows, as the bins beyond the harmonics show it.
    """
    periods, count, _ = x.shape
    top = min(MAX_HARMONICS, (count - 1) // 4)
    whole = np.fft.rfft(x, axis=1)
    c = whole[:, 1 : top + 1]
    mean = c.mean(axis=0)
    beyond = whole[:, top + 1 : 5 * top + 1]  # where there is noise alone, whatever the period is
    if beyond.shape[1] < MIN_NOISE_BINS:
        return 0.0, np.inf
    scatter = np.abs(beyond - beyond.mean(axis=0)) ** 2
    noise = scatter.sum(axis=0).mean(axis=0) / (periods - 1) / 2.0  # of the real or the imaginary part of a coefficient
    size = np.abs(mean) ** 2
    # a phase is one only where the harmonic stands out of the noise
    strong = (size > 1e-6 * size.max(axis=0, initial=0.0)) & (size > MIN_HARMONIC_RATIO * noise / periods)
    angle = np.imag(c * np.conj(mean)) / np.where(strong, size, 1.0)  # (periods, harmonics, channels), small
    when = np.arange(periods) - (periods - 1) / 2.0
    turn = np.tensordot(when, angle, axes=1) / (when**2).sum()  # per period
    h = np.arange(1, top + 1)[:, None]
    rounding = 1e-30 * float(size.max(initial=0.0)) + np.finfo(float).tiny
    weight = np.where(strong, (2.0 * np.pi * h) ** 2 * size * (when**2).sum() / (noise + rounding), 0.0)
    if not weight.sum() > 0.0:
        return 0.0, np.inf
    error = -turn / (2.0 * np.pi * h)
    return float((weight * error).sum() / weight.sum()), float(1.0 / np.sqrt(weight.sum()))


def _leakage(x: Array) -> float:
    """Power in the bins beside the first harmonics of the whole record, over the median power between all harmonics.

    Noise with a memory is stronger at harmonics than above them. Midway between harmonics there is noise n, and of a leakage L beside them
    q L, its power falling with the square of the distance from both: b = L + n beside and m = q L + n midway give n. Where that explains
    what stands beside harmonics, the power is over n; fewer than six periods do not tell them apart.
    """
    periods, count, k = x.shape
    power = np.abs(np.fft.rfft(x.reshape(periods * count, k), axis=0)) ** 2
    bins = np.arange(len(power))
    between = bins % periods != 0
    if periods < 3:
        return 1.0  # with two periods the only bin between harmonics is beside both
    harmonics = periods * np.arange(1, min(MAX_HARMONICS, (count - 1) // 2) + 1)
    beside = np.concatenate([harmonics - 1, harmonics + 1])
    far = between & ~np.isin(bins, beside) if periods > 3 else between & (bins > harmonics[-1] + 1)
    # a median of χ² with two degrees of freedom is 0.693 of its mean; rounding is the floor of data without noise
    floor = np.median(power[far], axis=0) / np.log(2.0) + 1e-24 * power.max(axis=0)
    around = power[beside].mean(axis=0)
    found = float((around / floor).max(initial=1.0))
    half = periods // 2
    q = 4.0 / half**2
    if q >= 1.0 or found < LEAKAGE_RATIO:
        return found
    midway = np.unique([k for h in harmonics for k in (h - half, h + half - periods)])
    local = np.maximum(floor, (power[midway].mean(axis=0) - q * around) / (1.0 - q))
    by_noise = float((around / local).max(initial=1.0))
    return by_noise if by_noise < LEAKAGE_RATIO else found


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
    times = as_array(t, "fourier_fit, t", (len(samples),))
    if not (np.isfinite(frequency) and frequency > 0.0 and np.isfinite(times).all()):
        raise DataError(
            "frequency and times are finite.", where="fourier_fit", expected="Hz above 0", found=f"{frequency:g} Hz"
        )
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
        what = "there are no such harmonics in these samples."
        expected = f"0 to {(samples - 1) // 2} for {samples} samples of a period"
        raise DataError(what, where="periodic data", expected=expected, found=f"{harmonics}")
