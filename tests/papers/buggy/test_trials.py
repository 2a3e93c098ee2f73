"""Uneven ground as it is made, three turns as they are driven, and an observer that looks the ground up below its own wheels.

Vehicles that are drawn, and a receiver that falls silent. Sensors that fail, on a short drive: the log is changed as it is said, and
the observer names the one that fails.
"""

from dataclasses import replace

import numpy as np
import pytest

from veridyn.model.experiment import Channel, Experiment
from veridyn.papers.buggy import trials
from veridyn.papers.buggy.drive import BuggyDrive, BuggyTruth, driven, surveyed_road
from veridyn.papers.buggy.machine import buggy
from veridyn.papers.buggy.observers import (
    MODEL_ERROR,
    BuggyObserver,
    best_observer,
    error_ekf,
    score_track,
    standing_start,
)
from veridyn.papers.buggy.trials import (
    CRUISE,
    FAULTS,
    FULL,
    HALF_WIDTHS,
    LENGTH,
    LEVEL,
    LINES,
    STEEPEST,
    WAVES,
    along_road,
    drawn_vehicle,
    fault_runs,
    outage_observer,
    rough,
    shared,
    silenced,
    three_turns,
    torque_at,
    uneven_heights,
)

SHORT = {("gyro", "0.01 rad/s beside"), ("accelerometer", "wrong sign"), ("gps", "silent")}


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
    own = rough(best_observer()).noise
    assert isinstance(own.acceleration, dict) and own.acceleration["base.z"] == pytest.approx(0.1)
    assert own.acceleration["base.x"] == MODEL_ERROR.planar and own.position["base.x"] == MODEL_ERROR.slip
    white = rough(best_observer(model_error=None)).noise.acceleration
    assert (
        isinstance(white, dict) and min(white.values()) == pytest.approx(1e-4) and white["base.z"] == pytest.approx(0.1)
    )


def test_vehicles_differ_within_their_bounds():
    nominal = {c.name: c.value for c in buggy().constants}
    for seed in range(5):
        drawn = {c.name: c.value for c in drawn_vehicle(np.random.default_rng(seed)).constants}
        for key, half in HALF_WIDTHS.items():
            ratio = drawn[f"tyre_fl.{key}"] / nominal[f"tyre_fl.{key}"]
            assert 0.0 < abs(ratio - 1.0) <= half
        assert 0.010 <= drawn["tyre_rr.QSY1"] <= 0.020


def test_the_observer_estimates_what_is_drawn_with_the_deviations_of_the_draws():
    machine = buggy()
    parameters = outage_observer(machine).parameters
    assert len(parameters) == 4 * 4 + 1
    assert parameters["tyre_fl.UNLOADED_RADIUS"][0] == pytest.approx(0.3683 * 0.005 / np.sqrt(3.0))
    assert parameters["M_chassis"][0] == pytest.approx(1117.8 * 0.02 / np.sqrt(3.0))


def test_a_silent_receiver_has_no_readings():
    t = np.arange(0.0, 60.0, 0.5)
    log = Experiment({n: Channel(n, t, t, "m") for n in ("gps.x", "odometer")}, "log")
    quiet = silenced(log)
    assert len(quiet["odometer"]) == len(t)
    heard = quiet["gps.x"].t
    assert not ((heard >= 25.0) & (heard < 55.0)).any() and len(heard) == 60


def test_the_driver_eases_off():
    assert torque_at(5.0) == FULL and torque_at(20.0) == CRUISE


@pytest.fixture(scope="module")
def truth() -> BuggyTruth:
    return driven(buggy(rolling_resistance=0.015), BuggyDrive(duration=2.0, rack=-0.010))


def test_every_sensor_of_the_buggy_fails_in_some_way():
    assert {s.name for s in buggy().sensors} - {f.sensor for f in FAULTS} == {"angle_fl", "angle_rr"}  # as their likes


def test_only_the_channels_of_a_sensor_change_and_only_after_the_fault(truth: BuggyTruth):
    log = truth.log(np.random.default_rng(1), buggy().sensors)
    for fault in FAULTS:
        changed = fault.applied(log, 1.0)
        for name in log.names:
            before = changed[name].t < 1.0
            np.testing.assert_array_equal(changed[name].values[before], log[name].values[log[name].t < 1.0])
            own = name in fault.channels or (not fault.channels and name.split(".")[0] == fault.sensor)
            assert own != np.array_equal(changed[name].values, log[name].values)


@pytest.mark.filterwarnings("ignore:.*the step of the integration is too long")
def test_the_sensor_that_fails_is_named_and_no_other(truth: BuggyTruth, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(trials, "FAULTS", tuple(f for f in FAULTS if (f.sensor, f.how) in SHORT))
    runs = list(fault_runs(buggy(rolling_resistance=0.030), truth, 11))
    assert len(runs) == 1 + len(SHORT)
    for run in runs:
        assert run.named, run.findings
        assert all(abs(f.since - run.begins) < 0.1 for f in run.findings)
        assert run.rms("x") < 0.005
    assert not replace(runs[0], fault=FAULTS[0]).named


@pytest.mark.parametrize("threads", ["1", "2"])
def test_shared_work_comes_back_in_order_and_tells_progress(monkeypatch: pytest.MonkeyPatch, threads: str) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    told: list[tuple[str, float, float | None]] = []
    found = list(shared(lambda k: k * k, range(5), "squares", lambda *said: told.append(said)))
    assert found == [0, 1, 4, 9, 16]
    assert told == [("squares", float(k), 5.0) for k in range(6)]


def test_threads_do_not_change_what_observers_find(monkeypatch: pytest.MonkeyPatch) -> None:
    model = buggy(rolling_resistance=0.030)
    short = driven(buggy(rolling_resistance=0.015), BuggyDrive(duration=0.2, rack=-0.010))
    start, log = standing_start(model), short.log(np.random.default_rng(5), model.sensors)

    def work(observer: BuggyObserver) -> np.ndarray:
        return np.asarray(observer.observe(model, log, start).track.x)

    found = []
    for threads in ("1", "2"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        found.append(list(shared(work, (error_ekf(), best_observer()) * 2, "observing")))
    for alone, beside in zip(*found, strict=True):
        assert np.array_equal(alone, beside)
