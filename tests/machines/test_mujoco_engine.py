"""MuJoCo's own dynamics of a tree against Pinocchio's, and against the engine that is judged with it."""

from __future__ import annotations

import numpy as np
import pytest

from strangers.pinocchio_oracle import PinModel
from strangers.random_trees import random_rotation, random_tree
from veridyn.errors import ModelError
from veridyn.machines.humanoid import machine
from veridyn.machines.mujoco_engine import PrescribedJoints, engine_motion, mjcf
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements import damper
from veridyn.model.pose import Pose


@pytest.mark.parametrize(
    "tree",
    [machine(), random_tree(np.random.default_rng(1), 6, "free"), random_tree(np.random.default_rng(8), 5, "free")],
)
def test_two_strangers_agree_on_the_ground_wrench(tree: Tree) -> None:
    rng = np.random.default_rng(0)
    N = 6
    pose = Pose(np.arange(N, dtype=float), np.stack([random_rotation(rng) for _ in range(N)]), rng.normal(size=(N, 3)))
    velocity, acceleration = rng.normal(size=(2, N, 6))
    q, qd, qdd = rng.normal(size=(3, N, tree.n))
    wrench = PrescribedJoints(tree).ground_wrench(pose, velocity, acceleration, q, qd, qdd)
    motion = engine_motion(tree, pose, velocity, acceleration, q, qd, qdd, wrench)
    left = PinModel(tree).inverse_dynamics(motion)[:, :6]
    assert np.abs(left).max() < 1e-10 * np.abs(wrench).max()


def test_what_the_engine_cannot_take_is_refused() -> None:
    tree = random_tree(np.random.default_rng(2), 3, "free", kinds=("turning",))
    with pytest.raises(ModelError, match="only a free tree"):
        mjcf(random_tree(np.random.default_rng(2), 3, "fixed"))
    with pytest.raises(ModelError, match="without elements"):
        mjcf(Tree.build(tree.bodies, base="free", elements=[damper(tree.coordinates[0])]))
    with pytest.raises(ModelError, match="needs its mass and inertia"):
        mjcf(Tree.build(tree.bodies, base="free"))
