"""The humanoid in MuJoCo: it walks without being held, and its exact data identify all 94 base parameters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from papers.humanoid.humanoid_runs import CAD, TRUE, bending, swinging, walking
from strangers.pinocchio_oracle import PinModel
from strangers.random_trees import random_open_machine, random_rotation
from veridyn.errors import ModelError, SimulationError
from veridyn.identify.estimate import identify
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.model.elements.element import damper
from veridyn.model.machine import Machine
from veridyn.model.motion import Pose
from veridyn.papers.humanoid.machine import MASS, machine, walk
from veridyn.papers.humanoid.walk import PrescribedJoints, Servo, engine_motion, mjcf, performed

PLAN = walk(CAD, 4)


def test_it_walks_four_steps_freely() -> None:
    run = walking()
    off = run.pose.position[-1] - PLAN.pose.position[-1]
    print(
        f"four free steps: {1e3 * run.pose.position[-1, 0]:.0f} mm forward, {1e3 * np.abs(off).max():.1f} mm from the plan"
    )
    assert "free" in run.how and np.abs(off).max() < 0.02
    # At rest at both ends the ground carries the weight; the feet share it.
    assert run.wrench[-1, 2] == pytest.approx(MASS * 9.81, rel=2e-3)
    assert run.feet is not None and run.feet[:, :, 2].min() > -1e-9
    assert run.feet.sum(axis=1) == pytest.approx(run.wrench)
    single = (run.feet[:, :, 2] < 1e-9).any(axis=1)
    assert single.mean() > 0.2  # on one foot for much of the time


@pytest.mark.parametrize("run", [walking, bending, swinging], ids=["walk", "bend", "swing"])
def test_engine_and_stranger_agree_along_every_run(run: object) -> None:
    """Base rows of Pinocchio with the engine's own state, acceleration and contact force: nothing is left."""
    motion = run().motion[::40]  # pyright: ignore[reportCallIssue]
    assert np.abs(PinModel(TRUE).inverse_dynamics(motion)[:, :6]).max() < 1e-9
    assert np.abs(inverse_dynamics(TRUE, motion, "base")).max() < 1e-9


@pytest.mark.parametrize("name", ["swings", "walk"])
def test_exact_data_give_all_94_base_parameters(name: str) -> None:
    motions = [swinging("right").motion, swinging("left").motion] if name == "swings" else [walking().motion]
    fit = identify(CAD, motions, "ols", rows="base")
    truth = fit.base.reduce(TRUE.parameters.values)
    error = np.abs(fit.values - truth) / CAD.parameters.typical[list(fit.base.columns)]
    print(
        f"exact data, {name}: {len(error)} base parameters, worst {error.max():.1e} of typical size, condition {fit.condition_scaled:.3g}"
    )
    assert len(error) == 94 and error.max() < 1e-6


def test_bending_is_sampled_without_bias() -> None:
    """Positions differentiated twice give the force: a controller that steps once a sample would break this by 0.5 N."""
    run = bending()
    rate = 1.0 / 0.003
    specific = np.gradient(np.gradient(run.pose.position[:, 2], axis=0), axis=0) * rate**2
    # The slow part only: the mean force over the motion is the weight, and the torso ends as it began.
    assert run.wrench[:, 2].mean() == pytest.approx(MASS * 9.81, rel=2e-4)
    assert np.abs(specific).max() < 5.0


def test_a_fall_is_an_error_with_its_time() -> None:
    with pytest.raises(SimulationError, match=r"the robot fell.\nFound the torso at 0\.\d+ m after \d\.\d+ s"):
        performed(TRUE, PLAN, Servo(stiffness=15.0, tilt=0.0, tilt_rate=0.0))


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
