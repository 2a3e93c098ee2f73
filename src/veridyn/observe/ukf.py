"""The unscented Kalman filter: the belief is carried through the machine by 2n + 1 states instead of by a tangent.

    X₀ = x,  X_i± = x ± γ L e_i,   P = L Lᵀ,   γ² = α² (n + κ),   w = 1/(2γ²)
    d_i = f(X_i) − f(X₀),   δ = w Σ d_i:     mean = f(X₀) + δ,    cov = w Σ d_i d_iᵀ + (β − α²) δ δᵀ

This is the scaled transform with its weights gathered around the centre point. Nothing is subtracted, so for β ≥ α² the
covariance cannot become negative, and a small α does not cancel digits. The sensors are put as the line that fits the
states best, H = Pᵧₓ P⁻¹, and what the line misses is added to R: Joseph's form and sequential updates then give the
unscented filter's own gain and covariance.
Reference: S. J. Julier, "The scaled unscented transformation", ACC 2002, 4555-4559.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Fault, ModelError
from veridyn.observe.filter import Filter
from veridyn.observe.noise import symmetric
from veridyn.observe.result import Belief
from veridyn.observe.system import System
from veridyn.observe.update import Expectation

Array = NDArray[np.float64]


@dataclass(frozen=True)
class UKF(Filter):
    """The unscented filter; needs no derivatives.

    `alpha` spreads the points, `kappa` adds to the spread, `beta` = 2 is right for normal errors.
    """

    alpha: float = 1.0
    beta: float = 2.0
    kappa: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.alpha > 0.0 or not self.beta >= self.alpha**2:
            raise ModelError(
                Fault(
                    "these weights may make a covariance negative.",
                    self.name,
                    "alpha > 0 and beta ≥ alpha²",
                    f"alpha = {self.alpha:g}, beta = {self.beta:g}",
                )
            )

    def predict(self, system: System, belief: Belief, u: Array, t: float, dt: float) -> tuple[Array, Array, Array]:
        gamma, L, inverse = self._root(belief.P)
        X = _points(system, belief.x, gamma * L)
        moved = system.move(X, u, t, dt)
        d = system.subtract(moved[1:], moved[0])
        delta, covariance = self._moments(d, gamma)
        F = _slope(d, gamma) @ inverse
        return system.add(moved[0], delta), covariance + system.noise(belief.x, u, t, dt), F

    def expect(self, system: System, x: Array, P: Array, u: Array, t: float) -> Expectation:
        gamma, L, inverse = self._root(P)
        readings = system.sense(_points(system, x, gamma * L), u, t)
        d = system.residual(readings[1:], readings[0])
        delta, covariance = self._moments(d, gamma)
        slope = _slope(d, gamma)
        missed = symmetric(covariance - slope @ slope.T)
        return Expectation(readings[0] + delta, slope @ inverse, system.sensor_noise(t) + missed)

    def _root(self, P: Array) -> tuple[float, Array, Array]:
        """γ, a root L of P and its inverse; where P is only semi-definite, by eigenvectors without its null space."""
        n = len(P)
        spread = self.alpha**2 * (n + self.kappa)
        if not spread > 0.0:
            raise ModelError(Fault("the points have no spread.", self.name, f"kappa > −{n}", f"kappa = {self.kappa:g}"))
        try:
            L = np.linalg.cholesky(P)
            return float(np.sqrt(spread)), L, np.linalg.inv(L)
        except np.linalg.LinAlgError:
            values, V = np.linalg.eigh(P)
            kept = values > 1e-14 * max(values[-1], 0.0)
            root = np.sqrt(np.where(kept, values, 0.0))
            back = np.where(kept, 1.0 / np.where(kept, root, 1.0), 0.0)
            return float(np.sqrt(spread)), V * root, (V * back).T

    def _moments(self, d: Array, gamma: float) -> tuple[Array, Array]:
        delta = d.sum(axis=0) / (2.0 * gamma**2)
        covariance = d.T @ d / (2.0 * gamma**2) + (self.beta - self.alpha**2) * np.outer(delta, delta)
        return delta, symmetric(covariance)


def _points(system: System, x: Array, columns: Array) -> Array:
    """x, then x plus each column, then x minus each column."""
    return np.concatenate([x[None], system.add(x, np.concatenate([columns.T, -columns.T]))])


def _slope(d: Array, gamma: float) -> Array:
    """How the images of the points change along each column of L: central differences over 2γ."""
    n = len(d) // 2
    return ((d[:n] - d[n:]) / (2.0 * gamma)).T
