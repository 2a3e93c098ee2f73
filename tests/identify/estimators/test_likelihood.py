"""Maximum likelihood from whole periods."""

from __future__ import annotations

import numpy as np
import pytest

from identify.smooth_arm import path, truth
from veridyn.errors import DataError, IdentificationError
from veridyn.identify.estimate import identify
from veridyn.identify.estimators.harmonics import PeriodicData
from veridyn.identify.estimators.likelihood import Likelihood, averaged_data, force_noise
from veridyn.identify.estimators.noise_model import NoiseModel
from veridyn.mechanics.inverse import inverse_dynamics
from veridyn.model.motion import Motion
from veridyn.signals.frequency import averaged

RATE, N, PERIODS = 50.0, 500, 3
S = np.array([0.6, 0.6, 0.2, 0.05])
C = (0.5 * np.eye(4) + 0.5) * np.outer(S, S)
NOISE = NoiseModel(0.75 * C, 0.5 * np.eye(4)[None])
LENGTH = 1e-4  # rad


def record(seed: int, length: float = LENGTH) -> Motion:
    """Three periods of five harmonics at 0.1 Hz, with noise on positions and forces."""
    rng = np.random.default_rng(seed)
    t = np.arange(PERIODS * N) / RATE
    exact = Motion(t, *path().at(t))
    gamma = inverse_dynamics(truth(), exact)
    q = exact.q + length * rng.normal(size=exact.q.shape)
    return Motion(t, q, np.zeros_like(q), np.zeros_like(q), forces=gamma + NOISE.drawn(len(t), rng)[0])


def data(seed: int) -> PeriodicData:
    return averaged_data(truth(), record(seed), "all", Likelihood(0.1, order=2))[0]


def test_through_the_door() -> None:
    scores = []
    for seed in range(6):
        fit = identify(truth(), record(seed), Likelihood(0.1, highest=8, order=2))
        scores.append((fit.values - fit.base.reduce(truth().parameters.values)) / fit.sigma)
        assert any("5 harmonics by BIC" in note for note in fit.notes)
        assert fit.estimator == "maximum likelihood" and fit.residual_sigma == pytest.approx(1.0, abs=0.1)
    assert 0.7 < np.mean(np.square(scores)) < 1.4


def test_noise_of_forces_from_periods() -> None:
    kept = averaged(np.asarray(record(0).forces), RATE, 0.1)
    found = force_noise(kept, 3)
    assert found.order == 1 and found.coefficients[0] == pytest.approx(0.5 * np.eye(4), abs=0.06)
    assert found.autocovariances(0)[0] == pytest.approx(C, rel=0.15)


def test_refused_by_name() -> None:
    with pytest.raises(IdentificationError, match=r"no default settings\.\nExpected Likelihood\(frequency=…\)"):
        identify(truth(), record(0), "likelihood")
    with pytest.raises(DataError, match="does not fit the sampling"):
        identify(truth(), record(0), Likelihood(0.11))
    with pytest.raises(DataError, match="only one whole period"):
        identify(truth(), record(0)[:600], Likelihood(0.1))
    with pytest.raises(DataError, match="one periodic motion"):
        identify(truth(), [record(0), record(1)], Likelihood(0.1))
    with pytest.raises(
        IdentificationError, match=r"Likelihood.criterion: .*\nExpected 'bic' or 'aic' or 'cost', found 'dic'"
    ):
        Likelihood(0.1, criterion="dic")
