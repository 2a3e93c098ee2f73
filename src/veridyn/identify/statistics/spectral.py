"""``covariance="auto"``: standard deviations from the spectrum that the residuals show.

One pass over the samples sums the power of residuals and columns in bands of frequency (:mod:`veridyn.inference.noise_spectrum`).
Where the residuals are as likely white, the covariance of white noise stays. Rows whose residuals are correlated with each other are turned
into combinations that are not, which changes no score. Of a log of more than MAX_SAMPLES samples evenly spread stretches are looked at.
Logs, or the parts of a single one, are compared with each other, and variances widened where they disagree
(:mod:`veridyn.inference.agreement`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import IdentificationError
from veridyn.identify.estimators.coloured import TOO_FEW, Sandwich, ScoreFunction, sandwich
from veridyn.identify.estimators.least_squares import Solution
from veridyn.identify.regression.equation_plan import JOB_SAMPLES, Block, EquationPlan, Job
from veridyn.identify.regression.factor import one_blas_thread
from veridyn.identify.regression.observation import EquationStream, samples_of
from veridyn.identify.regression.workers import MadeMotions
from veridyn.identify.settings import Auto, Hac
from veridyn.inference.agreement import PartSums, agreement
from veridyn.inference.noise_spectrum import (
    FEWEST_SAMPLES,
    Bands,
    BandSums,
    NoiseSpectrum,
    band_sums,
    noise_spectrum,
)

MAX_SAMPLES = 65_536  # of all logs together: four stretches show spectra to a hundredth where noise has a memory of some ten samples
FEWEST_STRETCHES = 8  # of machines whose stretches are shorter: two of each part that is compared
SEGMENT_BYTES = 64e6  # of the columns that are held at once
SHORTEST_SEGMENT = 1024  # samples, whatever they weigh
PARTS = 4  # of a single log, which are compared with each other
INDEPENDENT_MEMORIES = 20.0  # that each part of a log holds: scores of neighbours are then correlated by 5 % at most
FALSE_CORRELATION_SIGMAS = 4.0  # of a correlation of independent rows: one pair in 16,000 is beyond


@dataclass(frozen=True, eq=False)
class Stretch:
    """Consecutive samples: their `numbers` in the count of all logs, columns (rows, p, n), residuals and which are `used` (rows, n)."""

    numbers: NDArray[np.intp]
    columns: Array
    residuals: Array
    used: NDArray[np.bool_]

    @classmethod
    def empty(cls, rows: int, p: int, samples: int) -> Stretch:
        """Room for so many samples, to be filled."""
        return cls(
            np.empty(samples, dtype=np.intp),
            np.empty((rows, p, samples)),
            np.empty((rows, samples)),
            np.empty((rows, samples), dtype=np.bool_),
        )

    def samples(self, start: int, stop: int) -> Stretch:
        """Some of the samples, where they lie."""
        own = slice(start, stop)
        return Stretch(self.numbers[own], self.columns[:, :, own], self.residuals[:, own], self.used[:, own])

    def split(self, p: int) -> Stretch:
        """The first p columns, and the one behind them as residuals."""
        return replace(self, columns=self.columns[:, :p], residuals=self.columns[:, p])

    @classmethod
    def joined(cls, held: list[Stretch]) -> Stretch:
        """Neighbouring stretches as one."""
        if len(held) == 1:
            return held[0]
        return cls(
            np.concatenate([h.numbers for h in held]),
            *(np.concatenate([getattr(h, name) for h in held], axis=-1) for name in ("columns", "residuals", "used")),
        )


@dataclass(frozen=True, eq=False)
class SpectralSums:
    """What one pass sums: powers in bands, scores of logs or parts of one, Σψ' and the number of equations."""

    bands: BandSums
    parts: PartSums
    slopes: float = 0.0
    equations: int = 0

    def __add__(self, o: SpectralSums) -> SpectralSums:
        return SpectralSums(
            self.bands + o.bands,
            self.parts + o.parts,
            self.slopes + o.slopes,
            self.equations + o.equations,
        )


