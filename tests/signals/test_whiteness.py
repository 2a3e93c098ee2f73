"""The level of the test on white noise, its power on coloured noise, and the frequency axis."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest, kstwo

from veridyn.errors import DataError
from veridyn.signals.whiteness import EXACT_UP_TO, cumulative_periodogram, exceeded, quantile


@pytest.mark.parametrize("size", [51, 200])
def test_white_noise_is_rejected_at_the_level_asked_for(size):
    rng = np.random.default_rng(0)
    p = np.array([cumulative_periodogram(rng.standard_normal(size), 10.0).p_value for _ in range(1500)])
    assert np.mean(p < 0.05) == pytest.approx(0.05, abs=4 * np.sqrt(0.05 * 0.95 / 1500))
    assert kstest(p, "uniform").pvalue > 1e-3


def test_statistic_is_scipys_on_the_same_numbers():
    x = np.random.default_rng(1).standard_normal(300)
    w = cumulative_periodogram(x, 50.0)
    reference = kstest(w.cumulative[:-1], "uniform")
    assert w.statistic == pytest.approx(reference.statistic, rel=1e-12)
    assert w.p_value == pytest.approx(reference.pvalue, rel=1e-6)
    assert (w.p_value >= 0.05) == (w.statistic <= w.band)


def test_a_hidden_sinusoid_steps_at_its_own_frequency():
    rate, size = 250.0, 2000
    t = np.arange(size) / rate
    x = np.random.default_rng(2).standard_normal(size) + 0.5 * np.sin(2 * np.pi * 40.0 * t)
    w = cumulative_periodogram(x, rate)
    assert not w.is_white
    assert w.frequency[np.argmax(np.diff(w.cumulative)) + 1] == pytest.approx(40.0)
    assert (w.frequency[0], w.frequency[-1]) == pytest.approx((rate / size, rate / 2 - rate / size))
    assert w.cumulative[-1] == pytest.approx(1.0)
    assert w.expected[-1] == 1.0
    assert "not white (furthest at 4" in w.summary() or "not white (furthest at 3" in w.summary()


def test_coloured_noise_is_found_and_white_noise_passes():
    rng = np.random.default_rng(3)
    white = rng.standard_normal(1000)
    assert cumulative_periodogram(white, 100.0).is_white
    assert cumulative_periodogram(white + 1e3, 100.0).is_white
    assert not cumulative_periodogram(np.convolve(white, [1.0, 0.5], "valid"), 100.0).is_white
    assert cumulative_periodogram(white, 100.0).summary().startswith("white: distance 0.0")


def test_bad_input_is_refused():
    with pytest.raises(DataError, match="it is constant"):
        cumulative_periodogram(np.full(100, 3.0), 10.0)
    with pytest.raises(DataError, match="one signal at a time"):
        cumulative_periodogram(np.zeros((100, 2)), 10.0)
    with pytest.raises(DataError, match="not a probability"):
        cumulative_periodogram(np.arange(100.0), 10.0, level=5.0)


@pytest.mark.parametrize(
    "n", [1, 2, 3, 7, 20, 100, 140, EXACT_UP_TO, EXACT_UP_TO + 1, 5000, pytest.param(40_000, marks=pytest.mark.slow)]
)
def test_probabilities_are_those_of_scipy(n: int) -> None:
    """To 1e-6 for many numbers, where both are series, to rounding for few; one is far out wherever it is not zero."""
    d = np.linspace(0.0, min(1.0, 4.0 / np.sqrt(n)), 41)
    found, expected = np.array([exceeded(float(x), n) for x in d]), kstwo.sf(d, n)
    assert found == pytest.approx(expected, abs=1e-12 if n <= 140 else 1e-6)
    far = (expected < 1e-3) & (expected > 1e-250)
    assert found[far] == pytest.approx(expected[far], rel=1e-4)
    assert (np.diff(found) <= 1e-6).all()


@pytest.mark.parametrize("n", [2, 9, 140, 700, 20_000])
@pytest.mark.parametrize("level", [0.3, 0.05, 1e-3])
def test_quantiles_invert_it(n: int, level: float) -> None:
    d = quantile(level, n)
    assert exceeded(d, n) == pytest.approx(level, rel=1e-9)
    assert d == pytest.approx(kstwo.isf(level, n), rel=1e-5)


def test_one_and_two_numbers_by_hand() -> None:
    """One number: D ≥ d unless it is within d of both ends. Two: P(D < d) = 2 (2d − ½)² below a half (Birnbaum, 1952)."""
    assert exceeded(0.7, 1) == pytest.approx(2.0 * 0.3, abs=1e-14)
    assert exceeded(0.4, 2) == pytest.approx(1.0 - 2.0 * (0.8 - 0.5) ** 2, abs=1e-14)
    assert (exceeded(0.0, 5), exceeded(1.0, 5)) == (1.0, 0.0)


def test_counting() -> None:
    """Of 4,000 samples of 30 uniform numbers the share beyond the quantile of 10 % is 10 %, within four deviations of the count."""
    u = np.sort(np.random.default_rng(0).random((4000, 30)), axis=1)
    k = np.arange(1, 31)
    D = np.maximum(k / 30 - u, u - (k - 1) / 30).max(axis=1)
    assert (quantile(0.1, 30) <= D).mean() == pytest.approx(0.1, abs=4 * np.sqrt(0.09 / 4000))
