"""``kind: identify``, run: from a study file to judged parameters, with everything that was noticed on the way.

The results are compared with the limits that the study file sets.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from veridyn.arguments import checked
from veridyn.errors import DataWarning, Fault, IdentificationError, IdentificationWarning, warn
from veridyn.files.machine.urdf import urdf_limits
from veridyn.identify.diagnosis.delays import Delays, delays
from veridyn.identify.diagnosis.fit_check import assumes_uncorrelated, attempt
from veridyn.identify.diagnosis.judge import Case, Judgement, in_detail, judgement_of
from veridyn.identify.diagnosis.plausible import odd_clocks
from veridyn.identify.diagnosis.replacements import omitted
from veridyn.identify.estimator import in_formulation, with_tree_note
from veridyn.identify.estimators.feasible import Consistent
from veridyn.identify.estimators.prior import Prior
from veridyn.identify.estimators.trust import Trust, trust_prior
from veridyn.identify.friction_ladder import FrictionLadder, friction_ladder
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.settings import DiagnosisSettings, IdentifySettings
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.progress import Progress, silent
from veridyn.studies.config.identify import IdentifyAccept, IdentifyFile
from veridyn.studies.config.study import Loaded
from veridyn.studies.identification import Estimation, IdentificationStudy, identify_and_validate
from veridyn.studies.result import fingerprint
from veridyn.studies.run.estimation import IdentifyRun, check_estimation, estimation_of, executor_of
from veridyn.studies.run.machine import closing, own_formulation, study_machine
from veridyn.studies.run.preparing import Preparing, RecordedMotion, plain, warn_of_rest, wrong_speed
from veridyn.studies.run.recordings import Recordings

ASKED = DiagnosisSettings(level="full")
DIFFERENT_LOGS = "Look at what differs between them: load, temperature, speed, or what the model lacks there."


def missed(study: IdentificationStudy, accept: IdentifyAccept, suspicions: int) -> list[str]:
    """Sentences about the limits that are missed; none where all are kept. An error that is not known keeps no limit.

    Errors are of what the fit was fitted to: of forces, or of the positions of a simulation.
    """
    f, judging = study.figures, study.judging
    of = " of simulated positions" if study.by_simulation else ""
    most = {
        "training_percent": (f"relative error{of} on the training logs, %", 100.0 * study.judging_own.relative_error),
        "validation_percent": (f"relative error{of} on the validation logs, %", 100.0 * judging.relative_error),
        "validation_std_percent": (
            f"rms error{of} over the standard deviation on the validation logs, %",
            100.0 * judging.std_error,
        ),
        "condition": ("condition number", f["condition"]),
        "suspicions": ("suspicions", float(suspicions)),
    }
    out = []
    for key, (words, value) in most.items():
        limit = getattr(accept, key)
        if limit is not None and not value <= limit:
            shown = f"{value:.6g}" if math.isfinite(value) else f"not known ({study.unjudged or 'nothing is measured'})"
            out.append(f"{words}: {shown}, and at most {limit:g} is accepted (accept.{key}).")
    rows = {r.row: 100.0 * r.relative_error for r in judging.rows}
    for row, limit in accept.row_percent.items():
        if not rows.get(row, math.nan) <= limit:
            shown = (
                "no such row" if row not in rows else f"{rows[row]:.4g}" if math.isfinite(rows[row]) else "not known"
            )
            out.append(f"error of row '{row}' on the validation logs, %: {shown}, and at most {limit:g} is accepted.")
    if accept.base_parameters is not None and f["base_parameters_excited"] != accept.base_parameters:
        out.append(f"base parameters: {f['base_parameters_excited']:g}, and {accept.base_parameters} are expected.")
    if accept.well_identified is not None and f["well_identified"] < accept.well_identified:
        out.append(f"well identified: {f['well_identified']:g}, and at least {accept.well_identified} are expected.")
    return out


@checked
def run_identify(
    loaded: Loaded[Any],
    progress: Progress = silent,
    machine: Machine | None = None,
    estimation: Estimation | None = None,
) -> IdentifyRun:
    """Read and filter the logs, estimate, validate and diagnose, as the study file says; `machine` and `estimation` in place of its own.

    Of a car of a few numbers, what its drive shows of it.
    """
    if loaded.study.of_a_drive:
        from veridyn.studies.run.car import identify_drive  # here: it brings compiled equations along

        return identify_drive(loaded, progress)
    machine = machine or study_machine(loaded, ("model",), loaded.study.model, "unknown")
    estimation = estimation or estimation_of(loaded, ("estimator",), loaded.study.estimator)
    with executor_of(loaded) as executor:
        return _identified(loaded, machine, replace(estimation, executor=executor), progress)


def _identified(
    loaded: Loaded[IdentifyFile], machine: Machine, estimation: Estimation, progress: Progress
) -> IdentifyRun:
    study = loaded.study
    check_estimation(loaded, ("estimator",), machine, estimation)
    if estimation.executor is not None and estimation.settings.device != "cpu":
        raise loaded.error_at(("executor",), "a GPU takes all samples itself.", hint="Drop executor, or device.")
    progress("reading the logs", 0.0, None)
    recorded = Recordings(loaded)
    if study.validation != "none":
        _warn_of_repeats(recorded)
    work = Preparing(loaded, machine, recorded, progress)
    early = odd_clocks(recorded.logs) if study.checks else []
    for suspicion in early:  # said at once: what follows may be refused because of it
        warn(IdentificationWarning, suspicion.fault)
    for log in work.mended:
        for fault in log.told:
            warn(DataWarning, fault)

    cutoff, lowpass = work.lowpass()
    training, validation = work.motions(lowpass)
    how, later = work.samplings(training, validation, lowpass)
    few = work.few_equations(training, how, lowpass)
    if few is not None and estimation.settings.covariance != "hac" and assumes_uncorrelated(estimation.method):
        warn(IdentificationWarning, few)
        estimation = replace(estimation, settings=replace(estimation.settings, covariance="auto"))
    ladder = None
    if study.friction is not None:
        ladder = _ladder(loaded, machine, training, how, bool(recorded.files), progress)
        machine = ladder.machine
        training, validation = (
            [replace(part, motion=ladder.with_loads(part.motion)) for part in some] for some in (training, validation)
        )
        check_estimation(loaded, ("estimator",), machine, estimation)
    if study.values.standstill == "keep" and not how.dead_zone:
        warn_of_rest(machine, training)
    rows = [machine.rows[r] for r in machine.select_rows(study.rows)]
    late = Delays(seconds={}) if study.clock.delays == "ignore" else _delays(study, machine, plain(training), rows, how)
    if study.clock.delays == "correct" and late.confirmed:
        training, validation = (work.moved(part, late) for part in (training, validation))
        how, later = work.samplings(training, validation, lowpass)
    trust = None
    if study.estimator.trust:
        trust = _trust(loaded, machine, training, estimation, how, progress)
        estimation = replace(estimation, method=trust.method)
    learn, judge, first = plain(training), plain(validation), how
    if recorded.files:
        learn, judge, how, later = work.streamed(lowpass, how, later)
    result = identify_and_validate(
        machine,
        learn,
        judge,
        how,
        later,
        study.rows,
        estimation=estimation,
        signals=work.signals(lowpass),
        reduction=study.essential.settings(),
        progress=progress,
    )
    own = own_formulation(loaded, ("model",), study.model)
    if own != "tree":
        result = replace(result, fit=with_tree_note(in_formulation(result.fit, own)))
    if result.fit.disagreement:
        warn(IdentificationWarning, Fault(result.fit.disagreement, "training", hint=DIFFERENT_LOGS))
    failed = list[str]()
    loops = next(iter(attempt("How loops were closed", lambda: [closing(machine, work.closed)], failed)), None)
    judgement = Judgement()
    if study.checks:
        case = Case(
            fit=result.fit,
            motions=plain(training),
            sampling=first,
            method=estimation.method,
            settings=ASKED,
            covariance=estimation.settings.correlated,
            # Rows of few independent equations fit their own noise, and leave less than all together whatever they say.
            apart=lambda: 1.0 if few is not None else result.contradiction,
            logs=recorded.logs,
            of_log={
                "How loops were closed": lambda: [] if loops is None else loops.suspicions(),
                "Measured speeds beside positions": lambda: work.odd_rates(lowpass),
            },
            inspected=True,
            limits=_limits(work),
            given=work.given,
            by_rule=study.sampling.by_rule,
            late=late if study.clock.delays == "report" else None,
            search_delays=False,
            progress=progress,
        )
        judgement = judgement_of(case)
        judgement = replace(judgement, failed=(*failed, *judgement.failed))
        result = replace(result, fit=judgement.on(result.fit, early))
        for text in judgement.failed:
            warn(IdentificationWarning, Fault(text, "not checked"))
    left_out = _left_out(judgement, recorded, study) if study.checks else ("Everything: the study says checks: false.",)
    found = judgement.named
    inputs = {"study": fingerprint(loaded.text), "model": fingerprint(work.model_file), **recorded.hashes}
    filtered, said = (lowpass, cutoff, late), (found, tuple(missed(result, study.accept, len(found))))
    return IdentifyRun(result, machine, work.model_file, *filtered, *said, inputs, trust, loops, left_out, ladder)


def _delays(
    study: IdentifyFile, machine: Machine, motions: Sequence[Motion], rows: Sequence[str], how: Sampling
) -> Delays:
    """Those of the forces, in the equations that the judge looks at."""
    return delays(
        machine, motions, rows, how, in_detail(machine, motions, rows, how) if study.sampling.by_rule else None
    )


def _limits(work: Preparing) -> Mapping[str, tuple[float, float]]:
    """Least and largest positions that the file of the model states."""
    if work.model_file.suffix.lower() != ".urdf":
        return {}
    return {name: (x.lower, x.upper) for name, x in urdf_limits(work.model_file).items()}


def _left_out(judgement: Judgement, recorded: Recordings, study: IdentifyFile) -> tuple[str, ...]:
    """What was not looked for, and why."""
    speeds = any(name.startswith("qd.") for log in recorded.logs for name in log)
    asked_delays = study.clock.delays != "ignore"
    seen, failed = judgement.seen, list(judgement.failed)
    never = [] if seen is None else [seen]
    return (
        *attempt(
            "What was not looked for",
            lambda: [text for e in never for text in omitted(e, asked_delays, speeds, bool(recorded.files))],
            failed,
        ),
        *(text[:1].upper() + text[1:] for text in judgement.untestable),
        *failed,
    )


def _ladder(
    loaded: Loaded[IdentifyFile],
    machine: Machine,
    training: Sequence[RecordedMotion],
    how: Sampling,
    streamed: bool,
    progress: Progress,
) -> FrictionLadder:
    """The friction that held-out parts of the training logs speak for."""
    s = loaded.study.friction
    assert s is not None  # the caller looked
    if streamed:
        hint = "Leave log.block out, or record less."
        raise loaded.error_at(("friction",), "a friction ladder needs logs that fit the memory.", hint=hint)
    with loaded.placing(("friction",), IdentificationError):
        return friction_ladder(
            machine,
            plain(training),
            terms=s.terms,
            on=s.on or None,
            temperature=s.temperature,
            rows=loaded.study.rows,
            settings=IdentifySettings(sampling=how),
            blocks=s.blocks,
            standard_errors=s.standard_errors,
            progress=progress,
        )


def _trust(
    loaded: Loaded[IdentifyFile],
    machine: Machine,
    training: Sequence[RecordedMotion],
    estimation: Estimation,
    how: Sampling,
    progress: Progress,
) -> Trust[Any]:
    """How far the prior is to be trusted, by the training logs alone."""
    if not isinstance(estimation.method, Prior | Consistent) or how.filtering:
        expected = "an estimator with settings: {prior: …} or of a prior, and sampling: {filter: none}"
        raise loaded.error_at(("estimator", "trust"), "nothing can be chosen here.", expected)
    kept = [part.motion[~wrong_speed(part)] for part in training]
    unmasked = replace(how, drop={}, trim=0)
    method: Any = estimation.method
    return trust_prior(
        machine,
        kept,
        method,
        rows=loaded.study.rows,
        settings=replace(estimation.settings, sampling=unmasked, device="cpu"),
        progress=progress,
    )


def _warn_of_repeats(recorded: Recordings) -> None:
    """Validation on what was fitted says nothing; nor do two files with the same content."""
    for a in recorded.training:
        for b in recorded.validation:
            x, y = recorded.logs[a.log], recorded.logs[b.log]
            same = a.log == b.log or fingerprint(x) == fingerprint(y)
            low, high = max(a.settings.share[0], b.settings.share[0]), min(a.settings.share[1], b.settings.share[1])
            spans = [(s.start or -np.inf, s.end or np.inf) for s in (a.settings, b.settings)]
            apart = any(
                one[1] <= other[0] or other[1] <= one[0]
                for one, other in (spans, (a.settings.speeds, b.settings.speeds))
            )
            if same and high > low and not apart:
                what = "the same samples are used for training and validation."
                hint = "The errors on the validation logs then say nothing about other motion."
                fault = Fault(what, y.name, found=f"shares {a.settings.share} and {b.settings.share}", hint=hint)
                warn(DataWarning, fault)
