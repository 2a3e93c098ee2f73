"""Periodic B-splines, against SciPy's own periodic evaluation and finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.signals.splines import SplineTrajectory, spline_basis


def trajectory(degree: int = 5) -> SplineTrajectory:
    return SplineTrajectory(np.random.default_rng(0).normal(size=(12, 3)), 0.2, degree)


@pytest.mark.parametrize("degree", [3, 4, 5])
def test_rates_are_those_of_differences(degree: int) -> None:
    s = trajectory(degree)
    t, h = np.linspace(0.13, 4.7, 40), 1e-5
    q, qd, qdd = s.at(t)
    assert (s.at(t + h)[0] - s.at(t - h)[0]) / (2 * h) == pytest.approx(qd, abs=1e-7)
    assert (s.at(t + h)[1] - s.at(t - h)[1]) / (2 * h) == pytest.approx(qdd, abs=1e-5)
    assert s.at(t + s.period)[0] == pytest.approx(q)


def test_weights_add_up_to_one_and_stay_in_the_range_of_the_points() -> None:
    phase = np.linspace(0.0, 1.0, 101)
    B = spline_basis(phase, 12, 5)
    assert B[0].sum(axis=1) == pytest.approx(np.ones(101))
    assert B[1].sum(axis=1) == pytest.approx(np.zeros(101), abs=1e-10)
    assert B[0].min() >= -1e-15
    s = trajectory()
    q = s.at(np.linspace(0.0, 5.0, 400))[0]
    assert (q <= s.points.max(axis=0)).all() and (q >= s.points.min(axis=0)).all()


def test_it_starts_from_rest_where_asked() -> None:
    s = trajectory().with_start(2.0)
    q, qd, qdd = s.at(0.0)
    assert q == pytest.approx(s.centre) and not qd.any() and not qdd.any()
    assert s.grid()[-1] == pytest.approx(7.0)


@pytest.mark.parametrize(
    ("points", "frequency", "degree", "words"),
    [
        (np.zeros((4, 2)), 0.1, 5, "control points"),
        (np.zeros((12, 2)), 0.0, 5, "times are not usable"),
        (np.zeros((12, 2)), 0.1, 2, "acceleration would jump"),
    ],
)
def test_what_cannot_be_is_refused(points: np.ndarray, frequency: float, degree: int, words: str) -> None:
    with pytest.raises(DataError, match=words):
        SplineTrajectory(points, frequency, degree)
