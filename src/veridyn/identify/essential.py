"""Essential parameters: drop, one by one, those the data say least about, until what is left is well determined.

After each removal the rest is estimated anew from the same factors. The paper calls the removed ones not well identified (IV.B); the order,
largest relative deviation first, is that of Pham and Gautier (1991). Where it ends is a matter of the rule:

- ratio: when the largest relative deviation is at most so many times the smallest (Gautier's rule; 10 to 30 are usual);
- f_test: before all removals together raise the residual by more than chance allows, against the full model;
- ratio_and_f_test: at the first of the ratio, or a single parameter that an F test calls significant.

An F test takes residuals for white. A parameter stands for its whole group: removed, the sum that it leads is zero.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from scipy.special import fdtrc  # scipy.stats takes a second to import

from veridyn.arrays import Array
from veridyn.errors import IdentificationError
from veridyn.identify.base import Groups
from veridyn.identify.estimator import WLS, fit_of
from veridyn.identify.estimators.least_squares import Solution, solved
from veridyn.identify.regression.factor import one_blas_thread
from veridyn.identify.result import Fit
from veridyn.identify.settings import SIGMA_BELOW_TEN, Acceptance
from veridyn.mechanics.tree.of_machine import takes_machine
from veridyn.model.machine import Machine

Rule = Literal["ratio_and_f_test", "ratio", "f_test"]


@dataclass(frozen=True)
class EliminationStep:
    """One removal: which parameter, its σ % before, the F statistic of leaving it out and the chance of as large a one if it were zero.

    `joint_p_value`: the same chance for it and all that were removed before, against the full model.
    """

    name: str
    relative_sigma: float
    f_statistic: float
    p_value: float
    joint_p_value: float = float("nan")


@dataclass(frozen=True, eq=False)
class Essential:
    """The fit of the essential parameters, and the steps that led to it; `rule` says when they ended."""

    fit: Fit
    steps: tuple[EliminationStep, ...]
    rule: str = "ratio_and_f_test"
    ratio: float = 30.0
    significance: float = 0.05

    @property
    def stated_rule(self) -> str:
        """The rule in words."""
        ratio = f"relative deviations at most {self.ratio:g} times the smallest"
        test = f"at a significance of {100.0 * self.significance:g} %"
        words = {"ratio": ratio, "f_test": f"an F test of all removed together {test}"}
        return words.get(self.rule, f"{ratio}, and an F test of each {test}")

    def summary(self) -> str:
        lines = [f"{len(self.fit.values)} essential parameters, {len(self.steps)} removed"]
        lines += [
            f"  {s.name}: sigma% {min(s.relative_sigma, 9999.9):.1f}, F {s.f_statistic:.3g}, p {s.p_value:.3g}"
            for s in self.steps
        ]
        return "\n".join(lines)


@dataclass(frozen=True)
class EssentialRule:
    """How a study reduces its model: a rule of :func:`essential`, or "none", with its threshold and significance."""

    rule: Rule | Literal["none"] = "ratio_and_f_test"
    ratio: float = 30.0
    significance: float = 0.05

    def of(self, machine: Machine, solution: Solution, acceptance: Acceptance = SIGMA_BELOW_TEN) -> Essential:
        """The essential parameters of a solution; all of them where the rule is "none"."""
        if self.rule == "none":
            return Essential(
                fit_of(machine, solution, WLS.title, acceptance), (), self.rule, self.ratio, self.significance
            )
        settings = {"ratio": self.ratio, "significance": self.significance, "acceptance": acceptance}
        return essential(machine, solution, rule=self.rule, **settings)  # pyright: ignore[reportArgumentType]


@takes_machine
def essential(
    machine: Machine,
    solution: Solution,
    *,
    rule: Rule = "ratio_and_f_test",
    ratio: float = 30.0,
    significance: float = 0.05,
    title: str = WLS.title,
    acceptance: Acceptance = SIGMA_BELOW_TEN,
) -> Essential:
    """Remove the parameter with the largest σ % for as long as the rule allows.

    `ratio` is that of the largest to the smallest σ % at which "ratio" ends, `significance` that of the F tests. By default a removal that
    raises the residual by more than chance allows (F test of one parameter, weights held) is not made, and the search stops: what matters
    to the forces stays, however badly it is known. The fit predicts with removed groups at zero and other members at their priors.
    """
    if rule not in get_args(Rule):
        raise IdentificationError(f"there is no rule '{rule}'.", where="essential", expected=", ".join(get_args(Rule)))
    if ratio < 1.0 or not 0.0 < significance < 1.0:
        raise IdentificationError("ratio must be at least 1 and significance within 0 to 1.", where="essential")
    names = solution.observation.parameters.names
    full = solution
    removed: list[str] = []
    steps: list[EliminationStep] = []
    with one_blas_thread():
        R = solution.observation.stacked(list(1.0 / solution.row_sigma))
        while len(solution.columns) > 1:
            deviation = np.sqrt(np.diag(solution.covariance))
            with np.errstate(divide="ignore"):
                relative = 100.0 * deviation / np.abs(solution.values)
            worst = int(np.argmax(relative))
            if rule != "f_test" and relative[worst] <= ratio * relative.min():
                break
            statistic = float((solution.values[worst] / deviation[worst]) ** 2)
            chance = float(fdtrc(1, solution.freedom, statistic))
            if rule == "ratio_and_f_test" and chance < significance:
                break
            fewer = solved(
                solution.observation, R, _without(solution.groups, worst), solution.row_sigma, solution.tolerance
            )
            together = _joint_chance(full, fewer)
            if rule == "f_test" and together < significance:
                break
            name = names[solution.columns[worst]]
            steps.append(EliminationStep(name, float(relative[worst]), statistic, chance, together))
            removed.append(name)
            solution = fewer
    fit = fit_of(machine, solution, title, acceptance, tuple(removed))
    if removed:
        fit = replace(fit, standard_values=_standard(full, solution))
    return Essential(fit, tuple(steps), rule, ratio, significance)


def _joint_chance(full: Solution, fewer: Solution) -> float:
    """The chance of as large a rise of the residual if all removed parameters were zero."""
    own = full.sigma**2 * full.freedom
    rise = max(fewer.sigma**2 * fewer.freedom - own, 0.0)
    count = fewer.freedom - full.freedom
    return float(fdtrc(count, full.freedom, rise / count / (own / full.freedom))) if own > 0.0 else float(rise == 0.0)


def _standard(full: Solution, fewer: Solution) -> Array:
    """Standard parameters whose removed groups are zero, and whose other groups are as estimated; other members at their priors."""
    p, own = full.observation.parameters, list(full.observation.columns)
    phi = np.where(np.isfinite(p.values), p.values, 0.0)
    found = dict(zip(fewer.columns, fewer.values, strict=True))
    leads = list(full.columns)
    phi[leads] = 0.0
    phi[leads] = np.array([found.get(c, 0.0) for c in leads]) - full.groups.matrix @ phi[own]
    return phi


def _without(groups: Groups, k: int) -> Groups:
    """The groups less the k-th, whose leading column counts as removed, not as dead."""
    kept = groups.kept[:k] + groups.kept[k + 1 :]
    return replace(groups, kept=kept, matrix=np.delete(groups.matrix, k, axis=0))
