"""Deviations that hold for residuals with a memory, and for estimators whose scores are not the residuals: the sandwich.

An estimate that solves Σ_t h_t(x) = 0, with h_t = Σ_j W_jtᵀ ψ(r_jt/σ_j)/σ_j over the rows of one sample, has the covariance

    C = M⁻¹ S M⁻¹,   M = Σ_t Σ_j ψ'(r_jt/σ_j) W_jtᵀW_jt/σ_j²,   S = Σ_t Σ_s k(t − s) h_t h_sᵀ,   k(l) = max(0, min(1, 2 (1 − |l|/W)))

(Newey and West, 1987, Econometrica 55(3), with the weights and the correction below). With L = 0, so W = 1, and ψ(u) = u rows may be
correlated and noise may differ from sample to sample; with L > 0 neighbouring samples may be correlated too, while (27) assumes that they
are not. Bartlett's weights 1 − |l|/W are the overlap of two windows of W samples, so S_W = Σ (sum of h over a window)(the same)ᵀ/W: one
more pass over the samples, the same work for every W. A sample that a row drops adds zero and keeps its place in time.

Sums of scores over windows of two widths give S, and what the fit took out of it is given back (:mod:`veridyn.inference.lag_window`).

What this is worth, stated over true σ (median over 30 parameters of a four-joint arm, 60 logs), S_W alone → this: noise of first order
with ρ = .9, 600 and 2000 samples .67, .84 → .97, .97; with ρ = .97, 2000 samples .83 → .98; low-pass noise .84 → 1.01. Logs that hold
fewer than some ten memories for each parameter stay too small: ρ = .97, 600 samples .55 → .84.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import Fault, IdentificationError
from veridyn.identify.estimators.least_squares import Solution
from veridyn.identify.regression.equation_plan import Block, EquationPlan, Job
from veridyn.identify.regression.factor import one_blas_thread
from veridyn.identify.regression.observation import EquationStream
from veridyn.identify.settings import Hac
from veridyn.inference.agreement import Agreement
from veridyn.inference.lag_window import andrews, released, trapezoid
from veridyn.inference.noise_spectrum import NoiseSpectrum

TOO_FEW = Fault(
    "too many equations count as outliers: what is left does not fix every parameter.",
    where="Robust",
    hint="Use loss='huber', a larger tuning, or a better model of what is measured.",
)
CHUNKS = 4  # parts of a window: H is summed over these
MAX_WINDOWS = 2000  # at which H is evaluated


class ScoreFunction(Protocol):
    """What an estimator makes of a residual u in units of its deviation: ψ(u), and its slope."""

    def psi(self, u: Array) -> Array: ...

    def slope(self, u: Array) -> Array: ...


@dataclass(frozen=True, eq=False, kw_only=True)
class Sandwich:
    """`covariance` of a solution's base parameters with `lags` L.

    `residual_sigma`: √(mean ψ²)/mean ψ', which is that of (26) for least squares. `spectrum`: of the residuals, where that made it;
    `agreement` of logs, or of parts of one, with each other.
    """

    covariance: Array
    lags: int
    residual_sigma: float
    capped: bool = False
    spectrum: NoiseSpectrum | None = None
    agreement: Agreement | None = None


@dataclass(frozen=True, eq=False)
class _Sums:
    """Sums over samples: the meats S_W and S_{W/2}, Σ H² of both widths, M, lag-0 and lag-1 products of each component of h, Σψ², Σψ'."""

    meat: Array
    narrow: Array
    leverage: Array
    leverage_narrow: Array
    curvature: Array
    square: Array
    product: Array
    scores: float
    slopes: float
    samples: int
    equations: int

    def __add__(self, o: _Sums) -> _Sums:
        return _Sums(**{f.name: getattr(self, f.name) + getattr(o, f.name) for f in fields(self)})

    @classmethod
    def zero(cls, p: int) -> _Sums:
        square = {name: np.zeros((p, p)) for name in ("meat", "narrow", "leverage", "leverage_narrow", "curvature")}
        line = {name: np.zeros(p) for name in ("square", "product")}
        return cls(**square, **line, scores=0.0, slopes=0.0, samples=0, equations=0)


