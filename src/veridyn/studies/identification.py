"""One identification, from logs to a judgement: identify on the first ones, validate on the others, compare with the truth where known.

What share of the validation data was not used for the fit is part of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import Fault, IdentificationWarning, ModelError, VeridynError, warn
from veridyn.identify.base import BaseParameters, base_parameters
from veridyn.identify.essential_rule import EssentialRule
from veridyn.identify.estimate import fitted, with_notes_of_data
from veridyn.identify.estimator import WLS, Estimator, FitProblem
from veridyn.identify.gains import with_known_gains
from veridyn.identify.logged import motion
from veridyn.identify.regression.factor import RowFactors, one_blas_thread
from veridyn.identify.regression.gpu import observed
from veridyn.identify.regression.observation import stream
from veridyn.identify.regression.sampling import Sampling, with_dead_zones
from veridyn.identify.regression.sampling_rule import default_sampling
from veridyn.identify.result import Fit
from veridyn.identify.selection import essential_by
from veridyn.identify.settings import SIGMA_BELOW_TEN, Acceptance, IdentifySettings
from veridyn.identify.validate import equation_rows, replayed, validation_of
from veridyn.identify.validation import Validation
from veridyn.model.coordinates import Rows
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion, joined
from veridyn.progress import Progress, silent, staged
from veridyn.signals.motion import Signals
from veridyn.studies.identified import IdentificationStudy, joined_traces, residual_whiteness, trace

Mask = NDArray[np.bool_]
SAME_VALUE = 1e-6  # of a coordinate's range: samples nearer than this at one time are the same sample


def held_out_share(
    training: Sequence[Motion],
    validation: Sequence[Motion],
    learned: Sequence[Mask] | None = None,
    judged: Sequence[Mask] | None = None,
) -> float:
    """Share of the validation samples, 0 to 1, that no training motion has: at the same time, with the same coordinates,
    forces and signals.

    `learned`, `judged`: which samples of each motion are used, all if left out. Two logs that have nothing but samples at rest in common
    are two recordings.
    """
    learned = [np.ones(len(m), dtype=bool) for m in training] if learned is None else learned
    judged = [np.ones(len(m), dtype=bool) for m in validation] if judged is None else judged
    total = sum(int(mask.sum()) for mask in judged)
    seen = 0
    for m, mask in zip(validation, judged, strict=True):
        both = [_shared(m, other, used) for other, used in zip(training, learned, strict=True)]
        seen += int((np.any(both, axis=0) & mask).sum())
    return 1.0 - seen / total if total else 1.0


def used_samples(machine: Machine, motions: Sequence[Motion], how: Sampling, rows: Sequence[str]) -> list[Mask]:
    """Which samples of each motion some row uses, before decimation."""
    out, before = list[Mask](), 0
    for m in motions:
        every = how.uses_of_rows(machine, rows, m.qd, np.arange(len(m)), len(m), before)
        out.append(np.any(every, axis=0))
        before += len(m)
    return out


def _shared(m: Motion, other: Motion, used: Mask) -> Mask:
    """Which samples of a motion are among those that are `used` of another."""
    at = np.clip(np.searchsorted(other.t, m.t), 0, len(other.t) - 1)
    span = np.ptp(m.q, axis=0)
    small = SAME_VALUE * np.where(span > 0.0, span, 1.0)
    same = (other.t[at] == m.t) & (np.abs(other.q[at] - m.q) <= small).all(axis=1)
    pairs = [
        (m.forces, other.forces),
        *((m.signals[name], other.signals[name]) for name in m.signals.keys() & other.signals.keys()),
    ]
    for own, others in pairs:
        if own is not None and others is not None:
            one, two = (np.nan_to_num(x).reshape(len(m), -1) for x in (own, others[at]))
            width = np.ptp(one, axis=0)
            same &= (np.abs(one - two) <= SAME_VALUE * np.where(width > 0.0, width, 1.0)).all(axis=1)
    moving = np.zeros(len(m), dtype=bool)
    moving[1:] = same[:-1] & (np.abs(np.diff(m.q, axis=0)) > small).any(axis=1)
    return same & used[at] if (same & moving).any() else np.zeros(len(m), dtype=bool)


SHOWN = 1_000_000  # samples that are kept for pictures; estimates and errors are of all


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


@dataclass(frozen=True)
class Estimation:
    """How a study estimates: arguments of :func:`veridyn.identify.estimate.identify`; `executor` changes no number.

    The sampling of `settings` is left to the motions, of which training and validation have their own.
    """

    method: Estimator = field(default_factory=WLS)
    settings: IdentifySettings = field(default_factory=IdentifySettings)
    executor: Executor | None = field(default=None, compare=False)


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
    """Identify from some motions and validate on others; `how` and `later` make equations of the first and of the second.

    What is inessential is decided by weighted least squares, whatever the estimator.
    """
    chosen = estimation or Estimation()
    how, later = (with_dead_zones(each, model, training, rows) for each in (how, later))
    structure = base_parameters(model, rows=rows)
    reported = staged(progress, "identifying")
    learning, judging = (replace(chosen.settings, sampling=each) for each in (how, later))
    problem = FitProblem(
        machine=model,
        motion=training,
        rows=rows,
        settings=learning,
        executor=chosen.executor,
        progress=reported,
    )
    chosen.method.check(model, rows, learning.correlated)
    with one_blas_thread():
        fit = with_notes_of_data(fitted(chosen.method, problem), training, rows)
        solution = problem.weighted
    _warn_if_not_excited(structure, fit.base)
    lean = essential_by(reduction or EssentialRule(), model, solution, learning.acceptance)

    reported = staged(progress, "validating")
    chosen_rows = equation_rows(fit)

    def factors(machine: Machine, motions: Sequence[Motion], settings: IdentifySettings) -> RowFactors:
        return observed(stream(machine, motions, chosen_rows, settings, executor=chosen.executor, progress=reported))

    def errors_of(phi: Array, motions: Sequence[Motion], settings: IdentifySettings) -> Validation:
        """Of parameters whose drive gains give the only force of a row, which is then measured by those gains."""
        return validation_of(factors(with_known_gains(model, motions, phi), motions, settings), phi)

    prior = replace(fit, values=fit.priors, standard_values=None)
    known = bool(np.isfinite(prior.values).all())
    own, lean_own = (validation_of(solution.observation, f.standard) for f in (fit, lean.fit))
    if with_known_gains(model, training, fit.standard) is model:
        unseen = factors(model, validation, judging)
        check, lean_check = validation_of(unseen, fit.standard), validation_of(unseen, lean.fit.standard)
        before = validation_of(unseen, prior.standard) if known else None
    else:
        own, lean_own = (errors_of(f.standard, training, learning) for f in (fit, lean.fit))
        check, lean_check = (errors_of(f.standard, validation, judging) for f in (fit, lean.fit))
        before = errors_of(prior.standard, validation, judging) if known else None

    predicting = staged(progress, "predicting")
    learned, judges = _shown(training), _shown(validation)
    named_rows = [model.rows[r] for r in model.select_rows(chosen_rows)]
    traces = {
        "training": joined_traces([trace(fit, m, how, predicting, b) for m, b in _after(learned)]),
        "validation": joined_traces([trace(fit, m, later, predicting, b) for m, b in _after(judges)]),
    }
    found = IdentificationStudy(
        model,
        joined(learned),
        joined(judges),
        structure,
        fit,
        lean,
        own,
        check,
        lean_check,
        before,
        traces,
        residual_whiteness(traces["training"], how),
        np.full(len(fit.values), np.nan) if truth is None else fit.base.reduce(truth.parameters.values),
        _settings(signals or Signals(), how, model),
        solution.sigma,
        held_out_share(
            learned,
            judges,
            used_samples(model, learned, how, named_rows),
            used_samples(model, judges, later, named_rows),
        ),
        lean_own,
        *_simulated(fit, validation, training),
    )
    if found.reduced_is_worse:
        _warn_of_reduced(found)
    if found.unjudged:
        hint = "Shorten the horizon, or take more substeps." if found.not_simulated else "Validate on a log that moves."
        warn(IdentificationWarning, Fault(f"the fit cannot be judged: {found.unjudged}.", "validation", hint=hint))
    return found


def _simulated(
    fit: Fit, validation: Sequence[Motion], training: Sequence[Motion]
) -> tuple[Validation | None, Validation | None, str]:
    """A fit by simulation on held-out data and on its own, as it was simulated for the fit; or why that fails."""
    if fit.replay_settings is None:
        return None, None, ""
    try:
        return replayed(fit, validation), replayed(fit, training), ""
    except VeridynError as error:
        fault = error.faults[0]
        return None, None, f"{fault.where}: {fault.what}".strip(": ").rstrip(".")


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


def _shown(motions: Sequence[Motion]) -> list[Motion]:
    """The first motions, as many as pictures need: of a log that is streamed, not all may be held."""
    out, count = [], 0
    for m in motions:
        out.append(m)
        count += len(m)
        if count >= SHOWN:
            break
    return out


def _after(motions: Sequence[Motion]) -> list[tuple[Motion, int]]:
    """Each motion, and how many samples come before it."""
    counts = np.cumsum([0, *(len(m) for m in motions)])
    return [(m, int(before)) for m, before in zip(motions, counts)]
