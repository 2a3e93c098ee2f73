"""What the pulse sensor of a wheel records of its exact angle: a count, the times of edges, or the intervals between them.

    n(t) = ⌊(φ(t) − φ₀)/p⌋,   p = 2π/holes        edge n at φ(t) = n p + φ₀

An unsigned count goes up by one at every edge, whichever way the wheel turns.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from veridyn.arguments import checked
from veridyn.errors import DataError
from veridyn.model.experiment import Channel
from veridyn.signals.pulses import PulseWheel

Array = NDArray[np.float64]
BISECTIONS = 60  # halvings of a sample interval: below the rounding of a time


@checked
def wheel_count(angle: Channel, wheel: PulseWheel, name: str, rate: float | None = None) -> Channel:
    """The count of a wheel at `rate` (Hz), or on the clock of its exact angle (rad).

    Examples
    --------
    >>> import numpy as np
    >>> from veridyn.model import Channel
    >>> from veridyn.signals import PulseWheel
    >>> from veridyn.manoeuvres import wheel_count
    >>> turning = Channel("spin", np.arange(5) * 0.01, np.arange(5) * 0.1, "rad")
    >>> wheel_count(turning, PulseWheel(holes=40), "count").values
    array([0., 0., 1., 1., 2.])
    """
    _check(angle)
    t = angle.t if rate is None else angle.t[0] + np.arange(int((angle.t[-1] - angle.t[0]) * rate + 1e-9) + 1) / rate
    at = angle.values if rate is None else CubicSpline(angle.t, angle.values)(t)
    n = np.floor((at - wheel.phase) / wheel.pitch)
    if not wheel.signed:
        n = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(n)))])
    return Channel(name, t, n, "1")


@checked
def edge_times(angle: Channel, wheel: PulseWheel) -> Array:
    """The times (s) at which edges pass, by a cubic spline through the exact angle; it turns one way from sample to sample."""
    _check(angle)
    places = (angle.values - wheel.phase) / wheel.pitch
    first, last = np.floor(places[:-1]), np.floor(places[1:])
    rows = np.repeat(np.arange(len(first)), np.abs(last - first).astype(np.intp))
    if len(rows) == 0:
        return np.zeros(0)
    nth = np.concatenate([np.arange(k) for k in np.abs(last - first).astype(int).tolist()])
    up = last[rows] > first[rows]
    aim = np.where(up, first[rows] + 1.0 + nth, first[rows] - nth)
    spline = CubicSpline(angle.t, places)
    low, high, sign = angle.t[rows], angle.t[rows + 1], np.where(up, 1.0, -1.0)
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        before = sign * (spline(middle) - aim) < 0.0
        low, high = np.where(before, middle, low), np.where(before, high, middle)
    return 0.5 * (low + high)


@checked
def edge_intervals(angle: Channel, wheel: PulseWheel, clock: float = 0.0) -> tuple[float, Array]:
    """The time of the first edge and the intervals (s) to the next ones, as a timer that ticks every `clock` seconds counts them."""
    t = edge_times(angle, wheel)
    if len(t) == 0:
        raise DataError("the wheel passes no edge.", where=f"channel '{angle.name}'")
    read = np.floor(t / clock) * clock if clock > 0.0 else t
    return float(read[0]), np.diff(read)


def _check(angle: Channel) -> None:
    if angle.unit != "rad" or not np.isfinite(angle.values).all() or len(angle) < 2:
        expected = "finite values in rad, two or more"
        raise DataError(
            "it is no angle of a wheel.", where=f"channel '{angle.name}'", expected=expected, found=angle.unit
        )
