"""How samples become equations: stretches of a log, computed, filtered, decimated and thinned, a block at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.identify.regression.compiled_stream import (
    CACHE_DOUBLES,
    RowSamples,
    SymbolTables,
    absorb_samples,
    block_samples,
    equations,
    kept_tables,
)
from veridyn.identify.regression.factor import RowFactor, accumulate, empty, one_blas_thread
from veridyn.identify.regression.sampling import Sampling, check_equations, driven
from veridyn.inference.error_measures import Moments, row_unit
from veridyn.mechanics.tree.dynamics.engine import Engine, wants_compiled
from veridyn.mechanics.tree.loops.closure import projection
from veridyn.mechanics.tree.loops.dynamics import open_rows
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.equations import structure
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.signals.butterworth import zero_phase
from veridyn.signals.resample import uniform_rate

Mask = NDArray[np.bool_]
JOB_SAMPLES = 16384  # samples one job deals with
KEPT_DOUBLES = 2**20  # of tables that are kept from pass to pass where computing them takes longest: eight megabytes


@dataclass(frozen=True, eq=False, kw_only=True)
class Job:
    """Samples start to stop of a log of `total` samples; `motion` holds them and their margins, from sample `offset` on.

    Blocks begin at sample `first`, which is before `start` where a lead is needed. `before`: samples of the logs before this one. `filled`:
    of a short log, which is passed over again, the tables of its blocks by the first and last of their samples.
    """

    motion: Motion
    offset: int
    first: int
    start: int
    stop: int
    total: int
    rate: float
    before: int = 0
    filled: dict[tuple[int, int], Array] | None = None


@dataclass(frozen=True, eq=False)
class Block:
    """Equations of some consecutive samples: `numbers` are those that decimation keeps, in the count of the log.

    For each row, `equations` [W_j | Y_j] in column order, to be used up by whoever takes them, `used`: which of the samples they are, and
    `measured`: the measured force y_j before known parameters are subtracted (a view of Y_j where nothing is). `noise`: of a filtered row,
    the moments of y_j before the filter at every sample in use, times the gain of the filter for white noise.
    """

    numbers: NDArray[np.intp]
    equations: list[Array]
    used: list[Mask]
    measured: list[Array]
    noise: list[Moments | None]


Weigh = Callable[[int, Array], None]  # the number of a row, and its equations, to be multiplied in place


@dataclass(frozen=True, eq=False)
class EquationPlan:
    """How samples become the equations of some rows of a tree; `kept`: the only estimated columns to make, if not all."""

    machine: Machine
    rows: tuple[int, ...]
    how: Sampling
    compile: bool = False
    kept: tuple[int, ...] | None = None

    @property
    def tree(self):
        """The machine as equations are computed with."""
        return tree_of(self.machine)

    def pays(self, engine: Engine, motion: Motion, samples: int) -> bool:
        """Whether so many samples like those of a motion go through machine code."""
        return wants_compiled(engine, self.tree, equations(self.machine, self.computed, self.wanted, motion), samples)

    @cached_property
    def computed(self) -> tuple[int, ...]:
        """The rows, and those of the open tree that are added to some of them."""
        return tuple(dict.fromkeys((*self.rows, *(other for added in self._added for other in added))))

    @cached_property
    def _added(self) -> tuple[tuple[int, ...], ...]:
        """For each row, those that are added to it: on its path, then of the passive joints of its loops."""
        every = self.machine.rows
        paths = (tuple(every.index(other) for other in self.how.path(every[r])) for r in self.rows)
        return tuple((*path, *open_rows(self.tree, (r,))[1:]) for r, path in zip(self.rows, paths, strict=True))

    @cached_property
    def columns(self) -> tuple[tuple[int, ...], ...]:
        """For each row, the estimated parameters that enter it, tied ones under the name of what they are tied to."""
        if not any(self._added):
            return self._affecting
        own = dict(zip(self.computed, self._affecting, strict=True))
        paths = ((r, *added) for r, added in zip(self.rows, self._added, strict=True))
        return tuple(tuple(sorted({c for r in path for c in own[r]})) for path in paths)

    def lead_columns(self, k: int, leads: Sequence[int]) -> tuple[list[int], list[int]]:
        """Which of the parameters `leads` enter the k-th row, and the places of these among its columns."""
        at = {c: i for i, c in enumerate(self.columns[k])}
        entering = [i for i, c in enumerate(leads) if c in at]
        return entering, [at[leads[i]] for i in entering]

    @property
    def _affecting(self) -> tuple[tuple[int, ...], ...]:
        """The same for each computed row by itself."""
        return _affecting(self.machine, self.computed, self.kept)

    @property
    def wanted(self) -> tuple[tuple[int, int, float, float], ...]:
        """Columns to compute: (column, column it counts for, factor, known value to take off or NaN where estimated)."""
        return _wanted(self.machine, self.kept)

    @cached_property
    def _gains(self) -> tuple[tuple[int, int, float, float], ...]:
        """Of the columns to compute, those of known drive gains: what they make of a current is a measured force."""
        names = {e.parameter_name for e in self.machine.elements if e.kind == "drive_gain"}
        columns = {self.machine.parameters.index(name) for name in names}
        return tuple(w for w in self.wanted if w[0] in columns and not np.isnan(w[3]))

    @cached_property
    def subtracts(self) -> bool:
        """Whether known parameters, other than drive gains, are subtracted from the measured side."""
        return any(not np.isnan(w[3]) for w in self.wanted if w not in self._gains)

    def empty_factors(self) -> tuple[RowFactor, ...]:
        """The factors of no equations, one for each row."""
        method = self.how.method
        rows = zip(self._names_and_units, self.columns, strict=True)
        return tuple(empty(name, columns, method, unit) for (name, unit), columns in rows)

    @cached_property
    def _names_and_units(self) -> tuple[tuple[str, str], ...]:
        names = [self.machine.rows[r] for r in self.rows]
        return tuple((name, row_unit(self.machine, name)) for name in names)

    def jobs(self, motion: Motion, lead: int = 0, before: int = 0) -> Iterator[Job]:
        """Stretches of a motion with the margins their filter needs and `lead` equations before their own."""
        N, margin, rate = len(motion), 0, 0.0
        if self.how.filtering:
            rate = uniform_rate(motion.t, where="motion.t")
            margin = self.how.margin(rate)
        span = max(JOB_SAMPLES, 4 * margin)
        if not self.compile and span >= N and N * self._places <= KEPT_DOUBLES:
            yield self._kept_job(motion, rate, before)
            return
        for start in range(0, N, span):
            stop = min(start + span, N)
            first = max(0, start - lead * self.how.decimate)
            lo, hi = max(0, first - margin), min(N, stop + margin)
            yield Job(
                motion=motion[lo:hi], offset=lo, first=first, start=start, stop=stop, total=N, rate=rate, before=before
            )

    def _kept_job(self, motion: Motion, rate: float, before: int) -> Job:
        """The one job of a short log: the same as in the last pass over it, so that equations need not be computed again."""
        known = self._short_logs.get(before)
        if known is None or known[0] is not motion:
            N = len(motion)
            held = sum(len(m) for m, _ in self._short_logs.values()) * self._places
            filled: dict[tuple[int, int], Array] | None = {} if held + N * self._places <= KEPT_DOUBLES else None
            known = (
                motion,
                Job(
                    motion=motion, offset=0, first=0, start=0, stop=N, total=N, rate=rate, before=before, filled=filled
                ),
            )
            if filled is not None:
                self._short_logs[before] = known
        return known[1]

    @cached_property
    def _short_logs(self) -> dict[int, tuple[Motion, Job]]:
        """Short logs that were passed over, with their jobs, by the number of samples before them."""
        return {}

    def factors(self, job: Job, weigh: Weigh | None = None) -> tuple[RowFactor, ...]:
        """The factors of one job's samples: in one call of machine code where that can be, otherwise block by block."""
        own = self.empty_factors()
        if self.in_one_call and weigh is None:
            return self._factors_in_one_call(job, own)
        moments = [Moments()] * len(own)
        with one_blas_thread():
            for block in self.blocks(job, wide=True):
                seen = zip(moments, block.measured, block.used, block.noise, strict=True)
                moments = [m.merge(Moments.of(y, used).with_noise_of(raw)) for m, y, used, raw in seen]
                if weigh is not None:
                    for k, A in enumerate(block.equations):
                        weigh(k, A)
                accumulate([f.R for f in own], block.equations, self.how.method)
        return tuple(replace(f, samples=m.samples, measured=m) for f, m in zip(own, moments, strict=True))

    @cached_property
    def in_one_call(self) -> bool:
        """Whether machine code can make the factors of a job without coming back: no filter, no row that is added to another."""
        return self.compile and self.how.method == "qr" and not self.how.filtering and not any(self._added)

    def _factors_in_one_call(self, job: Job, own: tuple[RowFactor, ...]) -> tuple[RowFactor, ...]:
        """:meth:`factors` by :mod:`veridyn.identify.regression.compiled_stream`."""
        part = job.motion[job.first - job.offset : job.stop - job.offset]
        block = block_samples(self._places, self.how.block)
        tables = kept_tables(self, self._tables_in_cache)
        beside = self._measured_tables(tables.block, 0, part) if self.subtracts else None
        forces = [self.force(part, r) for r in self.rows]
        rows = [
            RowSamples(f.R, force if isinstance(force, np.ndarray) else None, used)
            for f, force, used in zip(own, forces, self._used(job, thin=True), strict=True)
        ]
        moments = absorb_samples(tables, beside, self.subtracts, part, rows, block, self.how.decimate)
        return tuple(replace(f, samples=m.samples, measured=m) for f, m in zip(own, moments, strict=True))

    def _used(self, job: Job, thin: bool = False) -> list[Mask | None]:
        """For each row, which samples of a job it takes, None for all of them; `thin`: after decimation."""
        how, names = self.how, [self.machine.rows[r] for r in self.rows]
        numbers = np.arange(job.first, job.stop)
        whole = job.first >= how.trim and job.stop <= job.total - how.trim
        kept = numbers % how.decimate == 0 if thin and how.decimate > 1 else None
        if not how.zones and whole and kept is None and how.drop.keys().isdisjoint(names):
            return [None] * len(names)
        qd = job.motion.qd[job.first - job.offset : job.stop - job.offset]
        taken = how.uses_of_rows(self.machine, names, qd, numbers, job.total, job.before)
        return [mask if kept is None else mask & kept for mask in taken]

    def measured_moments(self, motion: Motion, stretch: slice, before: int = 0) -> list[Moments]:
        """For each row the moments of its measured force at a decimated stretch of a motion whose rows are not filtered."""
        beside = self._measured_tables(self.how.block, 0, motion)
        step = (self.how.block if beside is None else beside.block) * stretch.step
        found = [Moments()] * len(self.rows)
        for start in range(stretch.start, stretch.stop, step):
            numbers = np.arange(start, min(start + step, stretch.stop), stretch.step)
            part = motion[start : min(start + step, stretch.stop) : stretch.step]
            y = self._measured(part, beside)
            for k, r in enumerate(self.rows):
                used = self.how.uses(self.machine, self.machine.rows[r], part.qd, numbers, len(motion), before)
                used &= np.isfinite(y[r])
                found[k] = found[k].merge(Moments.of(y[r][used], used))
        return found

    def blocks(self, job: Job, wide: bool = False) -> Iterator[Block]:
        """The equations of a job, a block at a time: each is valid until the next is made. `wide`: as long as is quickest."""
        margin = self.how.margin(job.rate) if self.how.filtering else 0
        tables = self.tables(margin, wide)
        beside = self._measured_tables(tables.block, margin, job.motion) if self.subtracts else None
        taken = self._used(job)
        for start in range(job.first, job.stop, tables.block):
            stop = min(start + tables.block, job.stop)
            own = slice(start - job.first, stop - job.first)
            masks = [None if mask is None else mask[own] for mask in taken]
            yield self._equations(job, tables, beside, masks, start, stop, margin)

    def tables(self, margin: int, wide: bool = False, largest: int | None = None) -> SymbolTables:
        """Where blocks of equations are written, by machine code or by the reference."""
        most = self.how.block if largest is None else largest
        return SymbolTables(self.machine, self.computed, self._affecting, self.wanted, self.compile, most, margin, wide)

    def _tables_in_cache(self) -> SymbolTables:
        """Tables of fewer samples, which stay in the second cache."""
        return self.tables(0, largest=block_samples(self._places, self.how.block, CACHE_DOUBLES))

    @cached_property
    def _places(self) -> int:
        """How many numbers the tables hold for each sample."""
        return sum(len(columns) + 1 for columns in self._affecting)

    def _measured_tables(self, block: int, margin: int, motion: Motion) -> SymbolTables | None:
        """Where wrenches and known drive gains alone are written; None where there are none."""
        if not self._gains and not motion.wrenches:
            return None
        none: tuple[tuple[int, ...], ...] = ((),) * len(self.computed)
        return SymbolTables(self.machine, self.computed, none, self._gains, self.compile, block, margin)

    def _equations(
        self,
        job: Job,
        tables: SymbolTables,
        beside: SymbolTables | None,
        masks: Sequence[Mask | None],
        start: int,
        stop: int,
        margin: int,
    ) -> Block:
        """[W_j | Y_j] of one block for each row, filtered, decimated and thinned, in column order; `masks`: which samples each takes."""
        how = self.how
        lo = max(job.offset, start - margin)
        hi = min(job.offset + len(job.motion), stop + margin)
        part = job.motion[lo - job.offset : hi - job.offset]
        inner = slice(start - lo, stop - lo)
        numbers = np.arange(start, stop)
        thin = numbers % how.decimate == 0
        found: list[Array] = []
        used_masks: list[Mask] = []
        measured: list[Array] = []
        noise: list[Moments | None] = []
        forces = self._measured(part, beside) if self.subtracts else {}
        every = np.ones(stop - start, dtype=np.bool_)
        rows = self._projected(part, dict(zip(self.computed, tables.fill(part, job.filled, (lo, hi)), strict=True)))
        for (r, A), mask in zip(rows, masks, strict=True):
            A[:, -1] = self.force(part, r) - A[:, -1]  # Γ − Γ_ext, paper 001 (5)
            low = how.filter_of(self.machine.rows[r])
            taken = every if mask is None else mask
            noise.append(None)
            if low is not None:
                raw = (forces[r] if r in forces else A[:, -1])[inner]
                kept = taken & np.isfinite(raw)
                noise[-1] = Moments.of(raw[kept], kept).scaled(low.white_gain(job.rate))
                A = zero_phase(A, job.rate, low, where=f"row '{self.machine.rows[r]}'")
                if r in forces:
                    forces[r] = zero_phase(forces[r][:, None], job.rate, low)[:, 0]
            used = thin & np.isfinite(A[inner, -1]) & taken
            whole = used.all() and A.strides[0] == A.itemsize
            found.append(A[inner] if whole else np.asfortranarray(A[inner][used]))
            used_masks.append(used[thin])
            measured.append(forces[r][inner][used] if r in forces else found[-1][:, -1])
        return Block(numbers[thin], found, used_masks, measured, noise)

    def _measured(self, part: Motion, beside: SymbolTables | None) -> dict[int, Array]:
        """y of each row (N,): Γ − Γ_ext before known parameters are subtracted, what known drive gains give included."""
        if beside is None:
            return {r: np.broadcast_to(self.force(part, r), (len(part),)).astype(np.float64) for r in self.rows}
        tables = dict(zip(self.computed, beside.fill(part), strict=True))
        return {r: self.force(part, r) - A[:, -1] for r, A in self._projected(part, tables, bare=True)}

    def _projected(self, part: Motion, tables: Mapping[int, Array], bare: bool = False) -> list[tuple[int, Array]]:
        """Each row with its table, to which those along its path and of its loops' passive joints are added.

        `bare`: the tables have no columns of parameters.
        """
        machine = self.machine
        none: tuple[tuple[int, ...], ...] = ((),) * len(self.computed)
        own = dict(zip(self.computed, none if bare else self._affecting, strict=True))
        first, found = len(machine.rows) - machine.n, []
        G = projection(self.tree, part) if machine.closed else None
        whole_columns = none[: len(self.rows)] if bare else self.columns
        for r, columns, added in zip(self.rows, whole_columns, self._added, strict=True):
            if not added:
                found.append((r, tables[r]))
                continue
            weights = [part.signals[signal] for signal in self.how.path(machine.rows[r]).values()]
            if G is not None and r >= first:
                passive = [other - first for other in added[len(weights) :]]
                weights += list(G[:, passive, machine.independent.index(r - first)].T)
            place = {c: k for k, c in enumerate((*columns, -1))}
            whole = np.zeros((len(part), len(place)), order="F")
            whole[:, [place[c] for c in (*own[r], -1)]] = tables[r]
            for other, weight in zip(added, weights, strict=True):
                whole[:, [place[c] for c in (*own[other], -1)]] += weight[:, None] * tables[other]
            found.append((r, whole))
        return found

    def force(self, part: Motion, row: int) -> Array | float:
        """Γ of a row: measured where a motor acts and is measured, zero elsewhere (paper 001, 5.2)."""
        k = row - len(self.machine.rows) + self.machine.n
        if k < 0 or not self._actuated[k] or part.forces is None:
            return 0.0
        gamma = part.forces[:, k]
        return 0.0 if k in self._driven and np.isnan(gamma).all() else gamma

    @cached_property
    def _actuated(self) -> tuple[bool, ...]:
        """Which coordinates have a motor."""
        return tuple(bool(x) for x in self.machine.actuated)

    @cached_property
    def _driven(self) -> frozenset[int]:
        """The numbers of coordinates whose force is a drive gain times a signal."""
        return frozenset(self.machine.coordinates.index(c) for c in driven(self.machine))

    def check(self, motions: Sequence[Motion], threads: int = 1) -> None:
        """Refuse what cannot be streamed: every fault at once; `threads` look at the numbers."""
        check_equations(self.machine, self.rows, self.how, motions, threads)


