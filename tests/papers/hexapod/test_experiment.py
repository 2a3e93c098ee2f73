"""Experiments with the hexapod: noise as stated, references that fit, control that works, feed-forward that helps."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.papers.hexapod.experiment import (
    RATE,
    SensorNoise,
    along,
    circle,
    controlled,
    machine,
    recorded,
    task,
    tracking_error,
)
from veridyn.papers.hexapod.machine import LEGS, hexapod, prior, truth


def test_noise_is_what_it_says() -> None:
    """Deviation, memory of one sample of the log at either rate, and correlation across drives, over 40 000 samples."""
    noise = SensorNoise()
    for faster in (1, 3):
        e = noise.draw(40_000 * faster, 2.0, np.random.default_rng(1), faster)[::faster]
        assert e.std(axis=0) == pytest.approx(2.0, rel=0.03)
        assert np.mean(e[1:] * e[:-1]) / np.mean(e * e) == pytest.approx(0.5, abs=0.02)
        assert np.corrcoef(e.T)[np.triu_indices(6, 1)] == pytest.approx(0.5, abs=0.03)
    assert noise.force_covariance[0] == pytest.approx([4, 2, 2, 2, 2, 2])


def test_the_machine_by_hand_has_the_geometry_of_the_file() -> None:
    described = hexapod()
    t = np.linspace(0.0, 2.0, 30)
    m = along(described, circle(0.5), t)
    own = [described.coordinates.index(leg) for leg in LEGS]
    assert np.abs(machine().lengths(circle(0.5)(t)[0]) - m.q[:, own]).max() < 1e-12


def test_a_perfect_model_leaves_little_to_control() -> None:
    """With the truth as feed-forward the drives do what the reference asks, but for reversals."""
    made, wanted = controlled(task(circle(1.2), 1.0 / 1.2, truth()), 2)
    asked = machine().forces(*circle(1.2)(made.t))
    second = slice(800, None)
    assert np.abs(made.lengths - wanted)[second].max() < 5e-5
    assert np.sqrt(np.mean((made.forces - asked)[second] ** 2)) < 1.0
    with pytest.raises(DataError, match=r"the period does not fit the sampling(.|\n)*1066.67 samples"):
        task(circle(0.9), 1.0 / 0.9)


def test_logs() -> None:
    noise, rng = SensorNoise(), np.random.default_rng(2)
    made = controlled(task(circle(1.2), 1.0 / 1.2, prior()), 3, noise, rng)[0]
    log = recorded(made, noise, rng, skip=0.5, fresh=False)
    assert log.lengths.shape == log.forces.shape == (640, 6) and log.t[1] == 1.0 / RATE
    assert np.array_equal(log.lengths, made.measured[480::3])
    fresh = recorded(made, noise, rng, skip=0.5)
    assert np.std(fresh.lengths - made.lengths[480::3]) == pytest.approx(noise.length, rel=0.1)
    assert np.std(log.forces - made.forces[480::3]) == pytest.approx(noise.force, rel=0.1)


@pytest.mark.slow
def test_a_true_model_tracks_best() -> None:
    """At the highest speed: at least five times better than control alone, twice better than the a-priori model.

    The quick form is test_feedforward of papers/hexapod/test_control.py, with the identified model.
    """
    error = {
        name: np.sqrt(np.mean(tracking_error(model, 1.2, SensorNoise(), np.random.default_rng(3)) ** 2))
        for name, model in (("none", None), ("prior", prior()), ("truth", truth()))
    }
    print({name: f"{1e6 * e:.1f} µm" for name, e in error.items()})
    assert error["truth"] < 0.2 * error["none"] and error["truth"] < 0.5 * error["prior"]
