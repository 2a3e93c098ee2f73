"""Errors on samples that a fit did not use, from R factors of blocks: any subset of columns is fitted and tried without another pass.

Samples are cut into blocks of consecutive ones, and blocks into folds of consecutive blocks. Each fold is predicted by a fit to the others.
The sum of squares of block b under values x is ‖R_b [−x; 1]‖², so every choice of columns costs solves of the machine's size. The fall of
the error from one choice to another is a sum over blocks; its standard error comes from how it differs from block to block, so that
residuals may be correlated within blocks, and neighbouring blocks with each other (Newey and West, 1987, Econometrica 55(3), one lag).
A scatter that few blocks state is itself uncertain: the fall is compared with quantiles of Student's t, whose degrees of freedom are the
blocks less one. No block is shorter than one equation, nor than noise behind the filter of the equations is correlated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import ndtr, stdtrit

from veridyn.arrays import Array
from veridyn.errors import IdentificationError
from veridyn.identify.regression.equation_plan import EquationPlan, Job
from veridyn.identify.regression.factor import RowFactor, RowFactors, accumulate, one_blas_thread, triangle_of
from veridyn.identify.regression.observation import samples_of, stream
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.settings import IdentifySettings
from veridyn.model.coordinates import Rows
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.progress import Progress, silent
from veridyn.signals.resample import uniform_rate

FEWEST_BLOCKS = 2  # one to fit and one to predict; the scatter of two has one degree of freedom
SINGULAR = 1e-10  # of its length: a column of which no more is left beside the others is a combination of them
SEPARATE = 1e-6  # the same, for a column that is to be added


@dataclass(frozen=True)
class Fall:
    """By how much the held-out sum of squares falls, as a share of what it was, and the standard error of that, from so many blocks."""

    share: float
    sigma: float
    blocks: int

    def exceeds(self, standard_errors: float) -> bool:
        """Whether a fall of zero would come out as large no more often than a normal variable exceeds so many standard deviations.

        The standard error is estimated, so the bound is the quantile of Student's t with the degrees of freedom of the blocks.
        """
        return self.share > float(stdtrit(self.blocks - 1, ndtr(standard_errors))) * self.sigma


@dataclass(frozen=True, eq=False)
class HeldOutBlocks:
    """Stacked, weighted R factors of blocks (B, p + 1, p + 1) over `columns`; `fold` (B,) numbers the fold of each."""

    columns: tuple[int, ...]
    blocks: Array
    fold: NDArray[np.intp]

    @cached_property
    def _folds(self) -> list[Array]:
        """The R factor of each fold (p + 1, p + 1)."""
        wide = self.blocks.shape[2]
        return [triangle_of(self.blocks[self.fold == f].reshape(-1, wide)) for f in range(int(self.fold.max()) + 1)]

    def separates(self, columns: Sequence[int], new: int) -> bool:
        """Whether the last `new` of some columns can be estimated beside the others, from all blocks."""
        if not set(columns) <= set(self.columns):
            return False
        place = {c: k for k, c in enumerate(self.columns)}
        A = np.vstack(self._folds)[:, [place[c] for c in columns]]
        size, left = np.linalg.norm(A, axis=0), np.abs(np.diag(triangle_of(A)))
        return len(left) == len(size) and bool(np.all(left[-new:] > SEPARATE * size[-new:]))

    def squares(self, columns: Sequence[int]) -> Array | None:
        """Held-out sums of squares of all blocks (B,) with these columns; None where some fold cannot be left out."""
        place = {c: k for k, c in enumerate(self.columns)}
        at = [place[c] for c in columns]
        out = np.zeros(len(self.blocks))
        for f in range(len(self._folds)):
            x = _solved(np.vstack([R for k, R in enumerate(self._folds) if k != f])[:, [*at, -1]])
            if x is None:
                return None
            own = self.fold == f
            r = self.blocks[own][:, :, -1] - self.blocks[own][:, :, at] @ x
            out[own] = np.einsum("bi,bi->b", r, r)
        return out

    def training_square(self, columns: Sequence[int]) -> float:
        """The sum of squares that a fit of these columns to all blocks leaves; infinite where they cannot be separated."""
        place = {c: k for k, c in enumerate(self.columns)}
        A = np.vstack(self._folds)[:, [*(place[c] for c in columns), -1]]
        x = _solved(A)
        return np.inf if x is None else float(np.sum((A[:, -1] - A[:, :-1] @ x) ** 2))

    @property
    def measured(self) -> float:
        """The weighted sum of squares of what is measured."""
        return float(np.sum(self.blocks[:, :, -1] ** 2))


def fall(before: Array, after: Array) -> Fall:
    """The fall of a held-out sum of squares over blocks (B,)."""
    d = before - after
    total = float(before.sum())
    off = d - d.mean()
    B = len(d)
    own, next_one = float(off @ off) / (B - 1), float(off[1:] @ off[:-1]) / (B - 1)
    sigma = np.sqrt(B * max(own, own + 2.0 * next_one))
    return Fall(float(d.sum()) / total, float(sigma) / total, B)


def held_out_blocks(
    machine: Machine,
    motions: Sequence[Motion],
    rows: Rows,
    settings: IdentifySettings,
    row_sigma: Array,
    *,
    blocks: int,
    folds: int,
    progress: Progress = silent,
) -> HeldOutBlocks:
    """The factors of about so many blocks of motions, rows weighed by 1/`row_sigma`; fewer where blocks would be too short."""
    length = _block_length(motions, settings.sampling or Sampling(), blocks)
    made = stream(machine, motions, rows, settings, progress=progress)
    found: dict[tuple[int, int], RowFactors] = {}
    for parts in made.each(partial(_factors, length)):
        for at, part in parts.items():
            own = RowFactors(machine.parameters, part)
            found[at] = found[at].merge(own) if at in found else own
    used = [finished for _, f in sorted(found.items()) if (finished := _finished(f)).samples]
    if len(used) < FEWEST_BLOCKS:
        raise IdentificationError(
            "there is nothing to hold out: too few blocks of samples.",
            where=machine.name,
            expected=f"{FEWEST_BLOCKS} blocks with samples in use, each of {length} samples or more",
            found=f"{len(used)}",
            hint="Record longer, or drop fewer samples.",
        )
    with one_blas_thread():
        stacked = np.array([f.stacked(list(1.0 / row_sigma)) for f in used])
    fold = np.arange(len(used)) * min(folds, len(used)) // len(used)
    return HeldOutBlocks(used[0].columns, stacked, fold.astype(np.intp))


def _block_length(motions: Sequence[Motion], how: Sampling, blocks: int) -> int:
    """Samples of a block: a share of all of them, but no less than one equation and than filtered noise is correlated.

    White noise behind a filter is white again at one sample in 1/g² (:meth:`Butterworth.white_gain`).
    """
    length = max(1, samples_of(motions) // blocks, how.decimate)
    if how.filtering:
        rate = uniform_rate(motions[0].t, where="motion.t")
        every = [f for f in (how.filter, *how.filters.values()) if f is not None]
        length = max(length, *(math.ceil(1.0 / f.white_gain(rate) ** 2) for f in every))
    return length


def _factors(length: int, plan: EquationPlan, job: Job) -> dict[tuple[int, int], tuple[RowFactor, ...]]:
    """The factors of each block of a job: (samples of the logs before, number of the block in its log) → one factor for each row.

    A log has as many blocks of one length as are no shorter than `length`. The blocks in which equations are computed are others: they
    are as long as the margins of a filter ask for.
    """
    found: dict[tuple[int, int], tuple[RowFactor, ...]] = {}
    count = max(1, job.total // length)
    with one_blas_thread():
        for computed in plan.blocks(job):
            number = computed.numbers * count // job.total
            for b in np.unique(number).tolist():
                rows = [number[used] == b for used in computed.used]
                part = [np.asfortranarray(A[own]) for A, own in zip(computed.equations, rows, strict=True)]
                own = found.get((job.before, b)) or plan.empty_factors()
                accumulate([f.R for f in own], part, plan.how.method)
                counted = zip(own, rows, strict=True)
                found[job.before, b] = tuple(replace(f, samples=f.samples + int(r.sum())) for f, r in counted)
    return found


def _finished(factors: RowFactors) -> RowFactors:
    return replace(factors, rows=tuple(f.finished() for f in factors.rows))


def _solved(A: Array) -> Array | None:
    """Least squares of the last column by the others; None where one of them is no more than a combination of the others."""
    size = np.linalg.norm(A[:, :-1], axis=0)
    T = triangle_of(A)
    p = len(size)
    left = np.abs(np.diag(T)[:p])
    if len(left) < p or np.any(left <= SINGULAR * size):
        return None
    return np.asarray(solve_triangular(T[:p, :p], T[:p, -1]))
