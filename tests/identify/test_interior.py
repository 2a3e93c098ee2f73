"""The interior-point search, on problems whose minima are known in closed form."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.identify.interior import Barrier, Limited, minimise


def test_a_quadratic_in_a_box() -> None:
    """min ½|u − c|² within ±1: the minimum is c cut to the box; the barrier keeps off it by about μ."""
    c = np.array([0.3, 2.0, -5.0])
    problem = Limited(
        lambda u: (0.5 * float((u - c) @ (u - c)), u - c), lambda u: u, lambda u: np.eye(3), -np.ones(3), np.ones(3)
    )
    found = minimise(problem, np.zeros(3), Barrier(last=1e-8))
    assert found.converged
    assert found.u == pytest.approx([0.3, 1.0, -1.0], abs=1e-5)
    assert (np.abs(found.u) < 1.0).all()


def test_a_curved_limit() -> None:
    """min −u₁ within the unit disc, one-sided: (1, 0)."""

    def disc(u: np.ndarray) -> np.ndarray:
        return np.array([1.0 - u @ u])

    problem = Limited(
        lambda u: (-float(u[0]), np.array([-1.0, 0.0])),
        disc,
        lambda u: -2.0 * u[None],
        np.zeros(1),
        np.full(1, np.inf),
    )
    found = minimise(problem, np.array([0.0, 0.5]), Barrier(last=1e-8, tolerance=1e-3, iterations=300))
    assert found.u == pytest.approx([1.0, 0.0], abs=1e-3)
    assert disc(found.u)[0] > 0.0


def test_valleys_that_bend_the_other_way() -> None:
    """Rosenbrock's function within a box: its curvature is negative on the way, and the minimum is at (1, 1)."""

    def goal(u: np.ndarray) -> tuple[float, np.ndarray]:
        x, y = u
        value = (1 - x) ** 2 + 100 * (y - x * x) ** 2
        return float(value), np.array([-2 * (1 - x) - 400 * x * (y - x * x), 200 * (y - x * x)])

    problem = Limited(goal, lambda u: u, lambda u: np.eye(2), -2.0 * np.ones(2), 2.0 * np.ones(2))
    found = minimise(problem, np.array([-1.2, 1.0]), Barrier(last=1e-9, tolerance=1e-4, iterations=500))
    assert found.u == pytest.approx([1.0, 1.0], abs=1e-3)


def test_places_where_nothing_can_be_are_kept_out_of() -> None:
    """g is NaN beyond 0.5: a step that leads there is cut."""

    def g(u: np.ndarray) -> np.ndarray:
        return u if u[0] < 0.5 else np.full(1, np.nan)

    problem = Limited(lambda u: (-float(u[0]), -np.ones(1)), g, lambda u: np.eye(1), -np.ones(1), np.ones(1))
    assert minimise(problem, np.zeros(1)).u[0] < 0.5


def test_a_start_outside_is_a_mistake() -> None:
    problem = Limited(lambda u: (0.0, u), lambda u: u, lambda u: np.eye(1), -np.ones(1), np.ones(1))
    with pytest.raises(ValueError, match="not inside"):
        minimise(problem, np.full(1, 2.0))
