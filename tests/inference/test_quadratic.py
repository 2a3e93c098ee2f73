"""Steps within bounds and inequalities, against non-negative least squares, SLSQP and the closed form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize, nnls

from veridyn.arrays import Array
from veridyn.inference.quadratic import RIDGE, Quadratic, definite, inequality_step


def drawn(seed: int, p: int = 5) -> tuple[Array, Array, Quadratic]:
    """Rows and a right side, and the quadratic around zero of their least squares."""
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(12, p)), rng.normal(size=12)
    return A, b, Quadratic(x=np.zeros(p), hessian=A.T @ A, gradient=-A.T @ b)


def test_without_bounds_it_is_least_squares() -> None:
    A, b, model = drawn(0)
    d = model.step()
    assert d == pytest.approx(np.linalg.lstsq(A, b, rcond=None)[0], rel=1e-9)
    assert model.length(d) == pytest.approx(np.linalg.norm(A @ d), rel=1e-12)
    H = A.T @ A
    assert model.step(0.5) == pytest.approx(np.linalg.solve(H + 0.5 * np.diag(np.diag(H)), A.T @ b), rel=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_numbers_on_a_bound_are_those_of_non_negative_least_squares(seed: int) -> None:
    """From zero, where all are on their bound: what Lawson and Hanson's algorithm gives, and zeros that are exact."""
    A, b, model = drawn(seed)
    best = nnls(A, b)[0]
    d = replace(model, low=0.0).step()
    assert d == pytest.approx(best, abs=1e-9) and ((d == 0.0) == (best == 0.0)).all()
    assert replace(model, high=0.0, gradient=-model.gradient).step() == pytest.approx(-best, abs=1e-9)


def test_a_step_ends_on_a_bound_that_it_would_pass() -> None:
    model = Quadratic(x=np.array([1.0, 1.0]), hessian=np.eye(2), gradient=np.array([5.0, -5.0]), low=0.5, high=2.0)
    assert (model.x + model.step()).tolist() == [0.5, 2.0]
    held = Quadratic(x=np.array([0.5, 2.0]), hessian=np.eye(2), gradient=np.array([5.0, -5.0]), low=0.5, high=2.0)
    assert held.step().tolist() == [0.0, 0.0]


@pytest.mark.parametrize("seed", range(6))
def test_inequalities_are_those_of_slsqp(seed: int) -> None:
    rng = np.random.default_rng(seed)
    root, g, C, c = rng.normal(size=(8, 5)), 3.0 * rng.normal(size=5), rng.normal(size=(7, 5)), rng.uniform(0, 1, 7)
    H = root.T @ root + np.eye(5)
    d, active = inequality_step(H, -np.linalg.solve(H, g), C, c)
    best = minimize(
        lambda x: 0.5 * x @ H @ x + g @ x,
        np.zeros(5),
        jac=lambda x: H @ x + g,
        constraints={"type": "ineq", "fun": lambda x: C @ x + c, "jac": lambda x: C},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 300},
    )
    assert (C @ d + c).min() > -1e-9 and (C @ d + c)[active] == pytest.approx(0.0, abs=1e-9)
    assert d == pytest.approx(best.x, abs=1e-4)  # SLSQP's own accuracy
    assert 0.5 * d @ H @ d + g @ d == pytest.approx(best.fun, rel=1e-6)


def test_a_direction_that_nothing_determines_is_left_alone() -> None:
    """An unknown without any influence, and two of which only the sum has one: the sum is found, by equal parts."""
    row = np.array([[1.0, 1.0, 0.0]])
    d = Quadratic(x=np.zeros(3), hessian=row.T @ row, gradient=-row[0] * 2.0).step()
    assert d == pytest.approx([1.0, 1.0, 0.0], abs=1e-6)


def test_what_is_not_definite_gets_a_small_part_of_its_diagonal() -> None:
    H = np.array([[2.0, 2.0, 0.0], [2.0, 2.0, 0.0], [0.0, 0.0, 0.0]])
    assert definite(H) == pytest.approx(H + np.diag([2.0 * RIDGE, 2.0 * RIDGE, 1.0 + RIDGE]), rel=1e-13)
    assert np.linalg.eigvalsh(definite(H))[0] == pytest.approx(2.0 * RIDGE, rel=1e-3)
    for size in (1e-20, 1.0, 1e20):  # units are no reason
        assert definite(size * np.eye(2)).tolist() == (size * np.eye(2)).tolist()
        assert definite(size * H[:2, :2])[0, 0] > size * 2.0


def test_the_shortest_step_is_one_that_rounding_does_not_hide() -> None:
    """A step of length l lowers the cost by l²: of 1e4, 1e-14 are 1e-5 squared."""
    model = Quadratic(x=np.zeros(2), hessian=np.diag([1e-6, 4e-6]), gradient=np.zeros(2))
    assert model.length(np.ones(2)) == pytest.approx(5e-6**0.5)
    assert model.shortest(1e-9) == 1e-9 and replace(model, cost=1e4).shortest(1e-9) == pytest.approx(1e-5)
    assert replace(model, cost=-1e4).shortest(1e-9) == pytest.approx(1e-5)  # −2 log p may be negative


@pytest.mark.parametrize("seed", range(4))
def test_bounds_and_inequalities_together(seed: int) -> None:
    """From a corner of x ≥ 0 with an inequality that just holds, but for rounding: SLSQP's step, and none but those on it are zero."""
    rng = np.random.default_rng(seed)
    A, b, model = drawn(seed, 4)
    C = rng.normal(size=(1, 4))
    d = replace(model, low=0.0, inequalities=(C, np.array([-1e-15]))).step()
    best = minimize(
        lambda x: 0.5 * np.sum((A @ x - b) ** 2),
        np.zeros(4),
        jac=lambda x: A.T @ (A @ x - b),
        bounds=[(0.0, None)] * 4,
        constraints={"type": "ineq", "fun": lambda x: C @ x, "jac": lambda x: C},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 300},
    )
    assert d == pytest.approx(best.x, abs=1e-5) and (d >= 0.0).all()  # SLSQP's own accuracy


def test_inequalities_that_contradict_each_other_leave_no_step() -> None:
    """x ≥ 1 and x ≤ 0."""
    d, active = inequality_step(np.eye(1), np.zeros(1), np.array([[1.0], [-1.0]]), np.array([-1.0, 0.0]))
    assert d.tolist() == [0.0] and not active.any()


def test_inequalities_that_hold_leave_the_step() -> None:
    H, d = np.eye(2), np.array([1.0, 2.0])
    step, active = inequality_step(H, d, np.eye(2), np.zeros(2))
    assert step is d and not active.any()
