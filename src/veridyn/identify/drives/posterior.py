"""How sure the drives of a group are: the covariance of their unknowns, widened where parts of the log disagree.

With G = Σ Jᵀ W J of the columns, weighted for residuals with memory, and A = G + 1, estimates of z have the covariance A⁻¹ (B G + 1) A⁻¹.
B is 1 where quarters of the log agree on the directions that they determine, and otherwise their disagreement over what is expected, which
model errors make (:mod:`veridyn.identify.statistics.agreement`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from veridyn.arrays import Array
from veridyn.identify.drives.drive_search import DriveMinimum, DriveProblem
from veridyn.identify.statistics.agreement import Agreement, PartSums, agreement

PARTS = 4  # of the samples, which are compared
SEEN = 3.0  # of an eigenvalue of G: the posterior deviation is then half the prior's


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
    p = len(active)
    G = A - np.eye(p)
    values, V = np.linalg.eigh(G)
    seen = V[:, values > SEEN]
    same = _compared(found, active, seen, values[values > SEEN]) if seen.shape[1] else None
    inverse = np.linalg.inv(A)
    B = 1.0 if same is None else same.widening
    return DrivePosterior(inverse @ (B * G + np.eye(p)) @ inverse, same)


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
