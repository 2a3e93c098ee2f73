"""Gauss-Markov: the best linear unbiased estimate (9), with noise correlated across rows and, where it remembers, in time.

    p̂ = (ΨᵀΣ⁻¹Ψ)⁻¹ ΨᵀΣ⁻¹Γ,   P = (ΨᵀΣ⁻¹Ψ)⁻¹ (10)

Σ is never written down: each block of samples is whitened by a :class:`~veridyn.identify.estimators.noise_model.NoiseModel` and taken
into one small triangle. Where the noise is not given (from the differences of periods, :mod:`veridyn.signals.frequency`), it is estimated
from the residuals of weighted least squares in one more pass.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.arrays import Array
from veridyn.errors import IdentificationError
from veridyn.identify.estimator import Estimator, FitProblem, fit_of
from veridyn.identify.estimators.least_squares import Solution, solved
from veridyn.identify.estimators.noise_model import NoiseModel
from veridyn.identify.regression.equation_plan import EquationPlan, Job
from veridyn.identify.regression.factor import one_blas_thread, triangle_of
from veridyn.identify.regression.observation import EquationStream
from veridyn.identify.result import Fit
from veridyn.identify.settings import Auto, Hac
from veridyn.model.coordinates import Rows
from veridyn.model.machine import Machine
from veridyn.settings import Rule, at_least

Mask = NDArray[np.bool_]


MODELLED = "models the autocorrelation of the noise itself, and its standard deviations follow from that model."
MODELLED_HINT = "Give it an order above 0 instead."


def _is_noise(value: Any) -> bool:
    """A noise model, or a square covariance of finite numbers; its size is checked against the rows later."""
    if value is None or isinstance(value, NoiseModel):
        return True
    try:
        C = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return C.ndim == 2 and C.shape[0] == C.shape[1] and bool(np.isfinite(C).all())


NOISE = Rule(_is_noise, "a NoiseModel, a covariance (rows, rows), or None")


@dataclass(frozen=True, eq=False, repr=False)
class GaussMarkov(Estimator):
    """Gauss-Markov: the best linear unbiased estimate for noise that is correlated across rows and, if so chosen, in time.

    Parameters
    ----------
    noise : NoiseModel, array (rows, rows), or None
        The noise, or the covariance of one sample's noise in N² or (N*m)², in the order of the rows. None, the default: it is estimated
        from the residuals of weighted least squares.
    order : int of at least 0
        Samples over which noise from residuals may be correlated, at most; the order is chosen by BIC. 0, the default: white in time.
    periodic : bool
        The motion is one whole period, so that its last sample comes before its first; False by default.

    Examples
    --------
    >>> fit = vd.identify(robot, motion, vd.estimators.GaussMarkov(order=2))  # robot and motion as in the example of vd.identify
    >>> fit.estimator
    'Gauss-Markov'
    """

    name: ClassVar[str] = "gauss_markov"
    title: ClassVar[str] = "Gauss-Markov"

    noise: Annotated[NoiseModel | ArrayLike | None, NOISE] = None
    order: Annotated[int, at_least(0)] = 0
    periodic: bool = False

    def check(self, machine: Machine, rows: Rows, covariance: Hac | Auto | None) -> None:
        super().check(machine, rows, covariance)
        self.refuse_hac(covariance, MODELLED, MODELLED_HINT)
        names = [machine.rows[r] for r in machine.select_rows(rows)]
        shape = _shape(self.noise)
        if shape is not None and shape != (len(names), len(names)):
            raise IdentificationError(
                "the noise is not that of these rows.",
                where="GaussMarkov.noise",
                expected=f"({len(names)}, {len(names)}) for {', '.join(names)}",
                found=f"{shape}",
            )

    def fit(self, problem: FitProblem) -> Fit:
        """Weighted least squares first, for the groups and, where the noise is not given, for its residuals."""
        samples = problem.stream()
        found, noise = gauss_markov(samples, problem.least_squares(samples), self)
        fit = fit_of(problem.machine, found, self.title, problem.settings.acceptance)
        return replace(fit, notes=(*fit.notes, noise.summary()))


def _shape(noise: NoiseModel | ArrayLike | None) -> tuple[int, ...] | None:
    if noise is None:
        return None
    return noise.news.shape if isinstance(noise, NoiseModel) else np.shape(noise)


@dataclass(frozen=True, eq=False)
class _Sums:
    """Products of residuals at lags 0 … p, and how many samples entered each."""

    products: Array
    counts: Array

    def __add__(self, o: _Sums) -> _Sums:
        return _Sums(self.products + o.products, self.counts + o.counts)


def _whole(plan: EquationPlan, job: Job, place: dict[int, int]) -> tuple[Array, NDArray[np.intp], Mask]:
    """All equations of a job's samples as (N, rows, columns + 1), their numbers, and which samples every row uses."""
    parts, numbers, used = [], [], []
    for block in plan.blocks(job):
        dense = np.zeros((len(block.numbers), len(plan.rows), len(place) + 1))
        good = np.ones(len(block.numbers), dtype=bool)
        for k, (A, mask) in enumerate(zip(block.equations, block.used, strict=True)):
            dense[np.ix_(np.flatnonzero(mask).tolist(), [k], [place[c] for c in plan.columns[k]])] = A[:, None, :-1]
            dense[mask, k, -1] = A[:, -1]
            good &= mask
        parts.append(dense)
        numbers.append(block.numbers)
        used.append(good)
    return np.concatenate(parts), np.concatenate(numbers), np.concatenate(used)


