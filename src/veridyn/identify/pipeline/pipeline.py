"""One way from logs to a judged fit: every door walks it, and adds nothing to what is asked.

    log → mended → motions → equations → friction, delays, trust → fit → held-out check → findings → verdict

    done = Pipeline(machine=robot, training=[Recording(log=log)]).run();  done.fit.verdict

A stage takes the :class:`Work` so far and returns it with what the stage adds. Any of them can be taken out, replaced or run alone:

    stages = [mine if stage is choose_cutoff else stage for stage in STAGES];  Pipeline(…, stages=stages).run()

Without validation recordings the last 30 % of each training recording are held out; `hold_out` False fits every sample, and judges the fit
by these. What a study adds is files, names and places; what a log shows by itself (clocks, rates, closed loops) is asked here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from veridyn.errors import DataWarning, Fault, IdentificationError, IdentificationWarning, warn
from veridyn.identify.cutoff import Cutoff
from veridyn.identify.diagnosis.delays import Delays, delays
from veridyn.identify.diagnosis.fit_check import assumes_uncorrelated, attempt
from veridyn.identify.diagnosis.judge import Case, Judgement, in_detail, judgement_of
from veridyn.identify.estimator import WLS, Estimator, FitProblem, in_formulation, with_tree_note
from veridyn.identify.estimators.feasible import Consistent
from veridyn.identify.estimators.prior import Prior
from veridyn.identify.estimators.trust import Trust, trust_prior
from veridyn.identify.friction_ladder import BLOCKS, FrictionLadder, friction_ladder
from veridyn.identify.friction_terms import TERMS
from veridyn.identify.pipeline.estimation import estimated
from veridyn.identify.pipeline.held_out import HeldOutCheck, held_out_check
from veridyn.identify.pipeline.loop_closing import Closing, closing
from veridyn.identify.pipeline.preparation import Preparation
from veridyn.identify.pipeline.prepared_logs import PreparedLogs
from veridyn.identify.pipeline.recording import RecordedMotion, Recording, plain, split, warn_of_rest, wrong_speed
from veridyn.identify.regression.factor import one_blas_thread
from veridyn.identify.regression.sampling import Sampling, with_dead_zones
from veridyn.identify.result import Fit
from veridyn.identify.settings import DiagnosisSettings, IdentifySettings
from veridyn.inference.finding import Mistake
from veridyn.inference.log_inspection import odd_clocks
from veridyn.model.coordinates import Rows
from veridyn.model.experiment import Experiment
from veridyn.model.graph import Formulation
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.progress import Progress, silent, staged

DIFFERENT_LOGS = "Look at what differs between them: load, temperature, speed, or what the model lacks there."
Blocks = tuple[
    Sequence[Motion], Sequence[Motion], Sampling, Sampling
]  # of training and validation, made as they are needed
Stage = Callable[["Work"], "Work"]


@dataclass(frozen=True, kw_only=True)
class FrictionSteps:
    """Arguments of :func:`~veridyn.estimators.friction_ladder`."""

    terms: Sequence[str] = TERMS
    on: Sequence[str] = ()
    temperature: str | Mapping[str, str] = ""
    blocks: int = BLOCKS
    standard_errors: float = 1.0


@dataclass(frozen=True, eq=False, kw_only=True)
class Pipeline:
    """What is asked: a machine, recordings, and what is not left to the rules of every door.

    `how`: preparation of logs; `method` and `settings`: of the estimate, whose sampling follows from the motions; `friction`: terms that
    are tried one by one; `trust`: whether the trust in a prior is chosen within the training logs; `checks`: the diagnosis. `limits`:
    coordinate → least and largest position that the model's file states. `formulation`: that of the result. `blocks`: of logs that do not
    fit the memory, their motions as they are needed, from the cut-off and both samplings.
    """

    machine: Machine
    training: Sequence[Recording]
    validation: Sequence[Recording] = ()
    hold_out: bool = True
    rows: Rows = "all"
    how: Preparation = field(default_factory=Preparation)
    method: Estimator = field(default_factory=WLS)
    settings: IdentifySettings = field(default_factory=IdentifySettings)
    friction: FrictionSteps | None = None
    trust: bool = False
    checks: DiagnosisSettings = field(default_factory=DiagnosisSettings)
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    formulation: Formulation = "tree"
    blocks: Callable[[Work], Blocks] | None = None
    executor: Executor | None = None
    progress: Progress = silent
    stages: Sequence[Stage] = ()

    def run(self) -> Work:
        """All stages, in order."""
        work = self.start()
        with one_blas_thread():  # once, and not again in every pass
            for stage in self.stages or STAGES:
                work = stage(work)
        return work

    def start(self) -> Work:
        """Before the first stage: recordings with what is held out of them."""
        training, validation = list(self.training), list(self.validation)
        if not validation:
            training, validation = split(training) if self.hold_out else (training, training)
        logs = PreparedLogs(
            machine=self.machine,
            training=training,
            validation=validation,
            how=self.how,
            rows=self.rows,
            progress=self.progress,
        )
        return Work(asked=self, machine=self.machine, logs=logs, method=self.method, settings=self.settings)


@dataclass(frozen=True, eq=False, kw_only=True)
class Work:
    """What is known behind a stage. `asked` never changes; the machine gains friction, the method trust, the settings a covariance.

    `odd_clocks`: named before anything else, since what follows may be refused because of them. `lowpass` and `cutoff`: of the positions
    (Hz), and what was tried for it. `how` and `later`: samplings of the training and of the validation motions. `few`: that few
    independent equations are left. `problem`: what the method was given. `learning` and `judging`: motions of the fit and of its check.
    """

    asked: Pipeline
    machine: Machine
    logs: PreparedLogs
    method: Estimator
    settings: IdentifySettings
    odd_clocks: Sequence[Mistake] = ()
    cutoff: Cutoff | None = None
    lowpass: float | None = None
    training: Sequence[RecordedMotion] = ()
    validation: Sequence[RecordedMotion] = ()
    how: Sampling = field(default_factory=Sampling)
    later: Sampling = field(default_factory=Sampling)
    few: Fault | None = None
    ladder: FrictionLadder | None = None
    late: Delays = field(default_factory=lambda: Delays(seconds={}))
    trust: Trust[Any] | None = None
    learning: Sequence[Motion] = ()
    judging: Sequence[Motion] = ()
    problem: FitProblem | None = None
    fit: Fit | None = None
    check: HeldOutCheck | None = None
    loops: Closing | None = None
    judgement: Judgement = field(default_factory=Judgement)

    @property
    def identified(self) -> Fit:
        """The fit, which every stage from :func:`estimate` on has."""
        if self.fit is None:
            raise IdentificationError("there is no fit before the stage that makes it.", where="Pipeline.stages")
        return self.fit

    @property
    def rows(self) -> list[str]:
        """Names of the rows that are used."""
        return [self.machine.rows[r] for r in self.machine.select_rows(self.asked.rows)]


def inspect_logs(work: Work) -> Work:
    """What clocks show by themselves, and the logs in pieces that can be filtered."""
    asked = work.asked
    asked.method.check(work.machine, asked.rows, asked.settings.correlated)
    if asked.validation:
        _warn_of_repeats(work.logs.training, work.logs.validation)
    early = odd_clocks(work.logs.logs) if asked.checks.level != "off" else []
    for mistake in early:  # at once: what follows may be refused because of it
        warn(IdentificationWarning, mistake.fault)
    for log in work.logs.repaired:
        for fault in log.told:
            warn(DataWarning, fault)
    return replace(work, odd_clocks=tuple(early))


def choose_cutoff(work: Work) -> Work:
    """The low-pass of the positions."""
    cutoff, lowpass = work.logs.lowpass()
    return replace(work, cutoff=cutoff, lowpass=lowpass)


def make_equations(work: Work) -> Work:
    """Motions at that low-pass, and how their samples become equations."""
    training, validation = work.logs.motions(work.lowpass)
    how, later = work.logs.samplings(training, validation, work.lowpass)
    few = work.logs.few_equations(training, how, work.lowpass)
    settings = work.settings
    if settings.sampling is not None:
        how, later, few = settings.sampling, replace(settings.sampling, drop={}), None
    if few is not None and settings.covariance != "hac" and assumes_uncorrelated(work.method):
        warn(IdentificationWarning, few)
        settings = replace(settings, covariance="auto")
    return replace(work, training=training, validation=validation, how=how, later=later, few=few, settings=settings)


def choose_friction(work: Work) -> Work:
    """Terms of friction that held-out parts of the training logs speak for, where they are to be chosen."""
    steps = work.asked.friction
    if steps is None:
        _warn_of_rest(work)
        return work
    ladder = friction_ladder(
        work.machine,
        plain(work.training),
        terms=steps.terms,
        on=steps.on or None,
        temperature=steps.temperature,
        rows=work.asked.rows,
        settings=IdentifySettings(sampling=work.how),
        blocks=steps.blocks,
        standard_errors=steps.standard_errors,
        progress=work.asked.progress,
    )
    training, validation = (
        [replace(part, motion=ladder.with_loads(part.motion)) for part in parts]
        for parts in (work.training, work.validation)
    )
    work.method.check(ladder.machine, work.asked.rows, work.settings.correlated)
    done = replace(work, ladder=ladder, machine=ladder.machine, training=training, validation=validation)
    _warn_of_rest(done)
    return done


def find_delays(work: Work) -> Work:
    """Delays of forces against the motion, taken out where that is asked for and they are confirmed."""
    how = work.asked.how
    if how.delays == "ignore":
        return work
    motions = plain(work.training)
    detail = in_detail(work.machine, motions, work.rows, work.how) if how.by_rule else None
    late = delays(work.machine, motions, work.rows, work.how, detail)
    if how.delays != "correct" or not late.confirmed:
        return replace(work, late=late)
    training, validation = (work.logs.moved(part, late) for part in (work.training, work.validation))
    first, later = work.logs.samplings(training, validation, work.lowpass)
    return replace(work, late=late, training=training, validation=validation, how=first, later=later)


def choose_trust(work: Work) -> Work:
    """How far a prior is to be trusted, by the training logs alone, where that is asked for."""
    if not work.asked.trust:
        return work
    if not isinstance(work.method, Prior | Consistent) or work.how.filtering:
        expected = "an estimator with settings: {prior: …} or of a prior, and sampling: {filter: none}"
        raise IdentificationError(
            Fault("nothing can be chosen here.", "estimator.trust", expected, at=("estimator", "trust"))
        )
    method: Any = work.method
    trust = trust_prior(
        work.machine,
        [part.motion[~wrong_speed(part)] for part in work.training],
        method,
        rows=work.asked.rows,
        settings=replace(work.settings, sampling=replace(work.how, drop={}, trim=0), device="cpu"),
        progress=work.asked.progress,
    )
    return replace(work, trust=trust, method=trust.method)


def estimate(work: Work) -> Work:
    """The fit of all equations; of logs that are read in blocks, of motions as they are needed."""
    asked, how, later = work.asked, work.how, work.later
    learning, judging = plain(work.training), plain(work.validation)
    if asked.blocks is not None:
        learning, judging, how, later = asked.blocks(work)
    how, later = (with_dead_zones(each, work.machine, plain(work.training), asked.rows) for each in (how, later))
    problem = FitProblem(
        machine=work.machine,
        motion=learning,
        rows=asked.rows,
        settings=replace(work.settings, sampling=how),
        executor=asked.executor,
        progress=staged(asked.progress, "identifying"),
    )
    fit = estimated(work.method, problem)
    if fit.disagreement:
        warn(IdentificationWarning, Fault(fit.disagreement, "training", hint=DIFFERENT_LOGS))
    return replace(work, fit=fit, problem=problem, learning=learning, judging=judging, later=later)


def check_held_out(work: Work) -> Work:
    """Errors of the fit, and of the values from before, on what was held out."""
    assert work.problem is not None
    progress = staged(work.asked.progress, "validating")
    check = held_out_check(work.identified, work.problem, work.judging, work.later, progress)
    fit, own = check.on(work.identified), work.asked.formulation
    return replace(work, check=check, fit=fit if own == "tree" else with_tree_note(in_formulation(fit, own)))


def judge(work: Work) -> Work:
    """What speaks against the data, or against the model."""
    asked, problem, failed = work.asked, work.problem, list[str]()
    if asked.checks.level == "off":
        return work
    assert problem is not None
    loops = next(
        iter(attempt("How loops were closed", lambda: [closing(work.machine, work.logs.closed)], failed)), None
    )
    case = Case(
        fit=work.identified,
        motions=plain(work.training),
        sampling=with_dead_zones(work.how, work.machine, plain(work.training), asked.rows),
        method=work.method,
        settings=asked.checks,
        covariance=work.settings.correlated,
        # Rows of few independent equations fit their own noise, and leave less than all together whatever they say.
        apart=lambda: 1.0 if work.few is not None else problem.contradiction,
        logs=work.logs.logs,
        of_log={
            "How loops were closed": lambda: [] if loops is None else loops.suspicions(),
            "Measured speeds beside positions": lambda: work.logs.odd_rates(work.lowpass),
        },
        inspected=True,
        limits=asked.limits,
        given=work.logs.given,
        by_rule=asked.how.by_rule,
        late=work.late if asked.how.delays == "report" else None,
        search_delays=False,
        progress=asked.progress,
    )
    judgement = judgement_of(case)
    judgement = replace(judgement, failed=(*failed, *judgement.failed))
    for text in judgement.failed:
        warn(IdentificationWarning, Fault(text, "not checked"))
    fit = judgement.on(work.identified, work.odd_clocks)
    return replace(work, fit=fit, judgement=judgement, loops=loops)


STAGES: tuple[Stage, ...] = (
    inspect_logs,
    choose_cutoff,
    make_equations,
    choose_friction,
    find_delays,
    choose_trust,
    estimate,
    check_held_out,
    judge,
)


def _warn_of_rest(work: Work) -> None:
    if work.asked.how.standstill == "keep" and not work.how.dead_zone:
        warn_of_rest(work.machine, work.training)


def _warn_of_repeats(training: Sequence[Recording], validation: Sequence[Recording]) -> None:
    """Validation on what was fitted says nothing; nor do two logs with the same content."""
    for a in training:
        for b in validation:
            if (a.log is b.log or _same_channels(a.log, b.log)) and a.overlaps(b):
                what = "the same samples are used for training and validation."
                hint = "The errors on the validation logs then say nothing about other motion."
                shares = f"shares {tuple(a.share)} and {tuple(b.share)}"
                warn(DataWarning, Fault(what, b.log.name, found=shares, hint=hint))


def _same_channels(one: Experiment, other: Experiment) -> bool:
    """Whether two logs hold the same numbers under the same names."""
    both = [(c, other.channels.get(name)) for name, c in one.channels.items()]
    return one.channels.keys() == other.channels.keys() and all(
        y is not None and np.array_equal(x.t, y.t) and np.array_equal(x.values, y.values, equal_nan=True)
        for x, y in both
    )
