"""What data leave of a prior: the covariance at the end of a search, whether parts of the data agree, and what they leave open.

With the information G of the data and 1 of the priors, in deviations of the priors, A = G + 1 is the information of both. Estimates have
the covariance A⁻¹ (B G + 1) A⁻¹, B the factor by which variances of the data's errors are larger than G assumes: where parts of the data
disagree on the directions that they determine (:mod:`veridyn.inference.agreement`), it is their disagreement over what is expected. In z,
deviations of the prior, the covariance has eigenvalues from near 0, determined, to 1, not seen. A number, or a direction, is determined
where its posterior deviation is at most DETERMINED_SHARE of its prior's: data with (1/DETERMINED_SHARE² − 1) times the prior's information
leave just that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.inference.agreement import Agreement, PartSums, agreement

DETERMINED_SHARE = 0.5  # of the prior's standard deviation: a posterior above it is not determined
DETERMINED_INFORMATION = 1.0 / DETERMINED_SHARE**2 - 1.0  # of the data, over the prior's
PARTS = 4  # of the data, which are compared


def posterior_covariance(G: Array, widening: float = 1.0) -> Array:
    """A⁻¹ (B G + 1) A⁻¹ of unknowns in deviations of their priors, A = G + 1."""
    one = np.eye(len(G))
    inverse = np.asarray(np.linalg.inv(G + one), dtype=np.float64)
    return inverse if widening == 1.0 else inverse @ (widening * G + one) @ inverse


def parts_agreement(G: Array, parts: Sequence[tuple[Array, Array]]) -> Agreement | None:
    """Whether parts of the data agree on the directions that all of them determine; None where these determine none.

    `parts`: of each its columns (rows, p), over deviations of the priors, and what the fit leaves of the measurement (rows,), both
    weighted; G = Σ XᵀX. The pull of the prior is in the scores of all parts, and is no disagreement: of each its share is taken out.
    """
    values, V = np.linalg.eigh(G)
    determined = values > DETERMINED_INFORMATION
    if not determined.any():
        return None
    Q = V[:, determined] / np.sqrt(values[determined])
    sums = PartSums.zero(len(parts), Q.shape[1])
    for k, (X, r) in enumerate(parts):
        own = X @ Q
        sums.gram[k], sums.score[k] = own.T @ own, own.T @ r
    sums.score[:] -= sums.gram @ np.linalg.solve(sums.gram.sum(axis=0), sums.score.sum(axis=0))
    return agreement(sums, np.eye(Q.shape[1]), np.eye(Q.shape[1]))


@dataclass(frozen=True, eq=False)
class UndeterminedDirection:
    """A direction that is not determined: its main unknowns, the largest part first, and the share `left` of the prior's deviation."""

    members: NDArray[np.intp]
    left: float


def open_directions(covariance: Array) -> tuple[UndeterminedDirection, ...]:
    """Of unknowns with posterior covariance (u, u) in z every direction that is not determined, the least known first.

    Members owe it more than half of their variance. An unknown that is not determined is one in the direction that it owes most, so that
    none is left out.
    """
    values, V = np.linalg.eigh(covariance)
    left = np.sqrt(np.maximum(values, 0.0))
    undetermined = np.sqrt(np.diag(covariance)) > DETERMINED_SHARE
    directions = [k for k in np.argsort(-left) if left[k] > DETERMINED_SHARE]
    if not directions:
        return ()
    owed = values * V**2 / np.diag(covariance)[:, None]
    most = np.array(directions)[np.argmax(owed[:, directions], axis=1)]
    found: list[UndeterminedDirection] = []
    for k in directions:
        v = np.abs(V[:, k])
        named = (owed[:, k] > 0.5) | (v == v.max()) | (undetermined & (most == k))
        order = np.argsort(-v)
        found.append(UndeterminedDirection(order[named[order]], float(left[k])))
    return tuple(found)
