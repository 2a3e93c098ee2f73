"""Deviations that hold for residuals with a memory, and for estimators whose scores are not the residuals: the sandwich.

An estimate that solves Σ_t h_t(x) = 0, with h_t = Σ_j W_jtᵀ ψ(r_jt/σ_j)/σ_j over the rows of one sample, has the covariance

    C = M⁻¹ S M⁻¹,   M = Σ_t Σ_j ψ'(r_jt/σ_j) W_jtᵀW_jt/σ_j²,   S = Σ_t Σ_s k(t − s) h_t h_sᵀ,   k(l) = max(0, 1 − |l|/(L + 1))

(Newey and West, 1987, Econometrica 55(3)). With L = 0 and ψ(u) = u rows may be correlated and noise may differ from sample to
sample; with L > 0 neighbouring samples may be correlated too, while (27) takes every equation for news. Bartlett's weights k are
the overlap of two windows of L + 1 samples, so S = Σ (sum of h over a window)(the same)ᵀ/(L + 1): one more pass over the samples,
the same work for every L, and positive semi-definite as it stands. A sample that a row drops adds zero and keeps its place in time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from veridyn.errors import Fault, IdentificationError, VeridynError
from veridyn.identify.equation_plan import Block, EquationPlan, Job
from veridyn.identify.estimators.least_squares import Solution
from veridyn.identify.observation import EquationStream
from veridyn.identify.threads import one_blas_thread
from veridyn.settings import Settings, at_least

Array = NDArray[np.float64]
LONGEST_WINDOW_SHARE = 0.1  # of the samples: windows beyond it leave too few of them to say how they scatter

TOO_FEW = Fault(
    "too many equations count as outliers: what is left does not fix every parameter.",
    where="Robust",
    hint="Use loss='huber', a larger tuning, or a better model of what is measured.",
)


@dataclass(frozen=True, repr=False)
class Hac(Settings):
    """Settings of ``covariance="hac"``: standard deviations that allow for autocorrelated residuals.

    Parameters
    ----------
    lags : int of at least 0, or None
        Samples over which residuals may be correlated, L. None, the default, chooses it from the data by Andrews' rule.
    """

    error: ClassVar[type[VeridynError]] = IdentificationError

    lags: Annotated[int, at_least(0)] | None = None


class ScoreFunction(Protocol):
    """What an estimator makes of a residual u in units of its deviation: ψ(u), and its slope."""

    def psi(self, u: Array) -> Array: ...

    def slope(self, u: Array) -> Array: ...


@dataclass(frozen=True, eq=False)
class Sandwich:
    """`covariance` of a solution's base parameters with `lags` L.

    `residual_sigma`: √(mean ψ²)/mean ψ', which is that of (26) for least squares.
    """

    covariance: Array
    lags: int
    residual_sigma: float
    capped: bool = False


@dataclass(frozen=True, eq=False)
class _Sums:
    """Sums over samples: the meat S, M, lag-0 and lag-1 products of each component of h, Σψ², Σψ', samples and equations."""

    meat: Array
    curvature: Array
    square: Array
    product: Array
    scores: float
    slopes: float
    samples: int
    equations: int

    def __add__(self, o: _Sums) -> _Sums:
        return _Sums(
            self.meat + o.meat,
            self.curvature + o.curvature,
            self.square + o.square,
            self.product + o.product,
            self.scores + o.scores,
            self.slopes + o.slopes,
            self.samples + o.samples,
            self.equations + o.equations,
        )


@dataclass(frozen=True, eq=False)
class _Pass:
    """One pass over the samples, in coordinates in which the weighted base regressor is orthonormal."""

    values: Array  # of all parameters: the leads of groups, zero elsewhere
    leads: tuple[int, ...]
    inverse: Array
    scale: Array
    score: ScoreFunction | None
    lags: int

    @property
    def lead(self) -> int:
        return max(self.lags, 1)

    def __call__(self, plan: EquationPlan, job: Job) -> _Sums:
        p, tail = len(self.leads), np.zeros((self.lead, len(self.leads)))
        total = _Sums(np.zeros((p, p)), np.zeros((p, p)), np.zeros(p), np.zeros(p), 0.0, 0.0, 0, 0)
        with one_blas_thread():
            for block in plan.blocks(job):
                own = block.numbers >= job.start
                h, part = self._scores(plan, block, own)
                line = np.vstack([tail, h])
                before = line[self.lead - 1 : -1][own]
                G = self._windows(line)[own]
                total += part
                total += _Sums(
                    G.T @ G,
                    np.zeros((p, p)),
                    (h[own] ** 2).sum(axis=0),
                    (h[own] * before).sum(axis=0),
                    0.0,
                    0.0,
                    int(own.sum()),
                    0,
                )
                tail = line[len(line) - self.lead :]
            if job.stop == job.total and self.lags:
                G = self._windows(np.vstack([tail, np.zeros((self.lags, p))]))
                total += _Sums(G.T @ G, np.zeros((p, p)), np.zeros(p), np.zeros(p), 0.0, 0.0, 0, 0)
        return total

    def _windows(self, line: Array) -> Array:
        """Sums over L + 1 samples that end at each sample behind the tail, over √(L + 1)."""
        summed = np.vstack([np.zeros((1, line.shape[1])), np.cumsum(line, axis=0)])
        ends = np.arange(self.lead + 1, len(line) + 1)
        return (summed[ends] - summed[ends - self.lags - 1]) / np.sqrt(self.lags + 1.0)

    def _scores(self, plan: EquationPlan, block: Block, own: NDArray[np.bool_]) -> tuple[Array, _Sums]:
        p = len(self.leads)
        h, M = np.zeros((len(block.numbers), p)), np.zeros((p, p))
        scores, slopes, equations = 0.0, 0.0, 0
        for k, (A, used) in enumerate(zip(block.equations, block.used, strict=True)):
            columns = plan.columns[k]
            at = {c: i for i, c in enumerate(columns)}
            affecting = [i for i, c in enumerate(self.leads) if c in at]
            Z = A[:, [at[self.leads[i]] for i in affecting]] @ (self.inverse[affecting] / self.scale[k])
            u = (A[:, -1] - A[:, :-1] @ self.values[list(columns)]) / self.scale[k]
            psi = u if self.score is None else self.score.psi(u)
            h[used] += Z * psi[:, None]
            counted = own[used]
            scores += float((psi[counted] ** 2).sum())
            equations += int(counted.sum())
            if self.score is not None:
                slope = self.score.slope(u)[counted]
                slopes += float(slope.sum())
                M += Z[counted].T @ (slope[:, None] * Z[counted])
        return h, _Sums(np.zeros((p, p)), M, np.zeros(p), np.zeros(p), scores, slopes, 0, equations)


