"""What every filter of this room takes: finite numbers, time along axis 0, a positive rate in Hz.

The checks stand here once, so that each filter refuses a bad signal in the same words.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.errors import DataError, Fault

Array = NDArray[np.float64]


def as_samples(x: ArrayLike, *, least: int = 1, where: str = "signal", first: int = 0) -> Array:
    """`x` as float64 of shape (N, ...), with N at least `least` and every number finite; otherwise a DataError.

    `first` is the number of the first sample, for a signal that arrives in blocks.
    """
    samples = np.asarray(x, dtype=np.float64)
    if samples.ndim == 0:
        raise DataError(
            Fault("it is one number, not a signal.", where, "an array with time along its first axis", f"{samples}")
        )
    if len(samples) < least:
        raise DataError(
            Fault(
                "it is too short.",
                where,
                f"at least {least} samples",
                f"{len(samples)}",
                "Record longer, or choose a filter with a shorter memory.",
            )
        )
    bad = ~np.isfinite(samples)
    if bad.any():
        place = [int(i) for i in np.argwhere(bad)[0]]
        column = f" in column {', '.join(map(str, place[1:]))}" if len(place) > 1 else ""
        raise DataError(
            Fault(
                "it holds values that are not finite numbers.",
                where,
                "finite numbers",
                f"{int(bad.sum())} others, the first at sample {first + place[0]}{column} ({samples[tuple(place)]})",
                "veridyn.signals.quality.inspect lists them with their times; cut or repair those spans first.",
            )
        )
    return samples


def as_rate(rate: float, where: str = "signal") -> float:
    """`rate` as a positive finite number of samples per second; otherwise a DataError."""
    if not (math.isfinite(rate) and rate > 0.0):
        raise DataError(
            Fault(
                "its sampling rate is not usable.",
                where,
                "a positive number of samples per second",
                f"{rate!r}",
                "veridyn.signals.resample.uniform_rate finds the rate of a clock.",
            )
        )
    return float(rate)
