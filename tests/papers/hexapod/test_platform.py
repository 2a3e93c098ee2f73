"""The hexapod under control: at rest it stays, it follows, and it is said when it runs away."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.errors import SimulationError
from veridyn.papers.hexapod.machine import machine
from veridyn.papers.hexapod.platform import Control, pose_rate_of, rotation, run, twist_of, twist_rate_of

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


RNG = np.random.default_rng(3)


def test_twist_is_that_of_the_rotation() -> None:
    """ω̂ = Ṙ Rᵀ by differences; and the printed order of angles, psi last, gives another one."""
    pose, rate, acceleration = RNG.normal(size=6) * 0.3, RNG.normal(size=6), RNG.normal(size=6)
    twist, ahead, change = np.empty(6), np.empty(6), np.empty(6)
    twist_of(pose, rate, twist)

    def turned(t: float) -> np.ndarray:
        R = np.empty((3, 3))
        rotation(pose + t * rate + 0.5 * t * t * acceleration, R)
        return R

    h = 1e-5
    spin = (turned(h) - turned(-h)) / (2 * h) @ turned(0.0).T
    assert np.abs(twist[3:] - [spin[2, 1], spin[0, 2], spin[1, 0]]).max() < 1e-9
    back = np.empty(6)
    pose_rate_of(pose, twist, back)
    assert np.abs(back - rate).max() < 1e-12
    printed = np.empty(6)
    twist_of(pose, rate[[0, 1, 2, 5, 4, 3]], printed)
    assert np.abs(printed[3:] - twist[3:]).max() > 0.1
    twist_rate_of(pose, rate, acceleration, change)
    twist_of(pose + h * rate, rate + h * acceleration, ahead)
    behind = np.empty(6)
    twist_of(pose - h * rate, rate - h * acceleration, behind)
    assert np.abs((ahead - behind) / (2 * h) - change).max() < 1e-8


def test_energy_balance_without_friction() -> None:
    """dE/dt = Σ F l̇ along ν̇ = M⁻¹(Jᵀ F − h), by central differences of the energy."""
    from dataclasses import replace

    robot = replace(machine(), passive=np.zeros(2), dry=np.zeros(6), viscous=np.zeros(6))
    for _ in range(5):
        pose = RNG.uniform(-1, 1, 6) * [0.1, 0.1, 0.1, 0.2, 0.2, 0.2] + [0, 0, -0.95, 0, 0, 0]
        twist, force = RNG.normal(size=6), 30.0 * RNG.normal(size=6)
        M, h, J = robot.mechanics(pose, twist)
        change = np.linalg.solve(M, J.T @ force - h)
        rate = np.empty(6)
        pose_rate_of(pose, twist, rate)
        e = 1e-5
        found = (
            robot.energy(pose + e * rate, twist + e * change) - robot.energy(pose - e * rate, twist - e * change)
        ) / (2 * e)
        assert abs(found - force @ (J @ twist)) < 1e-7 * np.abs(force).sum()
        assert np.abs(M - M.T).max() < 1e-12 and np.linalg.eigvalsh(M).min() > 0
