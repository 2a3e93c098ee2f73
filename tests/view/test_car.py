"""The car as a picture: its wheels are round, where the run says they are, and roll."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.simulate.vehicle.description import Vehicle
from veridyn.simulate.vehicle.manoeuvre import straight
from veridyn.simulate.vehicle.run import drive
from veridyn.view.car import WHEEL_WIDTH, car_scene


def test_wheels_are_round_in_their_places_and_turn() -> None:
    """Corners of each wheel are a tyre's radius from its axis, its centre is where a loaded tyre carries it, and it rolls as far as it
    travels: the spoke turns by way over rolling radius."""
    run = drive(Vehicle(), straight(), duration=1.0, every=20)
    made = car_scene(run, "straight on", frames=40)
    layer = made.layers[0]
    assert len(made.t) <= 40 and made.follow and len(layer.solids) == 6
    for wheel in layer.solids[2:]:
        across = np.hypot(wheel.vertices[:, 0], wheel.vertices[:, 2])
        assert across == pytest.approx(np.full(len(across), 0.313), abs=1e-6)
        assert np.abs(wheel.vertices[:, 1]) == pytest.approx(np.full(len(across), WHEEL_WIDTH / 2.0))
        centre = layer.points[:, wheel.point]
        assert centre[-1, 2] == pytest.approx(0.29, abs=0.03)  # a loaded tyre's centre above the road
        way = float(centre[1, 0] - centre[0, 0])
        R = wheel.turns[0].T @ wheel.turns[1]
        assert way > 0.0
        angle = float(np.arctan2(R[0, 2], R[0, 0])) % (2.0 * np.pi)
        assert angle == pytest.approx((way / 0.305) % (2.0 * np.pi), abs=0.1)
        ends = layer.points[:, wheel.point + 1 : wheel.point + 3] - centre[:, None]
        assert np.linalg.norm(np.diff(ends, axis=1), axis=2) == pytest.approx(1.6 * 0.313, abs=1e-6)
    assert max(max(s) for s in layer.segments) == layer.points.shape[1] - 1


def test_the_cabin_stands_on_the_body() -> None:
    """In the chassis frame: the lowest corners of the one are as high as the highest of the other, and within its length and width."""
    made = car_scene(drive(Vehicle(), straight(), duration=0.2, every=20), "straight on", frames=3)
    body, cabin = (s.vertices for s in made.layers[0].solids[:2])
    assert cabin[:, 2].min() == pytest.approx(body[:, 2].max())
    assert (np.ptp(cabin, axis=0)[:2] < np.ptp(body, axis=0)[:2]).all()
    assert made.layers[0].solids[0].turns[0] == pytest.approx(np.eye(3), abs=0.05)
