"""The held-out check of a fit: its errors on samples that it did not use, beside those of the values from before.

A fit of equations is checked by its forces, one by simulation also by its simulation of the same data. How much was held out is counted in
samples, since a log may be named twice: a sample of the validation motions was used where a training motion has it too, at the same
time, with the same coordinates, forces and signals, and beside moving ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import VeridynError
from veridyn.identify.estimator import FitProblem
from veridyn.identify.gains import with_known_gains
from veridyn.identify.pipeline.estimation import at_hand
from veridyn.identify.regression.factor import RowFactors
from veridyn.identify.regression.gpu import observed
from veridyn.identify.regression.observation import stream
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.result import Fit, HeldOutRows
from veridyn.identify.settings import IdentifySettings
from veridyn.identify.validate import equation_rows, replayed, validation_of
from veridyn.identify.validation import Validation
from veridyn.inference.error_measures import MIN_SIGNAL_TO_NOISE, RowReport
from veridyn.model.coordinates import Rows
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.progress import Progress, silent

Mask = NDArray[np.bool_]
SAME_VALUE = 1e-6  # of a coordinate's range: samples nearer than this at one time are the same sample
SHOWN = 1_000_000  # samples that are compared one by one, and kept for pictures; estimates and errors are of all


@dataclass(eq=False, kw_only=True)
class EquationErrors:
    """Errors of any parameters in the equations of some motions, which are streamed once.

    Where drive gains give the only force of a row, that force is measured by the gains of the parameters, and streamed for them.
    """

    problem: FitProblem
    motions: Sequence[Motion]
    rows: Rows
    settings: IdentifySettings
    progress: Progress
    factors: RowFactors | None = None

    def of(self, phi: Array) -> Validation:
        """Of all parameters of the machine."""
        machine = self.problem.machine
        measured = with_known_gains(machine, at_hand(self.motions), phi)
        if measured is not machine:
            return validation_of(self._streamed(measured), phi)
        if self.factors is None:
            self.factors = self._streamed(machine)
        return validation_of(self.factors, phi)

    def _streamed(self, machine: Machine) -> RowFactors:
        executor = self.problem.executor
        how = stream(machine, self.motions, self.rows, self.settings, executor=executor, progress=self.progress)
        return observed(how)


@dataclass(frozen=True, eq=False, kw_only=True)
class HeldOutCheck:
    """`forces`: errors of each row on the validation motions; `before`: the same with the values from before, None where not all are
    known. `share`: of the validation samples, that were not used for the fit.

    `errors`: of any parameters on the validation motions, None where their equations are no longer needed. `simulated` and
    `simulated_own`: of a fit by output error, its simulation of the validation and of the training motions; `not_simulated`: why there
    is none.
    """

    forces: Validation
    before: Validation | None
    share: float
    errors: EquationErrors | None
    simulated: Validation | None = None
    simulated_own: Validation | None = None
    not_simulated: str = ""

    def judging(self, fit: Fit) -> Validation:
        """What the fit is judged by: what it was fitted to. Coordinates of a simulation, or forces."""
        return self.forces if fit.replay_settings is None else self.simulated or Validation((), by="simulation")

    def on(self, fit: Fit) -> Fit:
        """The fit with the rows that it is judged by."""
        rows = self.judging(fit).rows
        before = self.before if fit.replay_settings is None else None
        unseen = HeldOutRows(
            rows=rows,
            before=() if before is None else before.rows,
            share=self.share,
            unjudged=unjudged(rows, self.not_simulated),
            failed=self.not_simulated,
        )
        return replace(fit, unseen=unseen)


def unjudged(rows: Sequence[RowReport], not_simulated: str = "") -> str:
    """Why none of these rows can be judged, in words; empty where one is."""
    if any(r.judged for r in rows):
        return ""
    if not_simulated:
        return f"the validation data cannot be simulated with the identified parameters ({not_simulated})"
    if not any(r.samples for r in rows):
        return "no sample of the validation data is left: all lie in dead zones, at the ends of logs or in spans that are left out"
    if not any(r.measured_rms > 0.0 for r in rows):
        return "no force is measured in the validation data"
    return f"no force varies by more than {MIN_SIGNAL_TO_NOISE:g} times its noise"


def held_out_check(
    fit: Fit, problem: FitProblem, validation: Sequence[Motion], later: Sampling, progress: Progress = silent
) -> HeldOutCheck:
    """The check of a fit on held-out motions, whose samples become equations by `later`."""
    settings = replace(problem.settings, sampling=later)
    rows = equation_rows(fit)
    errors = EquationErrors(problem=problem, motions=validation, rows=rows, settings=settings, progress=progress)
    prior = replace(fit, values=fit.priors, standard_values=None)
    training = problem.motion if isinstance(problem.motion, Sequence) else [problem.motion]
    machine, how = problem.machine, problem.settings.sampling or Sampling()
    names = [machine.rows[r] for r in machine.select_rows(rows)]
    learned, judges = shown(training), shown(validation)
    used, asked = used_samples(machine, learned, how, names), used_samples(machine, judges, later, names)
    share = held_out_share(learned, judges, used, asked)
    forces = errors.of(fit.standard)
    before = errors.of(prior.standard) if np.isfinite(prior.values).all() else None
    simulated, own, why = _simulations(fit, validation, training)
    return HeldOutCheck(
        forces=forces,
        before=before,
        share=share,
        errors=errors,
        simulated=simulated,
        simulated_own=own,
        not_simulated=why,
    )


def _simulations(
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


def shown(motions: Sequence[Motion]) -> list[Motion]:
    """The first motions, as many as pictures need: of a log that is streamed, not all may be held."""
    out, count = [], 0
    for m in motions:
        out.append(m)
        count += len(m)
        if count >= SHOWN:
            break
    return out


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
