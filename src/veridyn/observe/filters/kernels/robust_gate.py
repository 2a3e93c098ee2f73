"""The gate of :mod:`veridyn.observe.filters.robust_gate` as machine code: readings far beyond what is expected count little.

The equations and the bookkeeping are those of :class:`~veridyn.observe.filters.robust_gate.RobustGate`, which stays the reference and may
share its state with a compiled step: a step that machine code leaves to Python goes on from there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from veridyn.arrays import Array
from veridyn.mechanics.compiled import Codes, Matrix, Numbers, Vector, core
from veridyn.observe.filters.kernels.correction import DOF, DONE, OUTLIER, Corrected, correct_into
from veridyn.observe.filters.robust_gate import (
    ALLOWED,
    CLOSES_AFTER,
    EARNED,
    FALSE_ALARMS,
    GOOD,
    LATEST,
    LEFT,
    OPEN,
    OPENED,
    TRUSTED,
    WIDEST,
    gate_state,
)
from veridyn.observe.filters.update import threshold
from veridyn.observe.measurements import USED


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
    """:func:`~veridyn.observe.filters.kernels.correction.correct_into` through the gate; P is widened where it opens.

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