@dataclass(frozen=True, eq=False)
class _Pass:
    """One pass over the samples, in coordinates in which the weighted base regressor is orthonormal.

    `turn` (rows, rows): of residuals. `parts`: numbers of samples, in the count of all logs, at which each part ends. `segment`: samples
    of a stretch at most. Of every `stride` jobs one is looked at, `per_job` stretches of it, but for those whose samples end before `done`.
    """

    values: Array  # of all parameters: the leads of groups, zero elsewhere
    leads: tuple[int, ...]
    inverse: Array
    scale: Array
    score: ScoreFunction | None
    bands: Bands
    parts: NDArray[np.intp]
    segment: int
    stride: int
    per_job: int
    turn: Array | None = None
    done: int = 0

    def __call__(self, plan: EquationPlan, job: Job) -> SpectralSums | None:
        if (job.before + job.start) // JOB_SAMPLES % self.stride or job.before + job.stop <= self.done:
            return None
        total: SpectralSums | None = None
        with one_blas_thread():
            for stretch in islice(self.stretches(plan, job), self.per_job):
                part = self.summed(stretch)
                total = part if total is None else total + part
        return total

    def stretches(self, plan: EquationPlan, job: Job) -> Iterator[Stretch]:
        """The samples of a job in turn."""
        p, to = len(self.leads), self._turned(plan)
        held: Stretch | None = None
        count = 0
        for block in plan.blocks(job):
            n = len(block.numbers)
            if held is None:  # blocks that decimation thins differ by one sample
                held = Stretch.empty(len(plan.rows), p + 1, min(job.stop - job.first, self.segment + n + 1))
            self._fill(held.samples(count, count + n), block, job.before, to)
            count += n
            if count >= self.segment:
                yield held.samples(0, count).split(p)
                held, count = None, 0
        if held is not None and count:
            yield held.samples(0, count).split(p)

    def _turned(self, plan: EquationPlan) -> list[Array]:
        """For each row what makes orthonormal columns of its equations, and residuals in the last line."""
        p, found = len(self.leads), []
        for k, columns in enumerate(plan.columns):
            affecting, own = plan.lead_columns(k, self.leads)
            to = np.zeros((p + 1, len(columns) + 1))
            to[:p, own] = self.inverse[affecting].T
            to[p, :-1], to[p, -1] = -self.values[list(columns)], 1.0
            found.append(to / self.scale[k])
        return found

    def _fill(self, held: Stretch, block: Block, before: int, to: list[Array]) -> None:
        held.numbers[:] = block.numbers + before
        held.used[:] = block.used
        for Z, A, used, T in zip(held.columns, block.equations, block.used, to, strict=True):
            if used.all():
                np.matmul(T, A.T, out=Z)
            else:
                Z[:] = 0.0
                Z[:, used] = T @ A.T

    def summed(self, stretch: Stretch, parts: bool = True) -> SpectralSums:
        """The sums of a stretch; `parts`: whether those of the parts are among them, zeros otherwise."""
        Z, u, used = stretch.columns, stretch.residuals, stretch.used
        equations = int(np.count_nonzero(used))
        psi, slope, slopes = u, None, float(equations)
        if self.score is not None:
            psi, slope = np.where(used, self.score.psi(u), 0.0), np.where(used, self.score.slope(u), 0.0)
            slopes = float(slope.sum())
        of_parts = PartSums.zero(len(self.parts), Z.shape[1])
        if parts:
            of_parts = PartSums.of(self.parts, stretch.numbers, Z, psi, slope)
        if self.turn is not None:
            Z, psi = np.einsum("jk,kpn->jpn", self.turn, Z, optimize=True), self.turn @ psi
            used = np.broadcast_to(used.any(axis=0), used.shape)
        return SpectralSums(band_sums(self.bands, Z, psi, used), of_parts, slopes, equations)


def spectral(stream: EquationStream, s: Solution, score: ScoreFunction | None = None) -> Sandwich:
    """The covariance of a solution by the spectrum of its residuals; that of white noise where they show nothing else."""
    stream = replace(stream, device="cpu").with_columns(s.columns)
    rows, samples, p = len(s.observation.rows), samples_of(stream.motions), len(s.values)
    longest = max(f.samples for f in s.observation.rows)
    segment = int(np.clip(SEGMENT_BYTES / (8.0 * rows * p), SHORTEST_SEGMENT, JOB_SAMPLES))
    stride, per_job = _spread(samples, segment)
    work = _Pass(
        values=s.all_values,
        leads=s.columns,
        inverse=s.inverse,
        scale=s.row_sigma,
        score=score,
        bands=Bands.for_samples(min(segment, longest)),
        parts=part_ends(stream, samples),
        segment=segment,
        stride=stride,
        per_job=per_job,
    )
    first, done = next(iter(stream.each(_First(work), 0, "correlation of the rows")))
    work = replace(work, turn=_uncorrelated(work, first))
    total: SpectralSums | None = None
    late = done >= samples and score is None  # whether the parts can wait until they are known to be needed
    if done and not isinstance(stream.motions, MadeMotions):  # whose samples are not counted from log to log
        total = work.summed(first, parts=not late)
        work = replace(work, done=done)
    if samples > work.done:
        for part in stream.each(work, 0, "spectrum of the residuals"):
            if part is not None:
                total = part if total is None else total + part
    assert total is not None  # the first job is always looked at
    seen = total.equations / s.observation.samples
    half = s.inverse
    if score is not None:
        M = total.parts.gram.sum(axis=0) / seen
        if float(np.linalg.eigvalsh(M)[0]) <= 0.0:
            raise IdentificationError(TOO_FEW)
        half = half @ np.linalg.inv(M)
    found = noise_spectrum(work.bands, total.bands, seen)
    made, logs = stated(found, half, s.covariance if score is None else None), len(stream.motions)
    if comparable(found, work.parts, logs):
        parts = total.parts
        if late:
            parts = PartSums.of(work.parts, first.numbers, first.columns, first.residuals, None)
        made = compared(made, found, parts, work.parts, logs, s.triangle, seen)
    return replace(made, residual_sigma=made.residual_sigma * total.equations / total.slopes)


