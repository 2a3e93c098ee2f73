"""The door of identification: a tree, a motion, rows and an estimator in; a fit out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Fault, Faults, IdentificationError, did_you_mean
from veridyn.identify.base import BaseParameters
from veridyn.identify.coloured import Hac, Sandwich, sandwich
from veridyn.identify.feasible import Consistent, check, consistent, split
from veridyn.identify.grouping import RANK_TOLERANCE
from veridyn.identify.least_squares import Solution, solve
from veridyn.identify.observation import Sampling, Stream, stream
from veridyn.identify.prior import PRIOR_ALONE, Posterior, Prior, belief, posterior
from veridyn.identify.result import SIGMA_BELOW_TEN, Acceptance, Fit, RowReport
from veridyn.identify.robust import Robust, reweighted
from veridyn.identify.threads import one_blas_thread
from veridyn.mechanics.engine import Engine
from veridyn.model.motion import Motion
from veridyn.model.tree import Rows, Tree
from veridyn.progress import Progress, silent

Array = NDArray[np.float64]
ESTIMATORS = {
    "ols": "ordinary least squares",
    "wls": "weighted least squares",
    "robust": "robust regression",
    "map": "weighted least squares with a prior",
    "consistent": "physically consistent least squares",
}
SETTINGS: dict[str, type] = {"robust": Robust, "map": Prior, "consistent": Consistent}
CLEAR_GAP = 1e3
MOVED = 2.0  # deviations by which constraints may move a parameter before its deviation says nothing any more


def identify(
    tree: Tree,
    motion: Motion | Sequence[Motion],
    rows: Rows = "all",
    estimator: str = "wls",
    *,
    settings: Robust | Prior | Consistent | None = None,
    covariance: str | Hac = "white",
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
    (24)), "ols", "robust", "map" or "consistent"; the last three take `settings`, a
    :class:`~veridyn.identify.robust.Robust`, :class:`~veridyn.identify.prior.Prior` or
    :class:`~veridyn.identify.feasible.Consistent`. `covariance`: "white" takes every equation for news; "hac", or a
    :class:`~veridyn.identify.coloured.Hac`, allows for residuals that remember ("ols", "wls" and "robust"). `engine` and `executor` as
    for :func:`~veridyn.identify.observation.observation`. Parameters the data cannot separate are grouped and named; nothing is
    silently fixed.
    """
    hac = _checked(estimator, settings, covariance)
    # What cannot be is refused before the samples are streamed.
    robust = settings if isinstance(settings, Robust) else Robust()
    prior = settings if isinstance(settings, Prior) else Prior()
    physical = settings if isinstance(settings, Consistent) else Consistent()
    if estimator == "robust":
        robust.check()
    if estimator == "map":
        belief(tree, prior)
    if estimator == "consistent":
        check(tree, physical)
    samples = stream(tree, motion, rows, sampling, engine=engine, executor=executor, progress=progress)
    with one_blas_thread():  # once, and not again in every pass
        observed = samples.observe()
        solution = solve(observed, "none" if estimator == "ols" else "rows", sigma=sigma, tolerance=tolerance)
        if estimator == "robust":
            return _robust(samples, solution, robust, sigma, hac, acceptance)
        if estimator == "map":
            return _map(tree, solution, prior, acceptance)
        if estimator == "consistent":
            return _consistent(tree, solution, physical, acceptance)
        fit = fit_of(tree, solution, estimator, acceptance)
        return fit if hac is None else _coloured(fit, sandwich(samples, solution, None, hac), fit.sigma)


def _checked(estimator: str, settings: object, covariance: object) -> Hac | None:
    if estimator not in ESTIMATORS:
        raise IdentificationError(
            Fault(
                f"there is no estimator '{estimator}'.",
                where="identify",
                hint=did_you_mean(estimator, list(ESTIMATORS)),
            )
        )
    faults = Faults()
    wanted = SETTINGS.get(estimator)
    if settings is not None and (wanted is None or not isinstance(settings, wanted)):
        faults.add(
            f"these settings are not those of estimator '{estimator}'.",
            where="settings",
            expected=wanted.__name__ if wanted else "none",
            found=type(settings).__name__,
        )
    if covariance not in ("white", "hac") and not isinstance(covariance, Hac):
        faults.add(f"there is no covariance '{covariance}'.", where="covariance", expected="'white', 'hac' or a Hac")
    elif covariance != "white" and estimator in ("map", "consistent"):
        faults.add(
            f"estimator '{estimator}' weighs the data as white noise, so 'hac' deviations would contradict its values.",
            where="covariance",
            hint="Identify by 'wls' with covariance='hac' to see how far off white is, and state sigma= larger by that factor.",
        )
    faults.raise_if_any(IdentificationError)
    return covariance if isinstance(covariance, Hac) else Hac() if covariance == "hac" else None


