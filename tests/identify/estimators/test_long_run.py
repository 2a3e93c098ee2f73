"""Long-run covariances: the weights by their definition, and what a short log takes away."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.identify.estimators.long_run import andrews, andrews_each, bartlett, released, trapezoid, window_of


def test_windows_are_multiples_of_four() -> None:
    assert [window_of(lags) for lags in (0, 1, 3, 4, 7, 8, 40)] == [1, 4, 4, 8, 8, 12, 44]


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
