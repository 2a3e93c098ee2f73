"""The observation matrix, never stored: samples stream through the regressor into one small R factor for each row.

For each row j the factor is that of [W_j | Y_j], over the columns that affect the row. Factors merge in any order, so blocks, threads,
processes and several logs are the same operation. Weights, deviations, ranks and validation are all computed from the factors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeVar, get_args

import numpy as np

from veridyn.errors import DataError, DeviceError, Fault
from veridyn.identify.dead_zone import with_dead_zones
from veridyn.identify.dependent_columns import MIN_SAMPLES, Dependence, dependence, worthwhile
from veridyn.identify.equation_check import driven
from veridyn.identify.equation_plan import EquationPlan, Job
from veridyn.identify.factor import RowFactor
from veridyn.identify.handing import handed
from veridyn.identify.made_motions import MadeMotions
from veridyn.identify.row_factors import RowFactors
from veridyn.identify.sampling import Sampling
from veridyn.identify.tables import equations
from veridyn.identify.threads import one_blas_thread
from veridyn.mechanics.engine import Engine, wants_compiled
from veridyn.mechanics.tree.accept import takes_machine
from veridyn.model.coordinates import Rows
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.progress import Progress, silent

T = TypeVar("T")
Device = Literal["cpu", "cuda"]


@takes_machine
def observation(
    machine: Machine,
    motion: Motion | Sequence[Motion],
    rows: Rows = "all",
    sampling: Sampling | None = None,
    *,
    engine: Engine = "auto",
    executor: Executor | None = None,
    progress: Progress = silent,
    passes: int = 1,
) -> RowFactors:
    """Stream one motion, or several, into row factors of [W_j | Y_j] (22).

    Y_j is the measured force (zero for a passive joint, a virtual one and the base; paper 001, 5.2), less what the wrenches ask of the
    row, less the columns of known parameters times their values. With an `executor` the samples are shared out. `engine`: "compiled",
    "numpy", or "auto", which compiles where there are samples enough to pay for it; `passes`: how often as many will be streamed.
    """
    made = stream(machine, motion, rows, sampling, engine=engine, executor=executor, progress=progress, passes=passes)
    return made.observe()


def stream(
    machine: Machine,
    motion: Motion | Sequence[Motion],
    rows: Rows = "all",
    sampling: Sampling | None = None,
    *,
    engine: Engine = "auto",
    executor: Executor | None = None,
    progress: Progress = silent,
    device: Device = "cpu",
    passes: int = 1,
) -> EquationStream:
    """What :func:`observation` streams, checked and ready, for estimators that pass over the samples more than once.

    A sequence of motions may make each of them when it is needed, so that a log need not fit the memory: it is walked through from the
    first to the last, and none is kept. Its attribute `samples`, if it has one, saves counting them. :class:`MadeMotions` are made by the
    workers of the executor, and checked there but for the first. On the `device` "cuda" factors are made on a GPU
    (:mod:`veridyn.identify.gpu`).
    """
    check_device(device)
    how = sampling or Sampling()
    several: Sequence[Motion] = (motion,) if isinstance(motion, Motion) else motion
    if isinstance(several, MadeMotions) and how.drop:
        raise DataError(Fault("samples cannot be dropped by number from motions that are made one by one.", "drop"))
    seen = [several[0]] if isinstance(several, MadeMotions) else several
    measured = measured_rows(machine, seen, rows)[0]
    how = with_dead_zones(how, machine, seen, measured)
    plan = EquationPlan(machine, machine.select_rows(measured), how)
    plan.check(seen)
    work = passes * samples_of(seen) * (len(several) if seen is not several else 1)
    fewer = _fewer_columns(plan, engine, seen[0], work)
    request = equations(machine, plan.computed, plan.wanted, seen[0])
    plan = replace(plan, compile=wants_compiled(engine, machine, request, work))
    return EquationStream(plan=plan, motions=several, executor=executor, progress=progress, device=device, fewer=fewer)


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
    request = equations(plan.machine, fewer.computed, fewer.wanted, motion)
    return (fewer, rule) if work >= MIN_SAMPLES or wants_compiled("auto", plan.machine, request, 0) else None


def check_device(device: str) -> None:
    """Refuse a word that names no device."""
    if device not in get_args(Device):
        raise DataError(Fault(f"there is no device '{device}'.", where="device", expected="'cpu' or 'cuda'"))


def measured_rows(machine: Machine, motions: Sequence[Motion], rows: Rows) -> tuple[Rows, tuple[str, ...]]:
    """The rows without those of prescribed coordinates whose force no motion has, and a note for each; rows given by name all stay."""
    if not machine.prescribed or rows not in ("all", "joints", "actuated"):
        return rows, ()
    forces = [m.forces for m in motions]
    missing = [
        machine.coordinates[k]
        for k in machine.held
        if machine.coordinates[k] not in driven(machine) and all(f is None or np.isnan(f[:, k]).all() for f in forces)
    ]
    if not missing:
        return rows, ()
    named = [machine.rows[r] for r in machine.select_rows(rows)]
    notes = tuple(
        f"row '{c}' is not used: the coordinate is prescribed, and its force is not measured" for c in missing
    )
    return [r for r in named if r not in missing], notes


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

    def observe(self) -> RowFactors:
        """The factors of all rows, made on this processor; :func:`veridyn.identify.gpu.observed` looks at the device.

        Columns that depend on others whatever the motion are made from those, where `fewer` has a plan without them
        (:mod:`veridyn.identify.dependent_columns`).
        """
        if self.fewer is None:
            return self._observed()
        plan, rule = self.fewer
        found = replace(self, plan=plan)._observed()
        whole = zip(found.rows, self.plan.columns, strict=True)
        return RowFactors(found.parameters, tuple(rule.restored(f, columns) for f, columns in whole))

    def _observed(self) -> RowFactors:
        """The factors of the columns of the plan."""
        if isinstance(self.motions, MadeMotions):
            return self.merged(self._each_log(partial(_factors_of_log, self.plan, self.motions), "streaming logs"))
        return self.merged(self.each(EquationPlan.factors))

    def merged(self, parts: Iterable[tuple[RowFactor, ...]]) -> RowFactors:
        """The factors of all jobs together."""
        plan = self.plan
        factors = plan.empty_factors()
        with one_blas_thread():
            for part in parts:
                factors = tuple(a.merge(b) for a, b in zip(factors, part, strict=True))
        return RowFactors(plan.machine.parameters, tuple(f.finished() for f in factors))

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
        self.progress(task, done, total)
        bound = partial(_counted, work, plan)
        jobs = self._jobs(lead)
        for part, count in map(bound, jobs) if self.executor is None else handed(self.executor, bound, jobs):
            yield part
            done += count
            self.progress(task, done, total)

    def _each_log(self, work: Callable[[object], T], task: str) -> Iterator[T]:
        """What `work` makes of each source of made motions, in order."""
        assert isinstance(self.motions, MadeMotions)
        sources, total = self.motions.sources, float(len(self.motions))
        self.progress(task, 0.0, total)
        found = map(work, sources) if self.executor is None else handed(self.executor, work, sources)
        for done, part in enumerate(found, start=1):
            yield part
            self.progress(task, float(done), total)

    def _check_processor(self) -> None:
        if self.device != "cpu":
            raise DeviceError(
                Fault(
                    "this method passes over single equations, which stay on the GPU.",
                    where=f"device '{self.device}'",
                    expected="'ols', 'wls', 'map' or 'consistent', with covariance 'white'",
                    hint="Use device='cpu'.",
                )
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
    factors = plan.empty_factors()
    with one_blas_thread():
        for part in _each_of_log(EquationPlan.factors, plan, motions, 0, source):
            factors = tuple(a.merge(b) for a, b in zip(factors, part, strict=True))
    return factors
