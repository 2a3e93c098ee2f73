"""Periods averaged: the noise they show, and whether they repeat."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from veridyn.errors import DataError, DataWarning
from veridyn.signals.frequency import averaged, samples_of_period
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
