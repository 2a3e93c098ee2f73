"""What data leave of a prior: the closed form of linear least squares, parts that disagree, and directions that stay open."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.arrays import Array
from veridyn.inference.posterior import (
    DETERMINED_INFORMATION,
    DETERMINED_SHARE,
    PARTS,
    open_directions,
    parts_agreement,
    posterior_covariance,
)
from veridyn.inference.residual_problem import ResidualProblem
from veridyn.inference.search import Damping, StopRules, search

EXACT = StopRules(iterations=50, tolerance=1e-9)


def test_a_linear_problem_with_a_prior_is_its_exact_posterior() -> None:
    """N(m, S) and y = X p + e: mean m + (XᵀX + S⁻¹)⁻¹ Xᵀ(y − X m), and the covariance from the information over the priors."""
    rng = np.random.default_rng(0)
    X, mean, sigma = rng.normal(size=(40, 3)), np.array([1.0, -2.0, 0.5]), np.array([0.1, 3.0, 0.7])
    y = X @ [1.2, -1.0, 0.0] + rng.normal(size=40)
    start = ResidualProblem(residuals=lambda p: X @ p - y, mean=mean, sigma=sigma).at(mean)
    assert start is not None
    end = search(start, EXACT, Damping(), where="line", hint="none")
    A = X.T @ X + np.diag(sigma**-2.0)
    assert end.point.x == pytest.approx(mean + np.linalg.solve(A, X.T @ (y - X @ mean)), rel=1e-8)
    C = np.outer(sigma, sigma) * posterior_covariance(np.outer(sigma, sigma) * end.point.information)
    assert pytest.approx(np.linalg.inv(A), rel=1e-7) == C


def line(change: float) -> tuple[Array, list[tuple[Array, Array]]]:
    """Information and quarters of a line through 2000 samples whose slope changes by `change` deviations of a sample in the last one."""
    rng = np.random.default_rng(0)
    X = np.stack([np.ones(2000), rng.normal(size=2000)], axis=1)
    y = rng.normal(size=2000) + change * X[:, 1] * (np.arange(2000) >= 1500)
    r = y - X @ np.linalg.solve(X.T @ X + np.eye(2), X.T @ y)
    return X.T @ X, list(zip(np.split(X, PARTS), np.split(r, PARTS), strict=True))


def test_parts_that_disagree_widen_it() -> None:
    same, other = (parts_agreement(*line(change)) for change in (0.0, 0.5))
    assert same is not None and same.widening == 1.0
    assert other is not None and other.widening > 5.0


def test_the_pull_of_a_prior_is_no_disagreement() -> None:
    """A prior that pulls the slope 5 deviations of the data away, all quarters alike: B stays that without it, to rounding of the fit."""
    rng = np.random.default_rng(1)
    X = np.stack([np.ones(2000), rng.normal(size=2000)], axis=1)
    y = rng.normal(size=2000)
    free = np.linalg.lstsq(X, y, rcond=None)[0]
    pulled = free + np.array([0.0, 5.0 / np.sqrt(2000.0)])
    found = [
        parts_agreement(X.T @ X, [(X[k::PARTS], (y - X @ z)[k::PARTS]) for k in range(PARTS)]) for z in (free, pulled)
    ]
    assert found[0] is not None and found[1] is not None
    assert found[1].ratio == pytest.approx(found[0].ratio, rel=1e-9)


def test_data_that_determine_nothing_are_not_compared() -> None:
    X = np.full((40, 1), 0.1)  # an information of 0.4, less than DETERMINED_INFORMATION
    assert parts_agreement(X.T @ X, [(X[k::PARTS], np.ones(10)) for k in range(PARTS)]) is None


@pytest.mark.parametrize("widening", [1.0, 6.0])
def test_errors_have_the_covariance(widening: float) -> None:
    """z ~ N(0, 1) and y = J z + e with var e = B, estimated as if it were 1: 40 000 draws show a variance to 1 % (√(2/40 000))."""
    rng = np.random.default_rng(0)
    J = np.array([[1.5, 0.3], [0.2, 0.4], [0.0, 0.6]])
    G = J.T @ J
    z = rng.standard_normal((40_000, 2))
    y = z @ J.T + np.sqrt(widening) * rng.standard_normal((40_000, 3))
    error = y @ J @ np.linalg.inv(G + np.eye(2)) - z
    assert np.cov(error.T) == pytest.approx(posterior_covariance(G, widening), abs=0.03 * widening)


def test_information_that_just_determines() -> None:
    C = posterior_covariance(np.diag([DETERMINED_INFORMATION]))
    assert np.sqrt(C[0, 0]) == pytest.approx(DETERMINED_SHARE)


@pytest.mark.parametrize("widening", [0.5, 1.0, 2.0, 6.0])
def test_the_covariance_is_that_of_the_formula(widening: float) -> None:
    A = np.random.default_rng(6).normal(size=(5, 3))
    G = A.T @ A
    inverse = np.linalg.inv(G + np.eye(3))
    assert posterior_covariance(G, widening) == pytest.approx(inverse @ (widening * G + np.eye(3)) @ inverse, rel=1e-12)


def test_half_the_deviation_takes_four_times_the_information() -> None:
    """One part of it is the prior's, three are the data's."""
    assert pytest.approx(3.0) == DETERMINED_INFORMATION


def test_a_sum_is_seen_and_a_difference_is_open() -> None:
    """x + y measured 100 times, z by itself, u not at all: x and y are open together, u by itself, z is not."""
    X = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]])
    C = posterior_covariance(100.0 * X.T @ X)
    directions = open_directions(C)
    assert sorted(sorted(one.members.tolist()) for one in directions) == [[0, 1], [3]]
    assert [one.left for one in directions] == pytest.approx([1.0, 1.0])
    assert open_directions(posterior_covariance(100.0 * np.eye(2))) == ()


def test_directions_and_members_come_with_the_largest_first() -> None:
    """Deviations of 0.9 along v and 0.1 across it, and 0.7 by itself. The second unknown is determined (0.3), and owes v nine tenths."""
    v, w = np.array([0.3122, 0.9500]), np.array([-0.9500, 0.3122])
    C = np.zeros((3, 3))
    C[1, 1] = 0.49
    C[np.ix_([0, 2], [0, 2])] = 0.81 * np.outer(v, v) + 0.01 * np.outer(w, w)
    assert C[0, 0] < DETERMINED_SHARE**2 < C[2, 2]
    directions = open_directions(C)
    assert [one.members.tolist() for one in directions] == [[2, 0], [1]]
    assert [one.left for one in directions] == pytest.approx([0.9, 0.7], rel=1e-3)