def sandwich(
    stream: EquationStream, s: Solution, score: ScoreFunction | None = None, hac: Hac | None = None
) -> Sandwich:
    """The covariance of a solution by M⁻¹ S M⁻¹; without `hac`, L = 0. `score`: None for least squares."""
    lags = 0 if hac is None or hac.lags is None else hac.lags
    sums = _summed(stream, s, score, lags)
    capped = False
    if hac is not None and hac.lags is None:
        lags, capped = andrews(sums.square, sums.product, sums.samples)
        sums = _summed(stream, s, score, lags)
    p = len(s.values)
    inverse = solve_triangular(s.triangle, np.eye(p))
    # A fit takes tr(S)/σ² degrees of freedom out of its residuals: p where they are white, more where they remember.
    taken = float(np.trace(sums.meat)) * sums.equations / sums.scores if lags and sums.scores > 0.0 else float(p)
    spread = sums.equations / (sums.equations - min(max(taken, float(p)), 0.5 * (sums.equations + p)))
    bread = np.eye(p)
    slope = 1.0
    if score is not None:
        least = float(np.linalg.eigvalsh(sums.curvature)[0])
        if least <= 0.0:
            raise IdentificationError(TOO_FEW)
        bread = np.linalg.inv(sums.curvature)
        slope = sums.slopes / sums.equations
    half = inverse @ bread
    residual_sigma = float(np.sqrt(spread * sums.scores / sums.equations)) / slope
    return Sandwich(spread * half @ sums.meat @ half.T, lags, residual_sigma, capped)


def _summed(stream: EquationStream, s: Solution, score: ScoreFunction | None, lags: int) -> _Sums:
    values = np.zeros(len(s.observation.parameters))
    values[list(s.columns)] = s.values
    p = len(s.values)
    work = _Pass(values, s.columns, solve_triangular(s.triangle, np.eye(p)), s.row_sigma, score, lags)
    total = None
    for part in stream.each(work, work.lead, "scattering of the residuals"):
        total = part if total is None else total + part
    assert total is not None
    return total


def bartlett(h: Array, lags: int) -> Array:
    """Σ_t Σ_s k(t − s) h_t h_sᵀ of scores (N, p) that are held at once."""
    line = np.vstack(
        [np.zeros((lags + 1, h.shape[1])), np.cumsum(np.vstack([h, np.zeros((lags, h.shape[1]))]), axis=0)]
    )
    G = line[lags + 1 :] - line[: -(lags + 1)]
    return G.T @ G / (lags + 1.0)


def lags_for(scores: Sequence[Array]) -> int:
    """L by Andrews' rule for scores (N, p) of several stretches."""
    square = np.sum([(h**2).sum(axis=0) for h in scores], axis=0)
    product = np.sum([(h[1:] * h[:-1]).sum(axis=0) for h in scores], axis=0)
    return andrews(square, product, sum(len(h) for h in scores))[0]


def andrews(square: Array, product: Array, samples: int) -> tuple[int, bool]:
    """L for Bartlett's weights by the plug-in rule with a first-order model of each score (Andrews, 1991, Econometrica 59(3), 6.4).

    From sums of squares and of products of neighbours of each score; and whether it had to be cut to what the samples bear.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = np.where(square > 0.0, product / square, 0.0)
    rho = np.clip(rho, -0.99, 0.99)
    power = (square * (1.0 - rho**2)) ** 2
    least = np.finfo(float).tiny
    above = (4.0 * rho**2 * power / ((1.0 - rho) ** 6 * (1.0 + rho) ** 2)).sum()
    alpha = above / max((power / (1.0 - rho) ** 4).sum(), least)
    wanted = int(np.ceil(1.1447 * (alpha * samples) ** (1.0 / 3.0)))
    most = max(int(LONGEST_WINDOW_SHARE * samples), 1)
    return min(wanted, most), wanted > most
