"""Robust regression: weighted least squares whose weights fall where residuals are large, iterated until they agree.

The estimate solves Σ W_jᵀ ψ(r_j/σ_j)/σ_j = 0. Huber's ψ(u) = max(−c, min(c, u)) bounds what one equation can do; Tukey's
ψ(u) = u (1 − (u/c)²)² forgets equations beyond c. σ_j of each row is 1.4826 times the median of |r_j|, which half of the
equations may corrupt. Every iteration streams the samples anew with weights w = ψ(u)/u; neither W nor the residuals are stored: the
median comes from counts in narrow logarithmic bins. Deviations are by the sandwich of :mod:`veridyn.identify.estimators.coloured`.
P. J. Huber, "Robust Statistics", 1981, chapters 6 and 7; Beaton and Tukey, 1974, Technometrics 16(2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import Fault, IdentificationError, IdentificationWarning, warn
from veridyn.identify.estimator import Estimator, FitProblem, fit_of, with_sandwich
from veridyn.identify.estimators.coloured import TOO_FEW, sandwich
from veridyn.identify.estimators.least_squares import EXACT_RESIDUAL, Solution, solved
from veridyn.identify.regression.equation_plan import EquationPlan, Job
from veridyn.identify.regression.factor import RowFactor, RowFactors, one_blas_thread
from veridyn.identify.regression.observation import EquationStream
from veridyn.identify.result import Fit
from veridyn.identify.statistics.spectral import noise_covariance
from veridyn.settings import above, at_least

Counts = NDArray[np.intp]

TUNING = {"huber": 1.345, "tukey": 4.685}  # 95 % of the efficiency of least squares where noise is Gaussian
MAD_TO_SIGMA = 1.482602218505602  # σ of Gaussian noise over the median of its size
DECADES, FINENESS = 8, 256  # bins from 1e-8 to 1e8 of the scale, each 0.9 % wide
ROUNDING = 1e-14  # of the prediction: with exact data no step can be smaller
SCALE_CHANGE = 0.01  # a change of every scale below which they are held


@dataclass(frozen=True, repr=False)
class Robust(Estimator):
    """Robust regression: the weight of an equation falls as its residual grows, so that gross errors count for little.

    Parameters
    ----------
    loss : {"huber", "tukey"}
        "huber", the default, bounds the effect of one equation and has one minimum. "tukey" ignores equations beyond `tuning`; it has
        several minima and starts from Huber's solution and scales.
    tuning : float above 0, or None
        c of the loss, in standard deviations. None, the default: 1.345 for "huber" and 4.685 for "tukey", 95 % of the efficiency of
        least squares where noise is Gaussian.
    iterations : int of at least 1
        Passes over the samples, at most; 60 by default. A warning is given where they do not suffice.
    tolerance : float above 0
        The step of all parameters together, in standard deviations, below which the iteration has converged; 1e-5 by default.

    Examples
    --------
    >>> fit = vd.identify(robot, motion, vd.Robust(loss="tukey"))  # robot and motion as in the example of vd.identify
    >>> fit.estimator
    'robust regression'
    """

    name: ClassVar[str] = "robust"
    title: ClassVar[str] = "robust regression"

    loss: Literal["huber", "tukey"] = "huber"
    tuning: Annotated[float, above(0.0)] | None = None
    iterations: Annotated[int, at_least(1)] = 60
    tolerance: Annotated[float, above(0.0)] = 1e-5

    @property
    def c(self) -> float:
        return TUNING[self.loss] if self.tuning is None else self.tuning

    def weight(self, u: Array) -> Array:
        """w(u) = ψ(u)/u."""
        if self.loss == "huber":
            return self.c / np.maximum(np.abs(u), self.c)
        return np.maximum(1.0 - (u / self.c) ** 2, 0.0) ** 2

    def psi(self, u: Array) -> Array:
        return u * self.weight(u)

    def slope(self, u: Array) -> Array:
        """ψ'(u)."""
        if self.loss == "huber":
            return (np.abs(u) <= self.c).astype(np.float64)
        v = (u / self.c) ** 2
        return np.where(v < 1.0, (1.0 - v) * (1.0 - 5.0 * v), 0.0)

    def fit(self, problem: FitProblem) -> Fit:
        """Reweighted from the least-squares solution; standard deviations by the sandwich with the final weights."""
        samples = problem.samples
        found = reweighted(samples, problem.weighted, self, problem.settings.sigma)
        plain = sandwich(samples, found.solution, self)
        solution = replace(found.solution, sigma=plain.residual_sigma)
        worst = max(found.low_weight, key=lambda row: found.low_weight[row])
        notes = [
            f"{self.loss} weights with c = {self.c:g}, {found.iterations} iterations"
            + ("" if found.converged else ", NOT CONVERGED"),
            f"equations that count less than half: up to {100 * found.low_weight[worst]:.2g} % (row '{worst}')",
        ]
        fit = fit_of(problem.machine, solution, self.title, problem.settings.acceptance)
        fit = replace(fit, covariance=plain.covariance, notes=(*fit.notes, *notes))
        return with_sandwich(fit, noise_covariance(samples, found.solution, problem.covariance, self), fit.sigma)


