"""What an estimator is: an object with settings, a name, a check before samples are streamed, and a fit.

    method = Robust(loss="tukey");  method.check(tree, rows, covariance);  fit = method.fit(FitProblem(tree=…, motion=…, …))

The data stand in the problem, the settings in the estimator, and what was found in the fit; none of the three changes.
A solution of the equations becomes a fit by :func:`fit_of`: base parameters with their groups, standard deviations, rows and notes.
The plainest estimators are ordinary and weighted least squares: one pass over the samples, one small system solved.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import IdentificationError, ModelError, VeridynError
from veridyn.identify.base import NUMERICAL_SOURCE, BaseParameters
from veridyn.identify.estimators.coloured import Sandwich
from veridyn.identify.estimators.least_squares import OPEN_TYPICAL_SIZES, Solution, Weighting, solve
from veridyn.identify.gains import check_load
from veridyn.identify.regression.factor import RowFactors
from veridyn.identify.regression.gpu import observed
from veridyn.identify.regression.observation import EquationStream, stream
from veridyn.identify.result import Fit
from veridyn.identify.settings import SIGMA_BELOW_TEN, Acceptance, Auto, Hac, IdentifySettings
from veridyn.identify.statistics.spectral import noise_covariance
from veridyn.inference.agreement import Agreement
from veridyn.inference.error_measures import RowReport
from veridyn.model.coordinates import Rows
from veridyn.model.graph import Formulation
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.progress import Progress, silent
from veridyn.settings import Settings

CLEAR_GAP = 1e3
NOTE = "note: "
MOST_NAMED = 5  # parameters in a note
SHORT_LOG_SAMPLES = (
    10.0  # independent ones for each parameter: with fewer no covariance of scores can be counted out of the samples
)
TREE_NOTE = (
    "identified in the joint coordinates of its tree: natural coordinates, in which it is described, have no regressor."
)


@dataclass(frozen=True, eq=False, kw_only=True)
class FitProblem:
    """What an estimator is given: the machine, the data, and how both become equations.

    The fields are the arguments of :func:`~veridyn.identify.estimate.identify`, with motions made of logs.
    """

    machine: Machine
    motion: Motion | Sequence[Motion]
    rows: Rows = "all"
    settings: IdentifySettings = field(default_factory=IdentifySettings)
    executor: Executor | None = None
    progress: Progress = silent

    @property
    def covariance(self) -> Hac | Auto | None:
        """None where residuals are assumed uncorrelated."""
        return self.settings.correlated

    def stream(self) -> EquationStream:
        """The equations, checked and ready for one pass or several."""
        how = self.settings
        return stream(self.machine, self.motion, self.rows, how, executor=self.executor, progress=self.progress)

    @cached_property
    def samples(self) -> EquationStream:
        """The equations, made once for the estimator and for what judges it."""
        return self.stream()

    @cached_property
    def observation(self) -> RowFactors:
        """The factors of all rows, from one pass over the samples."""
        found = observed(self.samples)
        check_load(self.machine, found)
        return found

    @cached_property
    def weighted(self) -> Solution:
        """Weighted least squares, from which most estimators start and by which rows are told that contradict each other."""
        return self.solved("rows")

    @property
    def contradiction(self) -> float:
        """How much more all rows together leave unexplained than each by itself (26); 1 where their deviations are given."""
        if self.settings.sigma or not self.machine.parameters.select("estimated"):
            return 1.0
        if any(f.measurement_norm == 0.0 for f in self.observation.rows):
            return 1.0  # a row that measures nothing has no deviation of its own
        return self.weighted.sigma

    def solved(self, weighting: Weighting) -> Solution:
        """Least squares of the factors."""
        return solve(self.observation, weighting, sigma=self.settings.sigma, tolerance=self.settings.tolerance)


class Estimator(Settings, ABC):
    """Base of all estimators: frozen dataclasses of settings, checked when an object is made.

    `name` is the word that stands for the estimator with default settings; `title` is what reports call it.
    """

    error: ClassVar[type[VeridynError]] = IdentificationError
    name: ClassVar[str]
    title: ClassVar[str]

    @property
    def every_sample(self) -> bool:
        """Whether samples may not be left out of the motion."""
        return False

    @property
    def weighs_differences(self) -> bool:
        """Whether equations are weighed by noise with a memory: differences of neighbours, and so steps of dry friction, weigh most."""
        return False

    def check(self, machine: Machine, rows: Rows, covariance: Hac | Auto | None) -> None:
        """Refuse by name what cannot work, before any sample is streamed."""
        machine.select_rows(rows)

    @abstractmethod
    def fit(self, problem: FitProblem) -> Fit:
        """Estimate the parameters of ``problem.machine``; what `check` refuses must not be given."""

    def refuse_hac(self, covariance: Hac | Auto | None, reason: str, hint: str) -> None:
        """Refuse standard deviations for autocorrelated residuals where the estimator has none."""
        if isinstance(covariance, Hac):
            raise IdentificationError(f"estimator '{self.name}' {reason}", where="covariance", hint=hint)


def fit_of(
    machine: Machine, s: Solution, title: str, acceptance: Acceptance = SIGMA_BELOW_TEN, removed: tuple[str, ...] = ()
) -> Fit:
    """A solution as a fit of the tree; `title`: that of the estimator."""
    base = base_of(s)
    notes = []
    if base.gap < CLEAR_GAP:
        notes.append(
            f"note: the rank is not clear-cut: singular values drop only by {base.gap:.2g} behind the last one kept."
        )
    if s.open:
        notes.append(
            f"note: noise leaves {s.open} more combination{'s' if s.open > 1 else ''} of parameters open by over "
            f"{OPEN_TYPICAL_SIZES:g} times typical sizes; these are grouped, and what is known of them is estimated."
        )
    if base.dead:
        named = ", ".join(base.parameters.names[k] for k in base.dead)
        notes.append(f"without effect in this motion, and not estimated: {named}")
    notes += [f"grouped: {relation}" for relation in base.relations()]
    return Fit(
        described=machine,
        base=base,
        values=s.values,
        covariance=s.covariance,
        rows=row_reports(s),
        estimator=title,
        residual_sigma=s.sigma,
        condition=s.condition,
        condition_scaled=s.condition_scaled,
        acceptance=acceptance,
        notes=tuple(notes),
        removed=removed,
    )


def base_of(s: Solution) -> BaseParameters:
    """The groups of a solution over all parameters of the tree."""
    p, own = s.observation.parameters, s.observation.columns
    matrix = np.zeros((len(s.groups.kept), len(p)))
    matrix[:, list(own)] = s.groups.matrix
    affecting = set(own)
    dead = {own[k] for k in s.groups.dead} | {c for c in p.select("estimated") if c not in affecting}
    source = f"{NUMERICAL_SOURCE}, on {s.observation.samples} equations"
    return BaseParameters(
        parameters=p,
        columns=s.columns,
        matrix=matrix,
        dead=tuple(sorted(dead)),
        gap=s.groups.gap,
        singular_values=s.groups.singular_values,
        source=source,
    )


def row_reports(s: Solution) -> tuple[RowReport, ...]:
    """Errors of each row with the solution's values."""
    x = s.all_values
    both = zip(s.observation.rows, s.row_sigma, strict=True)
    return tuple(f.report(x[list(f.columns)], float(sigma)) for f, sigma in both)


