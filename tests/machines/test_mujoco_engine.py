"""MuJoCo's own dynamics of a tree against Pinocchio's, and against the engine that is judged with it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from strangers.pinocchio_oracle import PinModel
from strangers.random_trees import random_open_machine, random_rotation
from veridyn.errors import ModelError
from veridyn.machines.humanoid import machine
from veridyn.machines.mujoco_engine import PrescribedJoints, engine_motion, mjcf
from veridyn.model.elements import damper
from veridyn.model.machine import Machine
from veridyn.model.motion import Pose


@pytest.mark.parametrize(
    "robot",
    [
        machine(),
        random_open_machine(np.random.default_rng(1), 6, "free"),
        random_open_machine(np.random.default_rng(8), 5, "free"),
    ],
)
def test_two_strangers_agree_on_the_ground_wrench(robot: Machine) -> None:
    rng = np.random.default_rng(0)
    N = 6
    pose = Pose(np.arange(N, dtype=float), np.stack([random_rotation(rng) for _ in range(N)]), rng.normal(size=(N, 3)))
    velocity, acceleration = rng.normal(size=(2, N, 6))
    q, qd, qdd = rng.normal(size=(3, N, robot.n))
    wrench = PrescribedJoints(robot).ground_wrench(pose, velocity, acceleration, q, qd, qdd)
    motion = engine_motion(robot, pose, velocity, acceleration, q, qd, qdd, wrench)
    left = PinModel(robot).inverse_dynamics(motion)[:, :6]
    assert np.abs(left).max() < 1e-10 * np.abs(wrench).max()


def test_what_the_engine_cannot_take_is_refused() -> None:
    machine = random_open_machine(np.random.default_rng(2), 3, "free", kinds=("turning",))
    with pytest.raises(ModelError, match="only a free tree"):
        mjcf(random_open_machine(np.random.default_rng(2), 3, "fixed"))
    with pytest.raises(ModelError, match="without elements"):
        mjcf(machine.with_elements([damper(machine.coordinates[0])]))
    with pytest.raises(ModelError, match="needs its mass and inertia"):
        mjcf(Machine.build([replace(link, inertia=None) for link in machine.links], machine.joints))
