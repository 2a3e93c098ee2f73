"""The correction of a state by what sensors say, one reading at a time.

    ν = y − h(x),   g = P hᵀ,   s = h g + r,   k = g/s,
    dx ← dx + k (ν − h dx),      P ← (I − k h) P (I − k h)ᵀ + k r kᵀ          (paper 003, equations 48 to 50, P_{k|k−1})

Readings whose noise is correlated are first made independent, R = L D Lᵀ with L unit triangular, so that the result, the
likelihood and the NIS are those of the update with all readings at once, in any order. Joseph's form keeps P symmetric
and positive. The gate compares each reading with what was expected before any correction, ν² / s against χ²₁: what it
refuses therefore does not depend on the order of the sensors.

What a whole step leaves behind is a passage: the prediction, the correction and the belief after it. A compiled step hands over all its
numbers in one row, in the order of :class:`PassageLayout`; they are read out when they are used.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import log, pi
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri  # scipy.stats takes a second to import

from veridyn.arrays import Array
from veridyn.errors import ModelError
from veridyn.observe.measurements import MISSING, NOT_FINITE, USED, Codes, Status
from veridyn.observe.process_noise import symmetric
from veridyn.observe.result import Belief

LOG_2PI = log(2.0 * pi)


@dataclass(frozen=True, eq=False)
class Expectation:
    """What the sensors should read: `y` (m,), its derivative `H` (m, n) with respect to the state, noise `R` (m, m)."""

    y: Array
    H: Array
    R: Array


@dataclass(frozen=True, eq=False)
class Correction:
    """A correction `dx` (n,) and the covariance `P` after it, with all that is needed to check it.

    `innovations` (m,) and their `variances` before the correction, NaN where there was no reading; `status` (m,);
    `nis` the normalised innovation squared of the `dof` readings used; `log_likelihood` of these; `K` (n, m) the gain,
    with columns of zeros for what was not used.
    """

    dx: Array
    P: Array
    innovations: Array
    variances: Array
    status: Codes
    nis: float
    dof: int
    log_likelihood: float
    K: Array

    def rejected(self, names: tuple[str, ...]) -> dict[str, str]:
        """Why each reading that was not used was not, by the name of its output."""
        return {n: Status(int(s)).name.lower() for n, s in zip(names, self.status) if s != Status.USED}


def correct(
    P: Array,
    expected: Expectation,
    innovations: Array,
    flags: Codes,
    gate: float | None = None,
    considered: NDArray[np.bool_] | None = None,
) -> Correction:
    """Correct with the readings that `flags` (m,) lets through; `innovations` (m,) are readings minus `expected.y`.

    `gate` is the probability that a fault-free reading passes, such as 0.999; None lets everything pass. An innovation that
    is not finite counts as not available and is reported. `considered` (n,): states that no reading corrects, whose uncertainty enters
    that of the others all the same (S. F. Schmidt, 1966).
    """
    H, R = expected.H, expected.R
    n, m = len(P), len(innovations)
    status = np.array(flags, dtype=np.int8)
    finite = np.isfinite(innovations)
    status[(status == USED) & ~finite] = NOT_FINITE
    shown = finite & (status != MISSING)
    variances = ((H @ P) * H).sum(axis=1) + R.diagonal()
    nu = np.where(shown, innovations, np.nan)
    if gate is not None:
        status[(status == USED) & (nu**2 > threshold(gate) * variances)] = Status.OUTLIER
    variances = np.where(shown, variances, np.nan)
    use = np.flatnonzero(status == USED)
    K = np.zeros((n, m))
    if len(use) == 0:
        return Correction(np.zeros(n), P, nu, variances, status, 0.0, 0, 0.0, K)
    if len(use) < m:
        H, R = H[use], R[np.ix_(use, use)]
    rows, residuals, noise, mix = _independent(H, nu[use], R)
    dx, P, nis, log_likelihood, gain = _one_by_one(P, rows, residuals, noise, considered)
    K[:, use] = gain if mix is None else gain @ mix
    return Correction(dx, P, nu, variances, status, nis, len(use), log_likelihood, K)


def noise_of_readings(R: Array, sigma: Array | None) -> Array:
    """R (m, m) with the variances sigma² (m,) of these readings; NaN leaves a sensor its own. Correlation coefficients stay."""
    if sigma is None or (own := np.isnan(sigma)).all():
        return R
    variances = R.diagonal()
    scale = np.where(own, 1.0, sigma / np.sqrt(variances))
    changed = R * np.outer(scale, scale)
    np.fill_diagonal(changed, np.where(own, variances, sigma**2))
    return changed


@lru_cache(maxsize=64)
def threshold(gate: float) -> float:
    """The value that the square of a standard normal number stays below with probability `gate`."""
    if not 0.0 < gate < 1.0:
        raise ModelError(
            "the gate is not a probability.",
            where="filter",
            expected="between 0 and 1, such as 0.999",
            found=f"{gate:g}",
        )
    return float(chdtri(1, 1.0 - gate))


def not_positive() -> ModelError:
    """A noise R that no sensors have."""
    return ModelError("the noise of the sensors is not positive definite.", where="measurement noise")


def certain(variance: float) -> ModelError:
    """An innovation without any variance, by which nothing can be divided."""
    return ModelError(
        "a reading without any uncertainty meets a state without any.",
        where="measurement update",
        found=f"{variance:g}",
    )


def _independent(H: Array, nu: Array, R: Array) -> tuple[Array, Array, Array, Array | None]:
    """H, ν and variances of combinations of the readings whose noise is independent, and the L⁻¹ that makes them."""
    variances = R.diagonal()
    if np.count_nonzero(R) == np.count_nonzero(variances):
        return H, nu, variances, None
    try:
        C: Array = np.asarray(np.linalg.cholesky(R), dtype=np.float64)
    except np.linalg.LinAlgError as error:
        raise not_positive() from error
    d = C.diagonal()
    mix: Array = np.asarray(np.linalg.inv(C / d), dtype=np.float64)
    return mix @ H, mix @ nu, d**2, mix


def _one_by_one(
    P: Array, H: Array, nu: Array, noise: Array, considered: NDArray[np.bool_] | None = None
) -> tuple[Array, Array, float, float, Array]:
    dx = np.zeros(len(P))
    gain = np.zeros((len(P), len(nu)))
    nis = log_likelihood = 0.0
    for i, (h, r) in enumerate(zip(H, noise.tolist())):
        g = P @ h
        s = float(h @ g) + r
        if s <= 0.0:
            raise certain(s)
        k = g / s
        if considered is not None:
            k[considered] = 0.0  # Joseph's form holds for any gain
        e = float(nu[i] - h @ dx)
        column = k[:, None]
        kept = P - column * g  # (I − k h) P
        P = symmetric(kept + column * (r * k) - (kept @ h)[:, None] * k)
        dx = dx + k * e
        gain -= column * (h @ gain)
        gain[:, i] += k
        nis += e * e / s
        log_likelihood -= 0.5 * (LOG_2PI + log(s) + e * e / s)
    return dx, P, nis, log_likelihood, gain


@dataclass(frozen=True, eq=False)
class Prediction:
    """State, covariance and transition F, the derivative of the state at `t` with respect to the one before."""

    x: Array
    P: Array
    F: Array
    t: float


@dataclass(frozen=True, eq=False)
class Stepped:
    """A passage of the Python filter."""

    prediction: Prediction
    belief: Belief
    correction: Correction
    H: Array

    @property
    def status(self) -> Codes:
        return self.correction.status

    @property
    def used(self) -> int:
        return self.correction.dof


class PassageLayout(NamedTuple):
    """The order of the numbers of a compiled step: a state of N numbers, its change of n, m readings.

    x, P after; innovations, variances, status; NIS, number of readings used, log likelihood; x, P, F before; dx, K, H. A row of which
    the prediction and the gains are not asked ends before these.
    """

    N: int
    n: int
    m: int

    @property
    def size(self) -> int:
        N, n, m = self
        return self.short + N + 2 * n * n + n + 2 * n * m

    @property
    def short(self) -> int:
        """Of a row without the prediction and the gains."""
        N, n, m = self
        return N + n * n + 3 * m + 3


class CompiledPassage:
    """A passage of a compiled step: `row` (size,) as the :class:`PassageLayout` orders it, not shared with anybody."""

    def __init__(self, layout: PassageLayout, row: Array, t: float) -> None:
        self._layout, self._row = layout, row
        N, n, m = layout
        self.belief = Belief(row[:N], row[N : N + n * n].reshape(n, n), t)
        self._readings = row[N + n * n : layout.short]  # innovations, variances, status and three numbers
        self.status: Codes = self._readings[2 * m : 3 * m].astype(np.int8)

    @property
    def used(self) -> int:
        return int(self._readings[-2])

    @cached_property
    def prediction(self) -> Prediction:
        N, n, _ = self._layout
        row = self._row[self._layout.short :]
        matrices = row[N : N + 2 * n * n].reshape(2, n, n)
        assert self.belief.t is not None
        return Prediction(row[:N], matrices[0], matrices[1], self.belief.t)

    @cached_property
    def correction(self) -> Correction:
        _, n, m = self._layout
        nis, dof, log_likelihood = self._readings[-3:].tolist()
        innovations, variances = self._readings[:m], self._readings[m : 2 * m]
        at = self._layout.size - 2 * n * m
        dx, K = self._row[at - n : at], self._row[at : at + n * m].reshape(n, m)
        return Correction(dx, self.belief.P, innovations, variances, self.status, nis, int(dof), log_likelihood, K)

    @cached_property
    def H(self) -> Array:
        _, n, m = self._layout
        return self._row[self._layout.size - n * m :].reshape(m, n)


# What one step leaves behind: the `belief` after it, the `prediction` before its readings, the `correction` by them and the H that was
# used; `status` (m,) says what became of each reading, `used` how many were taken in.
Passage = Stepped | CompiledPassage
