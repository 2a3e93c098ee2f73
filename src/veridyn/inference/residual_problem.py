"""Least squares of a function, as a problem of the damped search: with a robust loss, priors, bounds and linear inequalities.

    minimise Σ ρ(r²) + Σ ((x − m)/s)²         ρ(u) = u, or 2 (√(1 + u) − 1), which grows like |r|: "soft_l1"

Around a point ρ weighs residuals by ρ' and the information by ρ' + 2 ρ'' r², which is (1 + r²)^−1.5 for "soft_l1" (Triggs and others, 2000,
Bundle adjustment, a modern synthesis).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from veridyn.arrays import Array
from veridyn.inference.quadratic import Quadratic


@dataclass(frozen=True, eq=False, kw_only=True)
class ResidualProblem:
    """`residuals` (n,) of x (p,) in deviations of the measurement; their derivatives by `jacobian`, or by central differences over `step`.

    `mean` and `sigma` of priors, a σ of infinity being none; `low` and `high`; (A, b) of A x + b ≥ 0.
    """

    residuals: Callable[[Array], Array]
    jacobian: Callable[[Array], Array] | None = None
    step: Array | float = 1e-6
    mean: Array | float = 0.0
    sigma: Array | float = np.inf
    low: Array | float = -np.inf
    high: Array | float = np.inf
    inequalities: tuple[Array, Array] | None = None
    loss: Literal["linear", "soft_l1"] = "linear"

    def at(self, x: Array) -> ResidualPoint | None:
        """A point to search from, or one on the way; None where residuals are not finite."""
        r, far = self.residuals(x), (x - self.mean) / self.sigma
        if not np.isfinite(r).all():
            return None
        data = r @ r if self.loss == "linear" else 2.0 * np.sum(np.sqrt(1.0 + r**2) - 1.0)
        return ResidualPoint(self, x, r, float(data + far @ far))

    def derivatives(self, x: Array) -> Array:
        """∂r/∂x (n, p)."""
        if self.jacobian is not None:
            return self.jacobian(x)
        steps = np.diag(np.broadcast_to(np.asarray(self.step, dtype=np.float64), x.shape))
        return np.stack([(self.residuals(x + h) - self.residuals(x - h)) / (2.0 * h.sum()) for h in steps], axis=1)


@dataclass(frozen=True, eq=False)
class ResidualPoint:
    """A problem at x, with its residuals."""

    problem: ResidualProblem
    x: Array
    residuals: Array
    cost: float
    settled: bool = True

    def at(self, x: Array) -> ResidualPoint | None:
        return self.problem.at(x)

    def renewed(self) -> ResidualPoint:
        return self

    @cached_property
    def information(self) -> Array:
        """What the data say of x, without its priors."""
        return self._normal[0]

    @cached_property
    def _normal(self) -> tuple[Array, Array]:
        r, J = self.residuals, self.problem.derivatives(self.x)
        if self.problem.loss == "linear":
            return J.T @ J, J.T @ r
        return J.T @ (J * (1.0 + r[:, None] ** 2) ** -1.5), J.T @ (r / np.sqrt(1.0 + r**2))

    def model(self) -> Quadratic:
        p, (G, slope) = self.problem, self._normal
        weight = np.broadcast_to(np.asarray(p.sigma, dtype=np.float64), self.x.shape) ** -2.0
        inequalities = None
        if p.inequalities is not None:
            A, b = p.inequalities
            inequalities = (A, A @ self.x + b)
        return Quadratic(
            x=self.x,
            hessian=G + np.diag(weight),
            gradient=slope + (self.x - p.mean) * weight,
            cost=self.cost,
            low=p.low,
            high=p.high,
            inequalities=inequalities,
        )
