"""Drives of the buggy at the rate of its sensors, against a Runge-Kutta integration of forward dynamics."""

import numpy as np
import pytest

from veridyn.model.sensor import Sensor
from veridyn.papers.buggy.drive import BuggyDrive, drive
from veridyn.papers.buggy.log import RATE, BuggyTruth, driven
from veridyn.papers.buggy.machine import buggy

HOW = BuggyDrive(duration=1.0, rack=-0.010, rate=50.0)


@pytest.fixture(scope="module")
def truth() -> BuggyTruth:
    return driven(buggy(), HOW)


def test_it_goes_where_a_runge_kutta_integration_goes(truth: BuggyTruth):
    other = drive(buggy(), HOW)
    every = round(RATE / HOW.rate)
    assert other.base_position is not None
    assert np.abs(truth.q[::every, :3] - other.base_position).max() < 5e-6
    assert np.abs(truth.q[::every, 7:] - other.motion.q).max() < 2e-5
    assert np.abs(truth.qd[::every, 6:] - other.motion.qd).max() < 2e-3


def test_sensors_read_the_truth_with_their_noise(truth: BuggyTruth):
    machine = truth.machine
    exact = truth.readings(machine.sensors)
    log = truth.log(np.random.default_rng(5), machine.sensors)
    assert len(log["gps.x"]) == 51 and len(log["gyro.z"]) == 501
    off = log["gyro.z"].values - exact["gyro.z"].values
    assert 0.9 < off.std() / 2e-4 < 1.1
    angle = log["angle_rl"].values
    assert np.abs(angle - exact["angle_rl"].values).max() <= np.pi / 40.0 + 1e-12
    assert np.allclose(angle / (np.pi / 20.0), np.round(angle / (np.pi / 20.0)))
    assert log["drive_rl"].values[0] == HOW.torque
    assert log["q.rack"].values[-1] == pytest.approx(HOW.rack)


def test_a_course_is_where_it_goes_and_a_yaw_where_it_points(truth: BuggyTruth):
    read = truth.readings([Sensor("course", "course", "chassis", 1.0), Sensor("yaw", "yaw", "chassis", 1.0)])
    v, e = truth.qd[-1, :2], truth.q[-1, 3:7]
    assert read["course"].values[-1] == pytest.approx(np.arctan2(v[1], v[0]), abs=1e-12)
    forward = [1.0 - 2.0 * (e[2] ** 2 + e[3] ** 2), 2.0 * (e[1] * e[2] + e[0] * e[3])]
    assert read["yaw"].values[-1] == pytest.approx(np.arctan2(forward[1], forward[0]), abs=1e-12)
    assert np.isfinite(read["course"].values).all()  # standstill among them


def test_a_head_wind_slows_it_down():
    """By F/m with the wheels' inertia counted at their rolling radius, once the rolling resistance is all there."""
    calm = driven(buggy(), BuggyDrive(duration=1.0))
    windy = driven(buggy(), BuggyDrive(duration=1.0), forces={"base.x": -200.0})
    late = slice(-100, None)
    slower = (calm.qdd[late, 0] - windy.qdd[late, 0]).mean()
    assert slower == pytest.approx(200.0 / (1378.3 + 4 * 1.853 / 0.338**2), rel=0.08)


def test_torque_may_change_on_the_way(truth: BuggyTruth):
    eased = driven(buggy(), BuggyDrive(duration=0.1), torque=lambda t: 100.0 if t < 0.05 else 0.0)
    assert eased.torque[0] == 100.0 and eased.torque[-1] == 0.0
