"""The noise of a step against the matrix exponential, and how a covariance spreads against products of whole matrices."""

import numba
import numpy as np
import pytest
from scipy.linalg import expm, solve_continuous_lyapunov

from veridyn.observe.filters.covariance import spread, step_noise
from veridyn.observe.process_noise import van_loan


@numba.njit
def noise(A, W, dt):
    n = len(A)
    Q = np.zeros((n, n))
    step_noise(A, W, dt, Q, np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n)))
    return Q


@numba.njit
def spread_over(P, F, Q, dt):
    n = len(P)
    out = np.full((n, n), np.nan)
    spread(P, F, Q, dt, np.full((n, n), np.nan), np.full((n, n), np.nan), out)
    return out


@pytest.mark.parametrize("size", range(1, 12))
def test_a_covariance_spreads_as_by_whole_products(size: int) -> None:
    """F P Fᵀ + Q for every size and remainder, where some states are known and F has zeros; nothing of the rooms before it is read."""
    rng = np.random.default_rng(size)
    for known in (0.0, 0.3, 0.8, 1.0):
        root = rng.normal(size=(size, max(1, size - 2)))  # semi-definite
        P, F = root @ root.T, rng.normal(size=(size, size)) * (rng.random((size, size)) < 0.6)
        still = rng.random(size) < known
        P[still], P[:, still] = 0.0, 0.0
        Q = np.diag(rng.random(size))
        found, expected = spread_over(P, F, Q, 0.1), F @ P @ F.T + Q
        assert (found == found.T).all()
        assert np.abs(found - expected).max() <= 1e-14 * max(1.0, np.abs(expected).max())
        assert np.array_equal(spread_over(P, F, Q, 0.0), np.tril(P) + np.tril(P, -1).T)  # no time, no change


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
def test_it_is_van_loans_integral(size: int, scale: float) -> None:
    rng = np.random.default_rng(size)
    A = scale * (rng.normal(size=(size, size)) - 1.5 * np.eye(size))
    root = rng.normal(size=(size, size))
    W = root @ root.T
    for dt in (1e-3, 0.02):
        expected = van_loan(A, W, dt)[1]
        assert np.abs(noise(A, W, dt) - expected).max() <= 1e-11 * np.abs(expected).max()


def test_a_chain_of_integrators_in_closed_form() -> None:
    """White acceleration of density 1: Q = [[dt³/3, dt²/2], [dt²/2, dt]]."""
    A, dt = np.array([[0.0, 1.0], [0.0, 0.0]]), 0.3
    found = noise(A, np.diag([0.0, 1.0]), dt)
    np.testing.assert_allclose(found, [[dt**3 / 3, dt**2 / 2], [dt**2 / 2, dt]], rtol=1e-14)


def test_a_stiff_system_by_lyapunovs_equation() -> None:
    """Q = X − Φ X Φᵀ with A X + X Aᵀ = −W: where errors die within a step Van Loan's exponential has lost its digits."""
    rng = np.random.default_rng(8)
    A = 400.0 * (0.5 * rng.normal(size=(4, 4)) - 2.0 * np.eye(4))
    W, dt = np.eye(4), 0.02
    X, Phi = solve_continuous_lyapunov(A, -W), expm(A * dt)
    expected = X - Phi @ X @ Phi.T
    assert np.abs(noise(A, W, dt) - expected).max() <= 1e-11 * np.abs(expected).max()
