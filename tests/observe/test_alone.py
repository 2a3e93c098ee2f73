"""Coordinates by their encoders alone, and defaults that begin there: encoder-only logs that were lost before."""

from __future__ import annotations

import warnings
from importlib import import_module

import numpy as np
import pytest
from benchmarks.encoders import clean, closing_lines, hung, model, moving, untold
from benchmarks.foreign.serial import PENDULUM, THREE_JOINTS

import veridyn as vd
from veridyn.errors import VeridynWarning
from veridyn.observe.alone import GATE, coordinates_alone, lost_tracks, reading_cost, reading_costs
from veridyn.observe.measurements import measurements_of
from veridyn.observe.observer_setup import machine_system


def test_a_refused_reading_costs_as_much_as_one_on_the_gate() -> None:
    assert reading_cost(GATE * np.array([0.25, 1.0, 100.0])) == pytest.approx(GATE * np.array([0.25, 1.0, 1.0]))


def test_an_acceleration_that_walks_is_found_again() -> None:
    """The density of a made walk, within the decade that is searched."""
    rng, h = np.random.default_rng(0), 0.005
    a = np.cumsum(np.sqrt(100.0 * h) * rng.standard_normal((4000, 3)), axis=0)
    y = np.cumsum(h * np.cumsum(h * a, axis=0), axis=0) + 1e-3 * rng.standard_normal(a.shape)
    system = machine_system(model(THREE_JOINTS.file), vd.ObserveSettings())[0]
    t = h * np.arange(4000)
    values = {f"encoder_q{k + 1}": y[:, k] for k in range(3)}
    log = vd.Experiment.from_arrays(t, values, dict.fromkeys(values, "rad"), "walk")
    found = coordinates_alone(system, measurements_of(system, log))
    assert [one.place for one in found] == [0, 1, 2]
    assert all(10.0 <= one.density <= 1000.0 for one in found)


def test_encoders_are_asked_once_in_one_observation(monkeypatch: pytest.MonkeyPatch) -> None:
    door, asked = import_module("veridyn.observe.noise_choice"), []
    monkeypatch.setattr(door, "coordinates_alone", lambda *a: asked.append(1) or coordinates_alone(*a))
    drive, _, _ = moving(PENDULUM, 1, False)
    t, q = drive.t[:200], drive.log["encoder_q1"].values[:200]
    log = vd.Experiment.from_arrays(t, {"encoder_q1": q}, {"encoder_q1": "rad"}, "short")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VeridynWarning)
        vd.observe(model(PENDULUM.file), log, "ekf", vd.ObserveSettings(start="readings"))
    assert len(asked) == 1


def test_a_model_that_lost_track_is_named_before_all_else() -> None:
    """Forces that hardly walk, on an arm whose torques nobody measures."""
    drive, _, _ = moving(THREE_JOINTS, 3, False)
    given = vd.ObserveSettings(process_noise=vd.ProcessNoise(force=1e-3), start="readings", model_error="off")
    with pytest.warns(VeridynWarning):
        found = vd.observe(model(THREE_JOINTS.file), drive.log, "ekf", given)
    assert found.made_by is not None
    alone = coordinates_alone(found.system, found.made_by.readings)
    lost = lost_tracks(alone, found.estimates)
    assert lost and "does not explain the motion from" in str(lost[0])
    assert np.isfinite(reading_costs(alone[0], found.estimates)).all()


@pytest.mark.slow
def test_defaults_hold_on_encoders_alone() -> None:
    """The benchmark's quick form: NIS .6 to 1.4 and rms at most 1.5 times the best given density."""
    lines = closing_lines([clean(5), untold(5), untold(6), hung(7)])
    assert [text for text, kept in lines if not kept] == []


def test_encoders_alone_are_followed_by_default() -> None:
    """8 of 13 such logs were unusable: NIS 127 to 1.2e5."""
    drive, _, _ = moving(THREE_JOINTS, 5, False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VeridynWarning)  # half a second ahead a walk knows less than a smooth torque
        found = vd.observe(model(THREE_JOINTS.file), drive.log, "ekf", vd.ObserveSettings(start="readings"))
    late = slice(100, None)
    errors = (found.reduced[:, :3] - drive.q)[late]
    assert np.sqrt(np.mean(errors**2)) < 1e-3 and 0.6 < found.nis().mean < 1.4
    assert np.mean(np.abs(errors) <= 2.0 * found.sigma[late, :3]) > 0.88
    assert found.lost == ()
