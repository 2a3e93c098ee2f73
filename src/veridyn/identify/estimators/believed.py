"""Fits with a prior or with constraints, from a weighted solution that is there already: no sample is looked at again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from veridyn.identify.estimators.feasible import Consistent, consistent, split
from veridyn.identify.estimators.least_squares import Solution
from veridyn.identify.estimators.prior import PRIOR_ALONE, Posterior, Prior, belief, posterior
from veridyn.identify.fitting import at, base_of, fit_of
from veridyn.identify.result import SIGMA_BELOW_TEN, Acceptance, Fit
from veridyn.model.tree import Tree

Array = NDArray[np.float64]
MOVED = 2.0  # deviations by which constraints may move a parameter before its deviation says nothing any more


def believed(tree: Tree, s: Solution, settings: Prior | Consistent, acceptance: Acceptance = SIGMA_BELOW_TEN) -> Fit:
    """The fit of a weighted solution that is there already, with a prior or constraints."""
    if isinstance(settings, Prior):
        return _map(tree, s, settings, acceptance)
    return _consistent(tree, s, settings, acceptance)


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
        fit = fit_of(tree, at(s, K @ found.values[asked]), "consistent", acceptance)
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
    fit = fit_of(tree, at(s, K @ phi), estimator, acceptance)
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
