"""What an identification gave: the fit, its errors on held-out data, the reduced model, and the record that a run keeps.

Forces along a motion, measured and predicted (:class:`Trace`), show whether the residual is noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.identify.base import BaseParameters
from veridyn.identify.pipeline.held_out import HeldOutCheck, unjudged
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.result import Fit
from veridyn.identify.selection import Essential
from veridyn.identify.settings import Acceptance
from veridyn.identify.validate import predicted
from veridyn.identify.validation import Validation
from veridyn.inference.error_measures import row_unit
from veridyn.inference.parameter_row import ParameterRow, parameter_rows
from veridyn.inference.verdict import Verdict
from veridyn.lazy import above
from veridyn.mechanics.tree.recursion.inputs import blocks
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion, joined_clock
from veridyn.progress import Progress, silent
from veridyn.signals.butterworth import zero_phase
from veridyn.signals.resample import uniform_rate
from veridyn.signals.spectrum import Whiteness, cumulative_periodogram

WHITE_LEVEL = 0.01  # for all rows of a fit together
MIN_WHITENESS_SAMPLES = 16  # samples from which a residual may be called white or not
UNIT_WORDS = {"N": "force", "N*m": "moment", "rad": "angle", "m": "distance"}
POSITION_UNITS = ("rad", "m")
WORSE_RATIO = 1.1  # of held-out errors, from which a reduced model is reported as worse than the full one
WELL_IDENTIFIED = Acceptance(10.0, 1.0)  # what the figure `well_identified` counts: σ % < 10


@dataclass(frozen=True, eq=False, kw_only=True)
class Trace:
    """Measured and predicted side (N, rows) of every row along one motion, both through the filter of the fit.

    `used`: which samples a row takes into account, before decimation: not those at the ends, in its dead zone, or masked.
    """

    t: Array
    rows: tuple[str, ...]
    units: tuple[str, ...]
    measured: Array
    predicted: Array
    used: NDArray[np.bool_]

    @property
    def residual(self) -> Array:
        return self.measured - self.predicted


def trace(fit: Fit, along: Motion, sampling: Sampling, progress: Progress = silent, before: int = 0) -> Trace:
    """What was measured and what the fit predicts, block by block, then through the filter of the fit.

    `before`: samples of the motions before this one, which masks count as well.
    """
    measured, model = [], []
    names: tuple[str, ...] = ()
    for part in blocks(len(along)):
        names, y, predicted_y = predicted(fit, along[part], sampling=sampling)
        measured.append(y)
        model.append(predicted_y)
        progress("forces", float(part.stop), float(len(along)))
    y, p = np.concatenate(measured), np.concatenate(model)
    for k, name in enumerate(names):
        low = sampling.filter_of(name)
        if low is not None and np.isfinite(y[:, k]).all():  # a filter would smear gaps; such rows are shown as measured
            rate = uniform_rate(along.t, where="motion.t")
            y[:, k], p[:, k] = zero_phase(np.column_stack([y[:, k], p[:, k]]), rate, low).T
    units = tuple(row_unit(fit.described, name) for name in names)
    numbers = np.arange(len(along))
    used = [sampling.uses(fit.described, name, along.qd, numbers, len(along), before) for name in names]
    return Trace(
        t=along.t, rows=names, units=units, measured=y, predicted=p, used=np.column_stack(used) & np.isfinite(y)
    )


def joined_traces(parts: Sequence[Trace]) -> Trace:
    """Traces of several motions one after the other, on the clock of :func:`~veridyn.model.motion.joined`."""
    if len(parts) == 1:
        return parts[0]
    t = joined_clock([part.t for part in parts])
    stacked = {n: np.concatenate([getattr(part, n) for part in parts]) for n in ("measured", "predicted", "used")}
    return Trace(t=t, rows=parts[0].rows, units=parts[0].units, **stacked)


def residual_whiteness(seen: Trace, how: Sampling) -> dict[str, Whiteness]:
    """Of each row's residual at the samples that became equations; a row that is exact, or has few of them, has none.

    The samples a row uses are joined across those it leaves out: white noise cut at places that know nothing of it is white, exactly,
    and a hum keeps its frequency but for the seams.
    """
    numbers = np.arange(len(seen.t))
    chosen = numbers[numbers % how.decimate == 0]
    found: dict[str, Whiteness] = {}
    if len(chosen) < MIN_WHITENESS_SAMPLES:
        return found
    rate = 1.0 / float(np.median(np.diff(seen.t[chosen])))
    rounding = 1e-9 * float(np.nanmax(np.abs(seen.measured), initial=0.0))
    for k, row in enumerate(seen.rows):
        r = seen.residual[chosen, k][seen.used[chosen, k]]
        if len(r) >= MIN_WHITENESS_SAMPLES and float(np.ptp(r)) > rounding:
            found[row] = cumulative_periodogram(r, rate, WHITE_LEVEL / len(seen.rows), where=f"residual of row '{row}'")
    return found


@dataclass(frozen=True, eq=False, kw_only=True)
class IdentificationStudy:
    """Everything an identification found, and what it is judged by.

    Several logs stand one after the other in `training` and `validation`. `structure`: base parameters by the closed rules, whatever the
    motion; ``fit.base``: those this motion excites, by rank. `unseen`: errors on the validation motion. `whiteness`: row → test of its
    residual on the training motion, as the fit saw it. `truth` holds the true base parameters, NaN where there is no truth.
    `contradiction`: σ of the weighted residual of all rows together (26), 1 where the rows agree. `own`: errors of the forces on the
    training motion, whatever the estimator compares (``fit.rows`` of output error are coordinates). `essential_own` and
    `essential_check`: errors of the reduced model on both.
    """

    model: Machine
    training: Motion
    validation: Motion
    structure: BaseParameters
    fit: Fit
    essential: Essential
    own: Validation
    unseen: HeldOutCheck
    essential_check: Validation
    essential_own: Validation
    traces: Mapping[str, Trace]
    whiteness: Mapping[str, Whiteness]
    truth: Array
    settings: Mapping[str, str] = field(default_factory=dict)
    contradiction: float = 1.0

    @property
    def check(self) -> Validation:
        """Errors of the forces on the validation motion."""
        return self.unseen.forces

    @property
    def before(self) -> Validation | None:
        """The same of the priors, where all are known."""
        return self.unseen.before

    @property
    def held_out(self) -> float:
        """The share of the validation samples that were not used for the fit."""
        return self.unseen.share

    @property
    def simulated(self) -> Validation | None:
        """Of a fit by output error, its simulation of the validation motion."""
        return self.unseen.simulated

    @property
    def verdict(self) -> Verdict:
        """How good the fit is, why it is no better, and what it may be used for."""
        return above("veridyn.identify.pipeline.study_verdict", "verdict_of_study")(self)

    @property
    def by_simulation(self) -> bool:
        """Whether the fit was made by simulation, and is judged by one."""
        return self.fit.replay_settings is not None

    @property
    def judging(self) -> Validation:
        """What the fit is judged by: what it was fitted to, on the validation motion. Coordinates of a simulation, or forces."""
        return self.unseen.judging(self.fit)

    @property
    def judging_own(self) -> Validation:
        """The same on the training motion."""
        return self.unseen.simulated_own or Validation((), by="simulation") if self.by_simulation else self.own

    @property
    def unjudged(self) -> str:
        """Why no row of the validation data can be judged, in words; empty where one is."""
        return unjudged(self.judging.rows, self.unseen.not_simulated)

    @property
    def parameters(self) -> tuple[ParameterRow, ...]:
        """The base parameters, one row each."""
        f = self.fit
        return parameter_rows(f.names, f.units, f.values, f.sigma, f.relative_sigma, f.priors, self.truth)

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
        return "held-out data" if self.held_out == 1.0 else f"data of which {100.0 * self.held_out:.0f} % were held out"

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
            "well_identified": float(len(f.well_identified(WELL_IDENTIFIED))),
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

    def result(
        self, study: str, *, seed: int | None, quick: bool, inputs: Mapping[str, str], warnings: tuple[str, ...] = ()
    ) -> Any:
        """The study as the record that a run folder keeps, a :class:`~veridyn.studies.result.Result`."""
        made = above("veridyn.studies.result", "Result")
        findings = tuple(f.record for f in self.fit.findings)
        return made(
            study,
            seed,
            quick,
            inputs,
            self.figures,
            self.parameters,
            self.check.table,
            warnings,
            findings=findings,
            verdict=self.verdict.record,
        )

    def summary(self) -> str:
        """The fit and its validation as plain text."""
        where = (
            "on samples not used for the fit"
            if self.held_out == 1.0
            else f"on validation samples, of which {100.0 * self.held_out:.0f} % were not used for the fit"
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
