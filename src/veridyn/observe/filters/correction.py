"""The correction of :mod:`veridyn.observe.filters.update` as machine code, for any system: one reading at a time in Joseph's form.

    ν = y − h(x),   g = P hᵀ,   s = h g + r,   k = g/s,
    dx ← dx + k (ν − h dx),      P ← (I − k h) P (I − k h)ᵀ + k r kᵀ          (paper 003, equations 48 to 50, P_{k|k−1})

Correlated noise R = L D Lᵀ is made independent first: rows of L⁻¹ H with the variances D. States without any uncertainty take no part:
all is computed over the others, the live ones. Compiled steps of any system call :func:`correct_into` with what they predicted,
:func:`project` with the bounds of estimated parameters (its reference is :meth:`veridyn.observe.settings.ParameterBounds.project`), and
:func:`put_results`, which writes all of it into one row, in the order of :class:`~veridyn.observe.filters.update.PassageLayout`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics.compiled import Codes, Matrix, Numbers, Vector, core, summing
from veridyn.observe.filters.update import LOG_2PI
from veridyn.observe.measurements import MISSING, NOT_FINITE, USED, Status
from veridyn.observe.settings import BOUND_PASSES

OUTLIER = int(Status.OUTLIER)
DONE, CERTAIN, NOT_POSITIVE = 0, 1, 2  # a reading and a state without any uncertainty; a noise R that is none
NIS, DOF, LOG_LIKELIHOOD, VARIANCE = 0, 1, 2, 3  # places in `statistics`


class Corrected(NamedTuple):
    """What a correction of n states by m readings finds, the fields of
    :class:`~veridyn.observe.filters.update.Correction`, and room for it.

    Made once by :func:`corrected_of`, written to at every correction; it belongs to one caller.
    """

    dx: Vector  # (n,)
    P: Matrix  # (n, n)
    innovations: Vector  # (m,)
    variances: Vector
    status: Codes
    K: Matrix  # (n, m)
    considered: (
        Codes  # (n,) given: 1 for states that no reading corrects, though their uncertainty enters that of the others
    )
    statistics: Vector  # (4,): NIS, number of readings used, log likelihood, variance of the last innovation
    use: Numbers  # (m,) which readings are used
    live: Numbers  # (n,) the states that have some uncertainty; over these, in this order:
    among: Matrix  # (n, n) their covariance
    H: Matrix  # (m, n) of independent readings, with
    nu: Vector
    noise: Vector
    L: Matrix  # (m, m)
    gain: Matrix  # (m, n) its columns
    change: Vector  # (n,)
    g: Vector
    k: Vector
    Ph: Vector


def corrected_of(n: int, m: int, considered: NDArray[np.bool_] | None = None) -> Corrected:
    """Room for corrections of n states by m readings; `considered` (n,): states that no reading corrects (Schmidt), None for none."""
    return Corrected(
        np.zeros(n),
        np.zeros((n, n)),
        np.zeros(m),
        np.zeros(m),
        np.zeros(m, dtype=np.int8),
        np.zeros((n, m)),
        np.zeros(n, dtype=np.int8) if considered is None else np.array(considered, dtype=np.int8),
        np.zeros(4),
        np.zeros(m, dtype=np.int64),
        np.zeros(n, dtype=np.int64),
        np.zeros((n, n)),
        np.zeros((m, n)),
        np.zeros(m),
        np.zeros(m),
        np.zeros((m, m)),
        np.zeros((m, n)),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
    )


@core
def correct_into(P: Array, H: Array, R: Array, residual: Array, flags: Codes, limit: float, c: Corrected) -> int:
    """Correct P (n, n) with the readings that `flags` (m,) lets through, into `c`; `DONE`, or why there is no correction.

    H (m, n) and R (m, m) are those of all readings, `residual` (m,) readings minus what was expected. `limit`: readings with
    ν² > limit · s count as outliers, infinity where there is no gate. P is not written to and may not be `c.P`.
    """
    n, m = len(P), len(residual)
    size = _take_live(P, c)
    count = _select(size, H, R, residual, flags, limit, c)
    for i in range(n):
        c.dx[i] = 0.0
        for j in range(m):
            c.K[i, j] = 0.0
    if size < n or count == 0:
        for i in range(n):
            for j in range(n):
                c.P[i, j] = P[i, j]
    c.statistics[NIS], c.statistics[DOF], c.statistics[LOG_LIKELIHOOD] = 0.0, count, 0.0
    if count == 0:
        return DONE
    mixed = _mixed(R, c.use, count)
    if mixed and not _unmix(R, count, size, c):
        return NOT_POSITIVE
    for a in range(size):
        c.change[a] = 0.0
    for i in range(count):
        if not _absorb(i, size, c):
            return CERTAIN
    if mixed:  # K = gain L⁻¹
        for i in range(count - 1, -1, -1):
            for j in range(i + 1, count):
                share = c.L[j, i]
                for a in range(size):
                    c.gain[i, a] -= share * c.gain[j, a]
    for a in range(size):
        at = c.live[a]
        c.dx[at] = c.change[a]
        if size == n:
            for b in range(n):
                c.P[a, b] = c.among[a, b]
        else:
            for b in range(size):
                c.P[at, c.live[b]] = c.among[a, b]
        for i in range(count):
            c.K[at, c.use[i]] = c.gain[i, a]
    return DONE


@core
def _take_live(P: Array, c: Corrected) -> int:
    """The states with some uncertainty into `c.live`, their covariance into `c.among`; how many there are."""
    n, size = len(P), 0
    for a in range(n):
        for b in range(n):
            if P[a, b] != 0.0:
                c.live[size] = a
                size += 1
                break
    for a in range(size):
        if size == n:
            for b in range(n):
                c.among[a, b] = P[a, b]
        else:
            for b in range(size):
                c.among[a, b] = P[c.live[a], c.live[b]]
    return size


@core
def _select(size: int, H: Array, R: Array, residual: Array, flags: Codes, limit: float, c: Corrected) -> int:
    """Status, innovations and variances of all readings; those to use into `c.H`, `c.nu`, `c.noise`. How many there are."""
    count = 0
    for j in range(len(residual)):
        finite, status = np.isfinite(residual[j]), flags[j]
        if status == USED and not finite:
            status = NOT_FINITE
        c.status[j] = status
        if not finite or status == MISSING:
            c.innovations[j], c.variances[j] = np.nan, np.nan
            continue
        h, g = c.H[count], c.g
        for a in range(size):
            h[a] = H[j, c.live[a]]
        _times_covariance(c.among, h, size, g)
        variance = R[j, j] + _dot(h, g, size)
        c.innovations[j], c.variances[j] = residual[j], variance
        if status == USED and residual[j] * residual[j] > limit * variance:
            c.status[j] = OUTLIER
        elif status == USED:
            c.use[count], c.nu[count], c.noise[count] = j, residual[j], R[j, j]
            count += 1
    return count


@core
def _times_covariance(P: Array, h: Array, size: int, g: Array) -> None:
    """g = P h of a symmetric P."""
    for a in range(size):
        g[a] = 0.0
    for b in range(size):
        if h[b] != 0.0:
            for a in range(size):
                g[a] += P[b, a] * h[b]


@summing
def _dot(a: Array, b: Array, size: int) -> float:
    """The scalar product of the first `size` numbers."""
    total = 0.0
    for i in range(size):
        total += a[i] * b[i]
    return total


@core
def _mixed(R: Array, use: Numbers, count: int) -> bool:
    """Whether the noise of the readings in use is correlated."""
    for i in range(count):
        for j in range(count):
            if i != j and R[use[i], use[j]] != 0.0:
                return True
    return False


@core
def _unmix(R: Array, count: int, size: int, c: Corrected) -> bool:
    """R = L D Lᵀ, then L⁻¹ H and L⁻¹ ν with the variances D; False where R is not positive definite."""
    for i in range(count):
        for j in range(i + 1):
            s = R[c.use[i], c.use[j]]
            for k in range(j):
                s -= c.L[i, k] * c.L[j, k] * c.noise[k]
            if i == j:
                if not s > 0.0:
                    return False
                c.noise[i] = s
                c.L[i, i] = 1.0
            else:
                c.L[i, j] = s / c.noise[j]
    for i in range(count):
        for j in range(i):
            c.nu[i] -= c.L[i, j] * c.nu[j]
            for a in range(size):
                c.H[i, a] -= c.L[i, j] * c.H[j, a]
    return True


@core
def _absorb(i: int, size: int, c: Corrected) -> bool:
    """One independent reading; False where neither it nor the state has any uncertainty."""
    P, h, g, k, Ph, r = c.among, c.H[i], c.g, c.k, c.Ph, c.noise[i]
    _times_covariance(P, h, size, g)
    s, e = _dot(h, g, size) + r, c.nu[i] - _dot(h, c.change, size)
    c.statistics[VARIANCE] = s
    if s <= 0.0:
        return False
    for a in range(size):
        k[a] = g[a] / s if c.considered[c.live[a]] == 0 else 0.0  # Joseph's form holds for any gain
        Ph[a] = 0.0
    for b in range(size):  # (I − k h) P hᵀ
        if h[b] != 0.0:
            for a in range(size):
                Ph[a] += (P[b, a] - k[a] * g[b]) * h[b]
    for a in range(
        size
    ):  # not P − k vᵀ − v kᵀ with one v: the same number, but not positive definite to rounding where r is small
        ka, ga, pa = k[a], g[a], Ph[a]
        if ka == 0.0 and ga == 0.0 and pa == 0.0:
            continue  # a state that this reading says nothing of
        for b in range(a + 1):
            one = P[a, b] - ka * g[b] + ka * (r * k[b]) - pa * k[b]
            other = P[a, b] - k[b] * ga + k[b] * (r * ka) - Ph[b] * ka
            P[a, b] = 0.5 * (one + other)
        for b in range(a):
            P[b, a] = P[a, b]
    for j in range(i):
        row = c.gain[j]
        total = _dot(h, row, size)
        for a in range(size):
            row[a] -= k[a] * total
    for a in range(size):
        c.change[a] += k[a] * e
        c.gain[i, a] = k[a]
    c.statistics[NIS] += e * e / s
    c.statistics[LOG_LIKELIHOOD] -= 0.5 * (LOG_2PI + np.log(s) + e * e / s)
    return True


@core
def put_results(out: Array, after: Array, x: Array, P: Array, F: Array, H: Array, c: Corrected) -> None:
    """The state `after` the correction `c`, and what became of the readings, into `out`.

    Where it has room: the predicted x, P and F before the correction, its gains and H.
    """
    at = _row(out, 0, after)
    at = _rows(out, at, c.P)
    at = _row(out, at, c.innovations)
    at = _row(out, at, c.variances)
    for j in range(len(c.status)):
        out[at + j] = c.status[j]
    at += len(c.status)
    for j in range(3):
        out[at + j] = c.statistics[j]
    at += 3
    if at == len(out):
        return
    at = _row(out, at, x)
    at = _rows(out, at, P)
    at = _rows(out, at, F)
    at = _row(out, at, c.dx)
    at = _rows(out, at, c.K)
    _rows(out, at, H)


@core
def _row(out: Array, at: int, x: Array) -> int:
    for i in range(len(x)):
        out[at + i] = x[i]
    return at + len(x)


@core
def _rows(out: Array, at: int, x: Array) -> int:
    return _row(out, at, x.reshape(x.size))


@core
def project(x: Array, c: Corrected, places: Numbers, changes: Numbers, lower: Array, upper: Array) -> None:
    """Move the correction c.dx of the state x within the bounds."""
    d, P = c.dx, c.P
    for _ in range(BOUND_PASSES):
        for k in range(len(places)):
            i = changes[k]
            new, beyond = x[places[k]] + d[i], 0.0
            if new < lower[k]:
                beyond = lower[k] - new
            elif new > upper[k]:
                beyond = upper[k] - new
            if beyond != 0.0 and P[i, i] > 0.0:
                share = beyond / P[i, i]
                for a in range(len(d)):
                    if c.considered[a] == 0:
                        d[a] += P[a, i] * share
    for k in range(len(places)):
        i = changes[k]
        new = x[places[k]] + d[i]
        if new < lower[k]:
            d[i] = lower[k] - x[places[k]]
        elif new > upper[k]:
            d[i] = upper[k] - x[places[k]]
