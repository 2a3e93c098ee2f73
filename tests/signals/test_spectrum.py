"""Spectra against closed forms and Parseval; peaks with names; the cutoff where the noise begins."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest, kstwo

from veridyn.errors import DataError
from veridyn.signals.butterworth import Butterworth, zero_phase
from veridyn.signals.spectrum import (
    EXACT_UP_TO,
    cumulative_periodogram,
    exceeded,
    name_modes,
    peaks,
    power_spectrum,
    propose_cutoff,
    quantile,
)

RATE = 200.0


def test_density_integrates_to_the_variance():
    x = 2.0 * np.random.default_rng(1).standard_normal(40_000)
    s = power_spectrum(x, RATE, "N", segment=2.0)
    assert s.unit == "(N)^2/Hz"
    assert s.values.sum() * s.resolution == pytest.approx(4.0, rel=0.03)
    assert np.median(s.values[1:-1]) == pytest.approx(4.0 / (RATE / 2), rel=0.05)
    # `averages` is what the scatter of a white density shows: variance = mean²/averages.
    assert np.var(s.values[2:-2]) == pytest.approx(np.mean(s.values) ** 2 / s.averages, rel=0.3)


def two_modes(seconds=40.0, noise=0.02):
    t = np.arange(int(seconds * RATE)) / RATE
    rng = np.random.default_rng(3)
    x = 1.0 * np.sin(2 * np.pi * 1.43 * t) + 0.4 * np.sin(2 * np.pi * 12.73 * t + 1.0)
    return x + noise * rng.standard_normal(len(t))


def test_peaks_are_found_between_grid_frequencies_and_named():
    found = peaks(power_spectrum(two_modes(), RATE, "m", segment=40.0), count=2)
    assert [p.frequency for p in found] == pytest.approx([1.43, 12.73], abs=2e-3)
    # A sinusoid of amplitude A has the power A²/2, which a Hann window spreads over 1.5 grid steps of 1/40 Hz.
    assert [p.amplitude for p in found] == pytest.approx([A**2 / 2 * 40.0 / 1.5 for A in (1.0, 0.4)], rel=0.1)
    assert all(p.prominence > 0.9 * p.amplitude for p in found)
    # A sinusoid under a Hann window is 1.44 grid steps wide at half power.
    assert [p.bandwidth for p in found] == pytest.approx([1.44 / 40.0] * 2, rel=0.15)
    named = name_modes(found, {"wheel hop": 12.7, "heave": 1.4, "pitch": 1.6}, tolerance=0.05)
    assert [p.name for p in named] == ["heave", "wheel hop"]
    assert named[1].summary().startswith("wheel hop: 12.73 Hz, 2.")
    assert [p.name for p in name_modes(found, {"roll": 5.0})] == ["", ""]


def test_a_name_goes_to_the_nearest_peak_only():
    t = np.arange(8000) / RATE
    s = power_spectrum(np.sin(2 * np.pi * 12.0 * t) + np.sin(2 * np.pi * 13.0 * t), RATE, segment=40.0)
    named = name_modes(peaks(s, 2), {"wheel hop": 12.9})
    assert {round(p.frequency): p.name for p in named} == {12: "", 13: "wheel hop"}


def test_bandwidth_of_a_resonance_is_twice_its_damping():
    """White noise through a second-order resonance: half-power width 2ζf₀, here 2·0.05·10 = 1 Hz."""
    rng = np.random.default_rng(8)
    frequency = np.fft.rfftfreq(200_000, 1 / RATE)
    response = 1.0 / (10.0**2 - frequency**2 + 2j * 0.05 * 10.0 * frequency)
    x = np.fft.irfft(np.fft.rfft(rng.standard_normal(200_000)) * response)
    (top,) = peaks(power_spectrum(x, RATE, "m", segment=10.0), count=1)
    assert top.frequency == pytest.approx(10.0, abs=0.15)
    assert top.bandwidth == pytest.approx(1.0, rel=0.2)


def test_cutoff_is_proposed_where_noise_begins():
    rng = np.random.default_rng(4)
    band = zero_phase(rng.standard_normal(40_000), RATE, Butterworth(10.0, order=8))
    s = power_spectrum(band + 0.01 * rng.standard_normal(40_000), RATE, "m", segment=5.0)
    proposal = propose_cutoff(s)
    # The order-8 double pass sinks by 1e-4 in amplitude from 10 Hz to 18 Hz: (18/10)^16 = 1.2e4.
    assert 10.0 < proposal.cutoff < 20.0
    assert proposal.floor == pytest.approx(1e-4 / (RATE / 2), rel=0.1)
    assert proposal.summary().startswith("cutoff 1")


def test_a_line_of_the_mains_is_not_the_signal_unless_asked_for():
    rng = np.random.default_rng(6)
    band = zero_phase(rng.standard_normal(40_000), RATE, Butterworth(5.0, order=8))
    mains = 0.1 * np.sin(2 * np.pi * 50.0 * np.arange(40_000) / RATE)
    s = power_spectrum(band + mains + 0.01 * rng.standard_normal(40_000), RATE, segment=5.0)
    assert 5.0 < propose_cutoff(s).cutoff < 10.0
    assert propose_cutoff(s, lines=True).cutoff == pytest.approx(50.0, abs=0.61)


def test_no_signal_and_no_floor_are_said():
    rng = np.random.default_rng(5)
    with pytest.raises(DataError, match="nothing rises above the noise"):
        propose_cutoff(power_spectrum(rng.standard_normal(20_000), RATE))
    wide = zero_phase(rng.standard_normal(20_000), RATE, Butterworth(78.0, order=12))
    with pytest.raises(DataError, match=r"never reaches a noise floor.\nExpected noise alone above 7\d"):
        propose_cutoff(power_spectrum(wide + 1e-3 * rng.standard_normal(20_000), RATE))
    with pytest.raises(DataError, match=r"the spectrum is too coarse.\nExpected at least 21 frequencies, found 11"):
        propose_cutoff(power_spectrum(wide, RATE, segment=0.1))


def test_flat_zero_has_no_peaks_and_bad_input_is_refused():
    assert peaks(power_spectrum(np.zeros(100), RATE)) == ()
    with pytest.raises(DataError, match="one signal at a time"):
        power_spectrum(np.zeros((100, 2)), RATE)
    with pytest.raises(DataError, match="segment does not fit the signal"):
        power_spectrum(np.zeros(100), RATE, segment=10.0)
    with pytest.raises(DataError, match="at least 16 samples"):
        power_spectrum(np.zeros(4), RATE)


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
