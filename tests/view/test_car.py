"""The car as a picture: its wheels are round, where the run says they are, and roll."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from veridyn.simulate.vehicle.description import Vehicle
from veridyn.simulate.vehicle.manoeuvre import straight
from veridyn.simulate.vehicle.run import drive
from veridyn.view.car import BOXES, CORNERS, WHEEL_WIDTH, car_scene


def test_wheels_are_round_in_their_places_and_roll() -> None:
    """Corners of each wheel are a tyre's radius from its axis, its centre is where a loaded tyre carries it, and it turns by the way that
    it travels over its rolling radius."""
    run = drive(Vehicle(), straight(), duration=1.0, every=20)
    made = car_scene(run, "straight on", frames=40)
    layer = made.layers[0]
    assert len(made.t) <= 40 and made.follow and len(layer.solids) == BOXES + 5
    for wheel in layer.solids[-4:]:
        across = np.hypot(wheel.vertices[:, 0], wheel.vertices[:, 2])
        assert across == pytest.approx(np.full(len(across), 0.313), abs=1e-6) and len(across) == 2 * CORNERS
        assert np.abs(wheel.vertices[:, 1]) == pytest.approx(np.full(len(across), WHEEL_WIDTH / 2.0))
        centre = layer.points[:, wheel.point]
        assert centre[-1, 2] == pytest.approx(0.29, abs=0.03)  # a loaded tyre's centre above the road
        way = float(centre[1, 0] - centre[0, 0])
        assert way > 0.0
        R = wheel.turns[0].T @ wheel.turns[1]
        angle = float(np.arctan2(R[0, 2], R[0, 0])) % (2.0 * np.pi)
        assert angle == pytest.approx((way / 0.305) % (2.0 * np.pi), abs=0.1)


def test_the_body_is_whole_and_carries_the_cabin() -> None:
    """In the chassis frame: boxes touch from bumper to bumper, and the cabin stands on them, shorter and narrower."""
    made = car_scene(drive(Vehicle(), straight(), duration=0.2, every=20), "straight on", frames=3)
    layer = made.layers[0]
    R, origin = layer.solids[0].turns[0], layer.points[0, 0]
    parts = [s.vertices + R.T @ (layer.points[0, s.point] - origin) for s in layer.solids[: BOXES + 1]]
    assert pytest.approx(np.eye(3), abs=0.05) == R
    for one, other in pairwise(parts[:BOXES]):
        assert one[:, 0].max() == pytest.approx(other[:, 0].min())
    body, cabin = np.concatenate(parts[:BOXES]), parts[BOXES]
    assert cabin[:, 2].min() == pytest.approx(body[:, 2].max())
    assert (np.ptp(cabin, axis=0)[:2] < np.ptp(body, axis=0)[:2]).all()
