"""Instruments from other periods: noise of measured positions, which is in the columns, does not bias the estimate.

    p̂ = (Σ_{k≠l} A_kᵀ Σ⁻¹ A_l)⁻¹ Σ_{k≠l} A_kᵀ Σ⁻¹ y_l

A_k p = y_k are the equations of period k, each from its own measured positions. What is noise in A_l and y_l, a controller's answer to
that noise included, is independent of A_k, so products of different periods hold none of it, and the cut-off of the filter may be as high
as the motion needs. Σ is the noise of the mean of all periods; it comes from what the equation errors y_k − A_k p̂ of single periods differ
by, so it allows for noise of positions, and a force that moves the machine is not taken for noise. Samples are left out in pieces, and
each weighted one needs its past, so Σ remembers few samples and is not the whole noise, of which a filter of positions leaves a band and a
controller another. The covariance is therefore that of these weights with the noise Σ° of a longer memory,

    cov p̂ = G⁻¹ [1/K Σ_l Ā_lᵀ Σ⁻¹ Σ° Σ⁻¹ Ā_l] G⁻¹,     Ā_l the mean of all periods but l, G the products above over K (K − 1)

and the part of the mean equation error beyond Σ, which every period repeats, scales it. Noise turns the sign of a speed near zero in
either factor; leave such samples out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import DataError, IdentificationError
from veridyn.identify.estimators.noise_model import NoiseModel

PASSES = 3  # estimates, each weighted by the noise that the one before shows
LONGEST_MEMORY = 8  # samples that the noise may remember whose deviations are stated; BIC chooses (chosen)
WEAK = 0.1  # least eigenvalue of the products of different periods, over those of their mean


@dataclass(frozen=True, eq=False, kw_only=True)
class CrossPeriods:
    """`values` (p,) and their `covariance` (p, p); `noise` of the mean over the periods, as the covariance has it.

    `lack_of_fit`: the mean square of the whitened mean equation errors, 1 where the model leaves noise alone; part of the covariance.
    """

    values: Array
    covariance: Array
    noise: NoiseModel
    lack_of_fit: float

    @property
    def sigma(self) -> Array:
        return np.sqrt(np.diag(self.covariance))


def across_periods(
    A: Array, y: Array, noise: NoiseModel, order: int = 0, used: NDArray[np.bool_] | None = None
) -> CrossPeriods:
    """Estimate from periods A (K, N, r, p) and y (K, N, r), K of at least 2, each closed: the sample before its first is its last.

    `noise`: of one period, to start with; the noise of equation errors may be correlated over up to `order` samples. `used` (N,): samples
    that are equations, the same in every period; all by default.
    """
    periods, N, rows, count = A.shape
    if periods < 2:
        raise DataError(
            "instruments come from another period.", where="periods", expected="at least two", found=f"{periods}"
        )
    keep = np.ones(N, dtype=bool) if used is None else np.asarray(used, dtype=bool)
    weights = following = noise.scaled(1.0 / periods)
    values, G, mask, apart = np.zeros(count), np.eye(count), keep, y
    for _ in range(PASSES):
        weights = following
        mask = _with_past(keep, weights.order)
        if int(mask.sum()) * rows <= count:
            raise IdentificationError(
                "there are fewer equations than parameters.", where="periods", found=f"{int(mask.sum()) * rows}"
            )
        W = weights.whitened(np.concatenate([A, y[..., None]], axis=-1))[:, mask].reshape(periods, -1, count + 1)
        total = W.sum(axis=0)
        own = np.einsum("kni,knj->ij", W[..., :-1], W, optimize=True)
        products = (total[:, :-1].T @ total - own) / (periods * (periods - 1))
        G = _checked(0.5 * (products[:, :-1] + products[:, :-1].T), total[:, :-1] / periods)
        values = np.linalg.solve(G, products[:, -1])
        errors = y - A @ values
        apart = errors - errors.mean(axis=0)
        following = NoiseModel.from_runs(apart, order, N * (periods - 1)).scaled(1.0 / periods)
    left = weights.whitened((y - A @ values).mean(axis=0)[..., None])[mask]
    freedom = left.size - count
    lack = float((left**2).sum()) / freedom
    longer = NoiseModel.from_runs(apart, max(order, LONGEST_MEMORY), N * (periods - 1)).scaled(1.0 / periods)
    others = weights.whitened((A.sum(axis=0) - A) / (periods - 1)) * mask[:, None, None]
    inverse = np.linalg.inv(G)
    covariance = lack * inverse @ longer.spread(weights.unwhitened(others)).mean(axis=0) @ inverse
    return CrossPeriods(values=values, covariance=covariance, noise=longer, lack_of_fit=lack)


def _with_past(keep: NDArray[np.bool_], order: int) -> NDArray[np.bool_]:
    """The samples that are used with all `order` before them."""
    out = keep.copy()
    for lag in range(1, order + 1):
        out &= np.roll(keep, lag)
    return out


def _checked(G: Array, mean: Array) -> Array:
    """The products of different periods, if they are information: as the products of the mean, in every direction."""
    R = np.linalg.qr(mean, mode="r")
    inverse = np.linalg.inv(R)
    least = float(np.linalg.eigvalsh(inverse.T @ G @ inverse)[0])
    if least < WEAK:
        raise IdentificationError(
            "the periods hardly resemble each other in some combination of columns, which noise decides then.",
            where="periods",
            expected=f"products of different periods of at least {WEAK:g} of those of their mean",
            found=f"{least:.3g}",
            hint="Take fewer harmonics, more periods or a motion that excites more.",
        )
    return G
