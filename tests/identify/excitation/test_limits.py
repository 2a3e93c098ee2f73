"""Limits as functions: what is bounded, on which sides, and by how much of it a place uses."""

from __future__ import annotations

import numpy as np
import pytest

from identify.smooth_arm import truth
from veridyn.errors import DataError
from veridyn.identify.excitation.capsules import Capsule, Collision
from veridyn.identify.excitation.limits import Bounds, Clearance, Limits, check_limits
from veridyn.identify.excitation.plant import TreePlant
from veridyn.identify.excitation.problem import shares
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.recursion.kinematics import body_pose
from veridyn.model.motion import Motion
from veridyn.signals.trajectory import JointLimits

ARM = JointLimits(
    [-1.0, -2.0, -1.0, -np.inf], [3.0, 2.0, 1.0, np.inf], [2.0, np.inf, 2.0, 2.0], [8.0, 8.0, np.inf, 8.0]
)
WHOLE = Limits(
    ARM,
    force=[90.0, 80.0, 30.0, 10.0],
    workspace={"4": ((-0.7, -0.7, -0.6), (0.7, 0.9, 0.6))},
    clearances=[Clearance("4", "1", 0.2)],
)


def test_every_limit_is_what_it_says() -> None:
    plant = TreePlant(truth())
    chi = plant.base.reduce(truth().parameters.values)
    X = np.random.default_rng(0).normal(size=(3, 7, 4))
    g, slopes = Bounds(plant, WHOLE, chi)(X)
    bounds = Bounds(plant, WHOLE, chi)
    named = dict(zip(bounds.names, g.T, strict=True))
    assert slopes is not None and slopes.shape == (7, len(named), 3, 4)
    assert named["range of q1"] == pytest.approx((X[0, :, 0] - 1.0) / 2.0)
    assert named["speed of q4"] == pytest.approx(X[1, :, 3] / 2.0)
    assert "range of q4" not in named and "speed of q2" not in named and "acceleration of q3" not in named
    gamma = inverse_dynamics(truth(), Motion(np.arange(7.0), X[0], X[1], X[2]))
    assert named["force of q2"] == pytest.approx(gamma[:, 1] / 80.0)
    p, q = body_pose(truth(), X[0], "4")[1], body_pose(truth(), X[0], "1")[1]
    assert named["workspace of 4, y"] == pytest.approx((p[:, 1] - 0.1) / 0.8)
    apart = np.linalg.norm(p - q, axis=1)
    assert named["distance 4 to 1"] == pytest.approx(apart**2 / 0.04 - 1.0)
    used = dict(zip(bounds.names, shares(bounds, g), strict=True))
    assert used["distance 4 to 1"] == pytest.approx(0.2 / apart.min())
    assert used["speed of q4"] == pytest.approx(np.abs(X[1, :, 3]).max() / 2.0)
    low, high = bounds.sides
    assert (low[-1], high[-1], low[0], high[0]) == (0.0, np.inf, -1.0, 1.0)
    assert bounds(X, slopes=False)[1] is None


def test_all_faults_at_once() -> None:
    wrong = Limits(
        JointLimits([-1.0], [1.0], [1.0], [1.0]),
        force=[1.0, -1.0, 1.0, 1.0],
        workspace={"4": ((1.0, 1.0, 1.0), (0.0, 0.0, 0.0)), "x": ((0, 0, 0), (1, 1, 1))},
        clearances=[Clearance("1", "9", -1.0)],
    )
    with pytest.raises(DataError) as told:
        check_limits(TreePlant(truth()), wrong)
    assert len(told.value.faults) == 6
    half = JointLimits([-1.0, -1.0, -np.inf, -1.0], [1.0, 1.0, 1.0, 1.0], [1.0] * 4, [1.0] * 4)
    with pytest.raises(DataError, match=r"q3: a range has both ends or none"):
        check_limits(TreePlant(truth()), Limits(half))


