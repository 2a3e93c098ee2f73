"""Least squares of a function: its robust loss is that of SciPy; cost, gradient and information by hand and by differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import least_squares

from veridyn.arrays import Array
from veridyn.inference.residual_problem import ResidualProblem
from veridyn.inference.search import Damping, StopRules, search


def test_a_robust_loss_is_that_of_scipy() -> None:
    """A line with five outliers: the minimum of soft_l1, and its information, are those of scipy.optimize.least_squares."""
    rng = np.random.default_rng(3)
    t = np.linspace(0.0, 1.0, 50)
    y = 1.0 + 2.0 * t + 0.1 * rng.normal(size=50)
    y[::10] += 3.0

    def residuals(x: Array) -> Array:
        return (x[0] + x[1] * t - y) / 0.1

    start = ResidualProblem(residuals=residuals, loss="soft_l1").at(np.zeros(2))
    assert start is not None
    end = search(start, StopRules(iterations=200, tolerance=1e-9), Damping(), where="line", hint="")
    other = least_squares(residuals, np.zeros(2), loss="soft_l1", ftol=1e-14, xtol=1e-14, gtol=1e-14)
    assert end.point.x == pytest.approx(other.x, abs=1e-6)
    assert end.point.cost == pytest.approx(2.0 * other.cost, rel=1e-9)
    assert end.point.information == pytest.approx(other.jac.T @ other.jac, rel=1e-3)  # its differences are one-sided


def curve(x: Array) -> Array:
    return np.array([x[0] ** 2 - 3.0, x[0] * x[1], np.exp(0.3 * x[1]) - 2.0])


def slopes(x: Array) -> Array:
    return np.array([[2.0 * x[0], 0.0], [x[1], x[0]], [0.0, 0.3 * np.exp(0.3 * x[1])]])


def test_differences_are_the_derivatives() -> None:
    x = np.array([1.3, -0.7])
    for step in (1e-6, np.array([1e-5, 1e-6])):
        assert ResidualProblem(residuals=curve, step=step).derivatives(x) == pytest.approx(slopes(x), abs=1e-8)


@pytest.mark.parametrize("loss", ["linear", "soft_l1"])
def test_cost_gradient_and_curvature_with_priors(loss: str) -> None:
    """Written out: Σ ρ(r²) + Σ ((x − m)/s)², half its slope by differences, and JᵀJ, or Jᵀ(1 + r²)^−1.5 J, with 1/s² more."""
    mean, sigma, x = np.array([0.5, 0.2]), np.array([2.0, 0.4]), np.array([1.3, -0.7])
    problem = ResidualProblem(residuals=curve, jacobian=slopes, mean=mean, sigma=sigma, loss=loss)  # pyright: ignore[reportArgumentType]

    def cost(x: Array) -> float:
        r, far = curve(x), (x - mean) / sigma
        data = np.sum(r**2) if loss == "linear" else np.sum(2.0 * (np.sqrt(1.0 + r**2) - 1.0))
        return float(data + np.sum(far**2))

    point = problem.at(x)
    assert point is not None and point.cost == pytest.approx(cost(x), rel=1e-14)
    model = point.model()
    half = [(cost(x + h) - cost(x - h)) / (4.0 * h.sum()) for h in 1e-6 * np.eye(2)]
    assert model.gradient == pytest.approx(half, rel=1e-6)
    weight = 1.0 if loss == "linear" else (1.0 + curve(x) ** 2) ** -1.5
    G = slopes(x).T @ np.diag(np.broadcast_to(weight, 3)) @ slopes(x)
    assert point.information == pytest.approx(G, rel=1e-12)
    assert model.hessian == pytest.approx(G + np.diag(sigma**-2.0), rel=1e-12)


def test_inequalities_are_those_of_x() -> None:
    """x + y ≤ 1 at (0.2, 0.3): the step keeps −dx − dy + 0.5 ≥ 0."""
    limit = (-np.ones((1, 2)), np.ones(1))
    point = ResidualProblem(residuals=lambda x: x - 3.0, inequalities=limit).at(np.array([0.2, 0.3]))
    assert point is not None and point.model().step().sum() == pytest.approx(0.5)


def test_residuals_that_are_not_finite_are_no_point() -> None:
    problem = ResidualProblem(residuals=lambda x: np.array([1.0, np.nan if x[0] > 1.0 else 0.0]))
    assert problem.at(np.array([2.0])) is None and problem.at(np.array([0.0])) is not None
