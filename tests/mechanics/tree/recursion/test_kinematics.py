"""Poses, Jacobians, motions of frames and energies against Pinocchio and finite differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from strangers.pinocchio_oracle import PinModel
from strangers.random_trees import random_inertia, random_motion, random_rotation, random_tree
from veridyn.errors import DataError, ModelError
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.recursion.kinematics import body_motion, body_pose, energy, jacobian
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import coulomb, damper, motor_inertia, offset, spring
from veridyn.model.graph import Body
from veridyn.model.motion import Motion
from veridyn.spatial.rotations import MDH

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


@pytest.mark.parametrize("seed", SEEDS)
def test_equals_pinocchio(seed: int) -> None:
    rng = np.random.default_rng(4000 + seed)
    free = bool(seed % 2)
    tree = random_tree(rng, base="free" if free else "fixed", shared=seed % 4 >= 2, mdh=(None, True, False)[seed % 3])
    motion = random_motion(rng, tree, 4, wrenches=False)
    R = np.array([random_rotation(rng) for _ in range(4)])
    p = rng.normal(size=(4, 3))
    pose = {"base_rotation": R, "base_position": p} if free else {}
    E = energy(tree, motion, **pose)
    base = np.hstack([motion.base.velocity, motion.base.omega]) if free else None
    expected = PinModel(tree).energy(motion.q, motion.qd, base, (R, p) if free else None)
    scale = max(np.abs(expected.kinetic).max(), np.abs(expected.potential).max(), 1e-300)
    assert np.abs(E.kinetic - expected.kinetic).max() <= ROUNDING * scale
    assert np.abs(E.gravity - expected.potential).max() <= ROUNDING * scale
    assert not E.elastic.any()
    assert np.array_equal(E.total, E.kinetic + E.gravity + E.elastic)


def machine() -> Tree:
    rng = np.random.default_rng(0)
    bodies = [
        Body("1"),
        Body("2", "1", placement=MDH(alpha=1.0, d=0.3)),
        Body("3", "2", "sliding", MDH(alpha=-0.7, r=0.2)),
    ]
    elements = [
        spring({"q1": 1.0, "q2": -1.0}, 15.0, "k"),
        offset("q3", 4.0, "o"),
        motor_inertia({"q1": 2.0, "q2": 1.0}, 0.2, "Ia"),
        damper("q2", 0.6, "h"),
        damper({"q1": 1.0, "q2": 1.0}, 0.3, "hc"),
        coulomb("q3", 0.8, "f"),
    ]
    return Tree.build(bodies, inertia={b.name: random_inertia(rng) for b in bodies}, elements=elements)


def test_springs_offsets_and_rotors_store_energy() -> None:
    tree = machine()
    q, qd, qdd = np.random.default_rng(1).normal(size=(3, 7, 3))
    E = energy(tree, Motion(np.arange(7.0), q, qd, qdd))
    assert E.elastic == pytest.approx(7.5 * (q[:, 0] - q[:, 1]) ** 2 + 4.0 * q[:, 2], rel=1e-13)
    bare = energy(tree, Motion(np.arange(7.0), q, qd, qdd), parameters=np.r_[tree.parameters.values[:30], np.zeros(6)])
    assert E.kinetic - bare.kinetic == pytest.approx(0.1 * (2 * qd[:, 0] + qd[:, 1]) ** 2, rel=1e-11)


@pytest.mark.parametrize("seed", range(8))
def test_power_balance(seed: int) -> None:
    """dE/dt = Γ·q̇ + wrenches·twists − what friction takes, along a smooth curve, by central differences of E."""
    tree = machine()
    rng = np.random.default_rng(seed)
    a, w, phase = rng.normal(size=3), rng.uniform(0.5, 2.0, 3), rng.uniform(0, 6, 3)

    def at(t: np.ndarray) -> Motion:
        x = np.outer(t, w) + phase
        return Motion(t, a * np.sin(x), a * w * np.cos(x), -a * w**2 * np.sin(x))

    t, h = np.linspace(0.0, 3.0, 31), 1e-4
    motion = at(t)
    wrench = rng.normal(size=(31, 6))
    motion = replace(motion, wrenches={"3": wrench})
    rate = (energy(tree, at(t + h)).total - energy(tree, at(t - h)).total) / (2 * h)
    twist = np.einsum("nij,nj->ni", jacobian(tree, motion.q, "3", frame="body"), motion.qd)
    power = (inverse_dynamics(tree, motion) * motion.qd).sum(axis=1) + (wrench * twist).sum(axis=1)
    qd = motion.qd
    friction = 0.6 * qd[:, 1] ** 2 + 0.3 * (qd[:, 0] + qd[:, 1]) ** 2 + 0.8 * np.abs(qd[:, 2])
    # h² E''' / 6 of the differences is of order 1e-7 here.
    assert rate == pytest.approx(power - friction, abs=1e-6 * max(np.abs(power).max(), 1.0))


def test_a_free_tree_must_say_where_it_is() -> None:
    rng = np.random.default_rng(2)
    tree = random_tree(rng, bodies=3, base="free")
    with pytest.raises(DataError, match="energy of a free tree needs its base's velocity and pose"):
        energy(tree, random_motion(rng, tree, 2))
