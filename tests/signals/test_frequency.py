"""Periods averaged: the noise they show, and whether they repeat."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.signal import lfilter

from veridyn.errors import DataError, DataWarning
from veridyn.signals.butterworth import Butterworth
from veridyn.signals.frequency import (
    advanced,
    amplitudes,
    averaged,
    dft_filter,
    fourier_fit,
    samples_of_period,
    unfiltered,
    zero_phase_periodic,
)
from veridyn.signals.trajectory import FourierTrajectory

RATE, FREQUENCY, N = 160.0, 0.32, 500
rng = np.random.default_rng(7)
MOTION = FourierTrajectory(np.ones(2), 0.1 * rng.normal(size=(2, 5)), 0.1 * rng.normal(size=(2, 5)), FREQUENCY)


def record(periods: int, sigma: float = 0.0, error: float = 0.0, seed: int = 0) -> np.ndarray:
    t = np.arange(periods * N) / RATE
    return MOTION.at(t / (1.0 + error))[0] + sigma * np.random.default_rng(seed).normal(size=(periods * N, 2))


def test_the_mean_and_the_full_covariance() -> None:
    """Covariance of known noise with correlation 0.6: its estimate from 20 periods has a deviation of about 1 %."""
    C = np.array([[1.0, 1.2], [1.2, 4.0]]) * 1e-4
    noise = np.random.default_rng(1).multivariate_normal(np.zeros(2), C, 20 * N)
    found = averaged(record(20) + noise, RATE, FREQUENCY, names=("a", "b"))
    assert found.covariance == pytest.approx(C, rel=0.05)
    assert found.mean == pytest.approx(record(1), abs=5.0 * np.sqrt(4e-4 / 20))
    assert (found.periods, found.samples) == (20, N) and found.frequency == pytest.approx(FREQUENCY)
    assert found.part(["b"]).covariance == pytest.approx(C[1:, 1:], rel=0.05)


def test_the_factor_is_that_of_the_facts() -> None:
    """1/(N (N_m − 1)) is unbiased: over 400 records of two periods the mean variance is the true one; 1/(N N_m − 1) would halve it."""
    found = []
    for seed in range(400):
        x = np.random.default_rng(seed).normal(size=(40, 1))
        found.append(float(averaged(x, 20.0, 1.0).covariance[0, 0]))
    assert np.mean(found) == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("periods", [2, 4, 10])
@pytest.mark.parametrize("error", [0.0, 1e-4, -2e-3])
def test_a_wrong_period_is_seen_and_measured(periods: int, error: float) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = averaged(record(periods, 1e-4, error), RATE, FREQUENCY)
    assert found.period_error == pytest.approx(error, abs=max(5.0 * found.period_error_sigma, 0.05 * abs(error)))
    assert found.repeats == (error == 0.0)
    assert [w.category for w in told] == ([] if error == 0.0 else [DataWarning])


def test_the_stated_deviation_of_the_period_is_honest() -> None:
    scores = []
    for seed in range(60):
        found = averaged(record(4, 1e-3, seed=seed), RATE, FREQUENCY)
        scores.append(found.period_error / found.period_error_sigma)
    assert 0.7 < np.std(scores) < 1.3


def test_leakage_grows_with_the_error_of_the_period() -> None:
    assert averaged(record(6, 1e-4), RATE, FREQUENCY).leakage < 3.0
    with pytest.warns(DataWarning, match="do not repeat"):
        assert averaged(record(6, 1e-4, 5e-3), RATE, FREQUENCY).leakage > 1e3


def test_noise_with_a_memory_is_no_leakage() -> None:
    """First-order noise with .9 is 360 times as strong at low frequencies as at high ones, whatever the period is."""
    x, rng = record(8, 1e-6), np.random.default_rng(5)
    noise = lfilter([np.sqrt(1.0 - 0.9**2)], [1.0, -0.9], rng.standard_normal(x.shape), axis=0)
    found = averaged(x + 1e-4 * noise, RATE, FREQUENCY)  # warnings are errors
    assert found.repeats and found.leakage < 5.0


def test_faults_by_name() -> None:
    with pytest.raises(DataError, match="does not fit the sampling"):
        averaged(record(3), RATE, 0.3)
    with pytest.raises(DataError, match="only one whole period"):
        averaged(record(1), RATE, FREQUENCY)
    with pytest.raises(DataError, match="only one whole period"):
        averaged(record(2), RATE, FREQUENCY, skip=10)
    with pytest.raises(DataError, match="log of 'force l4' is shorter"):
        averaged({"force l1": np.zeros(1000), "force l4": np.zeros(900)}, RATE, FREQUENCY)
    with pytest.raises(DataError, match="not finite"):
        averaged({"a": np.full(1000, np.nan)}, RATE, FREQUENCY)
    assert samples_of_period(160.0, 0.32) == 500


drawn = np.random.default_rng(3)
THREE_JOINTS = FourierTrajectory(
    np.ones(3),
    0.1 * drawn.normal(size=(3, 5)),
    0.1 * drawn.normal(size=(3, 5)),
    FREQUENCY,
)
T = np.arange(N) / RATE
EXACT = THREE_JOINTS.at(T)


def test_the_explicit_filter_is_exact_on_what_it_keeps() -> None:
    for found, exact in zip(dft_filter(EXACT[0], RATE, 5), EXACT, strict=True):
        assert found == pytest.approx(exact, abs=1e-11)


@pytest.mark.parametrize("seconds", [0.0, 0.5 / 960.0, -0.3, 2.0])
def test_a_period_some_time_later(seconds: float) -> None:
    """A band-limited signal between its samples, as its own formula has it."""
    assert advanced(EXACT[0], RATE, seconds) == pytest.approx(THREE_JOINTS.at(T + seconds)[0], abs=1e-12)


def test_explicit_and_implicit_filters_are_one() -> None:
    """Fact 4.5: equal to 5e-14 on one period of uniform samples at the nominal frequency, with noise or without."""
    x = EXACT[0] + 1e-3 * np.random.default_rng(0).normal(size=EXACT[0].shape)
    fit = fourier_fit(x, T, FREQUENCY, 5)
    for a, b in zip(dft_filter(x, RATE, 5), fit.at(T), strict=True):
        assert a == pytest.approx(b, abs=1e-11)
    assert fit.sine == pytest.approx(THREE_JOINTS.sine, abs=5e-4)


def test_a_wrong_frequency_spoils_both() -> None:
    """Fact 4.5: 0.5 % of the period give 1 to 3.4 % of the acceleration, roughly in proportion."""
    errors = []
    for share in (0.0025, 0.005):
        slow = THREE_JOINTS.at(T / (1.0 + share))[0]
        truth = THREE_JOINTS.at(T / (1.0 + share))[2] / (1.0 + share) ** 2
        both = (dft_filter(slow, RATE, 5)[2], fourier_fit(slow, T, FREQUENCY, 5).at(T)[2])
        errors += [np.sqrt(np.mean((found - truth) ** 2) / np.mean(truth**2)) for found in both]
    assert errors[0] == pytest.approx(errors[1], rel=1e-6) and errors[2] == pytest.approx(errors[3], rel=1e-6)
    assert 0.005 < errors[2] < 0.05 and errors[2] / errors[0] == pytest.approx(2.0, rel=0.15)


def test_the_printed_sign_of_17_is_wrong() -> None:
    """With + for the cosines, as printed, the ν_k of (14) have the wrong sign: velocities are wrong by the size of their sine part."""
    k = 2.0 * np.pi * FREQUENCY * np.arange(1, 6)
    angle = T[:, None] * k
    B = np.column_stack([np.ones(N), np.sin(angle) / k, np.cos(angle) / k])
    Xi = np.linalg.lstsq(B, EXACT[0], rcond=None)[0]

    def velocity(nu: np.ndarray) -> np.ndarray:
        return np.cos(angle) @ Xi[1:6] + np.sin(angle) @ nu

    size = np.sqrt(np.mean(EXACT[1] ** 2))
    assert np.sqrt(np.mean((velocity(Xi[6:]) - EXACT[1]) ** 2)) > 0.5 * size
    assert velocity(-Xi[6:]) == pytest.approx(EXACT[1], abs=1e-10)
    kw = 2.0 * np.pi * FREQUENCY * np.arange(1, 6)
    written = FourierTrajectory(THREE_JOINTS.centre, Xi[1:6].T / kw, Xi[6:].T / kw, FREQUENCY)  # (14) integrated
    assert written.at(T)[2] == pytest.approx(EXACT[2], abs=1e-9)


def test_time_domain_filters_join_the_ends() -> None:
    x, xd, xdd = zero_phase_periodic(EXACT[0], RATE, Butterworth(20.0))
    assert x == pytest.approx(EXACT[0], abs=1e-6) and xdd == pytest.approx(EXACT[2], abs=1e-4)
    raw = unfiltered(EXACT[0], RATE)
    k = 2.0 * np.pi * FREQUENCY * 5 / RATE
    assert np.abs(raw[2] - EXACT[2]).max() < 2.0 * (1.0 - (np.sin(k) / k) ** 2) * np.abs(EXACT[2]).max()
    assert xd == pytest.approx(EXACT[1], abs=1e-5)


def test_amplitudes() -> None:
    assert amplitudes(EXACT[0])[1:6] == pytest.approx(np.hypot(THREE_JOINTS.sine, THREE_JOINTS.cosine).T, abs=1e-12)
    assert amplitudes(EXACT[0])[0] == pytest.approx(np.ones(3))


def test_too_many_harmonics_are_refused() -> None:
    with pytest.raises(DataError, match="no such harmonics"):
        dft_filter(np.zeros(10), 1.0, 5)


def test_the_printed_cut_offs_of_a_fine_tuning_are_one_filter() -> None:
    """Table II of paper 002 tunes f_c to 1.6182 and 1.6195 Hz. By an explicit DFT low-pass (own code, with f_c in Hz) both keep the bins up
    to 1.6 Hz of .32 Hz each, so every filtered sample, and with it every cost, is the same number; one bin further it is not."""
    x = record(1, sigma=1e-3, seed=3)

    def low_pass(cut_off: float) -> np.ndarray:
        X = np.fft.rfft(x, axis=0)
        X[np.fft.rfftfreq(N, 1.0 / RATE) > cut_off] = 0.0
        return np.fft.irfft(X, N, axis=0)

    assert np.array_equal(low_pass(1.6182), low_pass(1.6195))
    assert not np.array_equal(low_pass(1.6182), low_pass(1.6182 + FREQUENCY))
    assert low_pass(1.6182) == pytest.approx(dft_filter(x, RATE, 5)[0], abs=1e-12)
