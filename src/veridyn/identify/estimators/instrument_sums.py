"""Sums over a log and its instruments: streamed side by side, or products of periods whose noise is independent.

Streamed are products, scores with memory, and powers in bands of frequency. Jobs and blocks of the instruments' motion are those of the
log; what the log drops is dropped from both.

With instruments from other periods noise of measured positions, which is in the columns, does not bias the estimate:

    p̂ = (Σ_{k≠l} A_kᵀ Σ⁻¹ A_l)⁻¹ Σ_{k≠l} A_kᵀ Σ⁻¹ y_l

A_k p = y_k are the equations of period k, each from its own measured positions. What is noise in A_l and y_l, a controller's answer to
that noise included, is independent of A_k, so products of different periods hold none of it, and the cut-off of the filter may be as high
as the motion needs. Σ is the noise of the mean of all periods; it comes from what the equation errors y_k − A_k p̂ of single periods
differ by, so it allows for noise of positions, and a force that moves the machine is not taken for noise. Samples are left out in pieces,
and each weighted one needs its past, so Σ remembers few samples and is not the whole noise, of which a filter of positions leaves a band
and a controller another. The covariance is therefore that of these weights with the noise Σ° of a longer memory,

    cov p̂ = G⁻¹ [1/K Σ_l Ā_lᵀ Σ⁻¹ Σ° Σ⁻¹ Ā_l] G⁻¹,     Ā_l the mean of all periods but l, G the products above over K (K − 1)

and the part of the mean equation error beyond Σ, which every period repeats, scales it. Noise turns the sign of a speed near zero in
either factor; leave such samples out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import DataError, IdentificationError
from veridyn.identify.estimators.coloured import Sandwich
from veridyn.identify.estimators.gauss_markov import NoiseModel
from veridyn.identify.estimators.least_squares import Solution
from veridyn.identify.regression.equation_plan import JOB_SAMPLES, EquationPlan, Job
from veridyn.identify.regression.factor import one_blas_thread
from veridyn.identify.regression.observation import EquationStream, samples_of
from veridyn.identify.statistics.spectral import Stretch, compared, part_ends, stated
from veridyn.inference.agreement import PartSums
from veridyn.inference.noise_spectrum import Bands, BandSums, band_sums, noise_spectrum
from veridyn.model.motion import Motion

T = TypeVar("T", covariant=True)


class _Work(Protocol[T]):
    """What is done with a job of the log and the same samples of the instruments; `lead`: equations before its own that it needs."""

    @property
    def lead(self) -> int: ...

    def __call__(self, plan: EquationPlan, twin: EquationPlan, jobs: tuple[Job, Job]) -> T: ...


@dataclass(frozen=True, eq=False, kw_only=True)
class Sums:
    """Products of orthonormalised instruments with columns, measurements and themselves; of scores, with and without lags."""

    columns: Array
    measured: Array
    own: Array
    meat: Array
    square: Array
    product: Array
    samples: int

    def __add__(self, o: Sums) -> Sums:
        return Sums(**{f.name: getattr(self, f.name) + getattr(o, f.name) for f in fields(self)})


@dataclass(frozen=True, eq=False)
class Pass:
    """One pass over a job of the log and the same samples of the instruments.

    Scores are h_t = Σ_j Z_jtᵀ r_jt/σ_j² over the rows of a sample, so that rows may be correlated; `lags` as of a sandwich.
    """

    leads: tuple[int, ...]
    values: Array  # of all parameters: the leads of groups, zero elsewhere
    inverse: Array
    weights: Array  # 1/σ_j of the rows
    lags: int

    def __call__(self, plan: EquationPlan, twin: EquationPlan, jobs: tuple[Job, Job]) -> Sums:
        p = len(self.leads)
        ZW, Zy, ZZ, scores, before = np.zeros((p, p)), np.zeros(p), np.zeros((p, p)), [], 0
        with one_blas_thread():
            for block, other in zip(plan.blocks(jobs[0]), twin.blocks(jobs[1]), strict=True):
                h = np.zeros((len(block.numbers), p))
                for k, (A, used, B) in enumerate(zip(block.equations, block.used, other.equations, strict=True)):
                    affecting, own = plan.lead_columns(k, self.leads)
                    turn = self.inverse[affecting] * self.weights[k]
                    W, Z = A[:, own] @ turn, B[used][:, own] @ turn
                    y = self.weights[k] * A[:, -1]
                    r = y - self.weights[k] * (A[:, :-1] @ self.values[list(plan.columns[k])])
                    h[used] += Z * r[:, None]
                    mine = (block.numbers >= jobs[0].start)[used]
                    Z = Z[mine]
                    ZW += Z.T @ W[mine]
                    Zy += Z.T @ y[mine]
                    ZZ += Z.T @ Z
                scores.append(h)
                before += int((block.numbers < jobs[0].start).sum())
        # Windows that end at the job's own samples, and behind its last sample where the log ends.
        h = np.concatenate(scores)
        own = h[before:]
        line = np.vstack([np.zeros((self.lead, p)), h])[before:]
        last = np.zeros((self.lags if jobs[0].stop == jobs[0].total else 0, p))
        summed = np.cumsum(np.vstack([np.zeros((1, p)), line, last]), axis=0)
        G = summed[self.lead + 1 :] - summed[self.lead - self.lags : len(summed) - self.lags - 1]
        product = (own * line[self.lead - 1 : -1]).sum(axis=0)
        return Sums(
            columns=ZW,
            measured=Zy,
            own=ZZ,
            meat=G.T @ G / (self.lags + 1.0),
            square=(own**2).sum(axis=0),
            product=product,
            samples=len(own),
        )

    @property
    def lead(self) -> int:
        return max(self.lags, 1)


def summed(stream: EquationStream, motions: list[Motion], s: Solution, lags: int) -> Sums:
    """All samples, in the same jobs and blocks for the log and for the instruments, which drop nothing by themselves."""
    plan = stream.plan
    twin = replace(plan, how=replace(plan.how, dead_zone={}, drop={}, trim=0))
    work = Pass(s.columns, s.all_values, s.inverse, 1.0 / s.row_sigma, lags)
    total: Sums | None = None
    for part in _each(stream, plan, twin, motions, work):
        total = part if total is None else total + part
    assert total is not None
    return total


@dataclass(frozen=True, eq=False)
class _SpectralPass:
    """Sums of residuals and instruments over bands of frequency, of a job of the log and the same samples of the instruments."""

    leads: tuple[int, ...]
    values: Array
    inverse: Array
    weights: Array
    bands: Bands
    parts: NDArray[np.intp]
    lead: int = 0

    def __call__(self, plan: EquationPlan, twin: EquationPlan, jobs: tuple[Job, Job]) -> tuple[BandSums, PartSums]:
        p = len(self.leads)
        held: list[Stretch] = []
        with one_blas_thread():
            for block, other in zip(plan.blocks(jobs[0]), twin.blocks(jobs[1]), strict=True):
                rows, n = len(plan.rows), len(block.numbers)
                Z, u = np.zeros((rows, p, n)), np.zeros((rows, n))
                for k, (A, used, B) in enumerate(zip(block.equations, block.used, other.equations, strict=True)):
                    affecting, own = plan.lead_columns(k, self.leads)
                    Z[k][:, used] = (self.inverse[affecting] * self.weights[k]).T @ B[used][:, own].T
                    u[k, used] = self.weights[k] * (A[:, -1] - A[:, :-1] @ self.values[list(plan.columns[k])])
                held.append(Stretch(block.numbers + jobs[0].before, Z, u, np.array(block.used)))
            whole = Stretch.joined(held)
            sums = band_sums(self.bands, whole.columns, whole.residuals, whole.used)
            return sums, PartSums.of(self.parts, whole.numbers, whole.columns, whole.residuals, None)


def by_spectrum(stream: EquationStream, motions: list[Motion], s: Solution, half: Array, plain: Array) -> Sandwich:
    """The covariance by the spectrum of the residuals, and of scores of instruments with them; `half`, `plain` as :func:`stated` has them.

    Logs, or parts of one, are compared with instruments in place of the columns: both are the same but for noise.
    """
    plan = stream.plan
    twin = replace(plan, how=replace(plan.how, dead_zone={}, drop={}, trim=0))
    bands = Bands.for_samples(min(JOB_SAMPLES, max(f.samples for f in s.observation.rows)))
    ends = part_ends(stream, samples_of(stream.motions))
    work = _SpectralPass(s.columns, s.all_values, s.inverse, 1.0 / s.row_sigma, bands, ends)
    p = len(s.values)
    total, parts = (
        BandSums.zero(len(plan.rows), bands, p),
        PartSums.zero(len(ends), p),
    )
    for own, of_parts in _each(stream, plan, twin, motions, work):
        total, parts = total + own, parts + of_parts
    found = noise_spectrum(bands, total)
    return compared(stated(found, half, plain), found, parts, ends, len(stream.motions), s.triangle)


def _each(
    stream: EquationStream, plan: EquationPlan, twin: EquationPlan, motions: list[Motion], work: _Work[T]
) -> Iterator[T]:
    pairs, before = [], 0
    for motion, other in zip(stream.motions, motions, strict=True):
        pairs += list(zip(plan.jobs(motion, work.lead, before), twin.jobs(other, work.lead, before), strict=True))
        before += len(motion)
    count = len(pairs)
    found = (
        (work(plan, twin, pair) for pair in pairs)
        if stream.executor is None
        else stream.executor.map(work, [plan] * count, [twin] * count, pairs)
    )
    for k, part in enumerate(found, 1):
        yield part
        stream.progress("instruments", float(k), float(count))


def weakest_of(sums: Sums) -> float:
    """The least correlation of any combination of columns with the instruments; W is orthonormal, so its norm is 1."""
    values, V = np.linalg.eigh(sums.own)
    if values[0] <= 0.0:
        return 0.0
    whitened = (V / np.sqrt(values)) @ V.T @ sums.columns
    return float(np.linalg.svd(whitened, compute_uv=False)[-1])


PASSES = 3  # estimates, each weighted by the noise that the one before shows
LONGEST_MEMORY = 8  # samples that the noise may remember whose deviations are stated; BIC chooses (chosen)
WEAK = 0.1  # least eigenvalue of the products of different periods, over those of their mean


@dataclass(frozen=True, eq=False, kw_only=True)
class CrossPeriods:
    """`values` (p,) and their `covariance` (p, p); `noise` of the mean over the periods, as the covariance has it.

    `lack_of_fit`: the mean square of the whitened mean equation errors, 1 where the model leaves noise alone; part of the covariance.
    """

    values: Array
    covariance: Array
    noise: NoiseModel
    lack_of_fit: float

    @property
    def sigma(self) -> Array:
        return np.sqrt(np.diag(self.covariance))


def across_periods(
    A: Array, y: Array, noise: NoiseModel, order: int = 0, used: NDArray[np.bool_] | None = None
) -> CrossPeriods:
    """Estimate from periods A (K, N, r, p) and y (K, N, r), K of at least 2, each closed: the sample before its first is its last.

    `noise`: of one period, to start with; the noise of equation errors may be correlated over up to `order` samples. `used` (N,): samples
    that are equations, the same in every period; all by default.
    """
    periods, N, rows, count = A.shape
    if periods < 2:
        raise DataError(
            "instruments come from another period.", where="periods", expected="at least two", found=f"{periods}"
        )
    keep = np.ones(N, dtype=bool) if used is None else np.asarray(used, dtype=bool)
    weights = following = noise.scaled(1.0 / periods)
    values, G, mask, apart = np.zeros(count), np.eye(count), keep, y
    for _ in range(PASSES):
        weights = following
        mask = _with_past(keep, weights.order)
        if int(mask.sum()) * rows <= count:
            raise IdentificationError(
                "there are fewer equations than parameters.", where="periods", found=f"{int(mask.sum()) * rows}"
            )
        W = weights.whitened(np.concatenate([A, y[..., None]], axis=-1))[:, mask].reshape(periods, -1, count + 1)
        total = W.sum(axis=0)
        own = np.einsum("kni,knj->ij", W[..., :-1], W, optimize=True)
        products = (total[:, :-1].T @ total - own) / (periods * (periods - 1))
        G = _checked(0.5 * (products[:, :-1] + products[:, :-1].T), total[:, :-1] / periods)
        values = np.linalg.solve(G, products[:, -1])
        errors = y - A @ values
        apart = errors - errors.mean(axis=0)
        following = NoiseModel.from_runs(apart, order, N * (periods - 1)).scaled(1.0 / periods)
    left = weights.whitened((y - A @ values).mean(axis=0)[..., None])[mask]
    freedom = left.size - count
    lack = float((left**2).sum()) / freedom
    longer = NoiseModel.from_runs(apart, max(order, LONGEST_MEMORY), N * (periods - 1)).scaled(1.0 / periods)
    others = weights.whitened((A.sum(axis=0) - A) / (periods - 1)) * mask[:, None, None]
    inverse = np.linalg.inv(G)
    covariance = lack * inverse @ longer.spread(weights.unwhitened(others)).mean(axis=0) @ inverse
    return CrossPeriods(values=values, covariance=covariance, noise=longer, lack_of_fit=lack)


def _with_past(keep: NDArray[np.bool_], order: int) -> NDArray[np.bool_]:
    """The samples that are used with all `order` before them."""
    out = keep.copy()
    for lag in range(1, order + 1):
        out &= np.roll(keep, lag)
    return out


def _checked(G: Array, mean: Array) -> Array:
    """The products of different periods, if they are information: as the products of the mean, in every direction."""
    R = np.linalg.qr(mean, mode="r")
    inverse = np.linalg.inv(R)
    least = float(np.linalg.eigvalsh(inverse.T @ G @ inverse)[0])
    if least < WEAK:
        raise IdentificationError(
            "the periods hardly resemble each other in some combination of columns, which noise decides then.",
            where="periods",
            expected=f"products of different periods of at least {WEAK:g} of those of their mean",
            found=f"{least:.3g}",
            hint="Take fewer harmonics, more periods or a motion that excites more.",
        )
    return G
