"""Errors on samples that a fit did not use, from R factors of blocks: any subset of columns is fitted and tried without another pass.

Samples are cut into blocks of consecutive ones, and blocks into folds of consecutive blocks. Each fold is predicted by a fit to the others.
The sum of squares of block b under values x is ‖R_b [−x; 1]‖², so every choice of columns costs solves of the machine's size. The fall of
the error from one choice to another is a sum over blocks; its standard error comes from how it differs from block to block, so that
residuals may be correlated within blocks, and neighbouring blocks with each other (Newey and West, 1987, Econometrica 55(3), one lag).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from veridyn.errors import Fault, IdentificationError
from veridyn.identify.equation_plan import EquationPlan, Job
from veridyn.identify.factor import RowFactor, accumulate
from veridyn.identify.observation import samples_of, stream
from veridyn.identify.row_factors import RowFactors
from veridyn.identify.sampling import Sampling
from veridyn.identify.threads import one_blas_thread
from veridyn.identify.upper import triangle_of
from veridyn.mechanics.engine import Engine
from veridyn.mechanics.tree.tree import Rows, Tree
from veridyn.model.motion import Motion
from veridyn.progress import Progress, silent

Array = NDArray[np.float64]
FEWEST_BLOCKS = 10  # from which the scatter of blocks says something
SINGULAR = 1e-10  # of its length: a column of which no more is left beside the others is a combination of them
SEPARATE = 1e-6  # the same, for a column that is to be added


@dataclass(frozen=True)
class Fall:
    """By how much the held-out sum of squares falls, as a share of what it was, and the standard error of that."""

    share: float
    sigma: float


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
    return Fall(float(d.sum()) / total, float(sigma) / total)


def held_out_blocks(
    tree: Tree,
    motions: Sequence[Motion],
    rows: Rows,
    sampling: Sampling | None,
    row_sigma: Array,
    *,
    blocks: int,
    folds: int,
    engine: Engine = "auto",
    progress: Progress = silent,
) -> HeldOutBlocks:
    """The factors of about so many blocks of motions, rows weighed by 1/`row_sigma`."""
    how = sampling or Sampling()
    size = max(1, samples_of(motions) // blocks)
    made = stream(tree, motions, rows, replace(how, block=size), engine=engine, progress=progress)
    found: list[RowFactors] = []
    for job in made.each(_factors):
        found += [RowFactors(tree.parameters, tuple(f.finished() for f in part)) for part in job]
    found = [f for f in found if f.samples]
    if len(found) < max(folds, FEWEST_BLOCKS):
        raise IdentificationError(
            Fault(
                "there are too few blocks of samples to judge held-out errors by.",
                where=tree.name,
                expected=f"{max(folds, FEWEST_BLOCKS)} blocks with samples in use",
                found=f"{len(found)} of {blocks}",
                hint="Record longer, or drop fewer samples.",
            )
        )
    with one_blas_thread():
        stacked = np.array([f.stacked(list(1.0 / row_sigma)) for f in found])
    fold = np.arange(len(found)) * folds // len(found)
    return HeldOutBlocks(found[0].columns, stacked, fold.astype(np.intp))


def _factors(plan: EquationPlan, job: Job) -> list[tuple[RowFactor, ...]]:
    """The factors of a job, one set for each of its blocks."""
    found = []
    with one_blas_thread():
        for block in plan.blocks(job):
            own = plan.empty_factors()
            counts = [len(A) for A in block.equations]
            accumulate([f.R for f in own], block.equations, plan.how.method)
            found.append(tuple(replace(f, samples=n) for f, n in zip(own, counts, strict=True)))
    return found


def _solved(A: Array) -> Array | None:
    """Least squares of the last column by the others; None where one of them is no more than a combination of the others."""
    size = np.linalg.norm(A[:, :-1], axis=0)
    T = triangle_of(A)
    p = len(size)
    left = np.abs(np.diag(T)[:p])
    if len(left) < p or np.any(left <= SINGULAR * size):
        return None
    return np.asarray(solve_triangular(T[:p, :p], T[:p, -1]))
