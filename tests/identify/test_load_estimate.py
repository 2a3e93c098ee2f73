"""A load from base parameters: consistency against a semidefinite solver, deviations against random draws."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from veridyn.errors import IdentificationError
from veridyn.identify.load_estimate import LoadEstimate, consistent_load
from veridyn.spatial.inertia import broken_law, from_centre, pseudo_inertia, six

TYPICAL = np.array([0.01] * 6 + [0.1] * 3 + [1.0])
LOAD = from_centre(1.2, (0.03, -0.02, 0.08), np.diag([0.004, 0.005, 0.003]))


def estimate(x: np.ndarray, covariance: np.ndarray, determined: np.ndarray | None = None) -> LoadEstimate:
    return LoadEstimate(
        body="hand",
        free=x,
        values=x,
        covariance=covariance,
        determined=np.ones(10, dtype=bool) if determined is None else determined,
        shift=0.0,
        mass_budget={},
    )


def by_clarabel(K: np.ndarray, values: np.ndarray, covariance: np.ndarray) -> float:
    """The smallest distance by cvxpy and Clarabel."""
    x = cp.Variable(10)
    units = [pseudo_inertia(u) for u in np.eye(10)]
    P = sum(x[k] * TYPICAL[k] * units[k] for k in range(10))
    D = np.diag([10.0, 10.0, 10.0, 1.0])  # scales of lengths, for the solver
    W = np.linalg.inv(np.linalg.cholesky(covariance))
    problem = cp.Problem(cp.Minimize(cp.sum_squares(W @ K @ cp.multiply(TYPICAL, x) - W @ values)), [D @ P @ D >> 0])
    return float(np.sqrt(problem.solve(solver=cp.CLARABEL)))


@pytest.mark.parametrize("seed", range(6))
def test_the_nearest_possible_load_is_that_of_a_semidefinite_solver(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(14, 10)) / TYPICAL
    C = np.linalg.inv(A.T @ A) * 0.3
    wrong = (
        LOAD + TYPICAL * rng.normal(size=10) * (0.3 if seed else 0.0) - np.array([0.02] * 6 + [0.0] * 4) * (seed > 0)
    )
    K = np.eye(10) if seed < 4 else rng.normal(size=(7, 10)) * TYPICAL.max() / TYPICAL
    values, covariance = K @ wrong, K @ C @ K.T
    x, distance = consistent_load(K, values, covariance, TYPICAL)
    assert broken_law(x, 1e-6) is None
    assert distance == pytest.approx(by_clarabel(K, values, covariance), rel=1e-4, abs=1e-4)
    if seed == 0:
        assert x == pytest.approx(LOAD, rel=1e-9) and distance == 0.0


def test_deviations_of_centre_and_inertia_are_those_of_random_draws() -> None:
    rng = np.random.default_rng(1)
    B = rng.normal(size=(10, 10)) * TYPICAL[:, None] * 0.003
    load = estimate(LOAD, B @ B.T)
    drawn = LOAD + rng.standard_normal((4_000, 10)) @ B.T
    each = [estimate(x, B @ B.T) for x in drawn]
    assert load.centre == pytest.approx([0.03, -0.02, 0.08]) and np.diag(load.inertia) == pytest.approx(
        [0.004, 0.005, 0.003]
    )
    assert load.centre_sigma == pytest.approx(np.std([e.centre for e in each], axis=0), rel=0.06)
    assert load.inertia_sigma == pytest.approx(np.std([six(e.inertia) for e in each], axis=0), rel=0.06)
    assert "1.2 ±" in load.summary()


def test_what_is_not_determined_has_no_deviation() -> None:
    determined = np.array([False] * 6 + [True] * 4)
    load = estimate(LOAD, np.eye(10), determined)
    assert not load.has_inertia and np.isnan(load.inertia_sigma).all()


def test_a_search_that_fails_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped after one step of Newton's, the search is not on the central path."""
    monkeypatch.setattr("veridyn.identify.load_estimate.MAX_STEPS", 1)
    wrong = LOAD - np.array([0.05] * 6 + [0.0] * 4)
    with pytest.raises(IdentificationError, match="did not converge"):
        consistent_load(np.eye(10), wrong, np.diag(TYPICAL**2) * 1e-4, TYPICAL)
