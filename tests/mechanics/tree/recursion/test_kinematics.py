"""Poses, Jacobians and motions of frames against Pinocchio and finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from strangers.pinocchio_oracle import PinModel
from strangers.random_trees import random_motion, random_tree
from veridyn.errors import DataError, ModelError
from veridyn.mechanics.tree.recursion.kinematics import body_motion, body_pose, jacobian
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.motion import Motion

ROUNDING = 1e-12
SEEDS = range(64)


def case(seed: int, samples: int = 3) -> tuple[Tree, Motion]:
    rng = np.random.default_rng(2000 + seed)
    base = "free" if seed % 2 else "fixed"
    tree = random_tree(rng, base=base, shared=seed % 4 >= 2, mdh=(None, True, False)[seed % 3])
    return tree, random_motion(rng, tree, samples, wrenches=False)


def close(a: np.ndarray, b: np.ndarray) -> bool:
    assert a.shape == b.shape
    return bool(np.abs(a - b).max(initial=0.0) <= ROUNDING * max(np.abs(b).max(initial=0.0), 1.0))


@pytest.mark.parametrize("seed", SEEDS)
def test_poses_equal_pinocchio(seed: int) -> None:
    tree, motion = case(seed)
    oracle = PinModel(tree)
    for b in tree.bodies:
        R, p = body_pose(tree, motion.q, b.name)
        expected = oracle.frame_pose(motion.q, b.name)
        assert close(R, expected[0]) and close(p, expected[1])


@pytest.mark.parametrize("seed", SEEDS)
def test_jacobians_equal_pinocchio_in_both_frames(seed: int) -> None:
    tree, motion = case(seed)
    oracle = PinModel(tree)
    for b in tree.bodies:
        assert close(jacobian(tree, motion.q, b.name), oracle.jacobian(motion.q, b.name))
        assert close(jacobian(tree, motion.q, b.name, frame="body"), oracle.jacobian(motion.q, b.name, local=True))


@pytest.mark.parametrize("seed", range(0, 12, 2))
def test_body_motion_is_the_derivative_of_poses(seed: int) -> None:
    """ω, V by the Jacobian; ω̇ and V̇ − g by central differences of them along the motion, in the ground's axes."""
    tree, motion = case(seed)
    h = 1e-5

    def twist(s: float, body: str) -> np.ndarray:
        q = motion.q + s * motion.qd + 0.5 * s**2 * motion.qdd
        return np.einsum("nij,nj->ni", jacobian(tree, q, body), motion.qd + s * motion.qdd)

    for b in tree.bodies:
        m = body_motion(tree, motion, b.name)
        R, _ = body_pose(tree, motion.q, b.name)
        now = twist(0.0, b.name)
        rate = (twist(h, b.name) - twist(-h, b.name)) / (2 * h)

        def inside(x: np.ndarray, R: np.ndarray = R) -> np.ndarray:
            return np.einsum("nji,nj->ni", R, x)

        assert m.velocity == pytest.approx(inside(now[:, :3]), abs=1e-11)
        assert m.omega == pytest.approx(inside(now[:, 3:]), abs=1e-11)
        # The differences' own error, h² times third derivatives of order 100.
        assert m.omega_dot == pytest.approx(inside(rate[:, 3:]), abs=1e-6)
        assert m.acceleration == pytest.approx(inside(rate[:, :3] - tree.gravity), abs=1e-6)


def test_motion_of_the_base_is_the_one_given() -> None:
    tree, motion = case(1)
    m = body_motion(tree, motion, tree.bodies[0].name)
    for name in ("omega", "omega_dot", "acceleration", "velocity"):
        assert np.array_equal(getattr(m, name), getattr(motion.base, name))


def test_velocity_is_unknown_where_the_base_does_not_tell_its_own() -> None:
    tree, motion = case(1)
    quiet = Motion(motion.t, motion.q, motion.qd, motion.qdd, type(motion.base)(*np.ones((3, 3, 3))))
    assert body_motion(tree, quiet, tree.bodies[-1].name).velocity is None


def test_unknown_bodies_frames_and_shapes_are_refused() -> None:
    tree, motion = case(0)
    with pytest.raises(ModelError, match="there is no body 'tool'"):
        body_pose(tree, motion.q, "tool")
    with pytest.raises(DataError, match=r"'world' is no frame for a Jacobian\.\nExpected 'ground' or 'body'"):
        jacobian(tree, motion.q, "1", frame="world")
    with pytest.raises(DataError, match=rf"wrong shape of the coordinates\.\nExpected \(N, {tree.n}\)"):
        body_pose(tree, motion.q[0], "1")
