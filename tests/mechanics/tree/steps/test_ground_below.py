"""The road below wheels: planes that touch it, by poses of bodies and the road's own doors; a filter's look at it, by steps one by one."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.kinematics import body_pose
from veridyn.mechanics.tree.steps.ground_below import GroundBelow
from veridyn.mechanics.tree.steps.model import tree_model
from veridyn.observe.filters.filter import Passing
from veridyn.papers.buggy.drive import driven, settle, surveyed_road
from veridyn.papers.buggy.ground import along_road, rough, three_turns
from veridyn.papers.buggy.machine import CORNERS, buggy
from veridyn.papers.buggy.observers import error_ekf, force_observer


def test_planes_touch_the_road_below_the_wheels() -> None:
    """Height and slopes of z = road + road_x x + road_y y at each wheel's centre are the road's."""
    machine, rng = buggy(), np.random.default_rng(2)
    road = surveyed_road(0.05 * rng.standard_normal((41, 64)), 1.0, 1.0)
    at = settle(machine)
    p, yaw = np.array([11.3, 2.2, at.base.position[2]]), 0.4
    x = np.concatenate([p, [np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2)], at.q])
    below = GroundBelow(tree_model(tree_of(machine)), road)
    planes = dict(zip(below.names, below.at(x).tolist(), strict=True))
    R = np.array([[np.cos(yaw), -np.sin(yaw), 0.0], [np.sin(yaw), np.cos(yaw), 0.0], [0.0, 0.0, 1.0]])
    for c in CORNERS:
        _, centre = body_pose(machine, at.q[None], f"wheel_{c}")
        cx, cy, _ = p + R @ centre[0]
        z, zx, zy = (planes[f"signal.tyre_{c}.{key}"] for key in ("road", "road_x", "road_y"))
        assert z + zx * cx + zy * cy == pytest.approx(float(road.height(cx, cy)), abs=1e-12)
        assert (zx, zy) == pytest.approx(tuple(float(s) for s in road.slope(cx, cy)), abs=1e-12)


def test_without_a_road_there_is_nothing_below() -> None:
    below = GroundBelow(tree_model(tree_of(buggy())), None)
    assert below.names == () and below.at(np.zeros(7)).shape == (0,)


@pytest.mark.filterwarnings("ignore:.*the step of the integration is too long")
@pytest.mark.parametrize("observer", [error_ekf(), force_observer()], ids=["error_ekf", "force"])
def test_filters_look_it_up_in_machine_code_as_one_step_after_the_other_does(observer, monkeypatch) -> None:
    """On waves of 16 m: states and what tyres were told of the ground."""
    machine, how = buggy(rolling_resistance=0.015), three_turns(0.6)
    heights = 0.03 * np.sin(2.0 * np.pi * np.arange(64) / 16.0) * np.ones((41, 1))
    road = surveyed_road(heights, 1.0, 1.0)
    log = driven(machine, how, road=road).log(np.random.default_rng(3), machine.sensors)
    many = along_road(rough(observer), machine, log, road)
    monkeypatch.setattr(Passing, "marched", lambda *_, **__: (0, np.zeros((0, 0))))
    single = along_road(rough(observer), machine, log, road)
    assert np.ptp(many.inputs[:, -12:], axis=0).max() > 1e-4  # the ground was not the same all along
    np.testing.assert_allclose(many.inputs, single.inputs, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(many.x, single.x, rtol=1e-12, atol=1e-14)