def test_what_is_not_limited_is_listed() -> None:
    """By kind and joint; a joint that turns without end by design has no range to check."""
    plant = TreePlant(truth())
    chi = plant.base.reduce(truth().parameters.values)
    assert Bounds(plant, WHOLE, chi).unchecked == ("range of q4", "speed of q2", "acceleration of q3")
    capsules = (
        Capsule("2", (0.0, 0.0, 0.0), (0.4, 0.0, 0.0), 0.05),
        Capsule("4", (0.0, 0.0, 0.1), (0.0, 0.0, 0.1), 0.05),
    )
    some = Limits(
        ARM,
        force=[np.inf, 80.0, 30.0, 10.0],
        collision=Collision(capsules, (("2", "4"),), floor=-1.0, above=("4",), margin=0.01),
        endless=("q4",),
        unchecked=("distance 1 to 3 (ignored)",),
    )
    bounds = Bounds(plant, some, chi)
    assert bounds.unchecked == ("speed of q2", "acceleration of q3", "force of q1", "distance 1 to 3 (ignored)")
    assert "force of q1" not in bounds.names and bounds.names[-2:] == ("distance 2 to 4", "distance 4 to the floor")
    nothing = Bounds(plant, Limits(JointLimits([-1.0] * 4, [1.0] * 4, [np.inf] * 4, [1.0] * 4)), chi)
    assert nothing.unchecked[:2] == ("speed of every joint", "force of every joint")


def test_collisions_have_slopes_and_shares() -> None:
    """By central differences; the share that is used is the distance that is asked over the one there is."""
    plant = TreePlant(truth())
    capsules = (
        Capsule("1", (0.0, 0.0, -0.1), (0.0, 0.0, 0.2), 0.08),
        Capsule("4", (0.0, 0.0, 0.0), (0.0, 0.0, 0.2), 0.05),
    )
    limits = Limits(ARM, collision=Collision(capsules, (("1", "4"),), floor=-1.5, above=("4",), margin=0.02))
    bounds = Bounds(plant, limits, np.zeros(plant.base.count))
    X = np.random.default_rng(2).normal(size=(3, 5, 4))
    g, slopes = bounds(X)
    assert slopes is not None
    for k in range(4):
        up, down = X.copy(), X.copy()
        up[0, :, k] += 1e-6
        down[0, :, k] -= 1e-6
        found = (bounds(up, slopes=False)[0] - bounds(down, slopes=False)[0]) / 2e-6
        assert slopes[:, -2:, 0, k] == pytest.approx(found[:, -2:], rel=1e-4, abs=1e-5)
    assert not slopes[:, -2:, 1:].any()
    least = np.sqrt(g[:, -2].min() + 1.0) * 0.15
    assert dict(zip(bounds.names, shares(bounds, g), strict=True))["distance 1 to 4"] == pytest.approx(0.15 / least)


def test_friction_is_the_jump_of_a_joint_that_begins_to_move() -> None:
    plant = TreePlant(truth())
    bounds = Bounds(plant, WHOLE, plant.base.reduce(truth().parameters.values), friction_speed=0.1)
    assert bounds.friction == pytest.approx([1.0, 1.2, 0.4, 0.05], rel=1e-6)
    below = bounds.below_friction()
    assert below is not None and np.asarray(below.limits.force) == pytest.approx([89.0, 78.8, 29.6, 9.95])
    assert Bounds(plant, Limits(ARM), bounds.values).below_friction() is None


def test_capsules_that_are_none_are_named() -> None:
    wrong = (
        Capsule("9", (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0.1),
        Capsule("2", (0.0, 0.0, 0.0), (np.nan, 0.0, 0.0), -0.1),
    )
    with pytest.raises(DataError) as told:
        check_limits(TreePlant(truth()), Limits(WHOLE.actuators, collision=Collision(wrong, (), None, ("2",), -0.1)))
    words = str(told.value)
    assert "there is no body '9'" in words and "'2': this is no capsule" in words
    assert "a margin is zero or more" in words and "a floor needs its height" in words