@lru_cache(maxsize=16)
def _affecting(machine: Machine, rows: tuple[int, ...], kept: tuple[int, ...] | None) -> tuple[tuple[int, ...], ...]:
    """For each row by itself, the estimated parameters that enter it; of the last trees used, whose plans are made again and again."""
    T = machine.parameters.estimated_matrix() != 0.0
    if kept is not None:
        T[:, np.setdiff1d(np.arange(T.shape[1]), kept)] = False
    affecting = structure(tree_of(machine))
    return tuple(tuple(int(c) for c in np.flatnonzero(T[list(affecting[r])].any(axis=0))) for r in rows)


@lru_cache(maxsize=16)
def _wanted(machine: Machine, kept: tuple[int, ...] | None) -> tuple[tuple[int, int, float, float], ...]:
    """What becomes of every parameter, as :attr:`EquationPlan.wanted` has it."""
    p = machine.parameters
    out = []
    for c, name in enumerate(p.names):
        tie = p.ties.get(name)
        to, factor = (c, 1.0) if tie is None else (p.index(tie.to), tie.factor)
        value = float(p.values[to]) if p.states[to] == "known" else float("nan")
        left_out = kept is not None and np.isnan(value) and to not in kept
        if value != 0.0 and not left_out:
            out.append((c, to, factor, value))
    return tuple(out)
