"""Score tests against textbook formulas and against their own null distribution."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.special import stdtr
from scipy.stats import norm

from veridyn.identify.diagnosis.score_test import Projected, best_power, limit_of, squared

N, R, P = 400, 2, 5


def equations(seed: int) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    """A regressor (N, R, P) of slow columns, and white noise (N, R)."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0.0, 1.0, N)
    waves = [np.sin(2 * np.pi * (k + 1) * t + rng.uniform(0, 6)) for k in range(R * P)]
    return np.array(waves).reshape(R, P, N).transpose(2, 0, 1), rng.normal(size=(N, R)), rng


def test_size_and_score_are_those_of_least_squares_with_the_column_appended() -> None:
    """ĉ of the partitioned regression (Frisch, Waugh, Lovell) is that of the whole one."""
    W, noise, rng = equations(1)
    s = np.cumsum(rng.normal(size=(N, R)), axis=0)
    y = W @ np.arange(1.0, P + 1.0) + 0.05 * s + noise
    found = Projected.of(W, y).tested(s[:, :, None])
    A = np.concatenate([W, s[:, :, None]], axis=2).reshape(-1, P + 1)
    whole = np.linalg.lstsq(A, y.ravel(), rcond=None)[0]
    assert found.sizes[0] == pytest.approx(whole[-1], rel=1e-9)
    white = np.sqrt(np.linalg.inv(A.T @ A)[-1, -1])
    assert found.sigma[0] == pytest.approx(white, rel=0.25)  # its noise is estimated, and allowed to be correlated
    least = np.linalg.lstsq(W.reshape(-1, P), y.ravel(), rcond=None)[0]
    effects = Projected.of(W, y).effects(s[:, :, None])[:, 0]
    assert np.allclose(least - whole[:-1], effects * whole[-1])  # what leaving the column out does to the parameters


def test_a_column_that_the_others_explain_adds_nothing() -> None:
    W, noise, rng = equations(2)
    p, s = Projected.of(W, noise), rng.normal(size=(N, R, 1))
    for known in (W @ np.arange(1.0, P + 1.0), np.zeros((N, R))):
        again = p.with_columns(known[:, :, None])
        assert np.array_equal(again.residual, p.residual) and again.tested(s).z == pytest.approx(p.tested(s).z)


def test_the_residual_with_several_columns_is_that_of_least_squares() -> None:
    W, noise, rng = equations(6)
    S = np.cumsum(rng.normal(size=(N, R, 3)), axis=0)
    A = np.concatenate([W, S], axis=2).reshape(-1, P + 3)
    y = S.sum(axis=2) + noise
    left = y.ravel() - A @ np.linalg.lstsq(A, y.ravel(), rcond=None)[0]
    p = Projected.of(W, y)
    assert np.allclose(p.unexplained(p.beside(S)).ravel(), left, atol=1e-9)


def test_a_column_that_the_regressor_explains_cannot_be_seen() -> None:
    W, noise, _ = equations(2)
    hidden = W @ np.array([1.0, -2.0, 0.5, 0.0, 1.0])
    found = Projected.of(W, noise + 100.0 * hidden).tested(hidden[:, :, None])
    assert found.z[0] == 0.0
    assert found.chance[0] == 1.0
    assert np.isinf(found.sigma[0])


def test_a_column_that_was_taken_in_is_explained() -> None:
    W, noise, rng = equations(3)
    s = np.cumsum(rng.normal(size=(N, R)), axis=0)
    p = Projected.of(W, W.sum(axis=2) + s + noise)
    assert abs(p.tested(s[:, :, None]).z[0]) > 20.0
    assert p.with_columns(s[:, :, None]).tested(s[:, :, None]).z[0] == 0.0


def test_a_large_damage_does_not_hide_a_small_one() -> None:
    """A ramp of a hundred deviations in the residual, and a second column of some ten: the noise of the second is that without the ramp."""
    W, noise, rng = equations(7)
    small, ramp = rng.normal(size=(N, R)), np.linspace(-1.0, 1.0, N)[:, None] * np.ones(R)
    y = W.sum(axis=2) + 40.0 * ramp + 0.5 * small + noise
    found = Projected.of(W, y).tested(np.stack([small, ramp], axis=2))
    alone = Projected.of(W, y - 40.0 * ramp).tested(np.stack([small, ramp], axis=2))
    assert found.sigma[0] == pytest.approx(alone.sigma[0], rel=0.1)
    assert abs(found.z[0]) > 5.0


