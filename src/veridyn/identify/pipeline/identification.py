"""What an identification found on motions and on others that it did not use: the fit, its reduced model, and pictures of both.

    study = identify_and_validate(robot, [motion], [other], how, later)

For programs that have motions already; logs go the whole way (:mod:`veridyn.identify.pipeline.pipeline`), and :func:`study_of` adds to what
comes out there what a report shows: the reduced model, traces of the rows, and whether residuals are white.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace

import numpy as np

from veridyn.errors import Fault, IdentificationError, IdentificationWarning, ModelError, warn
from veridyn.identify.base import BaseParameters, base_parameters
from veridyn.identify.essential_rule import EssentialRule
from veridyn.identify.estimator import WLS, Estimator, FitProblem
from veridyn.identify.logged import motion
from veridyn.identify.pipeline.estimation import estimated
from veridyn.identify.pipeline.held_out import EquationErrors, HeldOutCheck, held_out_check, shown
from veridyn.identify.pipeline.identified import IdentificationStudy, joined_traces, residual_whiteness, trace
from veridyn.identify.regression.sampling import Sampling, with_dead_zones
from veridyn.identify.regression.sampling_rule import default_sampling
from veridyn.identify.result import Fit
from veridyn.identify.selection import essential_by
from veridyn.identify.settings import SIGMA_BELOW_TEN, Acceptance, IdentifySettings
from veridyn.identify.validate import equation_rows
from veridyn.model.coordinates import Rows
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion, joined
from veridyn.progress import Progress, silent, staged
from veridyn.signals.motion import Signals


@dataclass(frozen=True)
class Estimation:
    """How a study estimates: arguments of :func:`veridyn.identify.estimate.identify`; `executor` changes no number.

    The sampling of `settings` is left to the motions, of which training and validation have their own.
    """

    method: Estimator = field(default_factory=WLS)
    settings: IdentifySettings = field(default_factory=IdentifySettings)
    executor: Executor | None = field(default=None, compare=False)


def identification(
    model: Machine,
    training: Experiment,
    validation: Experiment,
    signals: Signals | None = None,
    sampling: Sampling | Callable[[Motion], Sampling] | None = None,
    rows: Rows = "all",
    *,
    truth: Machine | None = None,
    acceptance: Acceptance = SIGMA_BELOW_TEN,
    progress: Progress = silent,
) -> IdentificationStudy:
    """Identify `model` from the log `training` by weighted least squares, and judge it on the log `validation`.

    Both logs become motions by the same `signals`, and equations by the same `sampling`; the masks `drop` of a Sampling belong to the
    training motion alone, so where both need some, give a function that makes the sampling of a motion. `truth` is the machine a
    simulation ran on; its parameters are compared with the estimates and used for nothing else.
    """
    if truth is not None and truth.parameters.names != model.parameters.names:
        what = "the truth has other parameters than the model, so they cannot be compared."
        raise ModelError(what, where=truth.name, expected=f"those of '{model.name}'")
    filtering = signals or Signals()
    progress("preparing the logs", 0.0, 2.0)
    seen = motion(model, training, filtering)
    progress("preparing the logs", 1.0, 2.0)
    unseen = motion(model, validation, filtering)
    progress("preparing the logs", 2.0, 2.0)

    how, later = _samplings(sampling, model, rows, seen, unseen)
    return identify_and_validate(
        model,
        [seen],
        [unseen],
        how,
        later,
        rows,
        estimation=Estimation(settings=IdentifySettings(acceptance=acceptance)),
        truth=truth,
        signals=filtering,
        progress=progress,
    )


def identify_and_validate(
    model: Machine,
    training: Sequence[Motion],
    validation: Sequence[Motion],
    how: Sampling,
    later: Sampling,
    rows: Rows = "all",
    *,
    estimation: Estimation | None = None,
    truth: Machine | None = None,
    signals: Signals | None = None,
    reduction: EssentialRule | None = None,
    progress: Progress = silent,
) -> IdentificationStudy:
    """Identify from some motions and validate on others; `how` and `later` make equations of the first and of the second."""
    chosen = estimation or Estimation()
    how, later = (with_dead_zones(each, model, training, rows) for each in (how, later))
    problem = FitProblem(
        machine=model,
        motion=training,
        rows=rows,
        settings=replace(chosen.settings, sampling=how),
        executor=chosen.executor,
        progress=staged(progress, "identifying"),
    )
    chosen.method.check(model, rows, problem.settings.correlated)
    fit = estimated(chosen.method, problem)
    check = held_out_check(fit, problem, validation, later, staged(progress, "validating"))
    return study_of(check.on(fit), problem, check, truth=truth, signals=signals, reduction=reduction, progress=progress)


def study_of(
    fit: Fit,
    problem: FitProblem,
    check: HeldOutCheck,
    *,
    truth: Machine | None = None,
    signals: Signals | None = None,
    reduction: EssentialRule | None = None,
    progress: Progress = silent,
) -> IdentificationStudy:
    """A fit with its held-out `check`, the reduced model and what a report shows of both.

    What is inessential is decided by weighted least squares, whatever the estimator.
    """
    errors = check.errors
    if errors is None:
        raise IdentificationError("a check without its equations makes no study.", where="study_of")
    model, solution, how = problem.machine, problem.weighted, problem.settings.sampling or Sampling()
    training = problem.motion if isinstance(problem.motion, Sequence) else [problem.motion]
    structure = base_parameters(model, rows=problem.rows)
    _warn_if_not_excited(structure, fit.base)
    lean = essential_by(reduction or EssentialRule(), model, solution, problem.settings.acceptance)

    seen = EquationErrors(
        problem=problem,
        motions=training,
        rows=equation_rows(fit),
        settings=problem.settings,
        progress=staged(progress, "validating"),
        factors=solution.observation,
    )
    later = errors.settings.sampling or Sampling()

    predicting = staged(progress, "predicting")
    learned, judges = shown(training), shown(errors.motions)
    traces = {
        "training": joined_traces([trace(fit, m, how, predicting, b) for m, b in _after(learned)]),
        "validation": joined_traces([trace(fit, m, later, predicting, b) for m, b in _after(judges)]),
    }
    study = IdentificationStudy(
        model=model,
        training=joined(learned),
        validation=joined(judges),
        structure=structure,
        fit=fit,
        essential=lean,
        own=seen.of(fit.standard),
        unseen=replace(check, errors=None),
        essential_check=errors.of(lean.fit.standard),
        essential_own=seen.of(lean.fit.standard),
        traces=traces,
        whiteness=residual_whiteness(traces["training"], how),
        truth=np.full(len(fit.values), np.nan) if truth is None else fit.base.reduce(truth.parameters.values),
        settings=_settings(signals or Signals(), how, model),
        contradiction=solution.sigma,
    )
    if study.reduced_is_worse:
        _warn_of_reduced(study)
    if study.unjudged:
        hint = "Shorten the horizon, or take more substeps." if check.not_simulated else "Validate on a log that moves."
        warn(IdentificationWarning, Fault(f"the fit cannot be judged: {study.unjudged}.", "validation", hint=hint))
    return study


def _warn_of_reduced(study: IdentificationStudy) -> None:
    warn(
        IdentificationWarning,
        Fault(
            "the reduced model predicts worse than the full one, so the parameters it leaves out matter.",
            where="essential parameters",
            expected=f"a held-out error near that of the full model, {100.0 * study.check.relative_error:.3g} %",
            found=f"{100.0 * study.essential_check.relative_error:.3g} % without {', '.join(study.inessential)}",
            hint="Use the full model, or a stricter rule: essential: {rule: ratio_and_f_test} with a larger ratio or significance.",
        ),
    )


def _samplings(
    sampling: Sampling | Callable[[Motion], Sampling] | None, model: Machine, rows: Rows, seen: Motion, unseen: Motion
) -> tuple[Sampling, Sampling]:
    """Those of the training and of the validation motion; the defaults of :func:`identify` where none is given."""
    if callable(sampling):
        return sampling(seen), sampling(unseen)
    how = default_sampling(model, [seen], rows) if sampling is None else sampling
    return how, replace(how, drop={})


def _warn_if_not_excited(structure: BaseParameters, excited: BaseParameters) -> None:
    if excited.count < structure.count:
        names = [structure.parameters.names[c] for c in structure.columns if c not in excited.columns]
        what = "the training motion does not excite every identifiable parameter of this machine."
        found = f"{excited.count}; not separated: {', '.join(names)}"
        hint = "veridyn.estimators.explain(machine, name, motion) says which motion would help."
        warn(IdentificationWarning, Fault(what, "training", f"{structure.count} base parameters", found, hint))


def _settings(signals: Signals, how: Sampling, model: Machine) -> dict[str, str]:
    """How the samples became equations, for the reader of a report."""
    low, chosen = signals.filter, "chosen from their spectra"
    out = {
        "filter of the positions": chosen if signals.lowpass == "auto" else "none" if low is None else low.summary(),
        "derivatives": signals.derivative + " differences",
        "filter of the equations": "none" if how.filter is None else how.filter.summary(),
    }
    out["kept"] = "every equation" if how.decimate == 1 else f"one equation in {how.decimate}"
    if how.trim:
        out["left out"] = f"{how.trim} samples at each end"
    if how.zones:
        units = {"turning": "rad/s", "sliding": "m/s"}
        kinds = set(
            model.coordinate_kinds
        )  # of the speeds that friction of several coordinates takes, where they are all of one kind
        common = units[kinds.pop()] if len(kinds) == 1 else "rad/s or m/s"
        own = {c: units[kind] for c, kind in zip(model.coordinates, model.coordinate_kinds, strict=True)}
        out["dead zone"] = ", ".join(
            f"{row} below {speed:g} {own.get(row, common)}" for row, speed in how.zones.items()
        )
    if how.drop:
        out["masked"] = ", ".join(f"{int(np.sum(mask))} samples of {row}" for row, mask in how.drop.items())
    return out


def _after(motions: Sequence[Motion]) -> list[tuple[Motion, int]]:
    """Each motion, and how many samples come before it."""
    counts = np.cumsum([0, *(len(m) for m in motions)])
    return [(m, int(before)) for m, before in zip(motions, counts)]