def solution_at(s: Solution, values: Array) -> Solution:
    """A solution at other values, with the residual these have."""
    more = float(np.linalg.norm(s.triangle @ (values - s.values)))
    return replace(s, values=values, sigma=float(np.hypot(s.sigma, more / np.sqrt(s.freedom))))


def with_sandwich(fit: Fit, made: Sandwich | None, plain: Array) -> Fit:
    """A fit with the deviations of a sandwich, and what they are beside the `plain` ones; as it is without one."""
    if made is None:
        return fit
    ratio = np.sqrt(np.diag(made.covariance)) / np.where(plain > 0.0, plain, np.nan)
    times = f"{np.nanmin(ratio):.2f} to {np.nanmax(ratio):.2f} times those for white noise"
    notes = list(fit.notes)
    if made.spectrum is None:
        notes.append(f"deviations allow for residuals that remember {made.lags} samples: {times}")
    elif not made.spectrum.is_white:
        notes.append(f"deviations allow for the spectrum of the residuals: {times}")
    if made.agreement is not None and made.agreement.widening > 1.0:
        said = disagreement(made.agreement, fit.names)
        notes.append(f"{NOTE}{said}")
        fit = replace(fit, disagreement=said)
    if made.spectrum is not None and made.spectrum.independent < SHORT_LOG_SAMPLES * len(fit.values):
        notes.append(
            f"note: the log is short for its parameters: its residuals are worth {made.spectrum.independent:.0f} independent ones, for "
            f"{len(fit.values)} parameters. Deviations rest on an autoregression of the residuals, and are widened for its uncertainty."
        )
    if made.capped:
        notes.append("note: the residuals remember longer than this log can show; deviations may still be too small.")
    return replace(fit, covariance=made.covariance, white_covariance=fit.covariance, notes=tuple(notes))


