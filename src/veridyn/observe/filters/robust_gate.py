"""A gate for every filter: a reading far from what is expected counts little, and is never shut out for good.

    z² = ν²/s > γ:    s' = s z²/γ,    r' = r + s' − s        so that the reading lies on the gate (γ: 4.9 deviations), and K ν falls as 1/ν

(G. Chang, J. Geodesy 88, 2014, 391-401: the covariance of an innovation scaled by its Mahalanobis distance.) Outliers are rare among good
readings. Each output has an allowance of readings beyond the gate, at most `ALLOWED`, of which every good one earns `EARNED`; it begins
with `AT_FIRST`, so that readings which contradict the start of a run soon count in full. A filter that is wrong, or a log in another unit,
is beyond the gate again and again: where the allowance is spent the gate is open for that output, and the filter is the plain one, whose
innovations say how wrong it is. The first time that happens to an output which had earned all of its allowance, the covariance is
widened along the reading that opens it, so that what was kept out is taken in; otherwise unit or model are wrong, which that does not mend:

    P' = P + (ν² − s) d dᵀ/(h d)²,    d = diag(P) hᵀ        h P' hᵀ + r = ν²

d shares it among the states that the reading depends on by their own variances. Correlations are what the filter made of a model that is
wrong now, and would carry the error to states which other readings hold. After `CLOSES_AFTER` good readings in a row it is closed again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.observe.filters.update import Correction, threshold
from veridyn.observe.measurements import USED, Codes, Status

FALSE_ALARMS = 1e-6  # of good readings that are beyond the gate: 4.9 deviations
ALLOWED = 20.0  # readings of an output beyond the gate, at most, after which the filter is doubted and not the sensor
AT_FIRST = 2.0  # such readings that a run begins with: three in a row contradict its start
EARNED = 0.25  # of one such reading, by each good one: up to one reading in five may be an outlier
CLOSES_AFTER = (
    50  # good readings in a row: where every tenth is beyond the gate, chance gives so many once in two hundred times
)
WIDEST = (
    1e4  # of an innovation's variance: what is farther than a hundred deviations is no filter that is a little wrong
)
OUTLIER = int(Status.OUTLIER)


class RobustGate:
    """What each of m outputs has left of its allowance, and for which of them the gate is `open` (m,); for one caller."""

    def __init__(self, outputs: int) -> None:
        self.limit = threshold(1.0 - FALSE_ALARMS)
        self.open: NDArray[np.bool_] = np.zeros(outputs, dtype=np.bool_)
        self.some_open = False
        self._left = np.full(outputs, AT_FIRST)
        self._trusted: NDArray[np.bool_] = np.zeros(
            outputs, dtype=np.bool_
        )  # whether all of it was earned, at some time
        self._opened: NDArray[np.bool_] = np.zeros(outputs, dtype=np.bool_)  # before
        self._good = np.zeros(outputs, dtype=np.int64)  # in a row, while the gate is open
        self._latest = np.full(outputs, np.nan)  # reading that was beyond
        self._whole = False  # whether every allowance is whole, so that good readings change nothing

    def beyond(self, c: Correction) -> NDArray[np.bool_]:
        """The readings (m,) beyond the gate, of those that are used or that a gate has refused."""
        there = (c.status == USED) | (c.status == OUTLIER)
        return np.asarray(there & (np.nan_to_num(c.innovations**2) > self.limit * np.nan_to_num(c.variances)))

    def taken(self, good: NDArray[np.integer]) -> None:
        """So many readings (m,) of each output were good, and none was beyond the gate."""
        if self._whole:
            return
        self._left[~self.open] += EARNED * good[~self.open]
        np.minimum(self._left, ALLOWED, out=self._left)
        self._trusted |= self._left >= ALLOWED
        self._whole = not self.some_open and bool((self._left >= ALLOWED).all())

    def spend(self, beyond: NDArray[np.bool_], status: Codes, values: Array) -> NDArray[np.bool_]:
        """Take note of a step with readings beyond the gate, or with an open one; the outputs for which it opens for the first time.

        A sensor that repeats the reading which was beyond tells nothing new, and costs nothing.
        """
        spends = beyond & (values != self._latest)
        self._latest[beyond] = values[beyond]
        opens = np.asarray(spends & ~self.open & (self._left < 1.0))
        self._left[spends & ~self.open & ~opens] -= 1.0
        good = (status == USED) & ~beyond
        self._left[good & ~self.open] += EARNED
        np.minimum(self._left, ALLOWED, out=self._left)
        self._trusted |= self._left >= ALLOWED
        self._good[good & self.open] += 1
        self._good[beyond] = 0
        closes = self.open & (self._good >= CLOSES_AFTER)
        self._left[closes], self.open[closes] = ALLOWED, False
        self.open |= opens
        self.some_open, self._whole = bool(self.open.any()), False
        first = opens & ~self._opened & self._trusted
        self._opened |= opens
        return np.asarray(first)

    def deviations(self, c: Correction, R: Array, sigma: Array | None, beyond: NDArray[np.bool_]) -> Array:
        """Deviations (m,) of the readings, those beyond the gate so large that they lie on it; NaN for a sensor's own."""
        own = np.full(len(R), np.nan) if sigma is None else sigma
        r = np.where(np.isnan(own), R.diagonal(), own**2)
        wide = r + c.innovations**2 / self.limit - c.variances
        return np.where(beyond, np.sqrt(np.maximum(wide, r)), own)


def widened(P: Array, H: Array, c: Correction, opens: NDArray[np.bool_], considered: NDArray[np.bool_] | None) -> Array:
    """P' for the outputs `opens`: their innovations are as large as stated. States that are `considered` stay as uncertain as they are, and
    readings in another unit, far beyond what any state of the machine explains, widen nothing."""
    first = P
    for j in np.flatnonzero(opens):
        h = H[j]
        d = P.diagonal() * h
        if considered is not None:
            d = np.where(considered, 0.0, d)
        along, s = float(h @ d), float(h @ P @ h) + float(c.variances[j] - h @ first @ h)
        excess = float(c.innovations[j]) ** 2 - s
        if along > 0.0 and 0.0 < excess <= WIDEST * s:
            P = P + (excess / along**2) * np.outer(d, d)
    return P