def _spread(samples: int, segment: int) -> tuple[int, int]:
    """Of how many jobs one is looked at, and how many stretches of it: all of a log that is not long."""
    wanted = max(MAX_SAMPLES // segment if segment == JOB_SAMPLES else FEWEST_STRETCHES, 1)
    jobs = -(-samples // JOB_SAMPLES)
    if samples <= wanted * segment:
        return 1, -(-JOB_SAMPLES // segment)
    return max(1, -(-jobs // wanted)), -(-wanted // jobs)


def compared(
    made: Sandwich,
    found: NoiseSpectrum,
    parts: PartSums,
    ends: NDArray[np.intp],
    logs: int,
    triangle: Array,
    seen: float = 1.0,
) -> Sandwich:
    """The covariance, widened where logs or parts of one disagree; as it is where they are not :func:`comparable`."""
    if not comparable(found, ends, logs):
        return made
    same = agreement(parts, seen * found.stated_scores, triangle)
    return replace(made, covariance=same.widening * made.covariance, agreement=same)


def comparable(found: NoiseSpectrum, ends: NDArray[np.intp], logs: int) -> bool:
    """Whether there are parts to compare, of one log long enough to be independent of each other."""
    shortest = float(np.diff(ends, prepend=0).min())
    return len(ends) > 1 and (logs > 1 or shortest >= INDEPENDENT_MEMORIES * found.memory)


def part_ends(stream: EquationStream, samples: int) -> NDArray[np.intp]:
    """Where the parts end that are compared: logs, or equal parts of one; one part where logs are made one by one."""
    if isinstance(stream.motions, MadeMotions):
        return np.array([samples], dtype=np.intp)
    lengths = [len(m) for m in stream.motions]
    if len(lengths) > 1:
        return np.cumsum(lengths)
    return np.asarray(np.arange(1, PARTS + 1) * samples // PARTS, dtype=np.intp)


def stated(found: NoiseSpectrum, half: Array, plain: Array | None = None) -> Sandwich:
    """C = H S Hᵀ with the S of a spectrum, H the `half` of parameters x = H h; `plain` where that is white, by default f H Hᵀ."""
    residual_sigma = float(np.sqrt(found.white))
    if found.is_white:
        C = found.white * half @ half.T if plain is None else plain
    else:
        C = found.covariance(half)[0]
    return Sandwich(covariance=C, lags=0, residual_sigma=residual_sigma, spectrum=found)


def _uncorrelated(work: _Pass, first: Stretch) -> Array | None:
    """Turns residuals of all rows into uncorrelated ones, by the first stretch of samples; None where no two rows are correlated."""
    u, both = first.residuals, first.used.all(axis=0)
    if len(u) == 1 or both.sum() < FEWEST_SAMPLES:
        return None
    u = (u if work.score is None else work.score.psi(u))[:, both]
    u = u - u.mean(axis=1, keepdims=True)
    C = u @ u.T / u.shape[1]
    size = np.sqrt(np.maximum(np.diag(C), np.finfo(float).tiny))
    lag = np.clip((u[:, 1:] * u[:, :-1]).mean(axis=1) / size**2, -0.99, 0.99)
    product = np.outer(lag, lag)
    memory = np.maximum((1.0 + product) / (1.0 - product), 1.0)
    limit = FALSE_CORRELATION_SIGMAS * np.sqrt(memory / u.shape[1])
    significant = np.abs(C / np.outer(size, size)) > limit
    np.fill_diagonal(significant, True)
    if significant.sum() == len(C):
        return None
    return np.linalg.eigh(np.where(significant, C, 0.0))[1].T


@dataclass(frozen=True, eq=False)
class _First:
    """The first samples of a job, and up to which sample nothing more is to be looked at; 0 where there is."""

    work: _Pass

    def __call__(self, plan: EquationPlan, job: Job) -> tuple[Stretch, int]:
        with one_blas_thread():
            first = next(self.work.stretches(plan, job))
        whole = first.numbers[-1] + plan.how.decimate >= job.before + job.stop
        return first, job.before + job.stop if whole or self.work.per_job == 1 else 0


def noise_covariance(
    stream: EquationStream, s: Solution, how: Hac | Auto | None, score: ScoreFunction | None = None
) -> Sandwich | None:
    """The covariance of a solution whose residuals may be correlated, as it was asked for; None where that of white noise holds."""
    if how is None:
        return None
    if isinstance(how, Hac):
        return sandwich(stream, s, score, how)
    made = spectral(stream, s, score)
    assert made.spectrum is not None
    widened = made.agreement is not None and made.agreement.widening > 1.0
    return None if made.spectrum.is_white and not widened else made