def disagreement(found: Agreement, names: Sequence[str]) -> str:
    """That parts of the data contradict each other, by how much, and in which parameters."""
    changed = ", ".join(f"{names[k]} ({abs(found.changes[k]):.1f}σ)" for k in found.changed[:MOST_NAMED])
    more = len(found.changed) - MOST_NAMED
    named = f" Most: {changed}{f' and {more} more' if more > 0 else ''}." if changed else ""
    return (
        f"{found.stretches} logs, or parts of one, disagree beyond their deviations ({found.ratio:.1f} times the expected "
        f"χ², probability {found.chance:.1g}); deviations are widened by {np.sqrt(found.widening):.2f}.{named}"
    )


def in_formulation(fit: Fit, formulation: Formulation) -> Fit:
    """The fit whose machine is in this formulation; in its tree where that cannot carry what was added to the machine."""
    try:
        fit.described.with_formulation(formulation)
    except ModelError:
        return replace(fit, formulation="tree")
    return replace(fit, formulation=formulation)


def with_tree_note(fit: Fit) -> Fit:
    """The fit of a machine in natural coordinates, with a note that its tree stood for it."""
    return replace(fit, notes=(*fit.notes, TREE_NOTE))


class _LeastSquares(Estimator):
    """Both kinds: they differ in the weights of the rows alone."""

    weighting: ClassVar[Weighting]

    def fit(self, problem: FitProblem) -> Fit:
        solution = problem.weighted if self.weighting == "rows" else problem.solved(self.weighting)
        fit = fit_of(problem.machine, solution, self.title, problem.settings.acceptance)
        return with_sandwich(fit, noise_covariance(problem.samples, solution, problem.covariance), fit.sigma)


@dataclass(frozen=True, repr=False)
class OLS(_LeastSquares):
    """Ordinary least squares: every equation has the same weight, whatever the unit of its row.

    It has no settings. Use it where there is one row, or where all rows have one unit and the same noise; else use :class:`WLS`.

    Examples
    --------
    >>> fit = vd.identify(robot, motion, vd.estimators.OLS())  # robot and motion as in the example of vd.identify
    >>> fit.estimator
    'ordinary least squares'
    """

    name: ClassVar[str] = "ols"
    title: ClassVar[str] = "ordinary least squares"
    weighting: ClassVar[Weighting] = "none"


@dataclass(frozen=True, repr=False)
class WLS(_LeastSquares):
    """Weighted least squares: each row is divided by the standard deviation of its noise. The default method.

    It has no settings. The standard deviations come from the argument `sigma` of :func:`~veridyn.identify.estimate.identify`, or from a
    fit of each row by itself, equation (24) of paper 000.

    Examples
    --------
    >>> how = vd.IdentifySettings(covariance="white")
    >>> fit = vd.identify(robot, motion, vd.estimators.WLS(), how)  # robot and motion as in the example of vd.identify
    >>> fit.estimator
    'weighted least squares'
    """

    name: ClassVar[str] = "wls"
    title: ClassVar[str] = "weighted least squares"
    weighting: ClassVar[Weighting] = "rows"
