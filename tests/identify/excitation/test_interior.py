"""The interior-point search, on problems whose minima are known in closed form."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.identify.excitation.interior import (
    Barrier,
    BlockSlopes,
    Limited,
    StackedSlopes,
    WholeSlopes,
    in_blocks,
    minimise,
    slopes_of,
)

COLUMNS = np.arange(12).reshape(4, 3).T  # three joints with four coefficients each, as an excitation has them


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


def separate(rng: np.random.Generator) -> np.ndarray:
    """30 limits in random order, each with slopes in one joint."""
    J = np.zeros((30, 12))
    for k, joint in enumerate(rng.permutation(np.repeat(np.arange(3), 10))):
        J[k, COLUMNS[joint]] = rng.normal(size=4)
    return J


def test_blocks_are_the_matrix() -> None:
    rng = np.random.default_rng(0)
    J = separate(rng)
    found = in_blocks(J, COLUMNS)
    assert isinstance(found, BlockSlopes)
    step, forces, weights = rng.normal(size=12), rng.normal(size=30), rng.uniform(size=30)
    for slopes in (found, slopes_of(J), slopes_of(found)):
        assert slopes.along(step) == pytest.approx(J @ step, abs=1e-13)
        assert slopes.pulled(forces) == pytest.approx(J.T @ forces, abs=1e-13)
        assert slopes.weighed(weights) == pytest.approx(J.T @ np.diag(weights) @ J, abs=1e-13)


def test_two_kinds_one_above_the_other_are_the_matrix() -> None:
    rng = np.random.default_rng(2)
    J = rng.normal(size=(45, 12))
    rows, others = np.split(rng.permutation(45), [30])
    J[rows] = separate(rng)
    found = StackedSlopes(in_blocks(J[rows], COLUMNS), WholeSlopes(J[others]), rows, others)
    step, forces, weights = rng.normal(size=12), rng.normal(size=45), rng.uniform(size=45)
    assert found.along(step) == pytest.approx(J @ step, abs=1e-13)
    assert found.pulled(forces) == pytest.approx(J.T @ forces, abs=1e-13)
    assert found.weighed(weights) == pytest.approx(J.T @ np.diag(weights) @ J, abs=1e-12)


def test_what_does_not_separate_stays_whole() -> None:
    """A limit of two joints, a limit of none, and joints with different numbers of limits."""
    rng = np.random.default_rng(1)
    both, none = separate(rng), separate(rng)
    both[3] = rng.normal(size=12)
    none[5] = 0.0
    for J in (both, none, separate(rng)[:-1]):
        found = in_blocks(J, COLUMNS)
        assert isinstance(found, WholeSlopes) and found.matrix is J
