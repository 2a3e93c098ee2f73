"""The observers of the buggy on a short drive: what paper 003 needs its sensors for, and that the better ones are better."""

from dataclasses import replace

import numpy as np
import pytest

from veridyn.machines.buggy import buggy
from veridyn.machines.buggy_drive import BuggyDrive
from veridyn.machines.buggy_log import BuggyTruth, driven
from veridyn.observe.methods import ErrorEKF
from veridyn.studies.papers.buggy.observers import (
    SUSPENSIONS,
    best_observer,
    error_ekf,
    force_observer,
    standing_start,
    with_course,
)
from veridyn.studies.papers.buggy.scores import Scored, scored

pytestmark = pytest.mark.filterwarnings("ignore:.*the step of the integration is too long")


@pytest.fixture(scope="module")
def truth() -> BuggyTruth:
    return driven(buggy(rolling_resistance=0.015), BuggyDrive(duration=3.0, rack=-0.010))


@pytest.fixture(scope="module")
def scores(truth: BuggyTruth) -> dict[str, Scored]:
    model = buggy(rolling_resistance=0.030)
    log = truth.log(np.random.default_rng(11), model.sensors)
    made = (error_ekf(), force_observer(), best_observer())
    return {o.word: scored(o.observe(model, log, standing_start(model)), truth) for o in made}


def test_each_observer_is_better_than_the_one_before(scores: dict[str, Scored]):
    for quantity in ("x", "xd", "wheel_angle", "wheel_speed"):
        rough, force, best = (scores[name].rms(quantity) for name in ("error_ekf", "force", "ekf"))
        assert best < force < rough, quantity
    assert scores["ekf"].rms("x") < 1e-3 and scores["ekf"].rms("yaw") < 5e-4
    assert scores["force"].rms("wheel_speed") < 0.06


def test_the_error_ekf_leaves_suspensions_to_the_model(truth: BuggyTruth):
    model = buggy(rolling_resistance=0.030)
    log = truth.log(np.random.default_rng(11), model.sensors)
    found = error_ekf().observe(model, log, standing_start(model))
    names = found.system.states
    P = np.asarray(found.track.P)[-1]
    for name in SUSPENSIONS:
        k = names.index(name)
        assert P[k, k] == 0.0 and P[names.index(f"{name}_dot"), names.index(f"{name}_dot")] == 0.0
    carried = [n for n in names if not n.startswith("state.") and P[names.index(n), names.index(n)] > 0.0]
    assert len(carried) == 20  # equation 79
    assert len(found.system.outputs) == 16  # position 3, velocity 2, course, gyroscope 3, accelerometer 3, wheels 4


def test_derivatives_kept_over_steps_leave_the_error_ekf_alone(truth: BuggyTruth, scores: dict[str, Scored]):
    """By less than a quarter of its deviations: it needs them for the accelerometer alone."""
    model = buggy(rolling_resistance=0.030)
    log = truth.log(np.random.default_rng(11), model.sensors)
    exact = replace(error_ekf(), method=ErrorEKF(refresh=1))
    fresh, kept = scored(exact.observe(model, log, standing_start(model)), truth), scores["error_ekf"]
    carried = fresh.sigma[-1] > 0.0
    apart = np.sqrt(np.mean(((kept.errors - fresh.errors)[:, carried] / fresh.sigma[:, carried]) ** 2, axis=0))
    assert apart.max() < 0.25


def test_a_course_at_walking_pace_is_no_reading(truth: BuggyTruth):
    log = with_course(truth.log(np.random.default_rng(1), buggy().sensors))
    speed = np.hypot(log["gps_velocity.x"].values, log["gps_velocity.y"].values)
    assert np.isnan(log["course"].values[speed < 1.0]).all() and np.isfinite(log["course"].values[speed >= 1.0]).all()


def test_subsystems_of_integrators_have_the_ranks_of_the_thesis():
    """Equations 70, 71 and 74: positions of the chassis 6 of 6, wheel angles 8 of 8, suspensions with two rates alone 2 of 12."""

    def rank(count: int, H: np.ndarray) -> int:
        F = np.eye(2 * count)
        F[:count, count:] = 2e-3 * np.eye(count)
        return int(np.linalg.matrix_rank(np.vstack([H @ np.linalg.matrix_power(F, k) for k in range(2 * count)])))

    assert rank(3, np.eye(3, 6)) == 6
    assert rank(4, np.eye(4, 8)) == 8
    assert rank(6, np.eye(12)[[10, 11]]) == 2
