"""The car as a picture: its wheels are round and where the run says they are."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.simulate.vehicle.description import Vehicle
from veridyn.simulate.vehicle.manoeuvre import straight
from veridyn.simulate.vehicle.run import drive
from veridyn.view.car import RING, car_scene


def test_wheels_are_round_and_in_their_places() -> None:
    run = drive(Vehicle(), straight(), duration=1.0, every=20)
    made = car_scene(run, "straight on", frames=10)
    points = made.layers[0].points
    assert len(made.t) <= 10 and made.follow
    ring = points[:, -RING:]
    centre = ring.mean(axis=1)
    radius = np.linalg.norm(ring - centre[:, None], axis=2)
    assert radius == pytest.approx(np.full(radius.shape, 0.313), abs=1e-6)
    assert centre[-1, 2] == pytest.approx(0.29, abs=0.03)  # a loaded tyre's centre above the road
    assert (np.diff(centre[:, 0]) > 0.0).all()
    assert max(max(s) for s in made.layers[0].segments) == points.shape[1] - 1
