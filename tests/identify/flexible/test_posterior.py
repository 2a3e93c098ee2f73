"""Estimates with priors under autocorrelated noise: the closed form where all is linear and white, and coverage where it is not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from veridyn.arrays import Array
from veridyn.identify.flexible.posterior import (
    ColouredPosterior,
    bounded,
    most_likely,
    pooled,
    posterior,
    whitenings,
    with_measurement,
)


def test_white_noise_gives_the_closed_form():
    """p = m + (XᵀX/s² + P⁻¹)⁻¹ Xᵀ(y − X m)/s² for white noise of the variance that is found."""
    rng = np.random.default_rng(3)
    t = np.arange(0, 60, 0.1)
    X = np.stack([np.sin(t), np.cos(0.7 * t)], axis=1)
    mean, sigma = np.array([0.5, 0.0]), np.array([0.3, 2.0])
    y = X @ np.array([1.0, -1.0]) + 0.2 * rng.normal(size=len(t))
    found = posterior(lambda p: X @ p, y, whitenings([t]), mean, sigma, np.full(2, 1e-3))
    s, _, white = found.noise
    assert white == 1.0 and abs(s - 0.2) < 0.02 and found.converged
    A = X.T @ X / s**2 + np.diag(1 / sigma**2)
    np.testing.assert_allclose(found.values, mean + np.linalg.solve(A, X.T @ (y - X @ mean) / s**2), rtol=1e-6)
    np.testing.assert_allclose(found.covariance, np.linalg.inv(A), rtol=1e-4)


def test_deviations_allow_for_memory():
    """Of 60 fits under first-order noise with a memory of 1 s, at least 87 % of the true values lie within 2 σ (95 % less three
    standard errors of a share of 120)."""
    rng = np.random.default_rng(4)
    t, inside = np.arange(0, 20, 0.2), []
    X = np.stack([np.sin(t), np.ones_like(t)], axis=1)
    L = np.linalg.cholesky(np.exp(-np.abs(t[:, None] - t)) + 1e-9 * np.eye(len(t)))
    noises = whitenings([t])
    for _ in range(60):
        y = X @ [1.0, 0.3] + 0.3 * L @ rng.normal(size=len(t))
        found = posterior(lambda p: X @ p, y, noises, np.zeros(2), np.full(2, 10.0), np.full(2, 1e-3))
        inside += list(np.abs(found.values - [1.0, 0.3]) < 2 * found.sigma)
    assert np.mean(inside) > 0.87


def made(values: list[float], covariance: Array, evidence: float) -> ColouredPosterior:
    noise = (1.0, 1.0, 1.0)
    return ColouredPosterior(
        values=np.array(values), covariance=covariance, noise=noise, converged=True, evidence=evidence
    )


def test_deviations_contain_the_choice_of_a_model():
    """Two models of equal evidence, one unknown of variance 1 each and 4 apart: 1 + ½ 4² about the first."""
    one, other = (made([x], np.eye(1), -3.0) for x in (2.0, 6.0))
    best, share, found = most_likely([one, other])
    assert best == 0 and share.tolist() == [0.5, 0.5] and found.values == [2.0]
    np.testing.assert_allclose(found.covariance, [[9.0]])


def test_estimates_of_one_number_are_pooled():
    """Their weighted mean; two that differ by 2 σ√2 do so by chance in 4.55 %, by 6 σ√2 in 2e-9, and then σ/√2 is six times as wide."""
    mean, sigma, chance = pooled(np.array([1.0, 4.0]), np.array([1.0, 2.0]))
    assert (mean, sigma) == pytest.approx((1.6, 0.8**0.5)) and chance == pytest.approx(0.1797, abs=1e-4)
    assert pooled(np.array([0.0, 8.0**0.5]), np.ones(2))[1:] == pytest.approx((0.5**0.5, 0.0455), abs=1e-4)
    assert pooled(np.array([0.0, 72.0**0.5]), np.ones(2))[1] == pytest.approx(6.0 * 0.5**0.5)
    assert pooled(np.array([3.0]), np.array([0.1])) == pytest.approx((3.0, 0.1, 1.0))


def test_a_measurement_more_of_one_number():
    """As the information of both, added."""
    C = np.array([[4.0, 1.0], [1.0, 2.0]])
    found = with_measurement(made([1.0, 2.0], C, 0.0), 1, 5.0, 0.5)
    A = np.linalg.inv(C) + np.diag([0.0, 4.0])
    np.testing.assert_allclose(found.covariance, np.linalg.inv(A))
    np.testing.assert_allclose(found.values, np.linalg.solve(A, np.linalg.solve(C, [1.0, 2.0]) + np.array([0.0, 20.0])))


def test_a_bound_moves_what_is_correlated_with_it():
    """The most likely p ≥ low of a Gaussian, against SLSQP; data far beyond a bound are named and widen the covariance by the shift."""
    rng = np.random.default_rng(6)
    root = rng.normal(size=(4, 4))
    C, free = root @ root.T + 0.1 * np.eye(4), np.array([0.5, -1.0, 0.3, -0.2])
    low = np.array([0.0, 0.0, -np.inf, 0.0])
    H = np.linalg.inv(C)
    best = minimize(
        lambda p: 0.5 * (p - free) @ H @ (p - free),
        np.ones(4),
        jac=lambda p: H @ (p - free),
        bounds=[(b if np.isfinite(b) else None, None) for b in low],
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-12},
    )
    assert bounded(free, C, low) == pytest.approx(best.x, abs=1e-5)
    t = np.arange(0, 60, 0.1)
    X, mean, sigma = np.stack([np.sin(t), np.cos(0.7 * t)], axis=1), np.zeros(2), np.full(2, 2.0)
    y = X @ np.array([-1.0, 0.5]) + 0.2 * rng.normal(size=len(t))
    args = (lambda p: X @ p, y, whitenings([t]), mean, sigma, np.full(2, 1e-3), None)
    plain, held = posterior(*args), posterior(*args, np.array([0.0, -np.inf]))
    assert held.values[0] == 0.0 and held.beyond[0][0] == pytest.approx(plain.values[0], rel=0.05)
    assert held.sigma[0] > abs(plain.values[0]) and not posterior(*args, np.array([-2.0, 0.0])).beyond


def test_a_measurement_moves_what_is_at_a_bound_from_where_data_have_it() -> None:
    """N((−1, 0), [[1, .8], [.8, 1]]), the first at least zero; the second is measured to be 1: the first is −.2, and not .8 − .64."""
    C, free = np.array([[1.0, 0.8], [0.8, 1.0]]), np.array([-1.0, 0.0])
    low = np.array([0.0, -np.inf])
    held = ColouredPosterior(
        values=bounded(free, C, low), covariance=C, noise=(1.0, 1.0, 1.0), converged=True, evidence=0.0, free=free
    )
    np.testing.assert_allclose(held.values, [0.0, 0.8], atol=1e-9)
    found = with_measurement(held, 1, 1.0, 1e-9)
    np.testing.assert_allclose(found.values, [-0.2, 1.0], atol=1e-9)
