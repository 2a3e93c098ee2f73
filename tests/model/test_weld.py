"""A welded machine against the original at rest in the locked joints, and against Pinocchio."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from strangers.pinocchio_oracle import PinModel
from strangers.random_trees import random_motion, random_tree
from veridyn.errors import ModelError
from veridyn.mechanics.inverse import inverse_dynamics
from veridyn.model.elements import damper
from veridyn.model.tree import Tree
from veridyn.model.weld import welded


@pytest.mark.parametrize("seed", range(12))
def test_forces_are_those_of_the_original_with_the_locked_joints_at_rest(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, bodies=7, base="free", kinds=("turning", "sliding"))
    locked = {c: float(v) for c, v in zip(tree.coordinates[1::2], rng.normal(size=tree.n), strict=False)}
    motion = random_motion(rng, tree, 5, wrenches=False)
    for name, value in locked.items():
        k = tree.coordinates.index(name)
        motion.q[:, k], motion.qd[:, k], motion.qdd[:, k] = value, 0.0, 0.0
    less = welded(tree, locked)
    stay = [k for k, c in enumerate(tree.coordinates) if c not in locked]
    assert less.coordinates == tuple(tree.coordinates[k] for k in stay)
    fewer = replace(motion, q=motion.q[:, stay], qd=motion.qd[:, stay], qdd=motion.qdd[:, stay])
    rows = [*range(6), *(6 + k for k in stay)]
    expected = PinModel(tree).inverse_dynamics(motion)[:, rows]
    assert inverse_dynamics(less, fewer) == pytest.approx(expected, rel=1e-11, abs=1e-9)


def test_what_cannot_be_locked_is_named() -> None:
    tree = random_tree(np.random.default_rng(3), bodies=4, base="free")
    with pytest.raises(ModelError, match="'elbow' is no coordinate"):
        welded(tree, {"elbow": 0.0})
    with pytest.raises(ModelError, match="cannot be held there"):
        welded(tree, {tree.coordinates[0]: float("nan")})
    rubbing = Tree.build(tree.bodies, base="free", elements=[damper(tree.coordinates[0])])
    with pytest.raises(ModelError, match="elements cannot be welded") as error:
        welded(rubbing, {tree.coordinates[0]: 0.0})
    assert "the inertia of some bodies is unknown" in str(error.value)


def test_a_joint_on_the_ground_cannot_be_locked() -> None:
    tree = random_tree(np.random.default_rng(5), bodies=3, base="fixed", kinds=("turning",))
    root = next(b for b in tree.bodies if b.joint != "fixed" and b.antecedent == "ground")
    with pytest.raises(ModelError, match="no inertia to take it up"):
        welded(tree, {root.coordinate_name: 0.0})
