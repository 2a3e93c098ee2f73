"""Many trials of a small arm: estimators scatter as they say."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from identify.smooth_arm import path, truth
from papers.hexapod.small_experiment import experiment
from veridyn.identify.estimators.gauss_markov import NoiseModel
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.model.motion import Motion
from veridyn.papers.hexapod.comparison import (
    EXPLICIT,
    FILTERED_FORCES,
    MISCUT,
    MISCUT_PERIOD,
    RAW,
    averages,
    compared,
    leaking,
    reconstructed,
    trials,
)
from veridyn.papers.hexapod.trials import filter_blocks
from veridyn.signals.frequency import dft_filter


def test_estimators_scatter_as_they_say() -> None:
    """60 trials: a scatter has a deviation of 9 % for each parameter; their median far less."""
    made, true, _ = experiment()
    told: list[float] = []
    found = trials(made, true, 60, np.random.default_rng(0), lambda task, done, total: told.append(done))
    print({name: float(np.median(found.honesty(name))) for name in found.values})
    for name in found.values:
        assert 0.88 < np.median(found.honesty(name)) < 1.12
        assert np.abs(found.bias(name)).max() < 0.6
    assert np.median(found.empirical("markov") / found.empirical("ols")) < 0.8
    assert np.median(found.empirical("diagonal") / found.empirical("ols")) < 1.0
    assert np.median(found.ignoring.mean(axis=0) / found.empirical("rows")) < 0.75
    assert told[0] == 0.0 and told[-1] == 60.0


def test_threads_change_nothing() -> None:
    """25 trials, which are three chunks: the same numbers on three threads, in the same order."""
    made, true, _ = experiment()
    alone = trials(made, true, 25, np.random.default_rng(4))
    with ThreadPoolExecutor(3) as pool:
        shared = trials(made, true, 25, np.random.default_rng(4), executor=pool)
    for name in alone.values:
        assert shared.values[name] == pytest.approx(alone.values[name], rel=1e-12)
        assert shared.stated[name] == pytest.approx(alone.stated[name], rel=1e-12)
    assert shared.ignoring.shape == alone.ignoring.shape == (25, len(true))


def test_more_periods_know_more() -> None:
    """Deviations of the mean fall with √N_m: eight periods against two, by what one trial states."""
    stated = []
    for periods in (2, 8):
        made, true, _ = experiment(periods)
        stated.append(trials(made, true, 2, np.random.default_rng(1)).stated["markov"].mean(axis=0))
    assert np.median(stated[0] / stated[1]) == pytest.approx(2.0, rel=0.1)


def test_averages_and_regressors() -> None:
    made, _, motion = experiment()
    found = averages(made, 3, np.random.default_rng(2))
    assert len(found) == 3 and found[0].coordinates == pytest.approx(motion.q, abs=1e-4)
    assert found[0].force_covariance == pytest.approx(found[1].force_covariance, rel=0.5)
    A = reconstructed(made, found, lambda x, rate: dft_filter(x, rate, 5))
    exact = made.plant.regressor(np.stack([motion.q, motion.qd, motion.qdd]))
    assert A.shape == (3, *exact.shape)
    assert np.sqrt(np.mean((A[0] - exact) ** 2)) < 0.05 * np.sqrt(np.mean(exact**2))


def test_ways_are_judged_by_what_they_predict() -> None:
    made, _, motion = experiment()
    noisy = replace(made, position_noise=NoiseModel.white(1e-6 * np.eye(4)))
    t = np.linspace(0.0, 10.0, 200)
    other = Motion(t, *path(5).at(t))
    A = made.plant.regressor(np.stack([other.q, other.qd, other.qdd]))
    found = compared(noisy, motion.qdd, A, inverse_dynamics(truth(), other), 4, np.random.default_rng(0))
    exact = found.of(EXPLICIT.format(h=5))
    for row in found.rows:
        print(f"{row.name:45s} {row.prediction:8.3f} {row.acceleration:8.4f}")
    assert exact.acceleration < 1.000001 * min(
        row.acceleration for row in found.rows
    )  # the fit (18) is the same to rounding
    assert found.of(RAW).prediction > exact.prediction
    assert found.of(EXPLICIT.format(h=4)).prediction > 3.0 * exact.prediction
    assert found.of(FILTERED_FORCES.format(h=5)).acceleration == exact.acceleration
    assert found.best_time_domain.name.startswith("Butterworth")
    spectrum = found.spectra[EXPLICIT.format(h=5)]
    assert spectrum.shape == (251, 3) and spectrum[6:, 0].max() < 1e-12 < spectrum[5, 0]
    assert found.of(MISCUT_PERIOD.format(h=5)).acceleration > 20.0 * exact.acceleration
    table, figure, leakage = filter_blocks(found)
    assert len(table.rows) == len(found.rows) and len(figure.plots) == len(leakage.plots) == 3


def test_a_wrong_period_leaks_as_the_sum_of_a_geometric_series_says() -> None:
    """Σ e^{2πj(ν − k/M)n} over M samples, of both exponentials of a cosine that has three turns in 200 samples of 202."""
    right, wrong = leaking(np.cos(2.0 * np.pi * 3.0 * np.arange(200) / 200), 100.0).values()
    assert right[1][3] == pytest.approx([1.0, 2.0 * np.pi * 1.5, (2.0 * np.pi * 1.5) ** 2])
    assert np.delete(right[1][:, 0], 3).max() < 1e-12
    M = round(200 * (1.0 + MISCUT))
    phase = np.exp(2j * np.pi * (np.array([3.0, -3.0])[:, None] / 200 - np.arange(M // 2 + 1) / M))
    expected = np.abs(((phase**M - 1.0) / (phase - 1.0)).sum(axis=0)) / M
    expected[0] *= 0.5
    np.testing.assert_allclose(wrong[1][:, 0], expected, atol=1e-12)
    assert wrong[1][:, 0].min() > 1e-5  # every bin has something
