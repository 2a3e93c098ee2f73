"""Spectra against closed forms and Parseval; peaks with names; the cutoff where the noise begins."""

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.signals.butterworth import Butterworth, zero_phase
from veridyn.signals.spectrum import name_modes, peaks, power_spectrum, propose_cutoff

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
