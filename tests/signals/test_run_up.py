"""Entering a periodic motion from rest along its own path."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.signals.run_up import RunUp
from veridyn.signals.trajectory import FourierTrajectory

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
