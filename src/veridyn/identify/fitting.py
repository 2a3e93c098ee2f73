"""A solution as the fit of a tree: base parameters with their groups, standard deviations, rows and notes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from veridyn.identify.base import NUMERICAL_SOURCE, BaseParameters
from veridyn.identify.error_measures import RowReport
from veridyn.identify.estimators.coloured import Sandwich
from veridyn.identify.estimators.least_squares import OPEN_TYPICAL_SIZES, Solution
from veridyn.identify.result import SIGMA_BELOW_TEN, Acceptance, Fit
from veridyn.model.machine import Machine

Array = NDArray[np.float64]
CLEAR_GAP = 1e3
TREE_NOTE = (
    "identified in the joint coordinates of its tree: natural coordinates, in which it is described, have no regressor."
)


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
    x = np.zeros(len(s.observation.parameters))
    x[list(s.columns)] = s.values
    both = zip(s.observation.rows, s.row_sigma, strict=True)
    return tuple(f.report(x[list(f.columns)], float(sigma)) for f, sigma in both)


def at(s: Solution, values: Array) -> Solution:
    """A solution at other values, with the residual these have."""
    more = float(np.linalg.norm(s.triangle @ (values - s.values)))
    return replace(s, values=values, sigma=float(np.hypot(s.sigma, more / np.sqrt(s.freedom))))


def coloured(fit: Fit, made: Sandwich, plain: Array) -> Fit:
    """A fit with the deviations of a sandwich, and what they are beside the `plain` ones."""
    ratio = np.sqrt(np.diag(made.covariance)) / np.where(plain > 0.0, plain, np.nan)
    note = (
        f"deviations allow for residuals that remember {made.lags} samples: "
        f"{np.nanmin(ratio):.2f} to {np.nanmax(ratio):.2f} times those for white noise"
    )
    notes = [*fit.notes, note]
    if made.capped:
        notes.append("note: the residuals remember longer than this log can show; deviations may still be too small.")
    return replace(fit, covariance=made.covariance, notes=tuple(notes))


def with_tree_note(fit: Fit) -> Fit:
    """The fit of a machine in natural coordinates, with a note that its tree stood for it."""
    return replace(fit, notes=(*fit.notes, TREE_NOTE))
