"""Essential parameters: drop, one by one, those the data say least about, until what is left is well determined.

After each removal the rest is estimated anew from the same factors. The paper calls the removed ones not well identified (IV.B);
the order, largest relative deviation first, is that of Pham and Gautier (1991).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc  # scipy.stats takes a second to import

from veridyn.errors import Fault, IdentificationError
from veridyn.identify.estimators.least_squares import Solution, solved
from veridyn.identify.estimators.weighted import WLS
from veridyn.identify.fitting import fit_of
from veridyn.identify.grouping import Groups
from veridyn.identify.result import SIGMA_BELOW_TEN, Acceptance, Fit
from veridyn.identify.threads import one_blas_thread
from veridyn.model.accept import accepts_machine
from veridyn.model.tree import Tree

Array = NDArray[np.float64]


@dataclass(frozen=True)
class EliminationStep:
    """One removal: which parameter, its σ % before, the F statistic of leaving it out and the chance of as large a one if it were zero."""

    name: str
    relative_sigma: float
    f_statistic: float
    p_value: float


@dataclass(frozen=True, eq=False)
class Essential:
    """The fit of the essential parameters, and the steps that led to it."""

    fit: Fit
    steps: tuple[EliminationStep, ...]

    def summary(self) -> str:
        lines = [f"{len(self.fit.values)} essential parameters, {len(self.steps)} removed"]
        lines += [
            f"  {s.name}: sigma% {min(s.relative_sigma, 9999.9):.1f}, F {s.f_statistic:.3g}, p {s.p_value:.3g}"
            for s in self.steps
        ]
        return "\n".join(lines)


@accepts_machine
def essential(
    tree: Tree,
    solution: Solution,
    *,
    ratio: float = 30.0,
    significance: float = 0.05,
    title: str = WLS.title,
    acceptance: Acceptance = SIGMA_BELOW_TEN,
) -> Essential:
    """Remove the parameter with the largest σ % while it is more than `ratio` times the smallest and zero explains it.

    A removal that raises the residual by more than chance allows (F test of one parameter, weights held, at `significance`) is not made,
    and the search stops: what matters to the forces stays, however badly it is known.
    """
    if ratio < 1.0 or not 0.0 < significance < 1.0:
        raise IdentificationError(Fault("ratio must be at least 1 and significance within 0 to 1.", where="essential"))
    names = solution.observation.parameters.names
    removed: list[str] = []
    steps: list[EliminationStep] = []
    with one_blas_thread():
        R = solution.observation.stacked(list(1.0 / solution.row_sigma))
        while len(solution.columns) > 1:
            deviation = np.sqrt(np.diag(solution.covariance))
            with np.errstate(divide="ignore"):
                relative = 100.0 * deviation / np.abs(solution.values)
            worst = int(np.argmax(relative))
            if relative[worst] <= ratio * relative.min():
                break
            statistic = float((solution.values[worst] / deviation[worst]) ** 2)
            chance = float(fdtrc(1, solution.freedom, statistic))
            if chance < significance:
                break
            name = names[solution.columns[worst]]
            steps.append(EliminationStep(name, float(relative[worst]), statistic, chance))
            removed.append(name)
            solution = solved(
                solution.observation, R, _without(solution.groups, worst), solution.row_sigma, solution.tolerance
            )
    fit = fit_of(tree, solution, title, acceptance, tuple(removed))
    return Essential(fit, tuple(steps))


def _without(groups: Groups, k: int) -> Groups:
    """The groups less the k-th, whose leading column counts as removed, not as dead."""
    kept = groups.kept[:k] + groups.kept[k + 1 :]
    return replace(groups, kept=kept, matrix=np.delete(groups.matrix, k, axis=0))
