"""One identification, from logs to a judgement: identify on the first ones, validate on the others, compare with the truth where known."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Fault, IdentificationWarning, ModelError, VeridynError, warn
from veridyn.identify.base import BaseParameters, base_parameters
from veridyn.identify.error_measures import MIN_SIGNAL_TO_NOISE
from veridyn.identify.essential import Essential, EssentialRule
from veridyn.identify.estimate import identify
from veridyn.identify.estimator import Estimator, fit_of
from veridyn.identify.estimators.least_squares import solve
from veridyn.identify.estimators.weighted import WLS
from veridyn.identify.gains import with_known_gains
from veridyn.identify.known_values import uncertain
from veridyn.identify.logged import motion
from veridyn.identify.regression.gpu import observed
from veridyn.identify.regression.observation import Device, stream
from veridyn.identify.regression.sampling import Sampling, with_dead_zones
from veridyn.identify.result import SIGMA_BELOW_TEN, Acceptance, Fit
from veridyn.identify.validate import equation_rows, replayed, validation_of
from veridyn.identify.validation import Validation
from veridyn.model.coordinates import Rows
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion, joined
from veridyn.progress import Progress, silent
from veridyn.signals.motion import Signals
from veridyn.signals.whiteness import Whiteness
from veridyn.studies.held_out import held_out_share
from veridyn.studies.result import ParameterRow, Result
from veridyn.studies.trace import Trace, joined_traces, residual_whiteness, trace

Array = NDArray[np.float64]
SHOWN = 1_000_000  # samples that are kept for pictures; estimates and errors are of all
UNIT_WORDS = {"N": "force", "N*m": "moment", "rad": "angle", "m": "distance"}
POSITION_UNITS = ("rad", "m")
WORSE_RATIO = 1.1  # of held-out errors, from which a reduced model is reported as worse than the full one
WELL = Acceptance(10.0, 1.0)  # what the figure `well_identified` counts: σ % < 10


@dataclass(frozen=True, eq=False)
class IdentificationStudy:
    """Everything an identification found, and what it is judged by.

    Several logs stand one after the other in `training` and `validation`. `structure`: base parameters by the closed rules, whatever the
    motion; ``fit.base``: those this motion excites, by rank. `before` is the validation of the priors, where all are known. `whiteness`:
    row → test of its residual on the training motion, as the fit saw it. `truth` holds the true base parameters, NaN where there is
    no truth. `contradiction`: σ of the weighted residual of all rows together (26), 1 where the rows agree. `own`: errors of the forces on
    the training motion, whatever the estimator compares (``fit.rows`` of output error are coordinates). `held_out`: the share of the
    validation samples that were not used for the fit. `essential_own` and `essential_check`: errors of the reduced model on both.
    `simulated` and `simulated_own`: of a fit by output error, its simulation of the validation and of the training motion;
    `not_simulated`: why there is none.
    """

    model: Machine
    training: Motion
    validation: Motion
    structure: BaseParameters
    fit: Fit
    essential: Essential
    own: Validation
    check: Validation
    essential_check: Validation
    before: Validation | None
    traces: Mapping[str, Trace]
    whiteness: Mapping[str, Whiteness]
    truth: Array
    settings: Mapping[str, str] = field(default_factory=dict)
    contradiction: float = 1.0
    held_out: float = 1.0
    essential_own: Validation | None = None
    simulated: Validation | None = None
    simulated_own: Validation | None = None
    not_simulated: str = ""

    @property
    def by_simulation(self) -> bool:
        """Whether the fit was made by simulation, and is judged by one."""
        return self.fit.replay_settings is not None

    @property
    def judging(self) -> Validation:
        """What the fit is judged by: what it was fitted to, on the validation motion. Coordinates of a simulation, or forces."""
        if not self.by_simulation:
            return self.check
        return self.simulated or Validation((), by="simulation")

    @property
    def judging_own(self) -> Validation:
        """The same on the training motion."""
        if not self.by_simulation:
            return self.own
        return self.simulated_own or Validation((), by="simulation")

    @property
    def unjudged(self) -> str:
        """Why no row of the validation data can be judged, in words; empty where one is."""
        rows = self.judging.rows
        if any(r.judged for r in rows):
            return ""
        if self.not_simulated:
            return f"the validation data cannot be simulated with the identified parameters ({self.not_simulated})"
        if not any(r.samples for r in rows):
            return "no sample of the validation data is left: all lie in dead zones, at the ends of logs or in spans that are left out"
        if not any(r.measured_rms > 0.0 for r in rows):
            return "no force is measured in the validation data"
        return f"no force varies by more than {MIN_SIGNAL_TO_NOISE:g} times its noise"

    @property
    def parameters(self) -> tuple[ParameterRow, ...]:
        """The base parameters, one row each."""
        f = self.fit
        columns = (f.values, f.sigma, f.relative_sigma, f.priors, self.truth)
        return tuple(
            ParameterRow(name, unit, *(float(x) for x in numbers))
            for name, unit, *numbers in zip(f.names, f.units, *columns, strict=True)
        )

    @property
    def inessential(self) -> tuple[str, ...]:
        """Names, as in the fit, of the parameters that zero would serve as well."""
        gone = {self.model.parameters.index(name) for name in self.essential.fit.removed}
        return tuple(name for name, c in zip(self.fit.names, self.fit.base.columns, strict=True) if c in gone)

    @property
    def judged_on(self) -> str:
        """On which data the validation is, in words."""
        if self.held_out == 0.0:
            return "the data of the fit"
        return "held-out data" if self.held_out == 1.0 else f"data of which {self.held_out:.0%} were held out"

    @property
    def reduced_is_worse(self) -> bool:
        """Whether the reduced model, of essential parameters alone, predicts the validation forces noticeably worse than the full one."""
        full, less = self.check.relative_error, self.essential_check.relative_error
        return bool(self.essential.steps) and not less <= WORSE_RATIO * full

    @property
    def figures(self) -> dict[str, float]:
        """Numbers to judge the study by, named as in `result.json`."""
        f, own = self.fit, [r for r in self.own.rows if r.measured_rms > 0]
        out = {
            "samples_training": float(len(self.training)),
            "samples_validation": float(len(self.validation)),
            "equations": float(sum(r.samples for r in f.rows)),
            "parameters_estimated": float(len(self.model.parameters.select("estimated"))),
            "base_parameters": float(self.structure.count),
            "base_parameters_excited": float(f.base.count),
            "well_identified": float(len(f.well_identified(WELL))),
            "essential_parameters": float(len(self.essential.fit.values)),
            "condition": f.condition,
            "condition_scaled": f.condition_scaled,
            "residual_sigma": f.residual_sigma,
            "rows_with_white_residual": float(sum(w.is_white for w in self.whiteness.values())),
            "share_validation_held_out": self.held_out,
            "rows_judged": float(sum(r.judged for r in self.check.rows)),
            "training_percent": 100.0 * self.own.relative_error,
            "worst_training_percent": max((100.0 * r.relative_error for r in own), default=math.nan),
            "worst_cross_validation_percent": 100.0 * self.check.worst_relative_error,
            "cross_validation_percent": 100.0 * self.check.relative_error,
            "worst_cross_validation_essential_percent": 100.0 * self.essential_check.worst_relative_error,
        }
        out |= std_figures("training", self.own) | std_figures("cross_validation", self.check)
        out["cross_validation_essential_percent"] = 100.0 * self.essential_check.relative_error
        if self.essential_own is not None:
            out["training_essential_percent"] = 100.0 * self.essential_own.relative_error
        if (
            f.rows and f.rows[0].unit in POSITION_UNITS
        ):  # output error compares coordinates: forces are not its own measure
            out |= {f"training_output_{k}": v for k, v in _output_figures(f).items()}
        if self.simulated is not None:
            out["cross_validation_output_percent"] = 100.0 * self.simulated.relative_error
            out |= std_figures("cross_validation_output", self.simulated)
        if f.feasibility is not None:
            out["physically_consistent"] = float(f.feasibility.feasible)
            out["consistency_cost_percent"] = f.feasibility.cost_percent
        if self.before is not None:
            out["cross_validation_before_percent"] = 100.0 * self.before.relative_error
            out["worst_cross_validation_before_percent"] = 100.0 * self.before.worst_relative_error
            out |= std_figures("cross_validation_before", self.before)
        if np.isfinite(self.truth).any():
            off = np.abs(f.values - self.truth) / f.sigma
            known = off[np.isfinite(off)]
            out["share_inside_two_sigma"] = float(np.mean(known <= 2.0))
            out["largest_error_in_sigma"] = float(known.max())
        return out

    @property
    def validation_table(self) -> dict[str, dict[str, float]]:
        """Row → samples, rms error, size of the measured force and errors in percent, on the validation motion."""
        return self.check.table

    def result(
        self, study: str, *, seed: int | None, quick: bool, inputs: Mapping[str, str], warnings: tuple[str, ...] = ()
    ) -> Result:
        """The study as the record that a run folder keeps."""
        return Result(study, seed, quick, inputs, self.figures, self.parameters, self.validation_table, warnings)

    def summary(self) -> str:
        """The fit and its validation as plain text."""
        where = (
            "on samples not used for the fit"
            if self.held_out == 1.0
            else f"on validation samples, of which {self.held_out:.0%} were not used for the fit"
        )
        simulated = "" if self.simulated is None else f"\n\nsimulated {where}\n{self.simulated.summary()}"
        forces = f"forces {where}" if simulated else where
        return f"{self.fit.summary()}{simulated}\n\n{forces}\n{self.check.summary()}"


def std_figures(name: str, found: Validation) -> dict[str, float]:
    """`NAME_std_percent` and `worst_NAME_std_percent` of the judged rows; of two units also each by itself."""
    worst = found.worst_judged
    if worst is None:
        return {}
    out = {f"{name}_std_percent": 100.0 * found.std_error, f"worst_{name}_std_percent": 100.0 * worst.std_error}
    if len(found.std_errors) > 1:
        out |= {f"{name}_{UNIT_WORDS[unit]}_std_percent": 100.0 * e for unit, e in found.std_errors.items()}
    return out


def _output_figures(fit: Fit) -> dict[str, float]:
    """Both measures of what an estimator compares where that is not forces."""
    out = {"percent": 100.0 * fit.relative_error, "std_percent": 100.0 * fit.std_error}
    return {name: value for name, value in out.items() if math.isfinite(value)}


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
        raise ModelError(
            Fault(
                "the truth has other parameters than the model, so they cannot be compared.",
                where=truth.name,
                expected=f"those of '{model.name}'",
            )
        )
    filtering = signals or Signals()
    progress("preparing the logs", 0.0, 2.0)
    seen = motion(model, training, filtering)
    progress("preparing the logs", 1.0, 2.0)
    unseen = motion(model, validation, filtering)
    progress("preparing the logs", 2.0, 2.0)

    how, later = _samplings(sampling, seen, unseen)
    return judged(
        model,
        [seen],
        [unseen],
        how,
        later,
        rows,
        truth=truth,
        acceptance=acceptance,
        signals=filtering,
        progress=progress,
    )


@dataclass(frozen=True)
class Estimation:
    """How a study estimates: arguments of :func:`veridyn.identify.estimate.identify`; `device` and `executor` change no number."""

    method: Estimator = field(default_factory=WLS)
    covariance: Literal["white", "hac"] = "white"
    device: Device = field(default="cpu", compare=False)
    executor: Executor | None = field(default=None, compare=False)


def judged(
    model: Machine,
    training: Sequence[Motion],
    validation: Sequence[Motion],
    how: Sampling,
    later: Sampling,
    rows: Rows = "all",
    *,
    estimation: Estimation | None = None,
    truth: Machine | None = None,
    acceptance: Acceptance = SIGMA_BELOW_TEN,
    signals: Signals | None = None,
    reduction: EssentialRule | None = None,
    progress: Progress = silent,
) -> IdentificationStudy:
    """Identify from some motions and judge on others; `how` and `later` make equations of the first and of the second.

    What is inessential is decided by weighted least squares, whatever the estimator.
    """
    chosen = estimation or Estimation()
    how, later = (with_dead_zones(each, model, training, rows) for each in (how, later))
    structure = base_parameters(model, rows=rows)
    told = _told(progress, "identifying")
    where: dict[str, Any] = {"device": chosen.device, "executor": chosen.executor}
    solution = solve(observed(stream(model, training, rows, how, progress=told, **where)))
    if chosen == Estimation() and uncertain(model.parameters, model.uncertainty) is None:
        fit = fit_of(model, solution, WLS.title, acceptance)
    else:
        fit = identify(
            model,
            training,
            chosen.method,
            rows=rows,
            covariance=chosen.covariance,
            sampling=how,
            acceptance=acceptance,
            progress=told,
            **where,
            diagnose="off",  # a run asks more, and of evidence that it has at hand
        )
    _warn_if_not_excited(structure, fit.base)
    lean = (reduction or EssentialRule()).of(model, solution, acceptance)

    told = _told(progress, "validating")
    chosen_rows = equation_rows(fit)

    def errors_of(phi: Array, motions: Sequence[Motion], sampling: Sampling) -> Validation:
        """Of parameters whose drive gains give the only force of a row, which is then measured by those gains."""
        machine = with_known_gains(model, motions, phi)
        return validation_of(observed(stream(machine, motions, chosen_rows, sampling, progress=told, **where)), phi)

    prior = replace(fit, values=fit.priors, standard_values=None)
    known = bool(np.isfinite(prior.values).all())
    own, lean_own = (validation_of(solution.observation, f.standard) for f in (fit, lean.fit))
    if with_known_gains(model, training, fit.standard) is model:
        unseen = observed(stream(model, validation, chosen_rows, later, progress=told, **where))
        check, lean_check = validation_of(unseen, fit.standard), validation_of(unseen, lean.fit.standard)
        before = validation_of(unseen, prior.standard) if known else None
    else:
        own, lean_own = errors_of(fit.standard, training, how), errors_of(lean.fit.standard, training, how)
        check, lean_check = errors_of(fit.standard, validation, later), errors_of(lean.fit.standard, validation, later)
        before = errors_of(prior.standard, validation, later) if known else None

    predicting = _told(progress, "predicting")
    learned, judges = _shown(training), _shown(validation)
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
        _settings(signals or Signals(), how),
        solution.sigma,
        held_out_share(learned, judges),
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
    sampling: Sampling | Callable[[Motion], Sampling] | None, seen: Motion, unseen: Motion
) -> tuple[Sampling, Sampling]:
    """Those of the training and of the validation motion."""
    if callable(sampling):
        return sampling(seen), sampling(unseen)
    how = sampling or Sampling()
    return how, replace(how, drop={})


def _warn_if_not_excited(structure: BaseParameters, excited: BaseParameters) -> None:
    if excited.count < structure.count:
        names = [structure.parameters.names[c] for c in structure.columns if c not in excited.columns]
        warn(
            IdentificationWarning,
            Fault(
                "the training motion does not excite all that this machine could tell.",
                where="training",
                expected=f"{structure.count} base parameters",
                found=f"{excited.count}; not separated: {', '.join(names)}",
                hint="veridyn.identification.explain(machine, name, motion) says which motion would help.",
            ),
        )


def _settings(signals: Signals, how: Sampling) -> dict[str, str]:
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
        out["dead zone"] = ", ".join(f"{row} below {speed:g}" for row, speed in how.zones.items())
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


def _told(progress: Progress, stage: str) -> Progress:
    def tell(task: str, done: float, total: float | None) -> None:
        progress(f"{stage}: {task}", done, total)

    return tell
