"""The estimate itself: the fit of a method to equations, with what the uncertainty of known values adds to its deviations.

Known parameters κ stand on the measured side, so an error of theirs moves the estimates: of weighted least squares by

    dχ̂/dκ = −(W_PᵀW_P)⁻¹ W_Pᵀ W_κ,P = J      so that  cov χ̂ = C + J Σ Jᵀ,   cov(χ̂, κ) = J Σ,

with W_κ their columns and Σ their covariance (``machine.with_uncertainty``, or that of the fit a machine came from): one more pass with
those columns kept. Other estimators are fitted again with κ moved by one standard deviation along each principal direction of Σ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from scipy.linalg import solve_triangular

from veridyn.arrays import Array
from veridyn.identify.estimator import OLS, WLS, Estimator, FitProblem
from veridyn.identify.estimators.instrumental import Instrumental
from veridyn.identify.gains import check_gains
from veridyn.identify.regression.factor import one_blas_thread, triangle_of
from veridyn.identify.regression.gpu import observed
from veridyn.identify.regression.sampling import measured_rows
from veridyn.identify.result import Fit, KnownValues
from veridyn.model.coordinates import Rows
from veridyn.model.motion import Motion
from veridyn.model.parameters import ParameterSet, Uncertainty

SMALLEST_DIRECTION = 1e-6  # of the largest standard deviation, in typical sizes: directions of Σ below it are exact


def uncertain(p: ParameterSet, given: Uncertainty | None) -> Uncertainty | None:
    """What is stated of parameters that are known, or that others are tied to; None where that is nothing."""
    if given is None:
        return None
    rest = given.without(tuple(n for n in given.names if n not in p.names or p.states[p.index(n)] != "known"))
    return rest if rest.names and (rest.sigma > 0.0).any() else None


def with_known_values(fit: Fit, problem: FitProblem, again: Callable[[FitProblem], Fit] | None) -> Fit:
    """The fit with the uncertainty of its tree's known parameters in its covariance; as it is where they are exact.

    `again` fits another problem by the same method; None where it is weighted least squares, which is linear in what is known.
    """
    known = uncertain(fit.described.parameters, problem.machine.uncertainty)
    if known is None:
        return fit
    if again is None:
        J = _linear(fit, problem, known)
        whole = np.zeros((len(fit.described.parameters), len(known.names)))
        whole[list(fit.base.columns)] = J
    else:
        J, whole = _by_refits(fit, problem, known, again)
    added = J @ known.covariance @ J.T
    standard = fit.standard_covariance
    if standard is not None:
        standard = standard + whole @ known.covariance @ whole.T
    with np.errstate(invalid="ignore"):
        growth = np.sqrt(1.0 + np.diag(added) / np.diag(fit.covariance))
    note = (
        f"known values are not exact ({len(known.names)} of them): deviations are {np.nanmin(growth):.2f} to {np.nanmax(growth):.2f} "
        "times those of noise alone"
    )
    return replace(
        fit,
        covariance=fit.covariance + added,
        standard_covariance=standard,
        known=KnownValues(known.names, known.covariance, J),
        notes=(*fit.notes, note),
    )


def _linear(fit: Fit, problem: FitProblem, known: Uncertainty) -> Array:
    """J of least squares with the weights of the fit's rows."""
    p = problem.machine.parameters
    loose = replace(problem, machine=problem.machine.with_parameters(p.estimated(known.names)))
    found = observed(loose.stream())
    weights = {r.row: 1.0 / r.sigma for r in fit.rows}
    R = found.stacked([weights[f.row] for f in found.rows])
    place = {c: k for k, c in enumerate(found.columns)}
    own, others = list(fit.base.columns), [p.index(name) for name in known.names]
    T = np.zeros((len(R), len(own) + len(others)))
    for k, c in enumerate([*own, *others]):
        if c in place:
            T[:, k] = R[:, place[c]]
    T = triangle_of(T)
    n = len(own)
    return -np.asarray(solve_triangular(T[:n, :n], T[:n, n:]), dtype=np.float64)


def _by_refits(
    fit: Fit, problem: FitProblem, known: Uncertainty, again: Callable[[FitProblem], Fit]
) -> tuple[Array, Array]:
    """J of base and of all parameters by one fit for each principal direction of Σ."""
    machine = problem.machine
    at = [machine.parameters.index(name) for name in known.names]
    typical = machine.parameters.typical[at]
    values, V = np.linalg.eigh(known.covariance / np.outer(typical, typical))
    size = np.sqrt(np.maximum(values, 0.0))
    standard = fit.standard
    J, whole = np.zeros((len(fit.values), len(at))), np.zeros((len(machine.parameters), len(at)))
    for s, v in zip(size, V.T, strict=True):
        if s <= SMALLEST_DIRECTION * size[-1]:
            continue
        moved = machine.parameters.values.copy()
        moved[at] += s * typical * v
        other = again(replace(problem, machine=machine.with_parameters(moved)))
        J += np.outer(other.values - fit.values, v / typical) / s
        change = other.standard - standard
        change[at] = 0.0
        whole += np.outer(change, v / typical) / s
    return J, whole


def at_hand(motion: Motion | Sequence[Motion]) -> Sequence[Motion]:
    """Motions as a list; of those that are made when they are needed, the first."""
    several = [motion] if isinstance(motion, Motion) else motion
    return several if isinstance(several, list | tuple) else [next(iter(several))]


def with_notes_of_data(fit: Fit, motion: Motion | Sequence[Motion], rows: Rows) -> Fit:
    """The fit with what was found in the logs of its motions, and with the rows that these do not measure, in its notes."""
    several = at_hand(motion)
    _, unused = measured_rows(fit.described, several, rows)
    noted = (*unused, *(n for m in several for n in m.notes or ()))
    return replace(fit, notes=(*fit.notes, *noted)) if noted else fit


def fitted(method: Estimator, problem: FitProblem) -> Fit:
    """The fit of a method, with what the uncertainty of known values adds to its deviations, and gains of drives that can be told."""
    fit = method.fit(problem)
    fit = with_known_values(fit, problem, None if isinstance(method, OLS | WLS) else method.fit)
    check_gains(fit, isinstance(method, Instrumental))
    return fit


def estimated(method: Estimator, problem: FitProblem) -> Fit:
    """The fit of a method, with what was noticed in its motions in its notes."""
    with one_blas_thread():  # once, and not again in every pass
        return with_notes_of_data(fitted(method, problem), problem.motion, problem.rows)
