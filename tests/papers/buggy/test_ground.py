"""Uneven ground as it is made, three turns as they are driven, and an observer that looks the ground up below its own wheels."""

import numpy as np
import pytest

from veridyn.papers.buggy.drive import surveyed_road
from veridyn.papers.buggy.ground import (
    LENGTH,
    LEVEL,
    LINES,
    STEEPEST,
    WAVES,
    along_road,
    rough,
    three_turns,
    uneven_heights,
)
from veridyn.papers.buggy.log import driven
from veridyn.papers.buggy.machine import buggy
from veridyn.papers.buggy.observers import best_observer, error_ekf
from veridyn.papers.buggy.scores import score_track


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
    scores = []
    for known in (road, flat):
        system, t, x, P, _ = along_road(rough(error_ekf()), machine, log, known)
        scores.append(score_track(system, t, x, P, truth))
    errors = [np.sqrt(np.mean(s.of("base.pitch")[0] ** 2)) for s in scores]
    assert errors[0] < 0.2 * errors[1]


def test_process_noise_of_a_survey_is_not_smaller_than_the_observers_own():
    assert rough(error_ekf()) == error_ekf()
    white = rough(best_observer()).noise.acceleration
    assert (
        isinstance(white, dict) and min(white.values()) == pytest.approx(1e-4) and white["base.z"] == pytest.approx(0.1)
    )
