"""Availability flags of a log: a channel "<sensor>.available", or "<output>.available", that is 0 while a sensor cannot be used.

A flag acts from its own sample to the next, on the clock of the log. A muted reading stays in the table as MISSING: the state and its
covariance are carried on to its time all the same, and nothing corrects them there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError
from veridyn.model.experiment import Channel, Experiment
from veridyn.observe.measurements import SAME_STAMP_S

AVAILABLE = ".available"


def flag_channels(log: Experiment, output: str, sensor: str) -> list[Channel]:
    """The availability flags that concern an output of a sensor; for a sensor of one output there is one name for both."""
    return [log[name] for name in dict.fromkeys(f"{x}{AVAILABLE}" for x in (output, sensor)) if name in log]


def muted(log: Experiment, output: str, sensor: str) -> NDArray[np.bool_]:
    """Which readings (N,) of a channel are not available; before the first sample of a flag none are."""
    t = log[output].t
    out = np.zeros(len(t), dtype=np.bool_)
    for flag in flag_channels(log, output, sensor):
        _check(flag, log.name)
        at = np.searchsorted(flag.t, t + SAME_STAMP_S, side="right") - 1
        out |= (at < 0) | (flag.values[np.maximum(at, 0)] == 0.0) if len(flag) else True
    return out


def _check(flag: Channel, log: str) -> None:
    odd = np.flatnonzero(~np.isin(flag.values, (0.0, 1.0)))
    if len(odd):
        k = int(odd[0])
        raise DataError(
            "it is no flag.",
            where=f"{log}, channel '{flag.name}'",
            expected="0 where the sensor is not available, 1 where it is",
            found=f"{flag.values[k]:g} at {flag.t[k]:.6g} s",
            hint="Compare a quality number with its limit where the log is loaded.",
        )
    if (np.diff(flag.t) < 0.0).any():
        raise DataError("its clock runs backwards.", where=f"{log}, channel '{flag.name}'")
