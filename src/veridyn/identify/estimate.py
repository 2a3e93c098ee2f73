"""The door of identification: a tree, a motion, rows and an estimator in; a fit out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Fault, IdentificationError, did_you_mean
from veridyn.identify.base import BaseParameters
from veridyn.identify.grouping import RANK_TOLERANCE
from veridyn.identify.least_squares import Solution, solve
from veridyn.identify.observation import Sampling, observation
from veridyn.identify.result import SIGMA_BELOW_TEN, Acceptance, Fit, RowReport
from veridyn.mechanics.engine import Engine
from veridyn.model.motion import Motion
from veridyn.model.tree import Rows, Tree
from veridyn.progress import Progress, silent

Array = NDArray[np.float64]
ESTIMATORS = {"ols": "ordinary least squares", "wls": "weighted least squares"}
CLEAR_GAP = 1e3


def identify(
    tree: Tree,
    motion: Motion | Sequence[Motion],
    rows: Rows = "all",
    estimator: str = "wls",
    *,
    sampling: Sampling | None = None,
    sigma: Mapping[str, float] | None = None,
    acceptance: Acceptance = SIGMA_BELOW_TEN,
    tolerance: float = RANK_TOLERANCE,
    engine: Engine = "auto",
    executor: Executor | None = None,
    progress: Progress = silent,
) -> Fit:
    """The asked parameters of a tree from one motion or several, with standard deviations.

    `rows`: "all", "joints", "base", "actuated", or names. `estimator`: "wls" (rows weighted by 1/σ_j, from `sigma` or from the data by
    (24)) or "ols". `engine` and `executor` as for :func:`~veridyn.identify.observation.observation`. Parameters the data cannot
    separate are grouped and named; nothing is silently fixed.
    """
    if estimator not in ESTIMATORS:
        raise IdentificationError(
            Fault(
                f"there is no estimator '{estimator}'.",
                where="identify",
                hint=did_you_mean(estimator, list(ESTIMATORS)),
            )
        )
    observed = observation(tree, motion, rows, sampling, engine=engine, executor=executor, progress=progress)
    solution = solve(observed, "rows" if estimator == "wls" else "none", sigma=sigma, tolerance=tolerance)
    return fit_of(tree, solution, estimator, acceptance)


def fit_of(
    tree: Tree, s: Solution, estimator: str, acceptance: Acceptance = SIGMA_BELOW_TEN, removed: tuple[str, ...] = ()
) -> Fit:
    """A solution in the words of the tree."""
    base = base_of(s)
    notes = []
    if base.gap < CLEAR_GAP:
        notes.append(
            f"note: the rank is not clear-cut: singular values drop only by {base.gap:.2g} behind the last one kept."
        )
    if base.dead:
        named = ", ".join(base.parameters.names[k] for k in base.dead)
        notes.append(f"without effect in this motion, and not estimated: {named}")
    notes += [f"grouped: {relation}" for relation in base.relations()]
    return Fit(
        tree,
        base,
        s.values,
        s.covariance,
        row_reports(s),
        ESTIMATORS[estimator],
        s.sigma,
        s.condition,
        s.condition_scaled,
        acceptance,
        tuple(notes),
        removed,
    )


def base_of(s: Solution) -> BaseParameters:
    """The groups of a solution over all parameters of the tree."""
    p, own = s.observation.parameters, s.observation.columns
    matrix = np.zeros((len(s.groups.kept), len(p)))
    matrix[:, list(own)] = s.groups.matrix
    felt = set(own)
    dead = {own[k] for k in s.groups.dead} | {c for c in p.select("asked") if c not in felt}
    source = f"numerically, on {s.observation.samples} equations"
    return BaseParameters(p, s.columns, matrix, tuple(sorted(dead)), s.groups.gap, s.groups.singular_values, source)


def row_reports(s: Solution) -> tuple[RowReport, ...]:
    """Errors of each row with the solution's values."""
    x = np.zeros(len(s.observation.parameters))
    x[list(s.columns)] = s.values
    reports = []
    for f, sigma in zip(s.observation.rows, s.row_sigma, strict=True):
        root = np.sqrt(max(f.samples, 1))
        reports.append(
            RowReport(f.row, f.samples, f.residual(x[list(f.columns)]) / root, f.measurement_norm / root, float(sigma))
        )
    return tuple(reports)
