"""Limits as functions: what is bounded, on which sides, and by how much of it a place uses."""

from __future__ import annotations

import numpy as np
import pytest

from identify.smooth_arm import truth
from veridyn.errors import DataError
from veridyn.identify.excitation.limits import Bounds, Clearance, Limits, check_limits
from veridyn.identify.excitation.plant import TreePlant
from veridyn.identify.excitation.start import shares
from veridyn.mechanics.inverse import inverse_dynamics
from veridyn.mechanics.kinematics import body_pose
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
