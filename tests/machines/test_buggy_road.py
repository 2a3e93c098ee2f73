"""The ground below the wheels: planes that touch a road there, a survey, and a drive on a slope against Runge and Kutta."""

import numpy as np
import pytest

from veridyn.machines.buggy import CORNERS, buggy
from veridyn.machines.buggy_drive import BuggyDrive, drive, settle
from veridyn.machines.buggy_log import driven
from veridyn.machines.buggy_road import RoadBelow, surveyed_road
from veridyn.mechanics.ground.road import Plane
from veridyn.mechanics.kinematics import body_pose


def test_planes_touch_the_road_below_the_wheels():
    """Height and slopes of z = road + road_x x + road_y y at each wheel's centre are the road's."""
    machine, rng = buggy(), np.random.default_rng(2)
    road = surveyed_road(0.05 * rng.standard_normal((41, 64)), 1.0, 1.0)
    at = settle(machine)
    p, yaw = np.array([11.3, 2.2, at.base.position[2]]), 0.4
    x = np.concatenate([p, [np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2)], at.q])
    below = RoadBelow(machine, road)
    planes = dict(zip(below.names, below(x).tolist(), strict=True))
    R = np.array([[np.cos(yaw), -np.sin(yaw), 0.0], [np.sin(yaw), np.cos(yaw), 0.0], [0.0, 0.0, 1.0]])
    for c in CORNERS:
        _, centre = body_pose(machine, at.q[None], f"wheel_{c}")
        cx, cy, _ = p + R @ centre[0]
        z, zx, zy = (planes[f"signal.tyre_{c}.{key}"] for key in ("road", "road_x", "road_y"))
        assert z + zx * cx + zy * cy == pytest.approx(float(road.height(cx, cy)), abs=1e-12)
        assert (zx, zy) == pytest.approx(tuple(float(s) for s in road.slope(cx, cy)), abs=1e-12)


def test_a_survey_goes_through_its_heights_and_repeats_itself():
    heights = np.random.default_rng(3).standard_normal((5, 8))
    road = surveyed_road(heights, 2.0, 1.5)
    x, y = np.meshgrid(2.0 * np.arange(8), 1.5 * (np.arange(5) - 2.0))
    np.testing.assert_allclose(road.height(x, y), heights, atol=1e-12)
    np.testing.assert_allclose(road.height(x + 16.0, y), heights, atol=1e-12)
    np.testing.assert_allclose(road.slope(x, y)[0][:, 1:-1], (heights[:, 2:] - heights[:, :-2]) / 4.0, atol=1e-12)


def test_a_drive_uphill_is_that_of_forward_dynamics():
    """Trapezoidal steps of 1 ms against Runge-Kutta ones of 4 ms, which read the road by a way of their own."""
    machine, how, road = buggy(), BuggyDrive(duration=0.4), Plane(grade=0.03, bank=-0.01)
    ours, other = driven(machine, how, road=road), drive(machine, how, road=road)
    assert other.base_position is not None
    np.testing.assert_allclose(ours.q[::10, :3], other.base_position, atol=2e-5)
    flat = driven(machine, how)
    assert ours.qd[-1, 0] < flat.qd[-1, 0] - 0.05
