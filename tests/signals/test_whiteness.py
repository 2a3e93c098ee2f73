"""The level of the test on white noise, its power on coloured noise, and the frequency axis."""

import numpy as np
import pytest
from scipy.stats import kstest

from veridyn.errors import DataError
from veridyn.signals.whiteness import autocorrelation, cumulative_periodogram, is_white


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
    assert is_white(white, 100.0)
    assert is_white(white + 1e3, 100.0)
    assert not is_white(np.convolve(white, [1.0, 0.5], "valid"), 100.0)
    assert cumulative_periodogram(white, 100.0).summary().startswith("white: distance 0.0")


def test_autocorrelation_in_closed_form():
    rng = np.random.default_rng(4)
    x = rng.standard_normal(500)
    a = autocorrelation(x, 20.0, lags=30)
    c = x - x.mean()
    reference = np.correlate(c, c, "full")[499:530] / (c @ c)
    assert a.values == pytest.approx(reference, abs=1e-13)
    assert a.lag[:3] == pytest.approx([0.0, 0.05, 0.1])
    assert a.band == pytest.approx(1.959964 / np.sqrt(500), rel=1e-6)
    assert a.outside < 0.2
    # A first-order moving average 1, 0.5 has ρ₁ = 0.5/1.25 = 0.4 and nothing after it.
    moving = autocorrelation(np.convolve(rng.standard_normal(100_001), [1.0, 0.5], "valid"), 1.0, 5)
    assert moving.values == pytest.approx([1.0, 0.4, 0, 0, 0, 0], abs=0.015)
    assert "of 5 lags outside" in moving.summary()


def test_bad_input_is_refused():
    with pytest.raises(DataError, match="it is constant"):
        is_white(np.full(100, 3.0), 10.0)
    with pytest.raises(DataError, match="one signal at a time"):
        is_white(np.zeros((100, 2)), 10.0)
    with pytest.raises(DataError, match="not a probability"):
        is_white(np.arange(100.0), 10.0, level=5.0)
    with pytest.raises(DataError, match="1 to 99, found 100"):
        autocorrelation(np.arange(100.0), 1.0, lags=100)
