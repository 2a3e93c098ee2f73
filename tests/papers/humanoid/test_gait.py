"""Plans of the humanoid: kinematics against forward kinematics, and walking against its zero-moment point."""

from __future__ import annotations

import numpy as np
import pytest

from papers.humanoid.humanoid_runs import CAD
from veridyn.errors import DataError
from veridyn.identify.base import base_parameters
from veridyn.mechanics.tree.recursion.kinematics import body_pose
from veridyn.papers.humanoid.gait import (
    STANCE,
    about,
    bend,
    centre_of_pressure,
    leg_angles,
    lowest,
    pendulum,
    swing,
    walk,
)
from veridyn.papers.humanoid.machine import FOOT, HIP, LEG, SIDES, SOLE
from veridyn.papers.humanoid.walk import SOLE_AXES
from veridyn.signals.derivative import derivative
from veridyn.spatial.rotations import rot_x, rot_y, rot_z


def test_the_legs_reach_where_they_are_sent() -> None:
    """Closed inverse kinematics against the forward kinematics of the tree."""
    rng = np.random.default_rng(0)
    N = 40
    R = about(2, rng.normal(size=N) * 0.2) @ about(1, rng.normal(size=N) * 0.2) @ about(0, rng.normal(size=N) * 0.2)
    p = np.array([0.0, 0.0, STANCE - 0.02]) + 0.01 * rng.normal(size=(N, 3))
    Rf, pf = R, p
    for side in SIDES:
        Rf = about(2, rng.normal(size=N) * 0.3) @ about(0, rng.normal(size=N) * 0.1)
        pf = np.array([0.02, HIP if side == "left" else -HIP, SOLE]) + 0.01 * rng.normal(size=(N, 3))
        q = np.zeros((N, CAD.n))
        q[:, [CAD.coordinates.index(f"{side}_{part}") for part in LEG]] = leg_angles(side, (R, p), (Rf, pf))
        Rb, pb = body_pose(CAD, q, f"{side}_foot")
        assert p + np.einsum("nij,nj->ni", R, pb) == pytest.approx(pf, abs=1e-12)
        assert R @ Rb @ SOLE_AXES == pytest.approx(Rf, abs=1e-12)
    with pytest.raises(DataError, match="out of reach"):
        leg_angles("left", (R, p + 0.1), (Rf, pf))


def test_turns_are_those_of_single_rotations() -> None:
    for axis, one in enumerate((rot_x, rot_y, rot_z)):
        assert about(axis, np.array([0.3]))[0] == pytest.approx(one(0.3))


def test_the_pendulum_solves_its_equation() -> None:
    t = np.arange(2000) * 0.003
    zmp = np.column_stack([np.where((t > 2) & (t < 4), 0.03, 0.0), 0.01 * np.sin(t)])
    x = pendulum(zmp, 0.3)
    back = x - 0.3 / 9.81 * derivative(x, 1 / 0.003, 2, "central")
    assert np.abs(back - zmp)[50:600].max() < 1e-4


def test_walking_keeps_its_zero_moment_point_under_its_feet() -> None:
    plan = walk(CAD, 4)
    cop = centre_of_pressure(CAD, plan)
    (back, front), (inner, outer) = FOOT
    ankles = {
        s: plan.pose.position + np.einsum("nij,nj->ni", plan.pose.rotation, body_pose(CAD, plan.q, f"{s}_foot")[1])
        for s in SIDES
    }
    low = {s: ankles[s][:, 2] < SOLE + 1e-4 for s in SIDES}
    x = np.stack([np.where(low[s], ankles[s][:, 0], np.nan) for s in SIDES])
    y = np.stack([np.where(low[s], ankles[s][:, 1], np.nan) for s in SIDES])
    assert (cop[:, 0] > np.nanmin(x, axis=0) + back).all() and (cop[:, 0] < np.nanmax(x, axis=0) + front).all()
    assert (cop[:, 1] > np.nanmin(y, axis=0) + inner).all() and (cop[:, 1] < np.nanmax(y, axis=0) + outer).all()
    assert len(plan) * 0.003 == pytest.approx(2 * 0.8 + 4 * 0.5, abs=0.01)


def test_a_flat_foot_and_an_upright_torso_leave_parameters_in_the_dark() -> None:
    """How many depends on the gait; that it is fewer does not."""
    counts = {}
    for name, turn, sway in (("turning", 0.17, 0.06), ("flat", 0.0, 0.06), ("flat and upright", 0.0, 0.0)):
        found = base_parameters(CAD, walk(CAD, 4, foot_turn=turn, sway=sway).motion(CAD)[::3], rows="base")
        counts[name] = found.count
        print(f"{name}: rank {found.count}, gap {found.gap:.1e}")
    assert counts["turning"] == 94
    assert counts["flat and upright"] < counts["flat"] < 94


def test_a_swing_keeps_its_strapped_foot_still_and_the_other_above_the_ground() -> None:
    plan = swing(CAD, "left", np.random.default_rng(1), duration=4.0)
    R, p = body_pose(CAD, plan.q, "left_foot")
    ankle = plan.pose.position + np.einsum("nij,nj->ni", plan.pose.rotation, p)
    assert np.ptp(ankle, axis=0).max() < 1e-12 and np.ptp(plan.pose.rotation @ R, axis=0).max() < 1e-12
    corners = np.array([[x, y, -SOLE] for x in FOOT[0] for y in FOOT[1]])
    assert lowest(CAD, plan, corners)["right"] > 0.0


def test_bending_turns_about_each_axis_with_both_feet_still() -> None:
    plan = bend(CAD)
    for side in SIDES:
        _, p = body_pose(CAD, plan.q, f"{side}_foot")
        assert np.ptp(plan.pose.position + np.einsum("nij,nj->ni", plan.pose.rotation, p), axis=0).max() < 1e-12
    assert np.abs(plan.velocity[:, 3:]).max(axis=0).min() > 0.3
