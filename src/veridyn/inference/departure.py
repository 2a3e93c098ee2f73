"""How often estimates would lie as far from the values that were there before, if these were right.

Values that are right predict better than any estimate of them, by what noise made of the estimates. So a result that predicts worse than
the values from before is no worse than these where its estimates z, in deviations of their priors about them, are not beyond what their
covariance C explains: zᵀ C⁻¹ z is χ² of len(z). What a prior leaves of z only makes it smaller.
"""

from __future__ import annotations

from scipy.linalg import cho_factor, cho_solve
from scipy.special import chdtrc

from veridyn.arrays import Array


def chance_of_departure(z: Array, covariance: Array) -> float:
    """The probability of estimates z (p,), in deviations of their priors, with covariance (p, p), if the values from before are right."""
    if not len(z):
        return 1.0
    return float(chdtrc(len(z), z @ cho_solve(cho_factor(covariance), z)))
