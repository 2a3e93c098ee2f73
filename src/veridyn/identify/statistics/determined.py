"""What data leave of a prior: the covariance of unknowns with priors, and when data count as having determined one.

With the information G of the data and 1 of the priors, in deviations of the priors, A = G + 1 is the information of both. Estimates have
the covariance A⁻¹ (B G + 1) A⁻¹, B the factor by which variances of the data's errors are larger than G assumes. A number is determined
where its posterior deviation is at most DETERMINED_SHARE of its prior's: data with (1/DETERMINED_SHARE² − 1) times the prior's information
leave just that.
"""

from __future__ import annotations

import numpy as np

from veridyn.arrays import Array

DETERMINED_SHARE = 0.5  # of the prior's standard deviation: a posterior above it is not determined
DETERMINED_INFORMATION = 1.0 / DETERMINED_SHARE**2 - 1.0  # of the data, over the prior's


def posterior_covariance(G: Array, widening: float = 1.0) -> Array:
    """A⁻¹ (B G + 1) A⁻¹ of unknowns in deviations of their priors, A = G + 1."""
    one = np.eye(len(G))
    inverse = np.asarray(np.linalg.inv(G + one), dtype=np.float64)
    return inverse if widening == 1.0 else inverse @ (widening * G + one) @ inverse