@dataclass(frozen=True, eq=False)
class Reweighted:
    """`solution` with the final weights in its triangle and the scales in its `row_sigma`; for each row, the share of its
    equations whose weight is below a half; the iterations it took, and whether they met.
    """

    solution: Solution
    low_weight: Mapping[str, float]
    iterations: int
    converged: bool


@dataclass(frozen=True, eq=False)
class _Tally:
    """For each row, sizes of residuals counted in bins, and how many weights are below a half."""

    sizes: Counts
    low: Counts

    def __add__(self, o: _Tally) -> _Tally:
        return _Tally(self.sizes + o.sizes, self.low + o.low)


@dataclass(frozen=True, eq=False)
class _Pass:
    """One job's equations, weighted by their residuals with `values`, and the tally of these."""

    loss: Robust
    values: Array
    scale: Array

    def __call__(self, plan: EquationPlan, job: Job) -> tuple[tuple[RowFactor, ...], _Tally]:
        sizes = np.zeros((len(plan.rows), 2 * DECADES * FINENESS + 2), dtype=np.intp)
        low = np.zeros(len(plan.rows), dtype=np.intp)

        def weigh(k: int, A: Array) -> None:
            u = (A[:, -1] - A[:, :-1] @ self.values[list(plan.columns[k])]) / self.scale[k]
            with np.errstate(divide="ignore"):
                place = (np.log10(np.abs(u)) + DECADES) * FINENESS + 1.0
            bins = np.clip(place, 0.0, sizes.shape[1] - 1.0).astype(np.intp)
            sizes[k] += np.bincount(bins, minlength=sizes.shape[1])
            w = self.loss.weight(u)
            low[k] += np.count_nonzero(w < 0.5)
            A *= np.sqrt(w)[:, None]

        return plan.factors(job, weigh), _Tally(sizes, low)


def reweighted(
    stream: EquationStream, start: Solution, how: Robust, sigma: Mapping[str, float] | None = None
) -> Reweighted:
    """Iterate from a weighted least-squares solution; rows named in `sigma` keep that as their scale."""
    rows = start.observation.rows
    given = np.array([f.row in (sigma or {}) for f in rows])
    floor = np.array(
        [EXACT_RESIDUAL * f.measurement_norm / np.sqrt(f.samples) or s for f, s in zip(rows, start.row_sigma)]
    )
    share = np.sqrt(1.0 - len(start.values) / start.observation.samples)  # residuals are smaller than errors by this
    s, scale, held, met = start, start.row_sigma.copy(), bool(given.all()), False
    low_weight, done = np.zeros(len(rows)), 0
    while not met and done < how.iterations:
        done += 1
        loss = how if held else replace(how, loss="huber", tuning=None)
        weighted, tally = _passed(stream, loss, s, scale)
        new = _solved(weighted, s, scale)
        step = float(np.linalg.norm(new.triangle @ (new.values - s.values))) / np.sqrt(len(new.values))
        rounding = ROUNDING * float(np.linalg.norm(new.triangle @ new.values))
        s = new
        low_weight = tally.low / np.maximum([f.samples for f in rows], 1)
        if held:
            met = step < max(how.tolerance, rounding)
        else:
            fresh = np.maximum(MAD_TO_SIGMA * np.array([_median(c) for c in tally.sizes]) * scale / share, floor)
            fresh = np.where(given, scale, fresh)
            held = bool(np.abs(fresh / scale - 1.0).max() < SCALE_CHANGE)
            scale = fresh
    if not met:
        warn(
            IdentificationWarning,
            Fault(
                f"the weights have not settled after {done} iterations.",
                where="Robust",
                hint="Allow more iterations, or use loss='huber', which has one minimum.",
            ),
        )
    final = replace(s, observation=start.observation, row_sigma=scale)
    return Reweighted(final, {f.row: float(d) for f, d in zip(rows, low_weight)}, done, met)


def _solved(weighted: RowFactors, s: Solution, scale: Array) -> Solution:
    try:
        with one_blas_thread():
            return solved(weighted, weighted.stacked(list(1.0 / scale)), s.groups, scale, s.tolerance)
    except np.linalg.LinAlgError as error:
        raise IdentificationError(TOO_FEW) from error


def _passed(stream: EquationStream, loss: Robust, s: Solution, scale: Array) -> tuple[RowFactors, _Tally]:
    values = s.all_values
    tally: _Tally | None = None

    def factors() -> Iterator[tuple[RowFactor, ...]]:
        nonlocal tally
        for part, counts in stream.each(_Pass(loss, values, scale), task="weighing samples"):
            tally = counts if tally is None else tally + counts
            yield part

    weighted = stream.merged(factors())
    assert tally is not None
    return weighted, tally


def _median(counts: Counts) -> float:
    """The median of sizes that were counted in bins, between the edges of its bin as if evenly spread in the logarithm."""
    cumulative = np.cumsum(counts)
    half = 0.5 * cumulative[-1]
    k = int(np.searchsorted(cumulative, half))
    if k == 0:
        return 10.0**-DECADES
    inside = (half - cumulative[k - 1]) / counts[k]
    return float(10.0 ** ((k - 1 + inside) / FINENESS - DECADES))