@dataclass(frozen=True, eq=False)
class _Residuals:
    """One pass that sums products of residuals."""

    values: Array
    place: dict[int, int]
    order: int

    def __call__(self, plan: EquationPlan, job: Job) -> _Sums:
        A, numbers, used = _whole(plan, job, self.place)
        e = A[:, :, -1] - A[:, :, :-1] @ self.values
        products = np.zeros((self.order + 1, len(plan.rows), len(plan.rows)))
        counts = np.zeros(self.order + 1)
        own = used & (numbers >= job.start)
        for lag in range(self.order + 1):
            both = own[lag:] & used[: len(used) - lag]
            products[lag] = e[lag:][both].T @ e[: len(e) - lag][both]
            counts[lag] = both.sum()
        return _Sums(products, counts)


@dataclass(frozen=True, eq=False)
class _Whitened:
    """One pass that takes whitened equations into a triangle."""

    noise: NoiseModel
    place: dict[int, int]
    periodic: bool

    def __call__(self, plan: EquationPlan, job: Job) -> tuple[Array, int]:
        A, numbers, used = _whole(plan, job, self.place)
        p = self.noise.order
        if self.periodic:
            if not (job.start == 0 and job.stop == job.total and used.all()):
                raise IdentificationError(
                    "a periodic motion must be one short stretch with no sample left out.",
                    where="GaussMarkov.periodic",
                    hint="Average the periods first (veridyn.signals.frequency), and leave out dead zones and masks.",
                )
            white = self.noise.whitened(A)
        else:
            white = self.noise.whitened(A, periodic=False)
            good = np.array(used)
            for lag in range(1, p + 1):
                good[lag:] &= used[: len(used) - lag]
            white = white[(good & (numbers >= job.start))[p:]]
        with one_blas_thread():
            flat = white.reshape(-1, A.shape[2])
            return (triangle_of(flat) if len(flat) >= A.shape[2] else flat), len(flat)


def gauss_markov(stream: EquationStream, start: Solution, how: GaussMarkov) -> tuple[Solution, NoiseModel]:
    """The Gauss-Markov solution over the groups of a weighted one, and the noise it was weighted by."""
    observed = start.observation
    place = {c: k for k, c in enumerate(observed.columns)}
    if how.noise is None:
        noise = _from_residuals(stream, start, how, place)
    else:
        noise = how.noise if isinstance(how.noise, NoiseModel) else NoiseModel.white(how.noise)
    R, equations = np.zeros((0, len(place) + 1)), 0
    with one_blas_thread():
        work = _Whitened(noise, place, how.periodic)
        for part, count in stream.each(work, noise.order, "whitening samples"):
            R = np.vstack([R, part])
            R = triangle_of(R) if len(R) > R.shape[1] else R
            equations += count
        found = solved(observed, R, start.groups, start.row_sigma, start.tolerance)
        freedom = equations - len(found.values)
        if freedom <= 0:
            raise IdentificationError(
                "there are fewer equations than parameters.", where="GaussMarkov", found=f"{equations} equations"
            )
        sigma = found.sigma * np.sqrt(found.freedom / freedom)
    return replace(
        found, sigma=float(sigma), freedom=freedom, row_sigma=np.sqrt(np.diag(noise.autocovariances(0)[0]))
    ), noise


def _from_residuals(stream: EquationStream, start: Solution, how: GaussMarkov, place: dict[int, int]) -> NoiseModel:
    values = np.zeros(len(place))
    values[[place[c] for c in start.columns]] = start.values
    total: _Sums | None = None
    for part in stream.each(_Residuals(values, place, how.order), how.order, "residuals of all rows"):
        total = part if total is None else total + part
    assert total is not None
    samples = float(total.counts[0])
    lost = samples / max(samples - len(start.values) / len(stream.plan.rows), 1.0)
    R = lost * total.products / np.maximum(total.counts, 1.0)[:, None, None]
    return NoiseModel.chosen(R, int(samples))


@dataclass(frozen=True, eq=False)
class ArrayEstimate:
    """Estimates of arrays of equations: `values` (…, p) and their `covariance` (…, p, p)."""

    values: Array
    covariance: Array

    @property
    def sigma(self) -> Array:
        return np.sqrt(np.einsum("...ii->...i", self.covariance))


def estimated(A: Array, y: Array, noise: NoiseModel, weights: NoiseModel | None = None) -> ArrayEstimate:
    """Estimates from equations of whole periods A (…, N, r, p), y (…, N, r), with deviations for the actual noise.

    Without `weights` by Gauss and Markov, P = (ΨᵀΣ⁻¹Ψ)⁻¹. With `weights`, least squares that assumes another noise: the values are
    its own, the deviations those of the actual noise, (ΨᵀVΨ)⁻¹ ΨᵀVΣVΨ (ΨᵀVΨ)⁻¹. Many trials at once by the leading axes.
    """
    assumed = noise if weights is None else weights
    both = np.concatenate([A, y[..., None]], axis=-1)
    W = assumed.whitened(both)
    flat = W.reshape(*W.shape[:-3], -1, W.shape[-1])
    Q, R = np.linalg.qr(flat[..., :-1])
    inverse = np.linalg.inv(R)
    values = (inverse @ (np.swapaxes(Q, -1, -2) @ flat[..., -1:]))[..., 0]
    if weights is None:
        return ArrayEstimate(values, inverse @ np.swapaxes(inverse, -1, -2))
    # VΨ, sample by sample, with the assumed noise; then how much the actual noise moves (VΨ)ᵀe
    V = assumed.unwhitened(W[..., :-1])
    S = noise.spread(V)
    bread = inverse @ np.swapaxes(inverse, -1, -2)
    return ArrayEstimate(values, bread @ S @ bread)