def _coloured(fit: Fit, made: Sandwich, plain: Array) -> Fit:
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


def _robust(
    samples: Stream,
    start: Solution,
    how: Robust,
    sigma: Mapping[str, float] | None,
    hac: Hac | None,
    acceptance: Acceptance,
) -> Fit:
    found = reweighted(samples, start, how, sigma)
    plain = sandwich(samples, found.solution, how)
    solution = replace(found.solution, sigma=plain.residual_sigma)
    worst = max(found.doubted, key=lambda row: found.doubted[row])
    notes = [
        f"{how.loss} weights with c = {how.c:g}, {found.iterations} iterations"
        + ("" if found.converged else ", NOT CONVERGED"),
        f"equations that count less than half: up to {100 * found.doubted[worst]:.2g} % (row '{worst}')",
    ]
    fit = fit_of(samples.plan.tree, solution, "robust", acceptance)
    fit = replace(fit, covariance=plain.covariance, notes=(*fit.notes, *notes))
    return fit if hac is None else _coloured(fit, sandwich(samples, found.solution, how, hac), fit.sigma)


def _map(tree: Tree, s: Solution, prior: Prior, acceptance: Acceptance) -> Fit:
    p = tree.parameters
    mean, deviation = belief(tree, prior)
    K = base_of(s).matrix[:, list(p.select("asked"))]
    found = posterior(s, K, mean, np.diag(1.0 / deviation))
    return _believed(tree, s, found, K, found.values, "map", acceptance)


def _consistent(tree: Tree, s: Solution, how: Consistent, acceptance: Acceptance) -> Fit:
    p, asked = tree.parameters, list(tree.parameters.select("asked"))
    found = consistent(tree, s, how)
    base = base_of(s)
    K = base.matrix[:, asked]
    if found.posterior is not None:
        fit = _believed(tree, s, found.posterior, K, found.values[asked], "consistent", acceptance)
    else:
        fit = fit_of(tree, _at(s, K @ found.values[asked]), "consistent", acceptance)
        fit = replace(fit, covariance=s.covariance, standard_values=found.values)
    free = s.values if found.posterior is None else K @ found.posterior.values
    pulled = np.abs(fit.values - free) > MOVED * fit.sigma
    bound = found.feasibility.bound
    lost = [k for k, name in enumerate(base.names) if pulled[k] or name in bound]
    covariance = fit.covariance.copy()
    covariance[lost] = covariance[:, lost] = np.nan
    notes = list(fit.notes)
    if found.posterior is None:
        notes.append(
            "deviations are those without constraints, which can only bring estimates nearer to a feasible truth"
        )
    if lost:
        named = ", ".join(base.names[k] for k in lost)
        notes.append(
            f"no deviation is stated where a bound or more than {MOVED:g} deviations of pull decide the value: {named}"
        )
    dead = [p.names[k] for k in base.dead]
    if dead and found.posterior is None:
        notes.append(f"from the tree's values or typical sizes alone: {', '.join(dead)}")
    return replace(fit, covariance=covariance, notes=tuple(notes), feasibility=found.feasibility)


def _believed(
    tree: Tree, s: Solution, found: Posterior, K: Array, phi: Array, estimator: str, acceptance: Acceptance
) -> Fit:
    """The fit of a posterior at the values `phi` of the asked parameters."""
    p, asked = tree.parameters, list(tree.parameters.select("asked"))
    spread, fixed = split(p)
    share = np.full(len(p), np.nan)
    share[asked] = found.share
    fit = fit_of(tree, _at(s, K @ phi), estimator, acceptance)
    alone = [p.names[k] for k in asked if share[k] > PRIOR_ALONE]
    notes = [f"the prior decides {found.weight:.1f} of {len(asked)} parameters' worth"]
    if alone:
        notes.append(f"from the prior alone: {', '.join(alone)}")
    base, standard = K @ found.half, spread @ found.half
    return replace(
        fit,
        covariance=base @ base.T,
        notes=(*fit.notes, *notes),
        standard_values=spread @ phi + fixed,
        standard_covariance=standard @ standard.T,
        prior_share=share,
    )


def _at(s: Solution, values: Array) -> Solution:
    """A solution at other values, with the residual these have."""
    more = float(np.linalg.norm(s.triangle @ (values - s.values)))
    return replace(s, values=values, sigma=float(np.hypot(s.sigma, more / np.sqrt(s.freedom))))


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
