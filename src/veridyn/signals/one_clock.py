"""All channels of a log at common uniform times: as they are where they are on one clock already, else resampled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault
from veridyn.model.experiment import Experiment
from veridyn.signals.resample import Method, resample, uniform_rate

Array = NDArray[np.float64]


def on_one_clock(
    log: Experiment, wanted: float | None, interpolation: Method, max_gap: float | None
) -> tuple[Experiment, float]:
    """The log at `wanted` Hz, by default the rate of its fastest uniform channel; and that rate. `max_gap` as for :func:`resample`."""
    if not len(log):
        raise DataError(Fault("no channel of it belongs to this machine.", log.name))
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
