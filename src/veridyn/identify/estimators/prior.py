"""A Gaussian prior on the standard parameters, combined with the data: the posterior mean and its covariance.

With φ ~ N(m, S) and the weighted equations, whose noise has standard deviation 1, the posterior is Gaussian too,

    C = (Kᵀ TᵀT K + S⁻¹)⁻¹,   φ̂ = m + C Kᵀ TᵀT (χ̂ − K m),

with T the triangle of the weighted base regressor, χ̂ its least-squares solution and χ = K φ the groups. So the samples enter
through the small factor only, and every standard parameter gets a value: the data's where they determine it, the prior's where not.

Where residuals are autocorrelated (unless ``covariance="white"``) χ̂ has the covariance C_h of the sandwich of
:mod:`veridyn.identify.estimators.coloured`. In coordinates in which the prior is the unit ball and the data a diagonal, each direction of
the data then weighs by its own variance in C_h, so data count for what they are worth beside the prior; the deviations are those of this
estimate under all of C_h. C_h itself is not inverted: of a matrix that few windows made, the smallest eigenvalues are chance.

A drawing knows groups of parameters differently well: inertias, masses, friction, offsets, and other elements. A URDF's inertias come from
a CAD model, its friction is often zero because nobody wrote one, and the offsets of torque sensors are in no drawing at all. So a prior
has a scale for each group, and a zero of friction or offset is taken for a value that is missing. Friction and offsets without a value,
such as the terms that a friction ladder adds, are the same: zero, with a deviation that decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import Faults, IdentificationError, did_you_mean
from veridyn.identify.estimator import Estimator, FitProblem, base_of, fit_of, solution_at, with_sandwich
from veridyn.identify.estimators.coloured import Sandwich
from veridyn.identify.estimators.least_squares import Solution
from veridyn.identify.regression.factor import one_blas_thread, triangle_of
from veridyn.identify.result import Fit
from veridyn.identify.settings import SIGMA_BELOW_TEN, Acceptance, Auto, Hac
from veridyn.identify.statistics.spectral import noise_covariance
from veridyn.model.coordinates import Rows
from veridyn.model.elements.element import Element
from veridyn.model.machine import Machine
from veridyn.model.parameters import ParameterSet
from veridyn.settings import above

LEAST_VARIANCE = 1e-8  # of the largest, beside white noise: a sandwich never makes data surer than this
PRIOR_ALONE = 0.99  # share of the prior's variance above which the data count as having determined nothing
GROUPS = ("inertia", "mass", "friction", "offset", "other")
UNSTATED = ("friction", "offset")  # groups in which a value of zero, or none, says that nobody stated one
UNSTATED_SIZES = 10.0  # typical sizes: the prior deviation of what nobody stated
ROTOR = "inertia"  # the kind of element that a rotor is
FRICTION_KINDS = ("stribeck", "tanh_friction", "lugre")


@dataclass(frozen=True, repr=False)
class Prior(Estimator):
    """Weighted least squares with a Gaussian prior on the estimated parameters (maximum a posteriori); its word is "map".

    Every standard parameter gets a value and a standard deviation. :class:`~veridyn.identify.estimators.feasible.Consistent` takes the
    same object as its `prior`.

    Parameters
    ----------
    values : mapping of parameter names to numbers, or None
        Prior means, each in the unit of its parameter. What is not named has the tree's own value.
    sigma : mapping of parameter names to numbers above 0, or None
        Prior standard deviations, in the same units. What is not named has `relative` times the size of the parameter.
    relative : float above 0
        Prior standard deviation over size, 0.3 by default. The size of a mass is itself; of the six moments of inertia of a body, the
        largest of them; of its first moments, √(mass × that); of an element, |value|. Where that is zero, the typical size; but a
        friction or offset of zero, or without a value, and a rotor inertia without a value count as unknown: zero with a standard deviation
        of ten typical sizes.
    groups : mapping of groups to numbers above 0, or None
        `relative` of single groups: "inertia" (moments and first moments), "mass", "friction", "offset", "other" (springs, motor inertias,
        gains). What is not named has `relative`. :func:`~veridyn.identify.estimators.trust.trust_prior` chooses them.

    Examples
    --------
    >>> fit = vd.identify(robot, motion, vd.estimators.Prior(relative=0.2))  # robot and motion as in the example of vd.identify
    >>> fit.estimator
    'weighted least squares with a prior'
    """

    name: ClassVar[str] = "map"
    title: ClassVar[str] = "weighted least squares with a prior"

    values: Mapping[str, float] | None = None
    sigma: Mapping[str, Annotated[float, above(0.0)]] | None = None
    relative: Annotated[float, above(0.0)] = 0.3
    groups: Mapping[str, Annotated[float, above(0.0)]] | None = None

    def relative_of(self, group: str) -> float:
        """Prior standard deviation over size of a group of parameters."""
        return (self.groups or {}).get(group, self.relative)

    def check(self, machine: Machine, rows: Rows, covariance: Hac | Auto | None) -> None:
        super().check(machine, rows, covariance)
        prior_moments(machine, self)

    def fit(self, problem: FitProblem) -> Fit:
        """The posterior of the least-squares solution; samples are read again unless ``covariance="white"``."""
        s = problem.weighted
        made = noise_covariance(problem.samples, s, problem.covariance)
        return self.fit_solution(problem.machine, s, problem.settings.acceptance, made)

    def fit_solution(
        self, machine: Machine, s: Solution, acceptance: Acceptance = SIGMA_BELOW_TEN, made: Sandwich | None = None
    ) -> Fit:
        """The same from a weighted least-squares solution; `made`: its covariance where residuals are autocorrelated."""
        mean, deviation = prior_moments(machine, self)
        K = base_of(s).matrix[:, list(machine.parameters.select("estimated"))]
        root = np.diag(1.0 / deviation)
        weighed, noise = reweighted(s, made, K, root)
        found = posterior(weighed, K, mean, root, noise)
        fit = fit_with_prior(machine, s, found, found.values, self.title, acceptance, weak=without_value(machine, self))
        return fit if made is None else with_sandwich_note(fit, made, s)


@dataclass(frozen=True, eq=False)
class Posterior:
    """`values` of the estimated parameters, and `half` with half halfᵀ their covariance.

    `share`: posterior over prior variance, 1 where the data determine nothing and near 0 where the prior does not matter.
    `weight`: of all directions, how many the prior decided: Σ 1/(1 + σ²).
    """

    values: Array
    half: Array
    share: Array
    weight: float


def prior_moments(machine: Machine, prior: Prior) -> tuple[Array, Array]:
    """Mean and standard deviation of each estimated parameter, in order; refused where bodies or springs and the like have no value."""
    p, estimated = machine.parameters, list(machine.parameters.select("estimated"))
    faults = Faults()
    names = [p.names[k] for k in estimated]
    for setting, given in (("values", prior.values or {}), ("sigma", prior.sigma or {})):
        for name in given:
            if name not in names:
                hint = did_you_mean(name, names)
                faults.add(f"'{name}' is not an estimated parameter.", where=f"Prior.{setting}", hint=hint)
    own = stated_values(machine, prior)
    for group in prior.groups or {}:
        if group not in GROUPS:
            hint = did_you_mean(group, list(GROUPS))
            faults.add(f"there is no group '{group}'.", where="Prior.groups", expected=", ".join(GROUPS), hint=hint)
    free = unstated(machine, own)
    own[free] = 0.0
    missing = [n for n, k in zip(names, estimated) if not np.isfinite(own[k])]
    if missing and not faults:
        listed = ", ".join(missing[:8]) + (f" and {len(missing) - 8} more" if len(missing) > 8 else "")
        faults.add(
            f"a prior needs values, and these parameters have none: {listed}.",
            where="Prior",
            hint="Give them in the model file or in Prior(values={…}), or use the method 'wls', which needs none.",
        )
    faults.raise_if_any(IdentificationError)
    deviation = np.array([prior.relative_of(g) for g in group_of(machine)]) * sizes(machine, own)
    deviation[free] = np.maximum(deviation, UNSTATED_SIZES * p.typical)[free]
    for name, value in (prior.sigma or {}).items():
        deviation[p.index(name)] = value
    return own[estimated], deviation[estimated]


def stated_values(machine: Machine, prior: Prior) -> Array:
    """The values of all parameters of a tree, those that the prior gives in their place; NaN where neither has one."""
    own = machine.parameters.values.copy()
    for name, value in (prior.values or {}).items():
        if name in machine.parameters.names:
            own[machine.parameters.index(name)] = value
    return own


def without_value(machine: Machine, prior: Prior) -> tuple[str, ...]:
    """Estimated friction and offsets that neither the tree nor the prior gives a value or a deviation."""
    p, stated = machine.parameters, {**(prior.values or {}), **(prior.sigma or {})}
    free = unstated(machine, p.values)
    return tuple(
        p.names[k] for k in p.select("estimated") if free[k] and np.isnan(p.values[k]) and p.names[k] not in stated
    )


def sizes(machine: Machine, values: Array) -> Array:
    """The size of each parameter as :class:`Prior` has it, from values of all of them."""
    p = machine.parameters
    size = np.abs(values)
    for k, (body, first) in enumerate(machine.columns):
        if body and first == 0:
            J, M = size[k : k + 6].max(), size[k + 9]
            size[k : k + 9] = [J] * 6 + [np.sqrt(J * M)] * 3
    return np.where(size > 0.0, size, p.typical)


def reweighted(s: Solution, made: Sandwich | None, K: Array, root: Array) -> tuple[Solution, Array | None]:
    """The solution with a triangle T in which each direction of data and prior has the sandwich's variance, and the covariance T C_h Tᵀ.

    Without a sandwich the solution as it is, and None: its noise has the unit matrix.
    """
    if made is None:
        return s, None
    U = np.linalg.svd(s.triangle @ K @ np.linalg.inv(root))[0]
    turned = U.T @ s.triangle
    variance = np.diag(turned @ made.covariance @ turned.T)
    T = triangle_of(turned / np.sqrt(np.maximum(variance, LEAST_VARIANCE * variance.max()))[:, None])
    return replace(s, triangle=T), T @ made.covariance @ T.T


def with_sandwich_note(fit: Fit, made: Sandwich, s: Solution) -> Fit:
    """The fit with a note on how far the sandwich of its data is from that of white noise."""
    plain = np.sqrt(np.diag(s.covariance))
    note = with_sandwich(replace(fit, notes=()), made, plain).notes
    return replace(fit, white_covariance=np.full_like(fit.covariance, np.nan), notes=(*fit.notes, *note))


def posterior(s: Solution, K: Array, mean: Array, root: Array, noise: Array | None = None) -> Posterior:
    """The posterior of parameters with χ = K φ and the prior N(mean, (rootᵀ root)⁻¹).

    In coordinates in which the prior is the unit ball, the data's singular values σ decide: a direction keeps 1/(1 + σ²) of its variance.
    `noise`: the covariance of T χ̂ where it is not the unit matrix; its diagonal decides, and all of it is in the deviations.
    """
    with one_blas_thread():
        back = np.linalg.inv(root)
        U, sv, Vt = np.linalg.svd(s.triangle @ K @ back, full_matrices=True)
        projected = U.T @ (s.triangle @ (s.values - K @ mean))
        gain = sv / (1.0 + sv**2)
        values = mean + back @ (Vt[: len(sv)].T @ (gain * projected[: len(sv)]))
        kept = np.ones(len(mean))
        kept[: len(sv)] = 1.0 / (1.0 + sv**2)
        half = np.asarray(back @ Vt.T * np.sqrt(kept), dtype=np.float64)
        if noise is not None:
            own = np.diag(kept**2)
            inner = (U.T @ noise @ U)[: len(sv), : len(sv)]
            own[: len(sv), : len(sv)] += gain[:, None] * inner * gain
            values_of, V = np.linalg.eigh(own)
            half = np.asarray(back @ Vt.T @ (V * np.sqrt(np.maximum(values_of, 0.0))), dtype=np.float64)
    share = (half**2).sum(axis=1) / (back**2).sum(axis=1)
    return Posterior(values, half, share, float(kept.sum()))


def fit_with_prior(
    machine: Machine,
    s: Solution,
    found: Posterior,
    phi: Array,
    title: str,
    acceptance: Acceptance,
    *,
    weak: Sequence[str] = (),
) -> Fit:
    """The fit of a posterior at the values `phi` of the estimated parameters; `weak`: those that the prior says nothing about."""
    p, estimated = machine.parameters, list(machine.parameters.select("estimated"))
    K = base_of(s).matrix[:, estimated]
    spread, fixed = split(p)
    share = np.full(len(p), np.nan)
    share[estimated] = found.share
    fit = fit_of(machine, solution_at(s, K @ phi), title, acceptance)
    alone = [p.names[k] for k in estimated if share[k] > PRIOR_ALONE]
    notes = [f"the prior decides {found.weight:.1f} of {len(estimated)} parameters' worth"]
    if alone:
        notes.append(f"from the prior alone: {', '.join(alone)}")
    if weak:
        notes.append(f"without a prior value, and left to the data: {', '.join(weak)}")
    base, standard = K @ found.half, spread @ found.half
    return replace(
        fit,
        covariance=base @ base.T,
        notes=(*fit.notes, *notes),
        standard_values=spread @ phi + fixed,
        standard_covariance=standard @ standard.T,
        prior_share=share,
    )


def split(p: ParameterSet) -> tuple[Array, Array]:
    """(spread, fixed) with all parameters = spread @ estimated ones + fixed."""
    known = np.zeros(len(p))
    known[list(p.select("known"))] = p.values[list(p.select("known"))]
    return p.estimated_matrix()[:, list(p.select("estimated"))], p.tie_matrix() @ known


def group_of(machine: Machine) -> tuple[str, ...]:
    """The group of each parameter of a tree."""
    out = []
    for body, number in machine.columns:
        if body:
            out.append("mass" if number == 9 else "inertia")
            continue
        out.append(_group_of_element(machine.elements[number]))
    return tuple(out)


def _group_of_element(e: Element) -> str:
    """Friction is what is made for it, and every law of the speed of its coordinate."""
    of_speed = e.own_law is not None and "v" in e.own_law.own
    if of_speed or e.kind.startswith(("damper", "coulomb")) or e.kind in FRICTION_KINDS:
        return "friction"
    return "offset" if e.kind == "offset" else "other"


def unstated(machine: Machine, values: Array) -> NDArray[np.bool_]:
    """Which parameters have no value, or the zero of a drawing that does not know them, where that says no more than the other.

    Rotors are not parts of the links that a drawing shows, so that theirs is unknown where it has no value.
    """
    missing = ~np.isfinite(values)
    rotors = np.array([not body and machine.elements[n].kind == ROTOR for body, n in machine.columns], dtype=bool)
    of_group = np.array([g in UNSTATED for g in group_of(machine)], dtype=bool)
    return (of_group & (missing | (values == 0.0))) | (rotors & missing)
