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

:class:`RobustGate` is the reference; it shares its state with :func:`correct_gated`, the same as machine code, so that steps that machine
code leaves to Python go on from there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics.compiled import Codes, Matrix, Numbers, Vector, core
from veridyn.observe.filters.correction import DOF, DONE, OUTLIER, Corrected, correct_into
from veridyn.observe.filters.update import Correction, threshold
from veridyn.observe.measurements import USED

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


class Gated(NamedTuple):
    """A robust gate for corrections of n states by m readings, and room for it; it belongs to one caller."""

    on: Numbers  # (1,) 1 where readings pass this gate, 0 where they do not
    widens: bool  # whether P is widened along a reading that opens it
    limit: float
    state: Matrix  # as `RobustGate` has it
    before: Matrix  # the state when the step began
    beyond: Codes  # (m,)
    light: Codes
    opens: Codes
    flags: Codes
    used: Numbers  # (1,) readings that the state was corrected by
    R: Matrix  # (m, m) with the noise of readings that count little
    d: Vector  # (n,)
    dx: Vector
    P: Matrix
    K: Matrix


def gated_of(n: int, m: int, widens: bool) -> Gated:
    """Room for a gate that is off."""
    state = gate_state(m)
    return Gated(
        on=np.zeros(1, dtype=np.int64),
        widens=widens,
        limit=threshold(1.0 - FALSE_ALARMS),
        state=state,
        before=state.copy(),
        beyond=np.zeros(m, dtype=np.int8),
        light=np.zeros(m, dtype=np.int8),
        opens=np.zeros(m, dtype=np.int8),
        flags=np.zeros(m, dtype=np.int8),
        used=np.zeros(1, dtype=np.int64),
        R=np.zeros((m, m)),
        d=np.zeros(n),
        dx=np.zeros(n),
        P=np.zeros((n, n)),
        K=np.zeros((n, m)),
    )


@core
def correct_through(
    P: Array, H: Array, R: Array, residual: Array, flags: Codes, values: Array, limit: float, c: Corrected, g: Gated
) -> int:
    """The correction through the gate where it is on, else through one that refuses what is beyond `limit`; `g.used` in either case."""
    if g.on[0] != 0:
        return correct_gated(P, H, R, residual, flags, values, c, g)
    code = correct_into(P, H, R, residual, flags, limit, c)
    g.used[0] = int(c.statistics[DOF])
    return code


@core
def correct_gated(
    P: Array, H: Array, R: Array, residual: Array, flags: Codes, values: Array, c: Corrected, g: Gated
) -> int:
    """:func:`~veridyn.observe.filters.correction.correct_into` through the gate; P is widened where it opens.

    `g.used`: how many readings corrected the state; those that counted little are reported as outliers.
    """
    m, some, shut = len(residual), False, 0
    for j in range(m):
        some = some or g.state[OPEN, j] != 0.0
        for i in range(len(g.state)):
            g.before[i, j] = g.state[i, j]
    code = correct_into(P, H, R, residual, flags, np.inf if some else g.limit, c)
    if code != DONE:
        return code
    for j in range(m):
        there = c.status[j] == USED or c.status[j] == OUTLIER
        beyond = there and residual[j] * residual[j] > g.limit * c.variances[j]
        g.beyond[j] = 1 if beyond else 0
        shut += 1 if beyond and g.state[OPEN, j] == 0.0 else 0
    _spend(values, c, g)
    g.used[0] = int(c.statistics[DOF])
    return DONE if shut == 0 else _weigh(P, H, R, residual, flags, c, g)


@core
def restore(g: Gated) -> None:
    """The gate as it was before a step that is left to the reference; one that is off stays as it is."""
    if g.on[0] == 0:
        return
    for i in range(len(g.state)):
        for j in range(g.state.shape[1]):
            g.state[i, j] = g.before[i, j]


