"""Vehicles that are drawn, and a receiver that falls silent. Sensors that fail, on a short drive: the log is changed as it is said, and
the observer names the one that fails.
"""

from dataclasses import replace

import numpy as np
import pytest

from veridyn.model.experiment import Channel, Experiment
from veridyn.papers.buggy import trials
from veridyn.papers.buggy.drive import BRAKES, DRIVES, BuggyDrive, BuggyTruth, driven
from veridyn.papers.buggy.machine import buggy
from veridyn.papers.buggy.observers import (
    BuggyObserver,
    best_observer,
    error_ekf,
    force_observer,
    scored,
    standing_start,
)
from veridyn.papers.buggy.trials import (
    CRUISE,
    FAULTS,
    FULL,
    HALF_WIDTHS,
    PRESSURE,
    PRESSURE_SIGMA,
    RACK_SIGMA,
    TORQUE_GAIN,
    TORQUE_SIGMA,
    Workers,
    braking,
    drawn_vehicle,
    fault_runs,
    outage_observer,
    silenced,
    torque_at,
    with_measured_inputs,
)

SHORT = {("gyro", "0.01 rad/s beside"), ("accelerometer", "wrong sign"), ("gps", "silent")}


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
    told: list[tuple[float, float | None]] = []
    with Workers(lambda _, done, total: told.append((done, total))) as workers:
        found = list(workers.shared(lambda k: k * k, range(5)))
    assert found == [0, 1, 4, 9, 16]
    assert told == [(float(k), 5.0) for k in range(6)]


@pytest.mark.parametrize("threads", ["1", "2"])
def test_parts_share_workers_and_a_fault_ends_all(monkeypatch: pytest.MonkeyPatch, threads: str) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    with Workers() as workers:
        found = workers.together(*(lambda n=n: list(workers.shared(lambda k: n * k, range(n))) for n in range(1, 5)))
        assert found == [[n * k for k in range(n)] for n in range(1, 5)]
        with pytest.raises(ZeroDivisionError):
            workers.together(
                lambda: list(workers.shared(lambda k: 1 // k, [0])), lambda: list(workers.shared(abs, [-1]))
            )


def test_threads_do_not_change_what_observers_find(monkeypatch: pytest.MonkeyPatch) -> None:
    model = buggy(rolling_resistance=0.030)
    short = driven(buggy(rolling_resistance=0.015), BuggyDrive(duration=0.2, rack=-0.010))
    start, log = standing_start(model), short.log(np.random.default_rng(5), model.sensors)

    def work(observer: BuggyObserver) -> np.ndarray:
        return np.asarray(observer.observe(model, log, start).track.x)

    found = []
    for threads in ("1", "2"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        with Workers() as workers:
            found.append(list(workers.shared(work, (error_ekf(), best_observer()) * 2)))
    for alone, beside in zip(*found, strict=True):
        assert np.array_equal(alone, beside)


@pytest.fixture(scope="module")
def braking_drive() -> BuggyTruth:
    return braking(4.0, 0.015)


def test_brakes_slow_the_buggy_by_their_torque_over_its_mass(braking_drive: BuggyTruth):
    """(Σ gain p/r + f m g)/(m + Σ J/r²), with 1378.3 kg, wheels of 1.453 + .4 kg m² and an effective radius of .337 m."""
    assert braking_drive.pressure is not None and braking_drive.pressure.max() == pytest.approx(PRESSURE)
    speed = np.hypot(braking_drive.qd[:, 0], braking_drive.qd[:, 1])
    steady = (braking_drive.t > 3.1) & (braking_drive.t < 3.5)
    found = -np.polyfit(braking_drive.t[steady], speed[steady], 1)[0]
    braked = sum(BRAKES.values()) * PRESSURE / 0.337
    expected = (braked + 0.015 * 1378.3 * 9.81) / (1378.3 + 4.0 * 1.853 / 0.337**2)
    assert found == pytest.approx(expected, rel=0.05)  # sideslip on the circle adds some percent
    first = braking_drive.first(1.0)
    assert first.pressure is not None and len(first.pressure) == len(first.t)


def test_measured_inputs_have_their_gain_and_noise(braking_drive: BuggyTruth):
    log = braking_drive.log(np.random.default_rng(5), buggy().sensors)
    read = with_measured_inputs(log, braking_drive, np.random.default_rng(6))
    np.testing.assert_array_equal(read[DRIVES[0]].values, read[DRIVES[1]].values)  # one sensor stands for both wheels
    assert np.std(read[DRIVES[0]].values - TORQUE_GAIN * braking_drive.torque) == pytest.approx(TORQUE_SIGMA, rel=0.1)
    noise = {name: (read[name].values - log[name].values) / gain for name, gain in BRAKES.items()}
    assert np.std(noise["brake_fl"]) == pytest.approx(PRESSURE_SIGMA, rel=0.1)
    np.testing.assert_allclose(noise["brake_fl"], noise["brake_rr"], atol=1e-12)
    assert np.std(read["q.rack"].values - log["q.rack"].values) == pytest.approx(RACK_SIGMA, rel=0.1)
    np.testing.assert_array_equal(read["gps.x"].values, log["gps.x"].values)


@pytest.mark.filterwarnings("ignore:.*the step of the integration is too long")
def test_an_observer_brakes_with_the_vehicle(braking_drive: BuggyTruth):
    """With the brakes among its inputs the estimated forces stay small; without them they have to be the brakes."""
    machine = buggy(rolling_resistance=0.015)
    log = braking_drive.log(np.random.default_rng(5), machine.sensors)
    blind = log.replacing(*(replace(log[name], values=0.0 * braking_drive.t) for name in BRAKES))
    found = [force_observer().observe(machine, one, standing_start(machine)) for one in (log, blind)]
    known, unknown = (scored(one, braking_drive).rms("xd", 2.8) for one in found)
    assert known < 0.2 * unknown
