"""Uneven ground as it is made, three turns as they are driven, and an observer that looks the ground up below its own wheels."""

import numpy as np
import pytest

from veridyn.papers.buggy.drive import driven, surveyed_road
from veridyn.papers.buggy.ground import (
    COARSE_GPS,
    LENGTH,
    LEVEL,
    LINES,
    START_M,
    START_RAD,
    STEEPEST,
    WAVES,
    along_road,
    coarse_sensors,
    drawn_start,
    rough,
    three_turns,
    uncertain,
    uneven_heights,
)
from veridyn.papers.buggy.machine import buggy
from veridyn.papers.buggy.observers import (
    MODEL_ERROR,
    best_observer,
    error_ekf,
    force_observer,
    score_track,
    standing_start,
)


def test_the_ground_is_level_at_the_start_and_gentle_elsewhere():
    heights = uneven_heights(np.random.default_rng(4))
    assert heights.shape == (LINES, LENGTH)
    x, y = np.meshgrid(np.arange(LENGTH), np.arange(LINES) - (LINES - 1) // 2)
    near = np.hypot(np.where(x > LENGTH / 2, x - LENGTH, x), y) <= LEVEL[0]
    assert (heights[near] == 0.0).all() and heights.std() > 0.05
    far = np.hypot(np.where(x > LENGTH / 2, x - LENGTH, x), y) > LEVEL[1] + 1.0
    slope = np.abs(np.diff(np.concatenate([heights, heights[:, :1]], axis=1), axis=1))  # the table repeats itself
    assert slope[far].max() <= WAVES * STEEPEST


def test_it_turns_three_times():
    how = three_turns(40.0)
    racks = np.array([how.rack_at(t)[0] for t in np.arange(0.0, 40.0, 0.01)])
    sides = np.sign(np.where(np.abs(racks) > 0.009, racks, 0.0))
    turns = sides[np.flatnonzero(np.diff(sides, prepend=0.0))]
    assert turns[turns != 0.0].tolist() == [-1.0, 1.0, -1.0]


@pytest.mark.filterwarnings("ignore:.*the step of the integration is too long")
def test_an_observer_that_knows_the_ground_is_better_than_one_that_takes_it_for_flat():
    """Two seconds on a slope that begins below the buggy."""
    machine, how = buggy(rolling_resistance=0.015), three_turns(2.0)
    heights = 0.03 * np.where(np.arange(64) > 32, np.arange(64) - 64.0, np.arange(64.0)) * np.ones((41, 1))
    road, flat = surveyed_road(heights, 1.0, 1.0), surveyed_road(0.0 * heights, 1.0, 1.0)
    truth = driven(machine, how, road=road)
    log = truth.log(np.random.default_rng(8), machine.sensors)
    scores = [score_track(along_road(rough(error_ekf()), machine, log, known), truth) for known in (road, flat)]
    errors = [np.sqrt(np.mean(s.of("base.pitch")[0] ** 2)) for s in scores]
    assert errors[0] < 0.2 * errors[1]


def test_process_noise_of_a_survey_is_not_smaller_than_the_observers_own():
    assert rough(error_ekf()) == error_ekf()
    own = rough(best_observer()).noise
    assert isinstance(own.acceleration, dict) and own.acceleration["base.z"] == pytest.approx(0.1)
    assert own.acceleration["base.x"] == MODEL_ERROR.planar and own.position["base.x"] == MODEL_ERROR.slip
    white = rough(best_observer(model_error=None)).noise.acceleration
    assert (
        isinstance(white, dict) and min(white.values()) == pytest.approx(1e-4) and white["base.z"] == pytest.approx(0.1)
    )


def test_an_uncertain_start_is_drawn_from_the_deviations_that_the_observer_is_told():
    start = standing_start(buggy())
    rng = np.random.default_rng(3)
    off = np.array(
        [[drawn_start(start, rng)[n] - start[n] for n in ("base.x", "base.y", "base.yaw")] for _ in range(400)]
    )
    np.testing.assert_allclose(
        off.std(axis=0), [START_M, START_M, START_RAD], rtol=0.15
    )  # 400 draws: 3.5 % for one deviation
    assert drawn_start(start, rng)["base.z"] == start["base.z"]
    for observer in (error_ekf(), force_observer(), best_observer()):
        told = uncertain(observer).noise.start
        assert isinstance(told, dict) and (told["base.x"], told["base.yaw"]) == (START_M, START_RAD)
        own = observer.noise.start
        assert told["base.z"] == (own["base.z"] if isinstance(own, dict) else own)


@pytest.mark.filterwarnings("ignore:.*the step of the integration is too long")
def test_a_receiver_of_a_metre_brings_an_uncertain_start_in():
    """Flat ground and two seconds: half a metre of uncertainty becomes what a hundred fixes of a metre leave, some .1 m."""
    machine = buggy(rolling_resistance=0.015).with_sensors(coarse_sensors(buggy()))
    assert next(s.sigma for s in machine.sensors if s.name == "gps") == COARSE_GPS
    flat = surveyed_road(np.zeros((41, 64)), 1.0, 1.0)
    truth = driven(machine, three_turns(2.0), road=flat)
    log, start = truth.log(np.random.default_rng(8), machine.sensors), standing_start(machine)
    begin = {**start, "base.x": start["base.x"] + START_M, "base.yaw": start["base.yaw"] - START_RAD}
    track = along_road(uncertain(best_observer()), machine, log, flat, begin)
    error, sigma = score_track(track, truth).of("base.x")
    # One over the root of 1/START_M² and a hundred fixes; what velocities add to it is small in two seconds.
    assert sigma[-1] == pytest.approx(1.0 / np.sqrt(1.0 / START_M**2 + 100.0), rel=0.05)
    assert abs(error[-1]) < 3.0 * sigma[-1] < abs(error[0])
