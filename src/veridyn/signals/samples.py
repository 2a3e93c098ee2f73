"""What every filter of this room takes: finite numbers, time along axis 0, a positive rate in Hz.

The checks stand here once, so that each filter refuses a bad signal in the same words.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.errors import DataError

Array = NDArray[np.float64]


def as_samples(x: ArrayLike, *, least: int = 1, where: str = "signal") -> Array:
    """`x` as float64 of shape (N, ...), with N at least `least` and every number finite; otherwise a DataError."""
    samples = np.asarray(x, dtype=np.float64)
    if samples.ndim == 0:
        raise DataError(
            "it is one number, not a signal.",
            where=where,
            expected="an array with time along its first axis",
            found=f"{samples}",
        )
    if len(samples) < least:
        hint = "Record longer, or choose a filter with a shorter memory."
        raise DataError(
            "it is too short.", where=where, expected=f"at least {least} samples", found=f"{len(samples)}", hint=hint
        )
    bad = ~np.isfinite(samples)
    if bad.any():
        place = [int(i) for i in np.argwhere(bad)[0]]
        column = f" in column {', '.join(map(str, place[1:]))}" if len(place) > 1 else ""
        found = f"{int(bad.sum())} others, the first at sample {place[0]}{column} ({samples[tuple(place)]})"
        hint = "veridyn.signals.quality.inspect lists them with their times; cut or repair those spans first."
        raise DataError(
            "it holds values that are not finite numbers.",
            where=where,
            expected="finite numbers",
            found=found,
            hint=hint,
        )
    return samples


def as_rate(rate: float, where: str = "signal") -> float:
    """`rate` as a positive finite number of samples per second; otherwise a DataError."""
    if not (math.isfinite(rate) and rate > 0.0):
        expected = "a positive number of samples per second"
        hint = "veridyn.signals.resample.uniform_rate finds the rate of a clock."
        raise DataError(
            "its sampling rate is not usable.", where=where, expected=expected, found=f"{rate!r}", hint=hint
        )
    return float(rate)
