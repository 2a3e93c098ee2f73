"""The hexapod under control: at rest it stays, it follows, and it is said when it runs away."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.errors import SimulationError
from veridyn.machines.hexapod_experiment import machine
from veridyn.simulate.platform import Control, run

HOME = np.array([0.0, 0.0, -0.95, 0.0, 0.0, 0.0])


def test_jacobian_and_lengths() -> None:
    robot = machine()
    J = robot.mechanics(HOME, np.zeros(6))[2]
    for k in range(6):
        e = 1e-6 * np.eye(6)[k]  # at this pose small angles turn about the axes
        assert np.abs((robot.lengths(HOME + e) - robot.lengths(HOME - e))[0] / 2e-6 - J[:, k]).max() < 1e-8


def test_right_forces_hold_it() -> None:
    """With the forces that rest asks for, nothing moves in half a second."""
    robot = machine()
    hold = robot.forces(HOME, np.zeros(6), np.zeros(6))
    wanted = np.tile(robot.lengths(HOME), (480, 1))
    made = run(
        robot, np.concatenate([HOME, np.zeros(6)]), wanted, np.zeros((480, 6)), feedforward=np.tile(hold, (480, 1))
    )
    assert np.abs(made.lengths - wanted).max() < 1e-9
    assert np.abs(made.forces - hold).max() < 1e-4


def test_runaway_is_said() -> None:
    robot = machine()
    start = np.concatenate([HOME, np.zeros(6)])
    wanted = np.tile(robot.lengths(HOME), (200, 1))
    with pytest.raises(SimulationError, match="the controlled machine ran away"):
        run(robot, start, wanted, np.zeros((200, 6)), control=Control(kp=-1e7, ki=0.0))
