"""The observation matrix, never stored: samples stream through the regressor into one small R factor for each row.

For each row j the factor is that of [W_j | Y_j], over the columns that affect the row. Factors merge in any order, so blocks, threads,
processes and several logs are the same operation. Weights, deviations, ranks and validation are all computed from the factors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, DeviceError, Fault, Faults, did_you_mean
from veridyn.identify.factor import RowFactor, accumulate, empty, triangle_of
from veridyn.identify.handing import handed
from veridyn.identify.sampling import Sampling
from veridyn.identify.tables import SymbolTables, equations
from veridyn.identify.threads import one_blas_thread
from veridyn.mechanics.columns import structure
from veridyn.mechanics.engine import Engine, wants_compiled
from veridyn.mechanics.loops.projection import open_rows, projection
from veridyn.model.accept import accepts_machine
from veridyn.model.motion import Motion
from veridyn.model.parameters import ParameterSet
from veridyn.model.tree import Rows, Tree
from veridyn.progress import Progress, silent
from veridyn.signals.butterworth import zero_phase
from veridyn.signals.resample import uniform_rate

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
T = TypeVar("T")
Device = Literal["cpu", "cuda"]
JOB_SAMPLES = 16384  # samples one job deals with


@dataclass(frozen=True, eq=False)
class RowFactors:
    """The factors of all rows, over the estimated parameters of one set."""

    parameters: ParameterSet
    rows: tuple[RowFactor, ...]

    def merge(self, other: RowFactors) -> RowFactors:
        """Both logs together. The rows and the parameters must be the same."""
        names = [f.row for f in self.rows], [f.row for f in other.rows]
        if self.parameters.names != other.parameters.names or names[0] != names[1]:
            raise DataError(
                Fault("observations of different models or rows cannot be merged.", found=f"{names[0]} and {names[1]}")
            )
        return RowFactors(self.parameters, tuple(a.merge(b) for a, b in zip(self.rows, other.rows, strict=True)))

    @property
    def columns(self) -> tuple[int, ...]:
        """The estimated parameters that affect some row, in order."""
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


@accepts_machine
def observation(
    tree: Tree,
    motion: Motion | Sequence[Motion],
    rows: Rows = "all",
    sampling: Sampling | None = None,
    *,
    engine: Engine = "auto",
    executor: Executor | None = None,
    progress: Progress = silent,
) -> RowFactors:
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
    device: Device = "cpu",
) -> EquationStream:
    """What :func:`observation` streams, checked and ready, for estimators that pass over the samples more than once.

    A sequence of motions may make each of them when it is needed, so that a log need not fit the memory: it is walked through from the
    first to the last, and none is kept. Its attribute `samples`, if it has one, saves counting them. On the `device` "cuda" factors are
    made on a GPU (:mod:`veridyn.identify.gpu`).
    """
    check_device(device)
    how = sampling or Sampling()
    several: Sequence[Motion] = (motion,) if isinstance(motion, Motion) else motion
    plan = EquationPlan(tree, tree.select_rows(measured_rows(tree, several, rows)[0]), how)
    plan.check(several)
    work = samples_of(several)
    request = equations(tree, plan.computed, plan.wanted, several[0])
    plan = replace(plan, compile=wants_compiled(engine, tree, request, work))
    return EquationStream(plan, several, executor, progress, device)


def check_device(device: str) -> None:
    """Refuse a word that names no device."""
    if device not in get_args(Device):
        raise DataError(Fault(f"there is no device '{device}'.", where="device", expected="'cpu' or 'cuda'"))


def measured_rows(tree: Tree, motions: Sequence[Motion], rows: Rows) -> tuple[Rows, tuple[str, ...]]:
    """The rows without those of prescribed coordinates whose force no motion has, and a note for each; rows given by name all stay."""
    if not tree.prescribed or rows not in ("all", "joints", "actuated"):
        return rows, ()
    forces = [m.forces for m in motions]
    missing = [
        tree.coordinates[k]
        for k in tree.held
        if tree.coordinates[k] not in driven(tree) and all(f is None or np.isnan(f[:, k]).all() for f in forces)
    ]
    if not missing:
        return rows, ()
    named = [tree.rows[r] for r in tree.select_rows(rows)]
    notes = tuple(
        f"row '{c}' is not used: the coordinate is prescribed, and its force is not measured" for c in missing
    )
    return [r for r in named if r not in missing], notes


def samples_of(motions: Sequence[Motion]) -> int:
    """How many samples some motions have; one pass over them where they do not know."""
    known = getattr(motions, "samples", None)
    return sum(len(part) for part in motions) if known is None else int(known)


@dataclass(frozen=True, eq=False)
class EquationStream:
    """The equations of some motions, which can be passed over again and again and are never held at once."""

    plan: EquationPlan
    motions: Sequence[Motion]
    executor: Executor | None = None
    progress: Progress = silent
    device: Device = "cpu"

    def observe(self) -> RowFactors:
        """The factors of all rows, made on this processor; :func:`veridyn.identify.gpu.observed` looks at the device."""
        return self.merged(self.each(EquationPlan.factors))

    def merged(self, parts: Iterable[tuple[RowFactor, ...]]) -> RowFactors:
        """The factors of all jobs together."""
        plan = self.plan
        factors = tuple(empty(plan.tree.rows[r], plan.columns[k], plan.how.method) for k, r in enumerate(plan.rows))
        with one_blas_thread():
            for part in parts:
                factors = tuple(a.merge(b) for a, b in zip(factors, part, strict=True))
        return RowFactors(plan.tree.parameters, tuple(f.finished() for f in factors))

    def each(
        self, work: Callable[[EquationPlan, Job], T], lead: int = 0, task: str = "streaming samples"
    ) -> Iterator[T]:
        """What `work` makes of each job, in order. With an executor of processes, `work` and its results travel.

        `lead`: how many equations before its own a job is to see as well (``plan.blocks`` starts with them).
        """
        if self.device != "cpu":
            raise DeviceError(
                Fault(
                    "this method passes over single equations, which stay on the GPU.",
                    where=f"device '{self.device}'",
                    expected="'ols', 'wls', 'map' or 'consistent', with covariance 'white'",
                    hint="Use device='cpu'.",
                )
            )
        plan = self.plan
        total, done = float(samples_of(self.motions)), 0.0
        self.progress(task, done, total)
        bound = partial(_counted, work, plan)
        jobs = self._jobs(lead)
        for part, count in map(bound, jobs) if self.executor is None else handed(self.executor, bound, jobs):
            yield part
            done += count
            self.progress(task, done, total)

    def _jobs(self, lead: int) -> Iterator[Job]:
        """Jobs of one motion after the other."""
        before = 0
        for motion in self.motions:
            yield from self.plan.jobs(motion, lead, before)
            before += len(motion)


def _counted(work: Callable[[EquationPlan, Job], T], plan: EquationPlan, job: Job) -> tuple[T, int]:
    """What `work` makes of a job, and how many samples that was."""
    return work(plan, job), job.stop - job.start


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
        tree, how, faults = self.tree, self.how, Faults()
        if not motions:
            raise DataError(Fault("there is no motion to identify from.", where=tree.name))
        for motion in motions:
            tree.check_motion(motion)
            self._check_forces(motion, faults)
        names = [tree.rows[r] for r in self.rows]
        moving = [e.parameter_name for e in tree.elements if e.on_body is None and e.between is None]
        joints = [*names, *(c for c in tree.coordinates if tree.loops and c not in names)]
        for setting, keys, known in (("dead_zone", how.dead_zone, [*joints, *moving]), ("drop", how.drop, names)):
            for name in keys:
                if name not in known:
                    faults.add(
                        f"'{name}' is not one of the rows.", where=f"sampling.{setting}", hint=did_you_mean(name, known)
                    )
                elif setting == "dead_zone" and name not in tree.coordinates and name not in moving:
                    faults.add(f"row '{name}' has no speed of its own.", where="sampling.dead_zone")
        for name in (*how.filters, *how.along):
            if name not in names:
                where = "sampling.filters" if name in how.filters else "sampling.along"
                faults.add(f"'{name}' is not one of the rows.", where=where, hint=did_you_mean(name, names))
        for row, path in how.along.items():
            for other, signal in path.items():
                if other not in tree.rows:
                    hint = did_you_mean(other, tree.rows)
                    faults.add(f"there is no row '{other}'.", where=f"sampling.along['{row}']", hint=hint)
                if any(signal not in motion.signals for motion in motions):
                    hint = did_you_mean(signal, list(motions[0].signals))
                    faults.add(f"the motion has no signal '{signal}'.", where=f"sampling.along['{row}']", hint=hint)
        for name, mask in how.drop.items():
            total = sum(len(motion) for motion in motions)
            if np.asarray(mask).shape != (total,):
                faults.add(
                    "a mask has one entry for each sample of all motions, in order.",
                    where=f"sampling.drop['{name}']",
                    expected=f"({total},)",
                    found=f"{np.asarray(mask).shape}",
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
            if given is not None and self.how.filter_of(name) is not None and np.isnan(given).any() and not missing:
                faults.add(
                    "its measured force has gaps (NaN), which a filter would smear.",
                    where=f"row '{name}'",
                    hint="Cut the motion into pieces without gaps and give them as a list.",
                )


def driven(tree: Tree) -> set[str]:
    """Coordinates whose force is a drive gain times a signal, so that no measured force is needed."""
    return {c for e in tree.elements if e.kind == "drive_gain" for c in e.on}
