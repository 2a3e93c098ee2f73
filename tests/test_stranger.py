"""A stranger's robot and log: its motion is smooth, and MuJoCo's torques are those that veridyn computes from the same URDF."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest
from benchmarks.stranger import DRY, NOISE, RATE, largest_error, motion, torques, write_own

import veridyn as vd


def test_speeds_and_accelerations_are_derivatives_from_rest_to_rest() -> None:
    t, q, qd, qdd = motion(1, 4000)
    assert np.gradient(q, t, axis=0, edge_order=2) == pytest.approx(
        qd, abs=2e-3
    )  # rad/s: (2π · 1.3 Hz)³ · 0.5 rad · step²/6
    assert np.gradient(qd, t, axis=0, edge_order=2) == pytest.approx(qdd, abs=2e-2)
    assert np.abs(qd[[0, -1]]).max() < 1e-9 and 1.0 / (t[1] - t[0]) == pytest.approx(RATE)


def test_the_log_is_that_of_the_urdf(tmp_path: Path) -> None:
    model = write_own(tmp_path, mujoco)
    log, robot = vd.load_log(tmp_path / "run.csv"), vd.load_model(tmp_path / "robot.urdf")
    _, q, qd, qdd = motion(1, len(log["shoulder torque"]))
    assert log["elbow position"].values == pytest.approx(q[:, 1], abs=1e-8)
    t = log["shoulder torque"].t
    moving = np.abs(qd).min(axis=1) > 0.05
    own = vd.inverse_dynamics(robot, vd.Motion(t, q, qd, qdd))
    assert own[moving] == pytest.approx((torques(mujoco, model, q, qd, qdd) + DRY * np.sign(qd))[moving], abs=1e-9)
    measured = np.column_stack([log[f"{joint} torque"].values for joint in ("shoulder", "elbow")])
    assert np.std((measured - own)[moving]) == pytest.approx(NOISE, rel=0.1)


def test_a_robot_has_no_error_against_itself(tmp_path: Path) -> None:
    model = write_own(tmp_path, mujoco)
    assert largest_error(mujoco, model, tmp_path / "robot.urdf") < 1e-12