@core
def _spend(values: Array, c: Corrected, g: Gated) -> None:
    """:meth:`~veridyn.observe.filters.robust_gate.RobustGate.spend`; `g.opens`: where P is to be widened."""
    s = g.state
    for j in range(len(values)):
        beyond, was_open = g.beyond[j] != 0, s[OPEN, j] != 0.0
        good = c.status[j] == USED and not beyond
        spends = beyond and values[j] != s[LATEST, j]
        opens = spends and not was_open and s[LEFT, j] < 1.0
        if beyond:
            s[LATEST, j] = values[j]
            s[GOOD, j] = 0.0
        if spends and not was_open and not opens:
            s[LEFT, j] -= 1.0
        if good and not was_open:
            s[LEFT, j] += EARNED
        s[LEFT, j] = min(s[LEFT, j], ALLOWED)
        if s[LEFT, j] >= ALLOWED:
            s[TRUSTED, j] = 1.0
        if good and was_open:
            s[GOOD, j] += 1.0
        if was_open and s[GOOD, j] >= CLOSES_AFTER:
            s[LEFT, j], s[OPEN, j] = ALLOWED, 0.0
        g.opens[j] = 1 if opens and s[OPENED, j] == 0.0 and s[TRUSTED, j] != 0.0 else 0
        if opens:
            s[OPEN, j] = s[OPENED, j] = 1.0


@core
def _weigh(P: Array, H: Array, R: Array, residual: Array, flags: Codes, c: Corrected, g: Gated) -> int:
    """The correction again, with readings beyond the gate that count little, and P widened along those that open it."""
    m, some = len(residual), False
    for j in range(m):
        g.light[j] = 1 if g.beyond[j] != 0 and g.state[OPEN, j] == 0.0 else 0
        g.flags[j] = OUTLIER if g.light[j] != 0 else flags[j]
        some = some or g.light[j] != 0
    _scale_noise(R, residual, c, g)
    for j in range(m):
        if g.opens[j] != 0 and g.widens:
            _widen(P, H[j], R[j, j], residual[j], c, g)
    code = correct_into(P, H, g.R, residual, flags, np.inf, c)
    g.used[0] = int(c.statistics[DOF])
    if code != DONE or not some:
        return code
    _copy(c.dx, c.P, c.K, g.dx, g.P, g.K)
    code = correct_into(P, H, R, residual, g.flags, np.inf, c)  # NIS and likelihood are those of the other readings
    _copy(g.dx, g.P, g.K, c.dx, c.P, c.K)
    return code


@core
def _copy(dx: Array, P: Array, K: Array, to_dx: Array, to_P: Array, to_K: Array) -> None:
    """What a correction does to a state, elsewhere."""
    n, m = K.shape
    for a in range(n):
        to_dx[a] = dx[a]
        for b in range(n):
            to_P[a, b] = P[a, b]
        for j in range(m):
            to_K[a, j] = K[a, j]


@core
def _scale_noise(R: Array, residual: Array, c: Corrected, g: Gated) -> None:
    """g.R: R with variances of readings that count little as large as puts them on the gate; correlation coefficients stay."""
    m = len(residual)
    for i in range(m):
        for j in range(m):
            g.R[i, j] = R[i, j]
    for j in range(m):
        r = R[j, j]
        if g.light[j] == 0:
            continue
        wide = max(r + residual[j] * residual[j] / g.limit - c.variances[j], r)
        rescale(g.R, j, np.sqrt(wide / r) if r > 0.0 else 1.0, wide)


@core
def rescale(R: Array, j: int, scale: float, variance: float) -> None:
    """Another variance of reading j in R, by a factor of its deviation; correlation coefficients stay."""
    for i in range(len(R)):
        R[i, j] *= scale
        R[j, i] *= scale
    R[j, j] = variance


@core
def _widen(P: Array, h: Array, r: float, nu: float, c: Corrected, g: Gated) -> None:
    """:func:`~veridyn.observe.filters.robust_gate.widened` for one reading, in place."""
    n, along, s = len(P), 0.0, r
    for a in range(n):
        g.d[a] = P[a, a] * h[a] if c.considered[a] == 0 else 0.0
        along += h[a] * g.d[a]
        for b in range(n):
            s += h[a] * P[a, b] * h[b]
    excess = nu * nu - s
    if along > 0.0 and 0.0 < excess <= WIDEST * s:
        for a in range(n):
            for b in range(n):
                P[a, b] += excess / (along * along) * (g.d[a] * g.d[b])
