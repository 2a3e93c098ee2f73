"""``kind: identify``, run: from a study file to judged parameters, with everything that was noticed on the way.

The file names logs, places and limits; the way from logs to the verdict is :mod:`veridyn.identify.pipeline.pipeline`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from veridyn.arguments import checked
from veridyn.errors import DataError, IdentificationError, ModelError
from veridyn.files.machine.urdf import urdf_limits
from veridyn.identify.diagnosis.fit_check import attempt
from veridyn.identify.diagnosis.replacements import omitted
from veridyn.identify.pipeline.identification import Estimation, study_of
from veridyn.identify.pipeline.identified import IdentificationStudy
from veridyn.identify.pipeline.pipeline import Blocks, FrictionSteps, Pipeline, Work
from veridyn.identify.pipeline.preparation import Preparation
from veridyn.identify.settings import DiagnosisSettings
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.progress import Progress, silent
from veridyn.signals.mending import Mending
from veridyn.studies.config.identify import IdentifyAccept, IdentifyFile
from veridyn.studies.config.study import Loaded
from veridyn.studies.result import fingerprint, grade_missed
from veridyn.studies.run.estimation import IdentifyRun, check_estimation, estimation_of, executor_of
from veridyn.studies.run.machine import model_path, own_formulation, study_machine
from veridyn.studies.run.recordings import Chained, Recordings, Streamed, margin_of, with_margin


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
    own = accept.verdict if type(accept) is IdentifyAccept else None  # that of a payload is of the load
    return [*out, *grade_missed(study.verdict, own)]


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
    if recorded.files and study.friction is not None:
        hint = "Leave log.block out, or record less."
        raise loaded.error_at(("friction",), "a friction ladder needs logs that fit the memory.", hint=hint)
    if not any(len(log.channels) for log in recorded.logs):
        what, expected = "the study names no column of its log.", "channel: column [unit], such as q.JOINT: q1 [rad]"
        raise loaded.error_at(("log", "columns"), what, expected=expected, found="none")
    with located(loaded):
        work = pipeline_of(loaded, machine, recorded, estimation, progress).run()
    assert work.problem is not None and work.check is not None
    found = study_of(
        work.identified,
        work.problem,
        work.check,
        signals=work.logs.signals(work.lowpass),
        reduction=study.essential.settings(),
        progress=progress,
    )
    return IdentifyRun(
        judged=found,
        machine=work.machine,
        model_file=model_path(loaded, ("model",), study.model),
        lowpass=work.lowpass,
        cutoff=work.cutoff,
        delays=work.late,
        suspicions=work.judgement.named,
        missed=tuple(missed(found, study.accept, len(work.judgement.named))),
        inputs={
            "study": fingerprint(loaded.text),
            "model": fingerprint(model_path(loaded, ("model",), study.model)),
            **recorded.hashes,
        },
        trust=work.trust,
        closing=work.loops,
        omitted=_left_out(work, bool(recorded.files))
        if study.checks
        else ("Everything: the study says checks: false.",),
        ladder=work.ladder,
    )


def pipeline_of(
    loaded: Loaded[IdentifyFile],
    machine: Machine,
    recorded: Recordings,
    estimation: Estimation | None = None,
    progress: Progress = silent,
) -> Pipeline:
    """What a study file asks, with the recordings that it names."""
    study, how = loaded.study, estimation or Estimation()
    return Pipeline(
        machine=machine,
        training=recorded.training,
        validation=recorded.validation,
        hold_out=study.validation != "none",
        rows=study.rows,
        how=preparation_of(study),
        method=how.method,
        settings=how.settings,
        friction=None if study.friction is None else FrictionSteps(**study.friction.model_dump()),
        trust=study.estimator.trust,
        checks=DiagnosisSettings() if study.checks else DiagnosisSettings(level="off"),
        limits=_limits(model_path(loaded, ("model",), study.model)),
        formulation=own_formulation(loaded, ("model",), study.model),
        blocks=(lambda work: _in_blocks(work, recorded)) if recorded.files else None,
        executor=how.executor,
        progress=progress,
    )


def preparation_of(study: IdentifyFile) -> Preparation:
    """How the logs of a study become motions and equations."""
    signals, sampling = study.signals, study.sampling
    words = {
        "rate": None if signals.rate == "auto" else signals.rate,
        "lowpass": None if signals.lowpass == "none" else signals.lowpass,
        "filter": None if sampling.filter == "none" else sampling.filter,
    }
    return Preparation(
        mending=Mending(**study.clock.given(), **study.values.given()),
        standstill=study.values.standstill,
        delays=study.clock.delays,
        **signals.given() | sampling.given() | words,
    )


@contextmanager
def located(loaded: Loaded[Any]) -> Iterator[None]:
    """Faults that name a place of the study file by its keys get their line."""
    try:
        yield
    except (DataError, ModelError, IdentificationError) as error:
        if not all(_of_file(loaded, f.at) for f in error.faults):
            raise
        raise loaded.error([loaded.fault(f.at, f.what, f.expected, f.found, f.hint) for f in error.faults]) from error


def _of_file(loaded: Loaded[Any], at: Sequence[str | int]) -> bool:
    return bool(at) and str(at[0]) in type(loaded.study).model_fields


def _in_blocks(work: Work, recorded: Recordings) -> Blocks:
    """Motions that are made block by block, and the samplings that leave the margins of the blocks out."""
    signals = replace(work.logs.signals(work.lowpass), max_gap=None)  # a gap in the middle of a long log is refused
    margin = margin_of(signals, work.how, work.logs.rate)
    size = -(-(recorded.loaded.study.log.block or 1) // work.how.decimate) * work.how.decimate

    def streamed(items: Sequence[Any]) -> Sequence[Motion]:
        parts = []
        for item in items:
            file, low, high = recorded.rows_of(item)
            parts.append(Streamed(work.machine, file, signals, margin, size, low, high, recorded.scaled))
        return Chained(tuple(parts))

    both = (streamed(items) for items in (work.logs.training, work.logs.validation))
    learning, judging = both
    return learning, judging, with_margin(work.how, margin), with_margin(work.later, margin)


def _limits(file: Path) -> Mapping[str, tuple[float, float]]:
    """Least and largest positions that the file of the model states."""
    if file.suffix.lower() != ".urdf":
        return {}
    return {name: (x.lower, x.upper) for name, x in urdf_limits(file).items()}


def _left_out(work: Work, in_blocks: bool) -> tuple[str, ...]:
    """What was not looked for, and why."""
    speeds = any(name.startswith("qd.") for log in work.logs.logs for name in log)
    asked_delays = work.asked.how.delays != "ignore"
    seen, failed = work.judgement.seen, list(work.judgement.failed)
    never = [] if seen is None else [seen]
    return (
        *attempt(
            "What was not looked for",
            lambda: [text for e in never for text in omitted(e, asked_delays, speeds, in_blocks)],
            failed,
        ),
        *(text[:1].upper() + text[1:] for text in work.judgement.untestable),
        *failed,
    )
