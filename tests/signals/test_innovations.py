"""Innovations from both sides: polynomials are predicted exactly, steps are seen from one side, tails set the limit."""

import numpy as np
import pytest
from scipy.stats import norm

from veridyn.signals.innovations import (
    PREDICTORS,
    extreme_limit,
    forward_innovations,
    gauss_limit,
    innovations,
    weights,
)

TIME = np.arange(2000) / 200.0


@pytest.mark.parametrize(("count", "degree"), PREDICTORS)
def test_polynomials_of_the_degree_are_predicted(count: int, degree: int) -> None:
    k = np.arange(60.0) / 60.0
    x = np.polynomial.polynomial.polyval(k, np.arange(1.0, degree + 2.0))
    f = forward_innovations(x, weights(count, degree))
    assert len(f) == 60 - count
    np.testing.assert_allclose(f, 0.0, atol=1e-11)


def test_a_long_signal_is_predicted_as_its_parts_are() -> None:
    x = np.random.default_rng(0).normal(size=20_000)
    c = weights(6, 1)
    every = [x[k] - c @ x[k - 6 : k][::-1] for k in (6, 8191, 8192, 8198, 16_390, 19_999)]
    np.testing.assert_allclose(forward_innovations(x, c)[np.array([0, 8185, 8186, 8192, 16_384, 19_993])], every)


def test_smooth_signals_take_few_samples_and_noisy_ones_many() -> None:
    smooth = np.sin(2 * np.pi * 0.5 * TIME)
    noise = np.random.default_rng(1).normal(size=len(TIME))
    assert len(innovations(smooth).weights) <= 4
    assert len(innovations(noise).weights) >= 8
    assert len(innovations(np.cumsum(noise)).weights) == 1


def test_a_step_is_seen_from_one_side_and_a_spike_from_both() -> None:
    x = 0.1 * np.random.default_rng(2).normal(size=len(TIME))
    stepped, spiked = x + 5.0 * (TIME > 5.0), x.copy()
    spiked[1000] += 5.0
    seen = innovations(stepped)
    assert seen.forward[1001] > 4.0 and seen.both()[995:1008].max() < 0.6
    assert innovations(spiked).both()[1000] > 4.0


def test_the_scale_is_that_of_white_noise_around_each_sample() -> None:
    """Deviation of noise times the gain of the predictor; four times as much in the last fifth."""
    size = np.where(np.arange(20_000) < 16_000, 1.0, 4.0)
    seen = innovations(size * np.random.default_rng(3).normal(size=20_000))
    assert np.median(seen.scale[16_200:]) == pytest.approx(4.0 * seen.gain, rel=0.1)
    assert np.median(seen.scale[:15_800]) == pytest.approx(seen.gain, rel=0.1)


def test_no_scale_is_below_that_of_rounding() -> None:
    seen = innovations(np.round(np.sin(TIME), 2)).rounded(0.01)
    assert seen.scale.min() >= seen.gain * 0.01 / np.sqrt(12.0) * (1.0 - 1e-12)
    assert seen.rounding(0.01) == pytest.approx(0.005 * (1.0 + np.abs(seen.weights).sum()))


def test_gauss_limit_is_the_quantile_of_both_tails() -> None:
    assert gauss_limit(0.05) == pytest.approx(norm.isf(0.025))


def test_the_limit_is_above_the_largest_of_clean_samples_and_grows_with_their_tails() -> None:
    """Gauss's limit by SciPy for Gaussian noise in most records; the largest of none of 40 records of each tail is beyond its limit."""
    middle = []
    for degrees in (np.inf, 5.0, 3.0):
        limits = []
        for seed in range(40):
            rng = np.random.default_rng([seed, 7])
            u = np.abs(rng.standard_t(degrees, 4000) if np.isfinite(degrees) else rng.normal(size=4000))
            limits.append(extreme_limit(u, 1e-3))
            assert u.max() < limits[-1]
        middle.append(float(np.median(limits)))
    assert norm.isf(0.5e-3 / 4000) <= middle[0] < middle[1] < middle[2]


def test_samples_that_lie_apart_do_not_raise_the_limit() -> None:
    u = np.abs(np.random.default_rng(5).normal(size=4000))
    clean = extreme_limit(u, 1e-3)
    u[::20] = np.random.default_rng(6).uniform(20.0, 30.0, 200)  # one in twenty
    assert extreme_limit(u, 1e-3) < max(2.0 * clean, 20.0)
