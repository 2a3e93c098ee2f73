"""Ways to filter, on a small arm with noise on its positions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from identify.smooth_arm import path, truth
from studies.small_experiment import experiment
from veridyn.identify.estimators.noise_model import NoiseModel
from veridyn.mechanics.inverse import inverse_dynamics
from veridyn.model.motion import Motion
from veridyn.report.excitation import filter_blocks
from veridyn.studies.filters import EXPLICIT, FILTERED_FORCES, RAW, compared


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
    table, figure = filter_blocks(found)
    assert len(table.rows) == len(found.rows) and len(figure.plots) == 3