@dataclass(frozen=True, eq=False)
class _Pass:
    """One pass over the samples, in coordinates in which the weighted base regressor is orthonormal.

    `window`: W. `stride`: H is evaluated at the end of every `stride`-th quarter of a window.
    """

    values: Array  # of all parameters: the leads of groups, zero elsewhere
    leads: tuple[int, ...]
    inverse: Array
    scale: Array
    score: ScoreFunction | None
    window: int
    stride: int

    @property
    def chunk(self) -> int:
        return max(1, self.window // CHUNKS)

    @property
    def lead(self) -> int:
        return self.window + self.chunk if self.window > 1 else 1

    def __call__(self, plan: EquationPlan, job: Job) -> _Sums:
        p, tail = len(self.leads), np.zeros((self.lead, len(self.leads)))
        total, quarters = _Sums.zero(p), _Quarters(self.chunk, self.stride, plan.how.decimate, p)
        with one_blas_thread():
            for block in plan.blocks(job):
                own = block.numbers >= job.start
                h, part = self._scores(plan, block, own, quarters if self.window > 1 else None)
                line = np.vstack([tail, h])
                before = line[self.lead - 1 : -1][own]
                total += replace(
                    part,
                    square=(h[own] ** 2).sum(axis=0),
                    product=(h[own] * before).sum(axis=0),
                    samples=int(own.sum()),
                )
                total += self._meats(line, own)
                tail = line[len(line) - self.lead :]
            ends = job.stop == job.total
            if ends and self.window > 1:
                line = np.vstack([tail, np.zeros((self.window - 1, p))])
                total += self._meats(line, np.ones(self.window - 1, dtype=bool))
            if self.window > 1:
                wide, narrow = quarters.squares(job.start, None if ends else job.stop)
                total += replace(_Sums.zero(p), leverage=wide, leverage_narrow=narrow)
        return total

    def _meats(self, line: Array, own: NDArray[np.bool_]) -> _Sums:
        """S of both widths from windows that end at each of the own samples behind the tail."""
        summed = np.vstack([np.zeros((1, line.shape[1])), np.cumsum(line, axis=0)])
        ends = np.arange(self.lead + 1, len(line) + 1)[own]
        found = _Sums.zero(line.shape[1])
        for width, name in ((self.window, "meat"), (self.window // 2, "narrow")):
            if width:
                G = (summed[ends] - summed[ends - width]) / np.sqrt(float(width))
                found = replace(found, **{name: G.T @ G})
        return found

    def _scores(
        self, plan: EquationPlan, block: Block, own: NDArray[np.bool_], quarters: _Quarters | None
    ) -> tuple[Array, _Sums]:
        p = len(self.leads)
        h, M = np.zeros((len(block.numbers), p)), np.zeros((p, p))
        scores, slopes, equations = 0.0, 0.0, 0
        for k, (A, used) in enumerate(zip(block.equations, block.used, strict=True)):
            columns = plan.columns[k]
            affecting, own_columns = plan.lead_columns(k, self.leads)
            Z = A[:, own_columns] @ (self.inverse[affecting] / self.scale[k])
            u = (A[:, -1] - A[:, :-1] @ self.values[list(columns)]) / self.scale[k]
            psi = u if self.score is None else self.score.psi(u)
            h[used] += Z * psi[:, None]
            counted = own[used]
            scores += float((psi[counted] ** 2).sum())
            equations += int(counted.sum())
            slope = None if self.score is None else self.score.slope(u)
            if slope is not None:
                slopes += float(slope[counted].sum())
                M += Z[counted].T @ (slope[counted, None] * Z[counted])
            if quarters is not None:
                quarters.add(block.numbers[used], Z, slope)
        return h, replace(_Sums.zero(p), curvature=M, scores=scores, slopes=slopes, equations=equations)


class _Quarters:
    """Σ Zᵀ ψ' Z over quarters of windows: `chunk` samples of the decimated log each, of which those are kept that some window needs."""

    def __init__(self, chunk: int, stride: int, decimate: int, p: int) -> None:
        self.chunk, self.stride, self.step, self.p = chunk, stride, chunk * decimate, p
        self.sums: dict[int, Array] = {}

    def add(self, numbers: NDArray[np.intp], Z: Array, slope: Array | None) -> None:
        place = numbers // self.step
        for k in np.unique(place):
            if -int(k) % self.stride >= CHUNKS:
                continue
            first, last = np.searchsorted(place, [k, k + 1])
            own = Z[first:last]
            part = own.T @ (own if slope is None else slope[first:last, None] * own)
            self.sums[int(k)] = self.sums[int(k)] + part if int(k) in self.sums else part

    def squares(self, start: int, stop: int | None) -> tuple[Array, Array]:
        """Σ H² over windows of four and of two quarters that end at samples from `start` up to `stop`, or beyond the last."""
        zero, wide, narrow = np.zeros((self.p, self.p)), np.zeros((self.p, self.p)), np.zeros((self.p, self.p))
        last = max(self.sums, default=-1)
        for k in range(0, last + CHUNKS, self.stride):
            end = (k + 1) * self.step - 1
            if end < start or (stop is not None and end >= stop):
                continue
            parts = [self.sums.get(k - i, zero) for i in range(CHUNKS)]
            pair = parts[0] + parts[1]
            whole = pair + parts[2] + parts[3]
            wide, narrow = wide + whole @ whole, narrow + pair @ pair
        return wide, narrow


def sandwich(
    stream: EquationStream, s: Solution, score: ScoreFunction | None = None, hac: Hac | None = None
) -> Sandwich:
    """The covariance of a solution by M⁻¹ S M⁻¹; without `hac`, L = 0. `score`: None for least squares."""
    window = window_of(0 if hac is None or hac.lags is None else hac.lags)
    sums = _summed(stream, s, score, window)
    capped = False
    if hac is not None and hac.lags is None:
        lags, capped = andrews(sums.square, sums.product, sums.samples)
        window = window_of(lags)
        sums = _summed(stream, s, score, window)
    p = len(s.values)
    bread, slope = np.eye(p), 1.0
    if score is not None:
        least = float(np.linalg.eigvalsh(sums.curvature)[0])
        if least <= 0.0:
            raise IdentificationError(TOO_FEW)
        bread = np.linalg.inv(sums.curvature)
        slope = sums.slopes / sums.equations
    meat, spread = sums.meat, sums.equations / (sums.equations - p)
    if window > 1:
        Q = 2.0 * sums.leverage / window - sums.leverage_narrow / (window // 2)
        meat = released(trapezoid(sums.meat, sums.narrow), _represented(s, window) * Q / slope**2)
    half = s.inverse @ bread
    # A fit takes tr(S)/σ² degrees of freedom out of its residuals: p where they are white, more where they are autocorrelated.
    taken = float(np.trace(meat)) * sums.equations / sums.scores if window > 1 and sums.scores > 0.0 else float(p)
    left = sums.equations - min(max(taken, float(p)), 0.5 * (sums.equations + p))
    residual_sigma = float(np.sqrt(sums.scores / left)) / slope
    covariance = half @ meat @ half.T
    return Sandwich(
        covariance=covariance if window > 1 else spread * covariance,
        lags=window - 1,
        residual_sigma=residual_sigma,
        capped=capped,
    )


def _stride(s: Solution, window: int) -> int:
    """Quarters of a window from one evaluation of H to the next: as much work as the meat, and at most MAX_WINDOWS of them."""
    chunk, samples = max(1, window // CHUNKS), max(f.samples for f in s.observation.rows)
    return max(1, -(-len(s.values) // chunk), -(-samples // (chunk * MAX_WINDOWS)))


def _represented(s: Solution, window: int) -> float:
    """Windows that each evaluation of H stands for."""
    return float(_stride(s, window) * max(1, window // CHUNKS))


def _summed(stream: EquationStream, s: Solution, score: ScoreFunction | None, window: int) -> _Sums:
    work = _Pass(s.all_values, s.columns, s.inverse, s.row_sigma, score, window, _stride(s, window))
    total = None
    for part in stream.each(work, work.lead, "scattering of the residuals"):
        total = part if total is None else total + part
    assert total is not None
    return total


def window_of(lags: int) -> int:
    """W for a memory of `lags` samples: 1 for none, else the next multiple of 4 above it."""
    return 1 if lags == 0 else CHUNKS * -(-(lags + 1) // CHUNKS)
