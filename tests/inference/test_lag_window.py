"""Lag windows: sums written out, Andrews' rule, what a fit takes out of a window, and the long-run variance of first-order noise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from veridyn.inference.lag_window import andrews, andrews_each, bartlett, lags_for, released, trapezoid


@pytest.mark.parametrize("a", [0.0, 0.5, 0.8])
def test_scores_of_first_order_noise_add_up_to_its_long_run_variance(a: float) -> None:
    """h_t = a h_(t−1) + e_t, e of variance 1: var Σ h = N/(1 − a)². Of N = 200,000 Bartlett's sum over 100 lags has a relative deviation of
    √(4 L/3 N) = 2.6 % and a bias of 2 a/(L (1 − a²)) = 4 % at most, the trapezoid over twice as many one of 5 % and hardly a bias."""
    h = lfilter([1.0], [1.0, -a], np.random.default_rng(0).normal(size=200_000))[:, None]
    lags = max(lags_for([h]), 100)
    wide, narrow = bartlett(h, 2 * lags + 1), bartlett(h, lags)
    assert bartlett(h, lags)[0, 0] / len(h) == pytest.approx((1.0 - a) ** -2.0, rel=0.1)
    assert trapezoid(wide, narrow)[0, 0] / len(h) == pytest.approx((1.0 - a) ** -2.0, rel=0.1)


def test_each_score_by_itself_has_the_memory_of_the_rule_for_one() -> None:
    h = np.random.default_rng(2).normal(size=(500, 4))
    h[:, 1] = np.convolve(h[:, 1], np.ones(5), "same")
    h[:, 2] = h[:, 2].cumsum()
    h[:, 3] = 0.0
    square, product = (h**2).sum(axis=0), (h[1:] * h[:-1]).sum(axis=0)
    alone = [andrews(square[k : k + 1], product[k : k + 1], 500)[0] for k in range(4)]
    assert andrews_each(square, product, 500).tolist() == alone
    assert alone[2] == 50 and alone[3] == 0


@pytest.mark.parametrize("window", [4, 12, 40])
def test_two_widths_are_the_trapezoid(window: int) -> None:
    """2 S_W − S_{W/2} = Σ k h_t h_sᵀ with k = min(1, 2 (1 − |l|/W)), where no direction falls below a quarter of S_W."""
    h = np.random.default_rng(0).normal(size=(400, 3)).cumsum(axis=0)[::7] * 0.1 + np.random.default_rng(1).normal(
        size=(58, 3)
    )
    lag = np.abs(np.subtract.outer(np.arange(len(h)), np.arange(len(h))))
    want = h.T @ np.clip(2.0 * (1.0 - lag / window), 0.0, 1.0) @ h
    wide, narrow = bartlett(h, window - 1), bartlett(h, window // 2 - 1)
    assert pytest.approx(want, rel=1e-9) == 2.0 * wide - narrow
    share = np.linalg.eigvals(np.linalg.solve(wide, want)).real
    if share.min() > 0.25:
        assert trapezoid(wide, narrow) == pytest.approx(want, rel=1e-9)


def test_a_direction_that_loses_its_sign_keeps_a_quarter() -> None:
    wide, narrow = np.diag([1.0, 1.0, 0.0]), np.diag([1.0, 5.0, 0.0])
    assert trapezoid(wide, narrow) == pytest.approx(np.diag([1.0, 0.25, 0.0]), abs=1e-12)
    assert np.array_equal(trapezoid(np.zeros((2, 2)), np.zeros((2, 2))), np.zeros((2, 2)))


def test_what_a_fit_takes_out_of_a_window_is_given_back() -> None:
    """White residuals of a constant over N samples, windows of N/4: E of S_W is 1 − Σ H²/W of the variance, exactly."""
    rng = np.random.default_rng(0)
    N, W = 80, 20
    u = rng.normal(size=(40000, N))
    h = (u - u.mean(axis=1, keepdims=True)) / np.sqrt(N)
    line = np.concatenate([np.zeros((len(h), W)), h, np.zeros((len(h), W))], axis=1).cumsum(axis=1)
    found = float((((line[:, W:] - line[:, :-W]) ** 2).sum(axis=1) / W).mean())
    ends = np.arange(1, N + W)
    H = (np.minimum(ends, N) - np.maximum(ends - W, 0)) / N
    Q = float((H**2).sum() / W)
    assert found == pytest.approx(1.0 - Q, abs=0.01)
    assert released(np.array([[found]]), np.array([[Q]]))[0, 0] == pytest.approx(1.0, abs=0.02)
    assert released(np.eye(1), np.eye(1))[0, 0] == pytest.approx(5.0)  # no more than leverage .8 is believed


def test_lags_of_several_scores_are_those_of_andrews_written_out() -> None:
    """(6.4): α = Σ 4 ρ² σ⁴/((1 − ρ)⁶ (1 + ρ)²)/Σ σ⁴/(1 − ρ)⁴, σ² the variance of the news; L = 1.1447 (α n)^⅓."""
    rho, variance, n = np.array([0.9, -0.3, 0.5]), np.array([1.0, 40.0, 5.0]), 20_000
    news = variance * (1.0 - rho**2)
    above = sum(4.0 * r**2 * v**2 / ((1.0 - r) ** 6 * (1.0 + r) ** 2) for r, v in zip(rho, news, strict=True))
    below = sum(v**2 / (1.0 - r) ** 4 for r, v in zip(rho, news, strict=True))
    expected = int(np.ceil(1.1447 * (above / below * n) ** (1.0 / 3.0)))
    assert andrews(n * variance, n * rho * variance, n) == (expected, False)


def test_a_memory_beyond_099_counts_as_099() -> None:
    """α = 4 ρ²/(1 − ρ²)² at ρ = ±.99, above which Andrews' rule has no value; 10⁷ samples, so that the share of the log does not cut."""
    alpha, samples = 4.0 * 0.99**2 / (1.0 - 0.99**2) ** 2, 10_000_000
    expected = int(np.ceil(1.1447 * (alpha * samples) ** (1.0 / 3.0)))
    square, product = np.full(4, 1e-3), 1e-3 * np.array([0.999, -0.999, 1.0, 0.0])
    assert andrews_each(square, product, samples).tolist() == [expected, expected, expected, 0]
    for k in range(3):
        assert andrews(square[k : k + 1], product[k : k + 1], samples) == (expected, False)


def test_stretches_have_no_neighbours_across_their_ends() -> None:
    """Products of neighbours are summed within each of two stretches, by loops."""
    parts = [np.cumsum(np.random.default_rng(seed).normal(size=(n, 2)), axis=0) for seed, n in ((1, 300), (2, 500))]
    square, product = np.zeros(2), np.zeros(2)
    for h in parts:
        for k in range(len(h)):
            square += h[k] ** 2
            product += h[k] * h[k - 1] if k else 0.0
    assert lags_for(parts) == andrews(square, product, 800)[0] > 0
