"""The observation matrix, never stored: samples stream through the regressor into one small R factor for each row.

For each row j the factor is that of [W_j | Y_j], over the columns that affect the row. Factors merge in any order, so blocks, threads,
processes and several logs are the same operation. Weights, deviations, ranks and validation are all computed from the factors.

Columns that depend on others whatever the motion are left out of the factors and put back at their end. By the closed rules
(:mod:`veridyn.mechanics.tree.rules`) the columns of rigid bodies have D = D[:, kept] K for every state of the tree, so each row, filtered,
weighed, masked or added to others, has

    [W_j | Y_j] = [W_j[:, kept] | Y_j] blockdiag(K, 1),      R_j = triangle(R_kept blockdiag(K, 1)).

A factor costs the square of its columns. Of the 20-dof car's 150 columns 84 stay, and a sample costs a third of the arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TypeVar

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError, DeviceError
from veridyn.identify.base import group
from veridyn.identify.regression.equation_plan import JOB_SAMPLES, EquationPlan, Job
from veridyn.identify.regression.factor import RowFactor, RowFactors, merge_in_order, one_blas_thread, triangle_of
from veridyn.identify.regression.sampling import Sampling, measured_rows, with_dead_zones
from veridyn.identify.regression.workers import MadeMotions, map_in_order, threads_unless
from veridyn.identify.settings import Device, IdentifySettings
from veridyn.mechanics.tree.dynamics.engine import Engine
from veridyn.mechanics.tree.of_machine import takes_machine
from veridyn.mechanics.tree.rules import structural
from veridyn.model.coordinates import Rows
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.progress import Progress, silent, usable_threads

T = TypeVar("T")
EXACT = 1e-12  # of the combinations of the closed rules: what a relation may miss them by
WORTHWHILE = 0.75  # of the arithmetic of all columns: with more left, they stay
BLOCKWISE_THREADS = (
    4  # that gain from sharing jobs whose blocks come back to Python: more wait for the interpreter's lock (measured)
)
MIN_SAMPLES = 50_000  # from which on the machine code of fewer columns pays for itself

LONG_TO_COMPILE = 20  # joints from which equations compile for more than a second, so that it is announced (measured)
# s that the equations of a chain of so many joints compile for on one core of x86-64, and how that grows from 24 to 48 (measured)
COMPILED_JOINTS, COMPILE_SECONDS, COMPILE_POWER = 48, 11.0, 2.3


@takes_machine
def observation(
    machine: Machine,
    motion: Motion | Sequence[Motion],
    rows: Rows = "all",
    settings: IdentifySettings | None = None,
    *,
    executor: Executor | None = None,
    progress: Progress = silent,
    passes: int = 1,
) -> RowFactors:
    """Stream one motion, or several, into row factors of [W_j | Y_j] (22).

    Y_j is the measured force (zero for a passive joint, a virtual one and the base; paper 001, 5.2), less what the wrenches ask of the
    row, less the columns of known parameters times their values. With an `executor` the samples are shared out, and without one by
    threads of this process where that is worth it. `settings`: sampling, engine and threads are used; `passes`: how often as many samples
    will be streamed, for which machine code may pay for itself.
    """
    return stream(machine, motion, rows, settings, executor=executor, progress=progress, passes=passes).observe()


def stream(
    machine: Machine,
    motion: Motion | Sequence[Motion],
    rows: Rows = "all",
    settings: IdentifySettings | None = None,
    *,
    executor: Executor | None = None,
    progress: Progress = silent,
    passes: int = 1,
) -> EquationStream:
    """What :func:`observation` streams, checked and ready, for estimators that pass over the samples more than once.

    A sequence of motions may make each of them when it is needed, so that a log need not fit the memory: it is walked through from the
    first to the last, and none is kept. Its attribute `samples`, if it has one, saves counting them. :class:`MadeMotions` are made by the
    workers of the executor, and checked there but for the first. With settings of `device` "cuda" factors are made on a GPU
    (:mod:`veridyn.identify.regression.gpu`).
    """
    chosen = settings or IdentifySettings()
    how = chosen.sampling or Sampling()
    several: Sequence[Motion] = (motion,) if isinstance(motion, Motion) else motion
    if isinstance(several, MadeMotions) and how.drop:
        raise DataError("samples cannot be dropped by number from motions that are made one by one.", where="drop")
    seen = [several[0]] if isinstance(several, MadeMotions) else several
    measured = measured_rows(machine, seen, rows)[0]
    how = with_dead_zones(how, machine, seen, measured)
    plan = EquationPlan(machine, machine.select_rows(measured), how)
    plan.check(seen, usable_threads(chosen.threads))
    work = passes * samples_of(seen) * (len(several) if seen is not several else 1)
    fewer = _fewer_columns(plan, chosen.engine, seen[0], work)
    plan = replace(plan, compile=plan.pays(chosen.engine, seen[0], work))
    return EquationStream(
        plan=plan,
        motions=several,
        executor=executor,
        progress=progress,
        device=chosen.device,
        fewer=fewer,
        threads=chosen.threads,
    )


def _fewer_columns(
    plan: EquationPlan, engine: Engine, motion: Motion, work: int
) -> tuple[EquationPlan, Dependence] | None:
    """The plan without columns that depend on others, where its machine code pays for itself or is there already, and the rule."""
    if engine == "numpy" or plan.how.method != "qr":
        return None
    rule = dependence(plan.machine)
    if rule is None:
        return None
    fewer = replace(plan, kept=rule.kept, compile=True)
    if not worthwhile(plan.columns, fewer.columns):
        return None
    return (fewer, rule) if work >= MIN_SAMPLES or fewer.pays("auto", motion, 0) else None


def samples_of(motions: Sequence[Motion]) -> int:
    """How many samples some motions have; one pass over them where they do not know."""
    known = getattr(motions, "samples", None)
    return sum(len(part) for part in motions) if known is None else int(known)


@dataclass(frozen=True, eq=False, kw_only=True)
class EquationStream:
    """The equations of some motions, which can be passed over again and again and are never held at once."""

    plan: EquationPlan
    motions: Sequence[Motion]
    executor: Executor | None = None
    progress: Progress = silent
    device: Device = "cpu"
    fewer: tuple[EquationPlan, Dependence] | None = None
    threads: int | None = None

    def observe(self) -> RowFactors:
        """The factors of all rows, made on this processor; :func:`veridyn.identify.regression.gpu.observed` looks at the device.

        Columns that depend on others whatever the motion are made from those, where `fewer` has a plan without them.
        """
        if self.fewer is None:
            return self._observed()
        plan, rule = self.fewer
        found = replace(self, plan=plan)._observed()
        whole = zip(found.rows, self.plan.columns, strict=True)
        return RowFactors(found.parameters, tuple(rule.restored(f, columns) for f, columns in whole))

    def with_columns(self, columns: Sequence[int]) -> EquationStream:
        """The stream for work that looks at these columns alone: by the plan with fewer of them, where that has these."""
        if self.fewer is None or not set(columns) <= set(self.fewer[1].kept):
            return self
        return replace(self, plan=self.fewer[0], fewer=None)

    def _observed(self) -> RowFactors:
        """The factors of the columns of the plan."""
        if isinstance(self.motions, MadeMotions):
            return self.merged(self._each_log(partial(_factors_of_log, self.plan, self.motions), "streaming logs"))
        return self.merged(self.each(EquationPlan.factors))

    def merged(self, parts: Iterable[tuple[RowFactor, ...]]) -> RowFactors:
        """The factors of all jobs together."""
        with one_blas_thread():
            factors = merge_in_order(self.plan.empty_factors(), parts)
        return RowFactors(self.plan.machine.parameters, tuple(f.finished() for f in factors))

    def each(
        self, work: Callable[[EquationPlan, Job], T], lead: int = 0, task: str = "streaming samples"
    ) -> Iterator[T]:
        """What `work` makes of each job, in order. With an executor of processes, `work` and its results travel.

        `lead`: how many equations before its own a job is to see as well (``plan.blocks`` starts with them).
        """
        self._check_processor()
        plan = self.plan
        if isinstance(self.motions, MadeMotions):
            for parts in self._each_log(partial(_each_of_log, work, plan, self.motions, lead), task):
                yield from parts
            return
        total, done = float(samples_of(self.motions)), 0.0
        if plan.compile and plan.machine.n >= LONG_TO_COMPILE:
            self.progress(compiling(plan.machine.n), 0.0, None)
        self.progress(task, done, total)
        bound = partial(_counted, work, plan)
        threads = min(self._threads(work), math.ceil(total / JOB_SAMPLES))
        with threads_unless(self.executor, threads) as (executor, ahead):
            for part, count in map_in_order(executor, bound, self._jobs(lead), ahead):
                yield part
                done += count
                self.progress(task, done, total)

    def _threads(self, work: object) -> int:
        """Threads of this process that share in some work: by default where equations are made by machine code."""
        if self.threads is not None:
            return usable_threads(self.threads)
        if not self.plan.compile:
            return 1
        in_one_call = work is EquationPlan.factors and self.plan.in_one_call
        return usable_threads() if in_one_call else usable_threads(BLOCKWISE_THREADS)

    def _each_log(self, work: Callable[[object], T], task: str) -> Iterator[T]:
        """What `work` makes of each source of made motions, in order."""
        assert isinstance(self.motions, MadeMotions)
        sources, total = self.motions.sources, float(len(self.motions))
        self.progress(task, 0.0, total)
        threads = min(usable_threads(self.threads) if self.threads is not None else 1, len(sources))
        with threads_unless(self.executor, threads) as (executor, ahead):
            for done, part in enumerate(map_in_order(executor, work, sources, ahead), start=1):
                yield part
                self.progress(task, float(done), total)

    def _check_processor(self) -> None:
        if self.device != "cpu":
            raise DeviceError(
                "this method passes over single equations, which stay on the GPU.",
                where=f"device '{self.device}'",
                expected="'ols', 'wls', 'map' or 'consistent', with covariance 'white'",
                hint="Use device='cpu'.",
            )

    def _jobs(self, lead: int) -> Iterator[Job]:
        """Jobs of one motion after the other."""
        before = 0
        for motion in self.motions:
            yield from self.plan.jobs(motion, lead, before)
            before += len(motion)


def _counted(work: Callable[[EquationPlan, Job], T], plan: EquationPlan, job: Job) -> tuple[T, int]:
    """What `work` makes of a job, and how many samples that was."""
    return work(plan, job), job.stop - job.start


def _each_of_log(
    work: Callable[[EquationPlan, Job], T], plan: EquationPlan, motions: MadeMotions, lead: int, source: object
) -> list[T]:
    """What `work` makes of the jobs of one log, which is made and checked here."""
    motion = motions.made(source)
    try:
        plan.check([motion])
    except DataError as error:
        raise DataError(error.faults, f"{source}") from None
    return [work(plan, job) for job in plan.jobs(motion, lead)]


def _factors_of_log(plan: EquationPlan, motions: MadeMotions, source: object) -> tuple[RowFactor, ...]:
    """The factors of one log."""
    with one_blas_thread():
        return merge_in_order(plan.empty_factors(), _each_of_log(EquationPlan.factors, plan, motions, 0, source))


@dataclass(frozen=True, eq=False)
class Dependence:
    """Columns that are `kept`, and K (kept, p) that makes all estimated ones of them: D T = (D T)[:, kept] K."""

    kept: tuple[int, ...]
    matrix: Array

    def restored(self, factor: RowFactor, columns: tuple[int, ...]) -> RowFactor:
        """The factor of a row over all its columns from that over the kept ones."""
        wide = np.column_stack([factor.R[:, :-1] @ _restoring(self, factor.columns, columns), factor.R[:, -1]])
        R = np.zeros((len(columns) + 1, len(columns) + 1), order="F")
        R[: min(len(wide), len(R))] = triangle_of(wide)
        return replace(factor, columns=columns, R=R)


@lru_cache(maxsize=256)
def _restoring(rule: Dependence, kept: tuple[int, ...], columns: tuple[int, ...]) -> Array:
    """K of the kept columns of a row, and of all of them."""
    return rule.matrix[np.ix_([rule.kept.index(c) for c in kept], columns)]


@lru_cache(maxsize=32)
def dependence(machine: Machine) -> Dependence | None:
    """The dependences of a tree's estimated columns by the closed rules; None where there are none, or where the rules do not reach."""
    if machine.closed or machine.shares_coordinates:
        return None
    p = machine.parameters
    B = structural(machine) @ p.estimated_matrix() * p.typical
    kept = group(B, np.ones(B.shape[1])).kept
    if len(kept) == np.count_nonzero(B.any(axis=0)):
        return None
    K = np.linalg.lstsq(B[:, kept], B, rcond=None)[0]
    if np.abs(B[:, kept] @ K - B).max() > EXACT * np.abs(B).max():
        return None
    K[:, kept] = np.eye(len(kept))
    return Dependence(kept, K * p.typical[list(kept)][:, None] / p.typical)


def worthwhile(all_columns: tuple[tuple[int, ...], ...], fewer: tuple[tuple[int, ...], ...]) -> bool:
    """Whether factors of fewer columns save enough: they cost the square of their columns."""
    whole, left = (sum((len(cs) + 1) ** 2 for cs in columns) for columns in (all_columns, fewer))
    return left < WORTHWHILE * whole


def compiling(joints: int) -> str:
    """What is done before the first sample, and about how long it takes where nothing is kept of it: one compile has no parts to count."""
    seconds = COMPILE_SECONDS * (joints / COMPILED_JOINTS) ** COMPILE_POWER
    about = f"{seconds / 60.0:.0f} min" if seconds >= 90.0 else f"{seconds:.0f} s"
    return f"compiling the equations of {joints} joints, about {about} the first time"
