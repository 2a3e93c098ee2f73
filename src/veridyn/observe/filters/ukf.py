"""The unscented Kalman filter: the belief is carried through the machine by 2n + 1 states instead of by a tangent.

    X₀ = x,  X_i± = x ± γ L e_i,   P = L Lᵀ,   γ² = α² (n + κ)
    d_i± = f(X_i±) − f(X₀),   s_i = (d_i⁺ − d_i⁻)/2γ,   c_i = (d_i⁺ + d_i⁻)/2γ,   δ = Σ c_i/γ
    mean = f(X₀) + δ,    cov = Σ s_i s_iᵀ + Σ c_i c_iᵀ + (β − α²) δ δᵀ

This is the scaled transform with its weights gathered around the centre point: slopes s and curvatures c. Nothing is
subtracted, so for β ≥ α² no covariance can become negative, and a small α does not cancel digits. The slopes make the line
H = S L⁻¹ that fits the points; what it misses, the terms in c and δ, is added to R. Joseph's form and sequential updates
then give the unscented filter's own gain and covariance. Points beyond the bounds of estimated parameters are moved with the bound's
value, while their spread stays as it is, so that a parameter at its bound does not drift away from it.
Reference: S. J. Julier, "The scaled unscented transformation", ACC 2002, 4555-4559.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import ModelError
from veridyn.observe.filters.filter import Filter
from veridyn.observe.filters.update import Expectation
from veridyn.observe.process_noise import symmetric
from veridyn.observe.result import Belief
from veridyn.observe.system import System


@dataclass(frozen=True, repr=False)
class UKF(Filter):
    """The unscented filter; needs no derivatives.

    `alpha` spreads the points, `kappa` adds to the spread, `beta` = 2 is right for normal errors.
    """

    word: ClassVar[str] = "ukf"

    alpha: float = 1.0
    beta: float = 2.0
    kappa: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.alpha > 0.0 or not self.beta >= self.alpha**2:
            raise ModelError(
                "these weights may make a covariance negative.",
                where=self.name,
                expected="alpha > 0 and beta ≥ alpha²",
                found=f"alpha = {self.alpha:g}, beta = {self.beta:g}",
            )

    def predict(self, system: System, belief: Belief, u: Array, t: float, dt: float) -> tuple[Array, Array, Array]:
        gamma, L, inverse = self._root(belief.P)
        points = _points(system, belief.x, gamma * L)
        inside = _within(system, points)
        moved = system.move(inside, u, t, dt) + (points - inside)  # parameters do not move by themselves
        delta, S, missed = self._moments(system.subtract(moved[1:], moved[0]), gamma)
        P = symmetric(S @ S.T + missed) + system.noise(belief.x, u, t, dt)
        return system.add(moved[0], delta), P, S @ inverse

    def expect(self, system: System, x: Array, P: Array, u: Array, t: float) -> Expectation:
        gamma, L, inverse = self._root(P)
        readings = system.sense(_within(system, _points(system, x, gamma * L)), u, t)
        delta, S, missed = self._moments(system.residual(readings[1:], readings[0]), gamma)
        return Expectation(readings[0] + delta, S @ inverse, system.sensor_noise(t) + missed)

    def _root(self, P: Array) -> tuple[float, Array, Array]:
        """γ, a root L of P and its inverse; where P is only semi-definite, by eigenvectors without its null space."""
        n = len(P)
        spread = self.alpha**2 * (n + self.kappa)
        if not spread > 0.0:
            raise ModelError(
                "the points have no spread.", where=self.name, expected=f"kappa > −{n}", found=f"kappa = {self.kappa:g}"
            )
        try:
            L: Array = np.asarray(np.linalg.cholesky(P), dtype=np.float64)
            return float(np.sqrt(spread)), L, np.asarray(np.linalg.inv(L), dtype=np.float64)
        except np.linalg.LinAlgError:
            values, V = np.linalg.eigh(P)
            kept = values > 1e-14 * max(values[-1], 0.0)
            root = np.sqrt(np.where(kept, values, 0.0))
            back = np.where(kept, 1.0 / np.where(kept, root, 1.0), 0.0)
            return float(np.sqrt(spread)), V * root, (V * back).T

    def _moments(self, d: Array, gamma: float) -> tuple[Array, Array, Array]:
        """δ, the slopes as columns of S, and the covariance that they miss."""
        n = len(d) // 2
        slopes, curvatures = (d[:n] - d[n:]) / (2.0 * gamma), (d[:n] + d[n:]) / (2.0 * gamma)
        delta = curvatures.sum(axis=0) / gamma
        missed = symmetric(curvatures.T @ curvatures) + (self.beta - self.alpha**2) * np.outer(delta, delta)
        return delta, slopes.T, missed


def _within(system: System, points: Array) -> Array:
    """The points with bounded parameters within their bounds, where alone the laws of a machine have a meaning."""
    bounds = getattr(system, "bounds", None)
    return points if bounds is None else bounds.inside(points)


def _points(system: System, x: Array, columns: Array) -> Array:
    """x, then x plus each column, then x minus each column."""
    return np.concatenate([x[None], system.add(x, np.concatenate([columns.T, -columns.T]))])
