"""How samples become equations: stretches of a log, computed, filtered, decimated and thinned, a block at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from veridyn.identify.equation_check import check_equations, driven
from veridyn.identify.factor import RowFactor, accumulate, empty
from veridyn.identify.sampling import Sampling
from veridyn.identify.tables import SymbolTables
from veridyn.identify.threads import one_blas_thread
from veridyn.mechanics.columns import structure
from veridyn.mechanics.loops.projection import open_rows, projection
from veridyn.model.motion import Motion
from veridyn.model.tree import Tree
from veridyn.signals.butterworth import zero_phase
from veridyn.signals.resample import uniform_rate

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
JOB_SAMPLES = 16384  # samples one job deals with


@dataclass(frozen=True, eq=False, kw_only=True)
class Job:
    """Samples start to stop of a log of `total` samples; `motion` holds them and their margins, from sample `offset` on.

    Blocks begin at sample `first`, which is before `start` where a lead is needed. `before`: samples of the logs before this one.
    """

    motion: Motion
    offset: int
    first: int
    start: int
    stop: int
    total: int
    rate: float
    before: int = 0


@dataclass(frozen=True, eq=False)
class Block:
    """Equations of some consecutive samples: `numbers` are those that decimation keeps, in the count of the log.

    For each row, `equations` [W_j | Y_j] in column order, to be used up by whoever takes them, and `used`: which of the samples they are.
    """

    numbers: NDArray[np.intp]
    equations: list[Array]
    used: list[Mask]


Weigh = Callable[[int, Array], None]  # the number of a row, and its equations, to be multiplied in place


@dataclass(frozen=True, eq=False)
class EquationPlan:
    """How samples become the equations of some rows of a tree."""

    tree: Tree
    rows: tuple[int, ...]
    how: Sampling
    compile: bool = False

    @cached_property
    def computed(self) -> tuple[int, ...]:
        """The rows, and those of the open tree that are added to some of them."""
        return tuple(dict.fromkeys((*self.rows, *(other for added in self._added for other in added))))

    @cached_property
    def _added(self) -> tuple[tuple[int, ...], ...]:
        """For each row, those that are added to it: on its path, then of the passive joints of its loops."""
        every = self.tree.rows
        paths = (tuple(every.index(other) for other in self.how.path(every[r])) for r in self.rows)
        return tuple((*path, *open_rows(self.tree, (r,))[1:]) for r, path in zip(self.rows, paths, strict=True))

    @cached_property
    def columns(self) -> tuple[tuple[int, ...], ...]:
        """For each row, the estimated parameters that enter it, tied ones under the name of what they are tied to."""
        own = dict(zip(self.computed, self._affecting, strict=True))
        paths = ((r, *added) for r, added in zip(self.rows, self._added, strict=True))
        return tuple(tuple(sorted({c for r in path for c in own[r]})) for path in paths)

    @cached_property
    def _affecting(self) -> tuple[tuple[int, ...], ...]:
        """The same for each computed row by itself."""
        T = self.tree.parameters.estimated_matrix() != 0.0
        affecting = structure(self.tree)
        return tuple(tuple(int(c) for c in np.flatnonzero(T[list(affecting[r])].any(axis=0))) for r in self.computed)

    @cached_property
    def wanted(self) -> tuple[tuple[int, int, float, float], ...]:
        """Columns to compute: (column, column it counts for, factor, known value to take off or NaN where estimated)."""
        p = self.tree.parameters
        out = []
        for c, name in enumerate(p.names):
            tie = p.ties.get(name)
            to, factor = (c, 1.0) if tie is None else (p.index(tie.to), tie.factor)
            value = float(p.values[to]) if p.states[to] == "known" else float("nan")
            if value != 0.0:
                out.append((c, to, factor, value))
        return tuple(out)

    def jobs(self, motion: Motion, lead: int = 0, before: int = 0) -> Iterator[Job]:
        """Stretches of a motion with the margins their filter needs and `lead` equations before their own."""
        N, margin, rate = len(motion), 0, 0.0
        if self.how.filtering:
            rate = uniform_rate(motion.t, where="motion.t")
            margin = self.how.margin(rate)
        span = max(JOB_SAMPLES, 4 * margin)
        for start in range(0, N, span):
            stop = min(start + span, N)
            first = max(0, start - lead * self.how.decimate)
            lo, hi = max(0, first - margin), min(N, stop + margin)
            yield Job(
                motion=motion[lo:hi], offset=lo, first=first, start=start, stop=stop, total=N, rate=rate, before=before
            )

    def factors(self, job: Job, weigh: Weigh | None = None) -> tuple[RowFactor, ...]:
        """The factors of one job's samples, block by block."""
        names = [self.tree.rows[r] for r in self.rows]
        own = [empty(name, cs, self.how.method) for name, cs in zip(names, self.columns, strict=True)]
        counts = np.zeros(len(own), dtype=int)
        with one_blas_thread():
            for block in self.blocks(job):
                if weigh is not None:
                    for k, A in enumerate(block.equations):
                        weigh(k, A)
                accumulate([f.R for f in own], block.equations, self.how.method)
                counts += [len(A) for A in block.equations]
        return tuple(replace(f, samples=int(count)) for f, count in zip(own, counts, strict=True))

    def blocks(self, job: Job) -> Iterator[Block]:
        """The equations of a job, a block at a time: each is valid until the next is made."""
        margin = self.how.margin(job.rate) if self.how.filtering else 0
        tables = self.tables(margin)
        for start in range(job.first, job.stop, tables.block):
            stop = min(start + tables.block, job.stop)
            yield self._equations(job, tables, start, stop, margin)

    def tables(self, margin: int) -> SymbolTables:
        """Where blocks of equations are written, by machine code or by the reference."""
        return SymbolTables(
            self.tree, self.computed, self._affecting, self.wanted, self.compile, self.how.block, margin
        )

    def _equations(self, job: Job, tables: SymbolTables, start: int, stop: int, margin: int) -> Block:
        """[W_j | Y_j] of one block for each row, filtered, decimated and thinned, in column order."""
        how = self.how
        lo = max(job.offset, start - margin)
        hi = min(job.offset + len(job.motion), stop + margin)
        part = job.motion[lo - job.offset : hi - job.offset]
        inner = slice(start - lo, stop - lo)
        numbers = np.arange(start, stop)
        thin = numbers % how.decimate == 0
        found: list[Array] = []
        masks: list[Mask] = []
        for r, A in self._projected(part, dict(zip(self.computed, tables.fill(part), strict=True))):
            A[:, -1] = self.force(part, r) - A[:, -1]  # Γ − Γ_ext, paper 001 (5)
            low = how.filter_of(self.tree.rows[r])
            if low is not None:
                A = zero_phase(A, job.rate, low, where=f"row '{self.tree.rows[r]}'")
            used = thin & np.isfinite(A[inner, -1])
            used &= how.uses(self.tree, self.tree.rows[r], part.qd[inner], numbers, job.total, job.before)
            whole = used.all() and A.strides[0] == A.itemsize
            found.append(A[inner] if whole else np.asfortranarray(A[inner][used]))
            masks.append(used[thin])
        return Block(numbers[thin], found, masks)

    def _projected(self, part: Motion, tables: Mapping[int, Array]) -> list[tuple[int, Array]]:
        """Each row with its table, to which those along its path and of its loops' passive joints are added."""
        tree, own = self.tree, dict(zip(self.computed, self._affecting, strict=True))
        first, found = len(tree.rows) - tree.n, []
        G = projection(tree, part) if tree.loops else None
        for r, columns, added in zip(self.rows, self.columns, self._added, strict=True):
            if not added:
                found.append((r, tables[r]))
                continue
            weights = [part.signals[signal] for signal in self.how.path(tree.rows[r]).values()]
            if G is not None and r >= first:
                passive = [other - first for other in added[len(weights) :]]
                weights += list(G[:, passive, tree.independent.index(r - first)].T)
            place = {c: k for k, c in enumerate((*columns, -1))}
            whole = np.zeros((len(part), len(place)), order="F")
            whole[:, [place[c] for c in (*own[r], -1)]] = tables[r]
            for other, weight in zip(added, weights, strict=True):
                whole[:, [place[c] for c in (*own[other], -1)]] += weight[:, None] * tables[other]
            found.append((r, whole))
        return found

    def force(self, part: Motion, row: int) -> Array | float:
        """Γ of a row: measured where a motor acts and is measured, zero elsewhere (paper 001, 5.2)."""
        tree = self.tree
        k = row - len(tree.rows) + tree.n
        if k < 0 or not tree.actuated[k] or part.forces is None:
            return 0.0
        gamma = part.forces[:, k]
        return 0.0 if tree.coordinates[k] in driven(tree) and np.isnan(gamma).all() else gamma

    def check(self, motions: Sequence[Motion]) -> None:
        """Refuse what cannot be streamed: every fault at once."""
        check_equations(self.tree, self.rows, self.how, motions)
