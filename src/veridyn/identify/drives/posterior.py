"""How sure the drives of a group are: the covariance of their unknowns, widened where parts of the log disagree.

G = Σ Jᵀ W J of the columns is weighted for residuals with memory. B, the widening, is 1 where quarters of the log agree on the directions
that they determine, and otherwise their disagreement over what is expected, which model errors make
(:mod:`veridyn.identify.statistics.agreement`). Where the dry friction of a joint is not one number, no term that it was given is its law:
deviations of all numbers are then those with every term of the friction of that joint unknown, kept or not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from veridyn.arrays import Array
from veridyn.identify.drives.drive_search import DriveMinimum, DriveProblem
from veridyn.identify.drives.drive_unknowns import RUNGS
from veridyn.identify.statistics.agreement import (
    DETERMINED_INFORMATION,
    Agreement,
    PartSums,
    agreement,
    posterior_covariance,
)

PARTS = 4  # of the samples, which are compared


@dataclass(frozen=True, eq=False)
class DrivePosterior:
    """Covariance (a, a) of the active unknowns in z, and what the comparison of parts showed; None where nothing is determined."""

    covariance: Array
    agreement: Agreement | None

    @property
    def widening(self) -> float:
        """B."""
        return 1.0 if self.agreement is None else self.agreement.widening


def posterior(problem: DriveProblem, found: DriveMinimum) -> DrivePosterior:
    """The covariance at the end of a search."""
    active = list(problem.active)
    A, _ = found.linear.normal(active, found.z)
    values, V = np.linalg.eigh(A - np.eye(len(active)))
    own = values > DETERMINED_INFORMATION
    same = _compared(found, active, V[:, own], values[own]) if own.any() else None
    wide = active + _unchosen(problem)
    A, _ = found.linear.normal(wide, found.z)
    C = posterior_covariance(A - np.eye(len(wide)), 1.0 if same is None else same.widening)
    return DrivePosterior(C[: len(active), : len(active)], same)


def _unchosen(problem: DriveProblem) -> list[int]:
    """Terms of friction that are not estimated, of joints whose friction is not one number."""
    rungs = {k: u.joints[0] for k, u in enumerate(problem.unknowns) if u.key in RUNGS}
    uneven = {joint for k, joint in rungs.items() if k in problem.active}
    return [k for k, joint in rungs.items() if joint in uneven and k not in problem.active]


def _compared(found: DriveMinimum, active: list[int], seen: Array, values: Array) -> Agreement:
    """Whether parts of the samples agree on the directions `seen` (a, d)."""
    J, r = found.linear.columns[:, :, active], found.linear.residuals
    d, cuts = seen.shape[1], np.linspace(0, len(r), PARTS + 1).astype(int)
    sums = PartSums.zero(PARTS, d)
    Q = seen / np.sqrt(values)
    mean = np.zeros(d)
    for k in range(PARTS):
        own = J[cuts[k] : cuts[k + 1]].reshape(-1, len(active)) @ Q
        sums.gram[k] = own.T @ own
        sums.score[k] = -own.T @ r[cuts[k] : cuts[k + 1]].ravel()
        mean += sums.score[k]
    sums.score[:] -= sums.gram @ np.linalg.solve(sums.gram.sum(axis=0), mean)  # the prior's pull is no disagreement
    return agreement(sums, np.eye(d), np.eye(d))
