"""The judge of a fit of equations: every check there is, asked in one order, of whoever made the fit.

    judgement = judgement_of(Case(fit=fit, motions=motions, sampling=how, method=method));  fit = judgement.on(fit)

A :class:`Case` is what is judged and what is known beside it. Whoever has a log says what the log itself shows: its clocks, speeds measured
beside positions, how loops closed (`of_log`). "fast" looks at some samples and at every measured force; "full" at all samples, delays,
other gravities and geometries. Nothing is changed, and a check that cannot be carried out is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from veridyn.errors import IdentificationWarning, warn
from veridyn.identify.diagnosis.delays import Delays, delays
from veridyn.identify.diagnosis.evidence import Evidence, evidence
from veridyn.identify.diagnosis.fit_check import (
    CONTRADICTING_SAMPLES,
    assumes_uncorrelated,
    attempt,
    few_samples,
    inspect_forces,
    oversampled_rows,
    slow_clocks,
    stuck_forces,
    suspicions,
    traces_of,
    with_traces,
)
from veridyn.identify.diagnosis.position_noise import noise_behind, noisy_accelerations
from veridyn.identify.estimator import WLS, Estimator, FitProblem
from veridyn.identify.estimators.feasible import Consistent
from veridyn.identify.estimators.instrumental import Instrumental
from veridyn.identify.estimators.likelihood import Likelihood
from veridyn.identify.estimators.robust import Robust
from veridyn.identify.output_error.output_error import OutputError
from veridyn.identify.regression.sampling import Sampling, choose_dead_zones
from veridyn.identify.result import Fit
from veridyn.identify.settings import Auto, DiagnosisSettings, Hac, IdentifySettings
from veridyn.inference.finding import Mistake
from veridyn.inference.log_inspection import odd_clocks
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.progress import Progress, silent
from veridyn.signals.mend import REPAIRABLE

Check = Callable[[], Iterable[Mistake]]


@dataclass(frozen=True, eq=False, kw_only=True)
class Case:
    """A fit, and what it is judged by.

    `motions` and `sampling`: the equations it was fitted to, all or the first of a log that is read in blocks. `covariance`: how its
    deviations allow for correlated residuals. `apart`: how much more all rows together leave unexplained than each by itself.
    `logs`: those the motions were made from, where they are known; `of_log`: further checks of them by name; `inspected`: whether measured
    forces were looked at before. `limits`: coordinate → least and largest position that the model states. `given`: coordinates that were
    measured. `by_rule`: nobody chose these equations, so that others may be asked (:func:`in_detail`). `late`: delays of forces, where they
    have been measured; None looks for them where everything is asked, and `search_delays` False does not.
    """

    fit: Fit
    motions: Sequence[Motion]
    sampling: Sampling
    method: Estimator
    settings: DiagnosisSettings = field(default_factory=DiagnosisSettings)
    covariance: Hac | Auto | None = None
    apart: Callable[[], float] = lambda: 1.0
    logs: Sequence[Experiment] = ()
    of_log: Mapping[str, Check] = field(default_factory=dict)
    inspected: bool = False
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    given: tuple[str, ...] | None = None
    by_rule: bool = False
    late: Delays | None = None
    search_delays: bool = True
    progress: Progress = silent


@dataclass(frozen=True, eq=False)
class Judgement:
    """`named`: mistakes in the order of what to look at first; `left`: those that the method is made for; `failed`: checks that could not
    be carried out; `untestable`: damage that these data cannot show; `seen`: the samples that were asked, None where nothing was."""

    named: tuple[Mistake, ...] = ()
    left: tuple[Mistake, ...] = ()
    failed: tuple[str, ...] = ()
    untestable: tuple[str, ...] = ()
    seen: Evidence | None = None

    def on(self, fit: Fit, said: Sequence[Mistake] = ()) -> Fit:
        """The fit with its findings, and what else is to be said in its notes; each finding is a warning, but for those `said` before."""
        for mistake in self.named:
            if mistake not in said:
                warn(IdentificationWarning, mistake.fault)
        notes = [f"not checked: {text}" for text in (*self.failed, *self.untestable)]
        notes += [f"suspected: {mistake}" for mistake in self.named]
        notes += [f"found, and left to the method: {mistake}" for mistake in self.left]
        findings = tuple(mistake.finding(rank) for rank, mistake in enumerate(self.named, 1))
        return replace(fit, notes=(*fit.notes, *notes), findings=findings) if notes else fit


def judgement_of(case: Case) -> Judgement:
    """What speaks against the data of a fit, or against the model they were fitted with."""
    settings, fit, motions = case.settings, case.fit.for_white_noise(), case.motions
    states = [state.name for state in fit.described.states]
    if settings.level == "off" or any(name not in m.signals for name in states for m in motions):
        return Judgement()  # a law whose state is not in the motion has no column
    failed, untestable = list[str](), list[str]()
    fast, white = settings.level == "fast", not isinstance(case.covariance, Hac)
    rows, sampling = [r.row for r in fit.rows], case.sampling
    traced, detail = _traced(case)
    seen = evidence(fit.described, motions, rows, detail, case.given)

    found = [m for name, check in case.of_log.items() for m in attempt(name, check, failed)]
    found += odd_clocks(case.logs) if case.logs else [m for motion in motions for m in slow_clocks(motion)]
    found += few_samples(fit, seen)
    if not case.inspected:
        found += [m for motion in motions if motion.notes is None for m in inspect_forces(fit.described, motion)]
    found += attempt("Forces that stand still", lambda: stuck_forces(fit, motions), failed)
    late = case.late
    if late is None and case.search_delays and not fast:
        late = next(
            iter(attempt("Delays", lambda: [delays(fit.described, motions, rows, sampling, detail)], failed)), None
        )
    apart = _apart(case, traced)
    found += suspicions(
        traced, seen, apart, case.limits, case.progress, fast=fast, late=late, settings=settings, failed=failed
    )
    if white:
        noise = noise_behind(motions, sampling, rows)
        found += attempt("Bias by noise of positions", lambda: noisy_accelerations(fit, seen.motion, noise), failed)
    found = with_traces(
        found,
        traced,
        motions,
        sampling if isinstance(case.method, Robust) else detail,
        failed,
        settings.max_samples if fast else None,
        untestable,
        traces=traces_of(case.method),
        settings=settings,
        noise_asked=white,
    )
    if case.covariance is None and assumes_uncorrelated(case.method) and sampling.filtering:
        found += attempt("Correlation of residuals", lambda: oversampled_rows(fit, motions, sampling), failed)
    expected = expected_of(case.method)
    named, left = ([m for m in found if (m.kind in expected) == own] for own in (False, True))
    return Judgement(tuple(named), tuple(left), tuple(failed), tuple(untestable), seen)


def in_detail(machine: Machine, motions: Sequence[Motion], rows: Sequence[str], how: Sampling) -> Sampling:
    """The equations in which small damage shows: a filter, or a dead zone around reversals, hides what happens within a few samples.

    So there is no filter, and a dead zone goes no further than noise leaves the sign of a speed open.
    """
    if any(m.noise_bands is None for m in motions):
        return how
    noise = choose_dead_zones(machine, motions, list(rows), noise_alone=True)
    narrow = {name: min(speed, noise.get(name, speed)) for name, speed in how.zones.items()}
    return replace(how, filter=None, filters={}, decimate=1, dead_zone=narrow)


def _traced(case: Case) -> tuple[Fit, Sampling]:
    """The fit that is asked, of equations in detail where its own are not, and these equations; a robust one is asked as it is."""
    fit, how = case.fit.for_white_noise(), case.sampling
    rows = [r.row for r in fit.rows]
    detail = in_detail(fit.described, case.motions, rows, how) if case.by_rule else how
    same = detail is how or (not how.filtering and how.decimate == 1 and dict(detail.zones) == dict(how.zones))
    if same or isinstance(case.method, Robust):
        return fit, detail
    settings = IdentifySettings(sampling=detail, covariance="white")
    return WLS().fit(FitProblem(machine=fit.described, motion=case.motions, rows=rows, settings=settings)), detail


def _apart(case: Case, traced: Fit) -> float:
    """How much more all rows leave together than each by itself; rows of few independent samples fit their own noise, and leave less than
    all together whatever they say."""
    few = min((r.samples for r in traced.rows), default=0) < CONTRADICTING_SAMPLES * len(traced.values)
    correlated = case.settings.level == "fast" and isinstance(case.covariance, Hac)
    if few or correlated:
        return 1.0
    return traced.residual_sigma if traced.estimator == WLS.title else case.apart()


def expected_of(method: Estimator) -> tuple[str, ...]:
    """Kinds of mistakes that a method is chosen for: gross errors by a robust loss, noisy motion by simulation, instruments or averages.

    Elements that :class:`Consistent` leaves without a sign may drive.
    """
    if isinstance(method, Consistent) and method.unsigned:
        return ("friction drives",)
    if isinstance(method, Robust):
        return (*REPAIRABLE, "unexplained")
    simulating = isinstance(method, Instrumental | OutputError | Likelihood)
    return ("unexplained", "noisy accelerations") if simulating else ()
