"""Physically consistent parameters: the smallest residual among all parameters that a physical machine can have.

    minimise ‖T (K φ − χ̂)‖² + w d(φ, φ₀)²   subject to   P(φ_b) ⪰ ε for every real body b,   friction, stiffness, rotors ≥ 0

T is the triangle of the weighted base regressor and χ̂ its least-squares solution, so the problem is as small as the machine whatever the
length of the log. P is the (4, 4) pseudo-inertia, which is positive semi-definite exactly when some distribution of mass has
these ten parameters (Wensing, Kim and Slotine, 2018, IEEE RA-L 3(1); Sousa and Cortesão, 2014, IJRR 33(6)). d is the distance to a
prior, in units of its deviations or, "entropic", ½‖P₀^-½ (P − P₀) P₀^-½‖² for each body: the second-order part of the Bregman
divergence of −log det, the same in every frame (Lee, Wensing and Park, 2020, IEEE T-RO 36(1)).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import Faults, IdentificationError, did_you_mean
from veridyn.identify.estimator import Estimator, FitProblem, base_of, fit_of, solution_at
from veridyn.identify.estimators.coloured import Sandwich
from veridyn.identify.estimators.feasible_set import FeasibleSet
from veridyn.identify.estimators.least_squares import Solution
from veridyn.identify.estimators.prior import (
    Posterior,
    Prior,
    fit_with_prior,
    posterior,
    prior_moments,
    reweighted,
    split,
    with_sandwich_note,
    without_value,
)
from veridyn.identify.result import Feasibility, Fit
from veridyn.identify.settings import SIGMA_BELOW_TEN, Acceptance, Auto, Hac
from veridyn.identify.statistics.spectral import noise_covariance
from veridyn.model.coordinates import Rows
from veridyn.model.machine import Machine
from veridyn.settings import above
from veridyn.spatial.inertia import INERTIAL, broken_law

FAR_DEVIATIONS = 3.0  # of the default prior: a mass that is farther from the model's has left its drawing
LARGEST_SHIFT = 2.0  # standard deviations by which constraints may move a parameter before none is stated for it


@dataclass(frozen=True, repr=False)
class Consistent(Estimator):
    """Physically consistent least squares: every body has positive mass and a possible inertia, friction and stiffness are not negative.

    It needs the extra ``pip install 'veridyn[consistent]'`` (cvxpy and clarabel).

    Parameters
    ----------
    prior : Prior or None
        A prior that the parameters are drawn towards; None, the default: the tree's values only decide what the data leave open.
    weight : float above 0
        Weight of the prior; 1, the default, takes its standard deviations as they are.
    metric : {"quadratic", "entropic"}
        Distance to the prior: in its standard deviations (the default), or one between bodies that does not depend on the frame.
    margin : float above 0
        Smallest eigenvalue of each pseudo-inertia, over typical sizes; 1e-6 by default.
    unsigned : tuple of str
        Names of elements that may be negative nevertheless; none by default.
    least_mass, largest_mass : mapping of body names to masses in kg, or None
        Bounds on the masses of single bodies; none by default. Where data leave a mass open they keep it sensible.
    total_mass : float above 0, or None
        Mass of all bodies together in kg, as a scale gives it, to within the share `total_mass_within`.
    total_mass_within : float above 0
        Half-width of the bounds on the total mass over itself; 0.01 by default.

    Examples
    --------
    >>> method = vd.estimators.Consistent(prior=vd.estimators.Prior())
    >>> fit = vd.identify(robot, motion, method)  # robot and motion as in the example of vd.identify
    >>> fit.feasibility.feasible
    True
    """

    name: ClassVar[str] = "consistent"
    title: ClassVar[str] = "physically consistent least squares"

    prior: Prior | None = None
    weight: Annotated[float, above(0.0)] = 1.0
    metric: Literal["quadratic", "entropic"] = "quadratic"
    margin: Annotated[float, above(0.0)] = 1e-6
    unsigned: tuple[str, ...] = ()
    least_mass: Mapping[str, Annotated[float, above(0.0)]] | None = field(default=None, kw_only=True)
    largest_mass: Mapping[str, Annotated[float, above(0.0)]] | None = field(default=None, kw_only=True)
    total_mass: Annotated[float, above(0.0)] | None = field(default=None, kw_only=True)
    total_mass_within: Annotated[float, above(0.0)] = field(default=0.01, kw_only=True)

    def check(self, machine: Machine, rows: Rows, covariance: Hac | Auto | None) -> None:
        super().check(machine, rows, covariance)
        _solver()
        _check_known(machine, self)
        if self.prior is not None:
            prior_moments(machine, self.prior)

    def fit(self, problem: FitProblem) -> Fit:
        """The feasible point nearest to the least-squares solution; samples are read again unless ``covariance="white"``."""
        s = problem.weighted
        made = noise_covariance(problem.samples, s, problem.covariance)
        return self.fit_solution(problem.machine, s, problem.settings.acceptance, made)

    def fit_solution(
        self, machine: Machine, s: Solution, acceptance: Acceptance = SIGMA_BELOW_TEN, made: Sandwich | None = None
    ) -> Fit:
        """The same from a weighted least-squares solution; `made`: its covariance where residuals are autocorrelated."""
        p, estimated = machine.parameters, list(machine.parameters.select("estimated"))
        found = consistent(machine, s, self, made)
        base = base_of(s)
        K = base.matrix[:, estimated]
        if found.posterior is not None:
            weak = () if self.prior is None else without_value(machine, self.prior)
            phi = found.values[estimated]
            fit = fit_with_prior(machine, s, found.posterior, phi, self.title, acceptance, weak=weak)
            spread, fixed = split(p)
            fit = replace(fit, posterior_mean=spread @ found.posterior.values + fixed)
        else:
            fit = fit_of(machine, solution_at(s, K @ found.values[estimated]), self.title, acceptance)
            own = s.covariance if made is None else made.covariance
            fit = replace(fit, covariance=own, standard_values=found.values)
        fit = fit if made is None else with_sandwich_note(fit, made, s)
        free = s.values if found.posterior is None else K @ found.posterior.values
        shifted = np.abs(fit.values - free) > LARGEST_SHIFT * fit.sigma
        bound = found.feasibility.bound
        lost = [k for k, name in enumerate(base.names) if shifted[k] or name in bound]
        covariance = fit.covariance.copy()
        covariance[lost] = covariance[:, lost] = np.nan
        notes = list(fit.notes)
        if found.posterior is None:
            notes.append(
                "deviations are those without constraints, which can only bring estimates nearer to a feasible truth"
            )
            notes += _far_masses(machine, found.values)
        if lost:
            named = ", ".join(base.names[k] for k in lost)
            notes.append(
                f"no deviation is stated where a bound or more than {LARGEST_SHIFT:g} deviations of pull decide the value: {named}"
            )
        dead = [p.names[k] for k in base.dead]
        if dead and found.posterior is None:
            notes.append(f"from the tree's values or typical sizes alone: {', '.join(dead)}")
        return replace(fit, covariance=covariance, notes=tuple(notes), feasibility=found.feasibility)


def _far_masses(machine: Machine, values: Array) -> list[str]:
    """A note on bodies whose masses are far from those of the model, which nothing but a prior keeps where data hardly show them."""
    p, most = machine.parameters, FAR_DEVIATIONS * Prior().relative
    far = [
        f"{body} {values[k]:.3g} kg ({p.values[k]:.3g} kg)"
        for k, (body, number) in enumerate(machine.columns)
        if body and number == 9 and p.values[k] > 0.0 and abs(values[k] / p.values[k] - 1.0) > most
    ]
    listed = ", ".join(far)
    return (
        [f"masses far from the model's, which a prior would keep where data hardly show them: {listed}"] if far else []
    )


@dataclass(frozen=True, eq=False)
class Physical:
    """`values` of all parameters and their certificate; `posterior` where there is a prior."""

    values: Array
    feasibility: Feasibility
    posterior: Posterior | None


def consistent(machine: Machine, s: Solution, how: Consistent, made: Sandwich | None = None) -> Physical:
    """The consistent parameters nearest to a least-squares solution in its own metric, so that their residual is the smallest.

    With a prior, data and prior are weighed by the sandwich `made`, where there is one.
    """
    cp = _solver()
    space = FeasibleSet.of(machine, s, how)
    prior = None
    if how.prior is None:
        phi = space.reaching(space.anchor)
    else:
        weighed, noise = reweighted(s, made, space.K, np.sqrt(how.weight) * space.root)
        space = replace(space, s=weighed)
        prior = posterior(weighed, space.K, space.anchor, np.sqrt(how.weight) * space.root, noise)
        phi = prior.values
    if space.least(phi) < how.margin:
        phi = space.nearest(cp, phi)
    if space.least(phi) <= 0.0:
        raise IdentificationError(
            "the solver's answer violates the constraints.",
            where="Consistent",
            found=f"a scaled eigenvalue of {space.least(phi):.3g}",
            hint="Raise the margin.",
        )
    return Physical(space.full(phi), replace(space, s=s).certificate(phi), prior)


def _check_known(machine: Machine, how: Consistent) -> None:
    """Refuse elements that are not there, and known parameters that contradict physics."""
    p, faults = machine.parameters, Faults()
    spread, fixed = split(p)
    elements = [e.parameter_name for e in machine.elements]
    for name in how.unsigned:
        if name not in elements:
            faults.add(f"'{name}' is not an element.", where="Consistent.unsigned", hint=did_you_mean(name, elements))
    real = [k.name for k in machine.links if k.real]
    for setting, bounds in (("least_mass", how.least_mass), ("largest_mass", how.largest_mass)):
        for name in bounds or {}:
            if name not in real:
                hint = did_you_mean(name, real)
                faults.add(f"'{name}' is not a body with mass.", where=f"Consistent.{setting}", hint=hint)
    for name in set(how.least_mass or {}) & set(how.largest_mass or {}):
        least, largest = (how.least_mass or {})[name], (how.largest_mass or {})[name]
        if least >= largest:
            faults.add(
                "its bounds leave no mass.", where=f"body '{name}'", found=f"at least {least:g}, at most {largest:g} kg"
            )
    for k, (body, number) in enumerate(machine.columns):
        if body and number == 0 and not np.any(spread[k : k + 10] != 0.0):
            law = broken_law(fixed[k : k + 10])
            if law:
                faults.add(
                    f"what is known of it contradicts physics: {law}.",
                    where=f"body '{body}'",
                    hint="Estimate its parameters, or correct them.",
                )
        elif body and number == 9 and not np.any(spread[k] != 0.0) and fixed[k] <= 0.0:
            faults.add(
                "what is known of it contradicts physics: a body with estimated parameters needs mass.",
                where=f"body '{body}'",
                found=f"{INERTIAL[9]} = {fixed[k]:.6g} kg",
            )
    faults.raise_if_any(IdentificationError, machine.name)


def _solver() -> Any:
    """cvxpy with Clarabel, or a refusal that names what to install."""
    try:
        import clarabel  # noqa: F401
        import cvxpy
    except ImportError as error:
        raise IdentificationError(
            "the consistent estimator needs cvxpy and clarabel, which are not installed.",
            where="Consistent",
            found=str(error),
            hint="pip install 'veridyn[consistent]'",
        ) from error
    return cvxpy
