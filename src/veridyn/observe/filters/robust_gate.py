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
# Rows of a gate's state, a column for each output: 1 where it is open; what is left of the allowance; 1 where all of it was earned at some
# time, and where it was open before; good readings in a row while it is open; the latest reading that was beyond.
OPEN, LEFT, TRUSTED, OPENED, GOOD, LATEST = range(6)


def gate_state(outputs: int) -> Array:
    """The state (6, m) of a gate at the start of a run."""
    state = np.zeros((6, outputs))
    state[LEFT], state[LATEST] = AT_FIRST, np.nan
    return state


class RobustGate:
    """What each of m outputs has left of its allowance, and for which of them the gate is `open` (m,); for one caller.

    `state`: that of a compiled step, which changes it too; None for a gate of its own.
    """

    def __init__(self, outputs: int, state: Array | None = None) -> None:
        self.limit = threshold(1.0 - FALSE_ALARMS)
        self._state = gate_state(outputs) if state is None else state
        self._shared = state is not None
        self._whole = False  # whether every allowance is whole, so that good readings change nothing

    def forget(self) -> None:
        """As at the start of a run."""
        self._state[:], self._whole = gate_state(self._state.shape[1]), False

    @property
    def open(self) -> NDArray[np.bool_]:
        return np.asarray(self._state[OPEN] != 0.0)

    @property
    def some_open(self) -> bool:
        return not self._whole and bool(self._state[OPEN].any())

    @property
    def whole(self) -> bool:
        """Whether all gates are shut and every allowance is whole, so that good readings change nothing."""
        return self._whole

    def beyond(self, c: Correction) -> NDArray[np.bool_]:
        """The readings (m,) beyond the gate, of those that are used or that a gate has refused."""
        there = (c.status == USED) | (c.status == OUTLIER)
        return np.asarray(there & (np.nan_to_num(c.innovations**2) > self.limit * np.nan_to_num(c.variances)))

    def spend(self, beyond: NDArray[np.bool_], status: Codes, values: Array) -> NDArray[np.bool_]:
        """Take note of a step with readings beyond the gate, or with an open one; the outputs for which it opens for the first time.

        A sensor that repeats the reading which was beyond tells nothing new, and costs nothing.
        """
        state, was_open = self._state, self.open
        spends = beyond & (values != state[LATEST])
        state[LATEST, beyond] = values[beyond]
        opens = np.asarray(spends & ~was_open & (state[LEFT] < 1.0))
        state[LEFT, spends & ~was_open & ~opens] -= 1.0
        good = (status == USED) & ~beyond
        state[LEFT, good & ~was_open] += EARNED
        np.minimum(state[LEFT], ALLOWED, out=state[LEFT])
        state[TRUSTED, state[LEFT] >= ALLOWED] = 1.0
        state[GOOD, good & was_open] += 1.0
        state[GOOD, beyond] = 0.0
        closes = was_open & (state[GOOD] >= CLOSES_AFTER)
        state[LEFT, closes], state[OPEN, closes] = ALLOWED, 0.0
        state[OPEN, opens] = 1.0
        self._whole = not self._shared and not self.open.any() and bool((state[LEFT] >= ALLOWED).all())
        first = opens & (state[OPENED] == 0.0) & (state[TRUSTED] != 0.0)
        state[OPENED, opens] = 1.0
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
