"""One clock for all: channels recorded on clocks of their own, interpolated at common uniform times.

resample(x, rate) = x(t_k) at t_k = t_0 + k/rate within the time that every channel covers; nothing is extrapolated.
Going to a lower rate, each channel first passes a zero-phase Butterworth low-pass of order 8 at 0.8 of the new
Nyquist frequency (gain 1/2 there, 0.027 at Nyquist), so that what the new rate cannot hold does not fold back into it.
Clocks that run backwards or repeat themselves and values that are not finite are refused, never repaired silently.
Times are in seconds, rates in Hz.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import CubicSpline, PchipInterpolator

from veridyn.arguments import checked
from veridyn.arrays import Array
from veridyn.errors import DataError, DataWarning, Fault, Faults, warn
from veridyn.model.experiment import Channel, Experiment
from veridyn.signals.butterworth import Butterworth, as_rate, zero_phase
from veridyn.signals.mending import GAP_STEPS

Method = Literal["linear", "cubic", "pchip"]

MOST_SAMPLES = 1e9  # of one channel, 8 GB
NEEDED = {"linear": 2, "cubic": 4, "pchip": 2}  # samples an interpolation needs


@dataclass(frozen=True)
class Gap:
    """Nothing was recorded on `channel` between the times `start` and `end`."""

    channel: str
    start: float
    end: float

    def summary(self) -> str:
        return f"'{self.channel}' from {self.start:.6g} s to {self.end:.6g} s ({self.end - self.start:.3g} s)"


def uniform_rate(t: ArrayLike, tolerance: float = 0.01, where: str = "clock") -> float:
    """The rate (N − 1)/(t_N − t_1) of a clock whose steps differ from their mean by at most `tolerance` of it."""
    clock = np.asarray(t, dtype=np.float64)
    if clock.ndim != 1 or len(clock) < 2:
        raise DataError(
            "it has no steps.", where=where, expected="an array of at least two times", found=f"shape {clock.shape}"
        )
    faults = clock_faults(clock, where)
    if faults:
        raise DataError(faults)
    steps = np.diff(clock)
    mean = float((clock[-1] - clock[0]) / len(steps))
    off = np.abs(steps - mean)
    worst = int(np.argmax(off))
    # Stamps hold 53 bits: a large time of day leaves that much rounding in each step.
    rounding = 4.0 * float(np.spacing(np.abs(clock).max()))
    if off[worst] > max(tolerance * mean, rounding):
        expected = f"steps within {100 * tolerance:g} % of {mean:.6g} s"
        found = f"a step of {steps[worst]:.6g} s at t = {clock[worst]:.6g} s (jitter {100 * off[worst] / mean:.3g} %)"
        hint = "Resample it with veridyn.signals.resample.resample."
        raise DataError("it is not uniform.", where=where, expected=expected, found=found, hint=hint)
    return 1.0 / mean


def clock_faults(t: Array, where: str) -> list[Fault]:
    """What keeps `t` from being a clock: stamps that are not finite, run backwards, or repeat."""
    faults = Faults()
    hint = "veridyn.signals.quality.inspect lists every place; sort, cut or repair the log first."
    finite = np.isfinite(t)
    if not finite.all():
        first = int(np.argmin(finite))
        text = f"{int((~finite).sum())} of its time stamps are not finite numbers."
        faults.add(text, where=where, expected="seconds", found=f"{t[first]} at sample {first}", hint=hint)
    steps = np.diff(t)
    for bad, what in ((steps < 0.0, "its clock runs backwards"), (steps == 0.0, "its clock repeats a time")):
        if bad.any():
            k = int(np.argmax(bad))
            text = f"{what} at t = {t[k]:.9g} s, {int(bad.sum())} time(s) in all."
            found = f"{t[k]:.9g} s then {t[k + 1]:.9g} s at sample {k + 1}"
            faults.add(text, where=where, expected="times that increase", found=found, hint=hint)
    return faults.found


def gaps(data: Channel | Experiment, max_gap: float | None = None) -> tuple[Gap, ...]:
    """Every span longer than `max_gap` seconds (default: 5 median steps of the channel) without a sample."""
    found = []
    for channel in _channels(data):
        steps = np.diff(channel.t)
        if len(steps) == 0:
            continue
        limit = GAP_STEPS * float(np.median(steps)) if max_gap is None else max_gap
        at = np.flatnonzero(steps > limit)
        found.extend(Gap(channel.name, float(channel.t[k]), float(channel.t[k + 1])) for k in at)
    return tuple(found)


def outside(t: ArrayLike, spans: Sequence[Gap]) -> NDArray[np.bool_]:
    """True at the times that lie strictly inside none of the gaps: the mask of samples that were measured."""
    clock = np.asarray(t, dtype=np.float64)
    keep = np.ones(clock.shape, dtype=np.bool_)
    for gap in spans:
        keep &= (clock <= gap.start) | (clock >= gap.end)
    return keep


@overload
def resample(
    data: Channel,
    clock: float | ArrayLike,
    method: Method = ...,
    *,
    max_gap: float | None = ...,
    on_gap: Literal["refuse", "report"] = ...,
    antialias: bool = ...,
) -> Channel: ...
@overload
def resample(
    data: Experiment,
    clock: float | ArrayLike,
    method: Method = ...,
    *,
    max_gap: float | None = ...,
    on_gap: Literal["refuse", "report"] = ...,
    antialias: bool = ...,
) -> Experiment: ...
@checked
def resample(
    data: Channel | Experiment,
    clock: float | ArrayLike,
    method: Method = "linear",
    *,
    max_gap: float | None = None,
    on_gap: Literal["refuse", "report"] = "refuse",
    antialias: bool = True,
) -> Channel | Experiment:
    """The same data at common times.

    Parameters
    ----------
    data : Channel or Experiment
        One channel, or several, each on its own clock.
    clock : float or array (N,)
        A rate in Hz, or the times themselves in s, inside the span of the data.
    method : {"linear", "cubic", "pchip"}
        The interpolation between samples; "linear" by default.
    max_gap : float, optional
        The longest span (s) without a sample that may be bridged; five steps of the channel by default.
    on_gap : {"refuse", "report"}
        What to do with a longer gap: refuse it (the default), or bridge it and name it in a DataWarning. :func:`gaps` and :func:`outside`
        then give the samples to leave out.
    antialias : bool
        Filter a channel before it is sampled at a lower rate (the default).

    Returns
    -------
    Channel or Experiment
        As given, with N samples on one clock.

    Raises
    ------
    DataError
        A channel has too few samples, a clock that does not increase or a gap, or the times lie outside of it; all faults at once.

    Examples
    --------
    >>> import numpy as np
    >>> import veridyn as vd
    >>> t = 0.01 * np.arange(101)
    >>> log = vd.Experiment.from_arrays(t, {"q.hinge": t**2}, {"q.hinge": "rad"})
    >>> slow = vd.resample(log, 10.0, antialias=False)
    >>> len(slow["q.hinge"]), round(float(slow["q.hinge"].values[5]), 6)
    (11, 0.25)
    """
    channels = _channels(data)
    label = data.name if isinstance(data, Experiment) else f"channel '{data.name}'"
    faults = Faults()
    if method not in NEEDED:
        faults.add(f"there is no interpolation '{method}'.", where=label, expected=", ".join(NEEDED))
    for channel in channels:
        faults.extend(_faults(channel, NEEDED.get(method, 2)))
    faults.raise_if_any(DataError)
    missing = gaps(data, max_gap)
    if missing and on_gap != "report":
        raise DataError(_gap_fault(missing, label))
    if missing:
        warn(DataWarning, _gap_fault(missing, label))
    times = _times(channels, clock, label)
    resampled = [replace(c, t=times, values=_at(c, times, method, antialias)) for c in channels]
    if isinstance(data, Channel):
        return resampled[0]
    return replace(data, channels={c.name: c for c in resampled})


def anti_alias(rate: float) -> Butterworth:
    """The low-pass used before going down to `rate` Hz: order 8 at 0.8 of the new Nyquist frequency."""
    return Butterworth(0.4 * as_rate(rate), order=8)


def _channels(data: Channel | Experiment) -> list[Channel]:
    return [data] if isinstance(data, Channel) else list(data.channels.values())


def _faults(channel: Channel, needed: int) -> list[Fault]:
    where = f"channel '{channel.name}'"
    if len(channel) < needed:
        return [Fault("it is too short to interpolate.", where, f"at least {needed} samples", f"{len(channel)}")]
    faults = clock_faults(channel.t, where)
    bad = ~np.isfinite(channel.values)
    if bad.any():
        first = int(np.argmax(bad))
        what = f"{int(bad.sum())} of its values are not finite numbers, the first at t = {channel.t[first]:.9g} s."
        hint = "Cut or repair that span first; interpolating over it would invent data."
        faults.append(Fault(what, where, "finite numbers", f"{channel.values[first]} at sample {first}", hint))
    return faults


def _gap_fault(found: tuple[Gap, ...], label: str) -> Fault:
    listed = "; ".join(gap.summary() for gap in found[:5]) + ("; …" if len(found) > 5 else "")
    hint = "Raise max_gap, cut the log there, or pass on_gap='report' and leave those samples out."
    return Fault(f"{len(found)} gap(s) would be bridged by interpolation.", label, found=listed, hint=hint)


def _times(channels: list[Channel], clock: float | ArrayLike, label: str) -> Array:
    if not channels:
        raise DataError("it has no channels to resample.", where=label)
    latest = max(channels, key=lambda c: c.t[0])
    earliest = min(channels, key=lambda c: c.t[-1])
    start, end = float(latest.t[0]), float(earliest.t[-1])
    if end <= start:
        shown = f"'{latest.name}' starts at {start:.9g} s, '{earliest.name}' ends at {end:.9g} s"
        hint = "Clocks with different zeros must be aligned where the log is loaded."
        raise DataError(
            "its channels have no time in common.", where=label, expected="clocks that overlap", found=shown, hint=hint
        )
    if np.ndim(clock) == 0:
        rate = as_rate(float(np.asarray(clock)), label)
        if (end - start) * rate > MOST_SAMPLES:
            found, expected = f"{rate:g} Hz over {end - start:.6g} s", f"at most {MOST_SAMPLES:g} samples"
            raise DataError("the new clock has more samples than memory.", where=label, expected=expected, found=found)
        # Half a billionth of a step: the last sample is kept where only rounding puts it past the end.
        count = int(np.floor((end - start) * rate + 5e-10)) + 1
        return np.minimum(start + np.arange(count) / rate, end)
    times = np.asarray(clock, dtype=np.float64)
    what = f"its shape is {times.shape}."
    wrong = clock_faults(times, "the new clock") if times.ndim == 1 else [Fault(what, "the new clock")]
    if wrong:
        raise DataError(wrong)
    if len(times) == 0 or times[0] < start or times[-1] > end:
        found = f"{times[0]:.9g} s to {times[-1]:.9g} s" if len(times) else "no times"
        what = "it leaves the time that every channel covers."
        raise DataError(what, where="the new clock", expected=f"{start:.9g} s to {end:.9g} s", found=found)
    return times


def _at(channel: Channel, times: Array, method: Method, antialias: bool) -> Array:
    t, values = channel.t, channel.values
    rate = 1.0 / float(np.median(np.diff(times))) if len(times) > 1 else np.inf
    own = 1.0 / float(np.median(np.diff(t)))
    # Within 5 % of the old rate there is next to nothing to fold, and the filter would cost more than it saves.
    if antialias and rate < 0.95 * own:
        even = np.linspace(t[0], t[-1], round(float(t[-1] - t[0]) * own) + 1)
        own = (len(even) - 1) / float(t[-1] - t[0])
        if len(even) != len(t) or np.abs(t - even).max() > 0.01 / own:
            values = _interpolate(t, values, even, method)  # the filter needs a uniform clock
            t = even
        values = zero_phase(values, own, anti_alias(rate), f"channel '{channel.name}'")
    return _interpolate(t, values, times, method)


def _interpolate(t: Array, values: Array, times: Array, method: Method) -> Array:
    own = _samples_at(t, times)
    if own is not None:
        return values[own]
    if method == "linear":
        return np.interp(times, t, values)
    return CubicSpline(t, values)(times) if method == "cubic" else PchipInterpolator(t, values)(times)


def _samples_at(t: Array, times: Array) -> NDArray[np.intp] | None:
    """The samples that lie at these times but for rounding; None where one time lies between samples. Every method passes through them."""
    rounding = 4.0 * float(np.spacing(np.abs(t).max()))
    own = np.minimum(np.searchsorted(t, times - rounding), len(t) - 1)
    return own if bool((np.abs(t[own] - times) <= rounding).all()) else None


def on_one_clock(
    log: Experiment, wanted: float | None, interpolation: Method, max_gap: float | None
) -> tuple[Experiment, float]:
    """The log at `wanted` Hz, by default the rate of its fastest uniform channel; and that rate. `max_gap` as for :func:`resample`."""
    if not len(log):
        raise DataError("no channel of it belongs to this machine.", where=log.name)
    channels = list(log.channels.values())
    first = channels[0].t
    alike = all(c.t is first or np.array_equal(c.t, first) for c in channels)
    even = [r for r in (_uniform(c.t) for c in (channels[:1] if alike else channels)) if r is not None]
    rate = wanted or (max(even) if even else max(c.rate for c in channels))
    if alike and abs(rate / (_uniform(first, 1e-6) or np.inf) - 1.0) < 1e-9:
        return log, rate
    return resample(log, rate, interpolation, max_gap=max_gap), rate


def _uniform(t: Array, tolerance: float = 0.01) -> float | None:
    try:
        return uniform_rate(t, tolerance)
    except DataError:
        return None
