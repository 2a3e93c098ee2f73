"""The observation matrix, never stored: samples stream through the regressor into one small R factor for each row.

For each row j the factor is that of [W_j | Y_j], over the columns the row can feel. Factors merge in any order, so blocks, threads,
processes and several logs are the same operation. Weights, deviations, ranks and validation are all computed from the factors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.errors import DataError, Fault, Faults, did_you_mean
from veridyn.identify.factor import RowFactor, accumulate, empty, triangle_of
from veridyn.identify.tables import Tables, equations
from veridyn.identify.threads import one_blas_thread
from veridyn.mechanics.columns import structure
from veridyn.mechanics.engine import Engine, wants_compiled
from veridyn.model.motion import Motion
from veridyn.model.parameters import ParameterSet
from veridyn.model.tree import Rows, Tree
from veridyn.progress import Progress, silent
from veridyn.signals.butterworth import Butterworth, overlap, zero_phase
from veridyn.signals.resample import uniform_rate

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
T = TypeVar("T")
SPAN = 16384  # samples one job deals with


@dataclass(frozen=True)
class Sampling:
    """How samples become equations.

    `filter`: columns and measurements go through the same zero-phase filter, side by side (parallel filtering), so that the equations
    stay true; then every `decimate`-th is kept. `dead_zone`: row → speed below which that row drops its samples, or name of an
    element → speed of its combination below which every row it acts on does (dry friction is not sign(q̇) at standstill). `drop`: row
    → mask (N,) of samples that row leaves out, for a single motion. `trim`: samples left out at each end of each motion, where
    derivatives and filters start up. `method` "gram" sums products instead of turning factors: faster, half the digits, refused
    where the condition makes it unsafe.
    """

    filter: Butterworth | None = None
    decimate: int = 1
    dead_zone: Mapping[str, float] = field(default_factory=dict)
    drop: Mapping[str, ArrayLike] = field(default_factory=dict)
    trim: int = 0
    block: int = 4096
    method: Literal["qr", "gram"] = "qr"

    def uses(self, tree: Tree, row: str, qd: Array, numbers: NDArray[np.intp], total: int) -> NDArray[np.bool_]:
        """Which of the samples with these numbers, of `total`, and rates `qd` (…, n) a row takes, before decimation."""
        used = (numbers >= self.trim) & (numbers < total - self.trim)
        elements = {e.parameter_name: e for e in tree.elements}
        for name, speed in self.dead_zone.items():
            on = elements[name].on if name in elements else {name: 1.0}
            if row in on:
                used &= np.abs(qd @ np.array([on.get(c, 0.0) for c in tree.coordinates])) >= speed
        if row in self.drop:
            used &= ~np.asarray(self.drop[row], dtype=bool)[numbers]
        return used


@dataclass(frozen=True, eq=False)
class Observation:
    """The factors of all rows, over the asked parameters of one set."""

    parameters: ParameterSet
    rows: tuple[RowFactor, ...]

    def merge(self, other: Observation) -> Observation:
        """Both logs together. The rows and the parameters must be the same."""
        names = [f.row for f in self.rows], [f.row for f in other.rows]
        if self.parameters.names != other.parameters.names or names[0] != names[1]:
            raise DataError(
                Fault("observations of different models or rows cannot be merged.", found=f"{names[0]} and {names[1]}")
            )
        return Observation(self.parameters, tuple(a.merge(b) for a, b in zip(self.rows, other.rows, strict=True)))

    @property
    def columns(self) -> tuple[int, ...]:
        """The asked parameters that some row can feel, in order."""
        return tuple(sorted({c for f in self.rows for c in f.columns}))

    @property
    def samples(self) -> int:
        """Equations in all."""
        return sum(f.samples for f in self.rows)

    def stacked(self, weights: Sequence[float]) -> Array:
        """The R factor of all rows together, each times its weight, over :attr:`columns` and the measurement: P W, P Y of (25)."""
        place = {c: k for k, c in enumerate(self.columns)}
        size = len(place) + 1
        R = np.zeros((size, size))
        for f, weight in zip(self.rows, weights, strict=True):
            wide = np.zeros((len(f.R), size))
            wide[:, [place[c] for c in f.columns]] = weight * f.R[:, :-1]
            wide[:, -1] = weight * f.R[:, -1]
            R = triangle_of(np.vstack([R, wide]))
        return R


def observation(
    tree: Tree,
    motion: Motion | Sequence[Motion],
    rows: Rows = "all",
    sampling: Sampling | None = None,
    *,
    engine: Engine = "auto",
    executor: Executor | None = None,
    progress: Progress = silent,
) -> Observation:
    """Stream one motion, or several, into row factors of [W_j | Y_j] (22).

    Y_j is the measured force (zero for a passive joint, a virtual one and the base; paper 001, 5.2), less what the wrenches ask of the
    row, less the columns of known parameters times their values. With an `executor` the samples are shared out. `engine`: "compiled",
    "numpy", or "auto", which compiles where there are samples enough to pay for it.
    """
    return stream(tree, motion, rows, sampling, engine=engine, executor=executor, progress=progress).observe()


def stream(
    tree: Tree,
    motion: Motion | Sequence[Motion],
    rows: Rows = "all",
    sampling: Sampling | None = None,
    *,
    engine: Engine = "auto",
    executor: Executor | None = None,
    progress: Progress = silent,
) -> Stream:
    """What :func:`observation` streams, checked and ready, for estimators that pass over the samples more than once."""
    how = sampling or Sampling()
    several = [motion] if isinstance(motion, Motion) else list(motion)
    plan = Plan(tree, tree.select_rows(rows), how)
    plan.check(several)
    work = sum(len(part) for part in several)
    request = equations(tree, plan.rows, plan.wanted, several[0])
    plan = replace(plan, compile=wants_compiled(engine, tree, request, work))
    return Stream(plan, tuple(several), executor, progress)


@dataclass(frozen=True, eq=False)
class Stream:
    """The equations of some motions, which can be passed over again and again and are never held at once."""

    plan: Plan
    motions: tuple[Motion, ...]
    executor: Executor | None = None
    progress: Progress = silent

    def observe(self) -> Observation:
        """The factors of all rows."""
        return self.merged(self.each(Plan.factors))

    def merged(self, parts: Iterable[tuple[RowFactor, ...]]) -> Observation:
        """The factors of all jobs together."""
        plan = self.plan
        factors = tuple(empty(plan.tree.rows[r], plan.columns[k], plan.how.method) for k, r in enumerate(plan.rows))
        with one_blas_thread():
            for part in parts:
                factors = tuple(a.merge(b) for a, b in zip(factors, part, strict=True))
        return Observation(plan.tree.parameters, tuple(f.finished() for f in factors))

    def each(self, work: Callable[[Plan, Job], T], lead: int = 0, task: str = "streaming samples") -> Iterator[T]:
        """What `work` makes of each job, in order. With an executor of processes, `work` and its results travel.

        `lead`: how many equations before its own a job is to see as well (``plan.blocks`` starts with them).
        """
        plan = self.plan
        jobs = [job for part in self.motions for job in plan.jobs(part, lead)]
        total = float(sum(job.stop - job.start for job in jobs))
        bound = partial(work, plan)
        found = map(bound, jobs) if self.executor is None else self.executor.map(bound, jobs)
        done = 0.0
        self.progress(task, done, total)
        for job, part in zip(jobs, found, strict=True):
            yield part
            done += job.stop - job.start
            self.progress(task, done, total)


@dataclass(frozen=True, eq=False)
class Job:
    """Samples start to stop of a log of `total` samples; `motion` holds them and their margins, from sample `offset` on.

    Blocks begin at sample `first`, which is before `start` where a lead was asked for.
    """

    motion: Motion
    offset: int
    first: int
    start: int
    stop: int
    total: int
    rate: float


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
class Plan:
    """How samples become the equations of some rows of a tree."""

    tree: Tree
    rows: tuple[int, ...]
    how: Sampling
    compile: bool = False

    @cached_property
    def columns(self) -> tuple[tuple[int, ...], ...]:
        """For each row, the asked parameters that enter it, tied ones under the name of what they are tied to."""
        T = self.tree.parameters.asked_matrix() != 0.0
        felt = structure(self.tree)
        return tuple(tuple(int(c) for c in np.flatnonzero(T[list(felt[r])].any(axis=0))) for r in self.rows)

    @cached_property
    def wanted(self) -> tuple[tuple[int, int, float, float], ...]:
        """Columns to compute: (column, column it counts for, factor, known value to take off or NaN where asked)."""
        p = self.tree.parameters
        out = []
        for c, name in enumerate(p.names):
            tie = p.ties.get(name)
            to, factor = (c, 1.0) if tie is None else (p.index(tie.to), tie.factor)
            value = float(p.values[to]) if p.states[to] == "known" else float("nan")
            if value != 0.0:
                out.append((c, to, factor, value))
        return tuple(out)

    def jobs(self, motion: Motion, lead: int = 0) -> Iterator[Job]:
        """Stretches of a motion with the margins their filter needs and `lead` equations before their own."""
        N, margin, rate = len(motion), 0, 0.0
        if self.how.filter is not None:
            rate = uniform_rate(motion.t, where="motion.t")
            margin = overlap(self.how.filter, rate)
        span = max(SPAN, 4 * margin)
        for start in range(0, N, span):
            stop = min(start + span, N)
            first = max(0, start - lead * self.how.decimate)
            lo, hi = max(0, first - margin), min(N, stop + margin)
            yield Job(motion[lo:hi], lo, first, start, stop, N, rate)

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
        """The equations of a job, a block at a time: each is good until the next is asked for."""
        margin = 0 if self.how.filter is None else overlap(self.how.filter, job.rate)
        tables = self.tables(margin)
        for start in range(job.first, job.stop, tables.block):
            stop = min(start + tables.block, job.stop)
            yield self._equations(job, tables, start, stop, margin)

    def tables(self, margin: int) -> Tables:
        """Where blocks of equations are written, by machine code or by the reference."""
        return Tables(self.tree, self.rows, self.columns, self.wanted, self.compile, self.how.block, margin)

    def _equations(self, job: Job, tables: Tables, start: int, stop: int, margin: int) -> Block:
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
        for r, A in zip(self.rows, tables.fill(part), strict=True):
            A[:, -1] = self._force(part, r) - A[:, -1]  # Γ − Γ_ext, paper 001 (5)
            if how.filter is not None:
                A = zero_phase(A, job.rate, how.filter, where=f"row '{self.tree.rows[r]}'")
            used = thin & np.isfinite(A[inner, -1])
            used &= how.uses(self.tree, self.tree.rows[r], part.qd[inner], numbers, job.total)
            whole = used.all() and A.strides[0] == A.itemsize
            found.append(A[inner] if whole else np.asfortranarray(A[inner][used]))
            masks.append(used[thin])
        return Block(numbers[thin], found, masks)

    def _force(self, part: Motion, row: int) -> Array | float:
        """Γ of a row: measured where a motor acts and is measured, zero elsewhere (paper 001, 5.2)."""
        tree = self.tree
        k = row - len(tree.rows) + tree.n
        if k < 0 or not tree.actuated[k] or part.forces is None:
            return 0.0
        gamma = part.forces[:, k]
        return 0.0 if tree.coordinates[k] in driven(tree) and np.isnan(gamma).all() else gamma

    def check(self, motions: Sequence[Motion]) -> None:
        """Refuse what cannot be streamed: every fault at once."""
        tree, how, faults = self.tree, self.how, Faults()
        if not motions:
            raise DataError(Fault("there is no motion to identify from.", where=tree.name))
        for motion in motions:
            tree.check_motion(motion)
            self._check_forces(motion, faults)
        names = [tree.rows[r] for r in self.rows]
        moving = [e.parameter_name for e in tree.elements if e.on_body is None]
        for setting, keys, known in (("dead_zone", how.dead_zone, [*names, *moving]), ("drop", how.drop, names)):
            for name in keys:
                if name not in known:
                    faults.add(
                        f"'{name}' is not one of the rows.", where=f"sampling.{setting}", hint=did_you_mean(name, known)
                    )
                elif setting == "dead_zone" and name not in tree.coordinates and name not in moving:
                    faults.add(f"row '{name}' has no speed of its own.", where="sampling.dead_zone")
        for name, mask in how.drop.items():
            if len(motions) > 1 or np.asarray(mask).shape != (len(motions[0]),):
                faults.add(
                    "a mask belongs to one motion and has one entry for each of its samples.",
                    where=f"sampling.drop['{name}']",
                    expected=f"({len(motions[0])},) and a single motion",
                    found=f"{np.asarray(mask).shape} and {len(motions)} motions",
                )
        if how.decimate < 1 or how.trim < 0 or how.block < 1:
            faults.add("decimate and block must be at least 1, trim at least 0.", where="sampling")
        if how.method not in ("qr", "gram"):
            faults.add(f"there is no method '{how.method}'.", where="sampling.method", expected="'qr' or 'gram'")
        faults.raise_if_any(DataError, tree.name)

    def _check_forces(self, motion: Motion, faults: Faults) -> None:
        tree = self.tree
        first = len(tree.rows) - tree.n
        for r in self.rows:
            if r < first:
                continue
            k, name = r - first, tree.rows[r]
            given = None if motion.forces is None else motion.forces[:, k]
            missing = given is None or np.isnan(given).all()
            if tree.actuated[k] and missing and name not in driven(tree):
                faults.add(
                    "the joint is actuated, and no force of it is measured.",
                    where=f"row '{name}'",
                    expected="a column of motion.forces, or a drive_gain element with its signal",
                    hint="Leave the row out (rows=…), or mark the joint passive if it has no motor.",
                )
            if given is not None and not tree.actuated[k] and np.nanmax(np.abs(given), initial=0.0) > 0.0:
                faults.add(
                    "the joint is passive, and yet a force of it is given.",
                    where=f"row '{name}'",
                    expected="zero or NaN",
                    found=f"up to {np.nanmax(np.abs(given)):.4g}",
                    hint="Mark the joint actuated, or give NaN.",
                )
            if given is not None and self.how.filter is not None and np.isnan(given).any() and not missing:
                faults.add(
                    "its measured force has gaps (NaN), which a filter would smear.",
                    where=f"row '{name}'",
                    hint="Cut the motion into pieces without gaps and give them as a list.",
                )


def driven(tree: Tree) -> set[str]:
    """Coordinates whose force is a drive gain times a signal, so that no measured force is needed."""
    return {c for e in tree.elements if e.kind == "drive_gain" for c in e.on}