def test_scores_of_one_row_are_those_of_its_columns_alone() -> None:
    """Of two lines each by itself, and of their sum."""
    W, noise, rng = equations(8)
    lines, sums = rng.normal(size=(N, 2)), np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    S = np.zeros((N, R, 3))
    S[:, 1] = lines @ sums
    p = Projected.of(W, W.sum(axis=2) + noise)
    rest = p.beside(S).reshape(-1, 3)
    wanted = p.residual.ravel() @ rest / np.sqrt(np.mean(p.residual**2) * (rest**2).sum(axis=0))
    assert p.scores_of_row(1, lines, sums) == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("memory", [0.0, 0.8])
def test_scores_of_noise_alone_are_as_rare_as_stated(memory: float) -> None:
    """Smooth columns beside white and beside first-order noise: a tail of 1 % holds at most 3 % of 600 scores (binomial: 1.0 ± 0.4 %
    for white noise; correlated noise over a log of 400 samples is known to be a little worse)."""
    low = 0
    for seed in range(120):
        W, noise, rng = equations(100 + seed)
        noise = lfilter([1.0], [1.0, -memory], noise, axis=0)
        S = np.cumsum(rng.normal(size=(N, R, 5)), axis=0)
        low += int(np.count_nonzero(Projected.of(W, W.sum(axis=2) + noise).tested(S).chance < 0.01))
    assert low <= 0.03 * 600


def test_one_sample_that_holds_a_column_is_no_evidence() -> None:
    """A column with all its weight on one sample takes that sample's noise away; its variance is that of white noise all the same."""
    W, noise, _ = equations(4)
    s = np.zeros((N, R, 1))
    s[200, 0, 0] = 1.0
    assert abs(Projected.of(W, noise).tested(s).z[0]) < 4.0


def test_badly_conditioned_regressors_lose_no_digits() -> None:
    W, noise, rng = equations(5)
    W[:, :, 1] = W[:, :, 0] + 1e-6 * W[:, :, 1]
    s = np.cumsum(rng.normal(size=(N, R)), axis=0)
    y = W @ np.ones(P) + noise
    A = np.concatenate([W, s[:, :, None]], axis=2).reshape(-1, P + 1)
    whole = np.linalg.lstsq(A, y.ravel(), rcond=None)[0]
    assert Projected.of(W, y).tested(s[:, :, None]).sizes[0] == pytest.approx(whole[-1], rel=1e-6)


def test_fewer_equations_than_columns_leave_nothing() -> None:
    rng = np.random.default_rng(8)
    W = rng.normal(size=(4, 1, 6))
    assert np.abs(Projected.of(W, rng.normal(size=(4, 1))).residual).max() < 1e-12


def test_what_is_left_beside_further_columns_is_the_same_in_steps() -> None:
    W, y, rng = equations(3)
    columns = rng.normal(size=(N, R, 4))
    columns[:, :, 3] = columns[:, :, 0] + 1e-6 * columns[:, :, 1]  # nothing of it is left beside the first
    before = Projected.of(W, y)
    after = before.with_columns(columns[:, :, :1])
    found = after.further(before.beside(columns), before, squared(columns))
    assert found == pytest.approx(after.beside(columns), abs=1e-10)
    assert np.array_equal(found.any(axis=(0, 1)), [False, True, True, False])


def test_limits_of_several_tests_and_power() -> None:
    assert limit_of(0.01, 1) == pytest.approx(0.01)
    assert 1.0 - (1.0 - limit_of(0.01, 20)) ** 20 == pytest.approx(0.01)
    assert best_power(0.0) == pytest.approx(0.01)
    assert best_power(float(norm.isf(0.005))) == pytest.approx(0.5, abs=1e-6)


def test_a_variance_that_all_samples_show_has_their_degrees_of_freedom() -> None:
    """Where the long-run variance is no more than that of uncorrelated samples, z is Student's t of all samples: as often as not in white
    noise, and never in noise with a memory along columns that change slower."""
    rng = np.random.default_rng(5)
    W = rng.normal(size=(300, 2, 3))
    noise = rng.normal(size=(400, 2))
    slow = lfilter([1.0], [1.0, -0.95], noise, axis=0)[100:]
    smooth = np.sin(np.linspace(0.0, 6.0, 300)[:, None, None] * np.arange(1.0, 4.0)) * np.ones((1, 2, 1))
    for y, S, low, high in ((noise[100:], rng.normal(size=(300, 2, 40)), 0.3, 0.8), (slow, smooth, 0.0, 0.0)):
        scores = Projected.of(W, y).tested(S)
        share = np.mean(scores.chance == 2.0 * stdtr(300.0, -np.abs(scores.z)))
        assert low <= share <= high
