"""Entering a periodic motion from rest along its own path."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.signals.run_up import Approach, RunUp
from veridyn.signals.trajectory import FourierTrajectory

FASTEST, HARDEST = 1.875, 10.0 / np.sqrt(3.0)  # largest values of s' and of s'' for s = 10u³ − 15u⁴ + 6u⁵

MOTION = FourierTrajectory(np.zeros(2), np.array([[0.5, 0.2], [0.1, 0.3]]), np.array([[0.1, 0.0], [0.2, -0.1]]), 0.5)


def test_from_rest_along_the_path_and_then_the_motion_itself() -> None:
    entry = RunUp(MOTION, 3.0, 0.4)
    x, xd, xdd = entry.at(0.0)
    assert x == pytest.approx(MOTION.at(0.4 - 1.5)[0]) and not xd.any() and not xdd.any()
    t = np.linspace(3.0, 6.0, 50)
    for own, its in zip(entry.at(t), MOTION.at(t - 3.0 + 0.4), strict=True):
        assert own == pytest.approx(its, abs=1e-12)
    # every place on the way is one of the path
    path = MOTION.at(np.linspace(0.0, 2.0, 4001))[0]
    for x in entry.at(np.linspace(0.0, 3.0, 25))[0]:
        assert np.linalg.norm(path - x, axis=1).min() < 2e-3


def test_rates_are_those_of_differences() -> None:
    entry, h = RunUp(MOTION, 3.0), 1e-5
    t = np.linspace(0.1, 4.0, 60)
    assert (entry.at(t + h)[0] - entry.at(t - h)[0]) / (2 * h) == pytest.approx(entry.at(t)[1], abs=1e-7)
    assert (entry.at(t + h)[1] - entry.at(t - h)[1]) / (2 * h) == pytest.approx(entry.at(t)[2], abs=1e-5)


def test_without_a_lead_it_is_the_motion() -> None:
    assert RunUp(MOTION, 0.0).at(0.3)[0] == pytest.approx(MOTION.at(0.3)[0])
    assert RunUp(MOTION, 0.0).period == MOTION.period


APPROACHED = FourierTrajectory(
    np.array([0.3, -0.2]), np.array([[0.4, 0.1], [0.2, 0.3]]), np.array([[0.1, 0.0], [0.0, 0.2]]), 0.2
)
WAY = Approach(RunUp(APPROACHED, 2.5, 1.0), np.array([-1.0, 0.5]), 3.0)


def test_it_begins_at_the_start_at_rest_and_ends_in_the_reference() -> None:
    x, xd, xdd = WAY.at(0.0)
    assert x == pytest.approx([-1.0, 0.5]) and not xd.any() and not xdd.any()
    t = np.linspace(3.0, 12.0, 50)
    for a, b in zip(WAY.at(t), WAY.reference.at(t - 3.0), strict=True):
        assert a == pytest.approx(b)
    assert WAY.lead == 5.5 and WAY.period == 5.0


def test_rates_are_those_of_finite_differences_and_below_their_bounds() -> None:
    t, h = np.linspace(0.01, 7.0, 300), 1e-5
    x, xd, xdd = WAY.at(t)
    (up, vup, _), (down, vdown, _) = WAY.at(t + h), WAY.at(t - h)
    assert xd == pytest.approx((up - down) / (2 * h), abs=1e-7)
    assert xdd == pytest.approx((vup - vdown) / (2 * h), abs=1e-4)
    way = np.abs(WAY.reference.at(0.0)[0] - WAY.start)
    early = np.linspace(0.0, 2.999, 4001)
    assert np.abs(WAY.at(early)[1]).max(axis=0) == pytest.approx(FASTEST * way / 3.0, rel=1e-5)
    assert np.abs(WAY.at(early)[2]).max(axis=0) == pytest.approx(HARDEST * way / 9.0, rel=1e-5)
    assert x.shape == (300, 2)


def test_no_seconds_are_no_approach() -> None:
    whole = Approach(WAY.reference, WAY.reference.at(0.0)[0], 0.0)
    assert whole.at(0.5)[0] == pytest.approx(WAY.reference.at(0.5)[0])
