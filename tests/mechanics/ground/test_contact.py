"""Wrenches of the world against Pinocchio's force transforms, and against each other."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from strangers.random_trees import random_motion, random_rotation, random_tree
from veridyn.errors import DataError
from veridyn.mechanics.ground.contact import plate_wrench, pressure_wrench, sensor_wrench, with_contacts
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.recursion.kinematics import body_pose
from veridyn.model.motion import Pose
from veridyn.spatial.rotations import Placement

RNG = np.random.default_rng(2)


def moved(R: np.ndarray, p: np.ndarray, w: np.ndarray) -> np.ndarray:
    """A stranger's: the same wrench in the outer frame."""
    return np.array([pin.SE3(R, p).act(pin.Force(x[:3], x[3:])).vector for x in w])


def test_a_plate_and_a_sensor_in_a_link() -> None:
    w = RNG.normal(size=(5, 6))
    place = Placement(random_rotation(RNG), RNG.normal(size=3))
    assert plate_wrench(w[:, :3], w[:, 3:], place) == pytest.approx(moved(place.rotation, place.position, w), abs=1e-14)
    assert sensor_wrench(w, place) == pytest.approx(moved(place.rotation, place.position, w), abs=1e-14)
    assert plate_wrench(w[:, :3], w[:, 3:]) == pytest.approx(w)


def test_a_centre_of_pressure_is_where_the_moment_is_the_free_one() -> None:
    f, c, twist = RNG.normal(size=(4, 3)), RNG.normal(size=(4, 3)), RNG.normal(size=4)
    w = pressure_wrench(f, c, twist)
    at = np.array(
        [pin.SE3(np.eye(3), point).actInv(pin.Force(x[:3], x[3:])).vector for point, x in zip(c, w, strict=True)]
    )
    assert at[:, 3:] == pytest.approx(np.column_stack([0 * twist, 0 * twist, twist]), abs=1e-14)
    vector = pressure_wrench(f, c, np.column_stack([0 * twist, 0 * twist, twist]))
    assert vector == pytest.approx(w)


def test_an_idle_plate_has_no_centre_and_no_wrench() -> None:
    f, c = np.zeros((3, 3)), np.full((3, 3), np.nan)
    assert (pressure_wrench(f, c) == 0.0).all()
    f[1, 2] = 5.0
    with pytest.raises(DataError, match=r"centre of pressure is unknown\.\nFound sample 1"):
        pressure_wrench(f, c)


def test_feet_the_base_or_any_link_feel_the_same_total() -> None:
    """Base rows see only the sum, whichever link the world acts on, and joint rows see which."""
    tree = random_tree(RNG, bodies=6, base="free")
    motion = random_motion(RNG, tree, 4, wrenches=False)
    pose = Pose(motion.t, np.stack([random_rotation(RNG) for _ in range(4)]), RNG.normal(size=(4, 3)))
    world = RNG.normal(size=(4, 6))
    names = [b.name for b in tree.bodies]
    alone = [inverse_dynamics(tree, with_contacts(tree, motion, pose, {n: world})) for n in names]
    for other in alone[1:]:
        assert other[:, :6] == pytest.approx(alone[0][:, :6], abs=1e-12)
    halves = with_contacts(tree, motion, pose, {names[0]: 0.25 * world, names[-1]: 0.75 * world})
    assert inverse_dynamics(tree, halves, "base") == pytest.approx(alone[0][:, :6], abs=1e-12)
    twice = with_contacts(tree, with_contacts(tree, motion, pose, {names[-1]: world}), pose, {names[-1]: -world})
    assert inverse_dynamics(tree, twice) == pytest.approx(inverse_dynamics(tree, motion), abs=1e-12)
    R, p = body_pose(tree, motion.q, names[-1])
    felt = with_contacts(tree, motion, pose, {names[-1]: world}).wrenches[names[-1]]
    back = np.array(
        [
            moved(pose.rotation[k] @ R[k], pose.position[k] + pose.rotation[k] @ p[k], felt[k : k + 1])[0]
            for k in range(4)
        ]
    )
    assert back == pytest.approx(world, abs=1e-12)


def test_what_does_not_fit_is_refused_all_at_once() -> None:
    tree = random_tree(RNG, bodies=3, base="free")
    motion = random_motion(RNG, tree, 4, wrenches=False)
    pose = Pose(np.arange(3.0), np.tile(np.eye(3), (3, 1, 1)), np.zeros((3, 3)))
    with pytest.raises(DataError) as error:
        with_contacts(tree, motion, pose, {"toe": np.zeros((4, 6)), tree.bodies[0].name: np.zeros((4, 3))})
    text = str(error.value)
    assert "'toe', which is no body" in text and "wrong shape" in text and "not of the same times" in text
    with pytest.raises(DataError, match="do not belong together"):
        plate_wrench(np.zeros((3, 3)), np.zeros((4, 3)))
    fixed = random_tree(RNG, bodies=2, base="fixed")
    still = random_motion(RNG, fixed, 3, wrenches=False)
    with pytest.raises(DataError, match="need a free base"):
        with_contacts(fixed, still, pose, {})
