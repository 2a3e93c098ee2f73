"""The four-bar linkage: the mechanism of the thesis, its run, and the noise that the likelihood of other logs chooses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from veridyn.machines.fourbar import (
    MODEL_START,
    SKIP,
    TUNED,
    FourbarRun,
    fourbar,
    fourbar_run,
    fourbar_settings,
    wrong_fourbar,
)
from veridyn.mechanics.natural.dynamics import initial_state
from veridyn.mechanics.natural.integrate import constraint_errors
from veridyn.mechanics.natural.rank import mobility
from veridyn.mechanics.natural.system import system_of
from veridyn.observe.observe import tuned
from veridyn.observe.observer_setup import ObserverSetup
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.readings import measurements_of


@pytest.fixture(scope="module")
def run() -> FourbarRun:
    return fourbar_run()


def test_it_is_the_mechanism_of_the_thesis() -> None:
    """Initial acceleration −2.0233 rad/s² from 60° and 1 rad/s, −27.041 of the wrong model, in the upper assembly."""
    system = system_of(fourbar())
    state = initial_state(system, {"phi": np.pi / 3}, {"phi": 1.0})
    assert state.qdd[system.mechanism.index("phi")] == pytest.approx(-2.0233, abs=5e-5)
    assert state.q[system.mechanism.index("2.y")] > 0.0
    assert mobility(system, state.q).degrees_of_freedom == 1
    wrong = system_of(wrong_fourbar())
    assert initial_state(wrong, *MODEL_START).qdd[wrong.mechanism.index("phi")] == pytest.approx(-27.041, abs=5e-3)


def test_the_model_left_to_itself(run: FourbarRun) -> None:
    """The plain model: largest error of x1 3.95 to 4.00 m, rms 1.83 to 1.93 m; constraints closed throughout."""
    off = (run.plain.q - run.truth.q)[SKIP:, 0]
    assert 3.95 <= np.abs(off).max() <= 4.0
    assert 1.83 <= np.sqrt((off**2).mean()) <= 1.93
    assert (constraint_errors(system_of(fourbar()), run.truth) < 1e-9).all()
    assert run.log(np.random.default_rng(0))["encoder"].unit == "rad"


def test_the_settings_are_those_that_are_told() -> None:
    settings = fourbar_settings()
    assert list(settings) == ["error_ekf", "error_ekf_force", "ekf", "ukf", "smoother"]
    assert settings["ekf"].process_noise == TUNED


@pytest.mark.slow
def test_the_torques_walk_is_the_most_likely_one_on_other_seeds(run: FourbarRun) -> None:
    model = system_of(wrong_fourbar())
    settings = ObserverSetup(process_noise=replace(TUNED, force=0.0), start=MODEL_START[0], rates=MODEL_START[1])
    system = settings.system(model, ProcessNoise())[0]
    logs = [measurements_of(system, run.log(np.random.default_rng(k))) for k in (1000, 1001, 1002)]
    found, tuning = tuned(settings, model, logs, samples=2000)
    print("\n" + tuning.summary(), found)
    assert isinstance(found.force, dict)
    assert found.force["phi"] == pytest.approx(float(np.asarray(TUNED.force)), rel=0.01)
