"""Periodic B-splines, against SciPy's own periodic evaluation and finite differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.interpolate import BPoly

from veridyn.errors import DataError
from veridyn.signals.trajectory import (
    Approach,
    FourierTrajectory,
    JointLimits,
    RunUp,
    SampledTrajectory,
    SplineTrajectory,
    spline_basis,
)

LIMITS = JointLimits(
    low=np.array([-1.0, 0.0, -3.0]),
    high=np.array([2.0, 0.4, 3.0]),
    speed=np.array([2.0, 0.3, 1.0]),
    acceleration=np.array([9.0, 5.0, 0.8]),
)


def drawn(seed=1, **settings):
    return FourierTrajectory.random(np.random.default_rng(seed), LIMITS, **settings)


@pytest.mark.parametrize("start", [0.0, 1.5])
def test_derivatives_are_those_of_the_position(start):
    trajectory = drawn(start=start)
    t = np.random.default_rng(2).uniform(0.0, 12.0, 200)
    h = 1e-4  # central differences: error h² f'''/6 ~ 1e-8, rounding 1e-16/h
    q, qd, qdd = trajectory.at(t)
    before, after = trajectory.at(t - h), trajectory.at(t + h)
    assert np.allclose(qd, (after[0] - before[0]) / (2 * h), atol=2e-7)
    assert np.allclose(qdd, (after[1] - before[1]) / (2 * h), atol=2e-6)
    for method, values in ((trajectory.position, q), (trajectory.velocity, qd), (trajectory.acceleration, qdd)):
        assert np.array_equal(method(t), values)


def test_a_start_begins_at_rest_and_ends_in_the_periodic_motion():
    plain = drawn()
    trajectory = replace(plain, start=2.0)
    q, qd, qdd = trajectory.at(0.0)
    assert np.array_equal(q, trajectory.centre)
    assert not qd.any() and not qdd.any()
    late = np.linspace(2.0, 25.0, 40)
    for a, b in zip(trajectory.at(late), plain.at(late), strict=True):
        assert np.allclose(a, b, atol=1e-12)


def test_it_repeats_itself_and_holds_no_higher_frequency():
    trajectory = drawn(harmonics=4, frequency=0.25)
    assert trajectory.period == 4.0 and trajectory.highest == 1.0
    t = np.arange(64) * trajectory.period / 64
    q = trajectory.position(t)
    assert np.allclose(q, trajectory.position(t + trajectory.period), atol=1e-12)
    amplitude = np.abs(np.fft.rfft(q, axis=0))
    assert amplitude[5:].max() < 1e-11 * amplitude.max()


@pytest.mark.parametrize("start", [0.0, 0.7])
@pytest.mark.parametrize("seed", range(5))
def test_limits_hold_between_the_grid_too_and_the_tightest_is_used(seed, start):
    trajectory = drawn(seed, start=start, fill=0.95)
    t = np.linspace(0.0, start + trajectory.period, 20011)
    q, qd, qdd = trajectory.at(t)
    half = (LIMITS.high - LIMITS.low) / 2
    used = np.max(
        [
            np.abs(q - trajectory.centre).max(axis=0) / half,
            np.abs(qd).max(axis=0) / LIMITS.speed,
            np.abs(qdd).max(axis=0) / LIMITS.acceleration,
        ],
        axis=0,
    )
    assert (used < 0.953).all()  # a peak between two of 64 points per period is about 0.1 % higher
    assert (used > 0.949).all()
    assert ((q > LIMITS.low) & (q < LIMITS.high)).all()


def test_shapes_follow_the_times_and_the_seed_decides():
    trajectory = drawn()
    assert trajectory.position(0.3).shape == (3,)
    assert trajectory.velocity(np.zeros((4, 5))).shape == (4, 5, 3)
    assert trajectory.n == LIMITS.n == 3
    assert np.array_equal(drawn(7).sine, drawn(7).sine)
    assert not np.array_equal(drawn(7).sine, drawn(8).sine)


def test_coefficients_that_do_not_fit_are_refused():
    with pytest.raises(DataError, match=r"centre \(n,\), sine \(n, H\) and cosine \(n, H\), found \(2,\), \(3, 1\)"):
        FourierTrajectory(np.zeros(2), np.zeros((3, 1)), np.zeros((3, 1)), 1.0)
    with pytest.raises(DataError, match=r"2 faults:(.|\n)*frequency is not usable(.|\n)*start is not usable"):
        FourierTrajectory(np.zeros(1), np.zeros((1, 1)), np.zeros((1, 1)), 0.0, -1.0)
    with pytest.raises(DataError, match="not finite"):
        FourierTrajectory(np.array([np.nan]), np.zeros((1, 1)), np.zeros((1, 1)), 1.0)
    with pytest.raises(DataError, match="at least one harmonic"):
        drawn(harmonics=0)


def test_limits_that_contradict_themselves_are_refused():
    with pytest.raises(DataError, match=r"low must be below high\.\nFound coordinate 2"):
        JointLimits(np.array([0.0, 1.0]), np.array([1.0, 1.0]), np.ones(2), np.ones(2))
    with pytest.raises(DataError, match=r"four arrays \(n,\), found low \(1,\), high \(2,\)"):
        JointLimits(np.zeros(1), np.ones(2), np.ones(2), np.ones(2))
    with pytest.raises(DataError, match=r"2 faults(.|\n)*a speed must be above zero(.|\n)*an acceleration"):
        JointLimits(np.zeros(1), np.ones(1), np.zeros(1), np.array([np.nan]))


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
    s = replace(trajectory(), start=2.0)
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


RNG = np.random.default_rng(1)
TRUE = FourierTrajectory(
    np.array([0.3, -0.2]), 0.3 * RNG.standard_normal((2, 3)), 0.3 * RNG.standard_normal((2, 3)), 0.5
)
T = np.linspace(0.0, 2.0, 201)
BETWEEN = np.linspace(0.1, 1.9, 977)


def test_a_table_with_rates_is_met_to_the_second_derivative() -> None:
    table = SampledTrajectory(T, *TRUE.at(T))
    assert np.stack(table.at(T)) == pytest.approx(np.stack(TRUE.at(T)), abs=1e-10)
    # the error of the quintic is h⁶ q⁽⁶⁾/46080, and its second derivative h⁴ q⁽⁶⁾/… : h = 0.01 s, q⁽⁶⁾ up to (2π·1.5)⁶
    for found, wanted, most in zip(table.at(BETWEEN), TRUE.at(BETWEEN), (1e-10, 1e-8, 5e-6)):
        assert found == pytest.approx(wanted, abs=most)


def test_its_pieces_are_those_of_scipy() -> None:
    t = np.array([0.0, 0.3, 0.5, 1.1])
    q, qd, qdd = RNG.standard_normal((3, 4, 1))
    own = SampledTrajectory(t, q, qd, qdd)
    other = BPoly.from_derivatives(t, np.stack([q[:, 0], qd[:, 0], qdd[:, 0]], axis=1))
    x = np.linspace(0.0, 1.1, 50)
    for order, found in enumerate(own.at(x)):
        assert found[:, 0] == pytest.approx(other.derivative(order)(x) if order else other(x), abs=1e-9)


def test_positions_alone_are_enough() -> None:
    table = SampledTrajectory(T, TRUE.at(T)[0])
    for found, wanted, most in zip(table.at(BETWEEN), TRUE.at(BETWEEN), (1e-9, 1e-7, 1e-4)):
        assert found == pytest.approx(wanted, abs=most)


def test_shapes_ends_and_the_clock() -> None:
    table = SampledTrajectory(T + 5.0, TRUE.at(T)[0])
    assert table.at(6.0)[0].shape == (2,) and table.at([[5.0, 6.0]])[2].shape == (1, 2, 2)
    assert table.at(99.0)[0] == pytest.approx(table.at(7.0)[0])
    moved = table.from_zero()
    assert moved.t[0] == 0.0 and (moved.n, moved.length) == (2, pytest.approx(2.0))


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((T, TRUE.at(T)[0][:50]), "do not belong together"),
        ((T[:4], TRUE.at(T)[0][:4]), "at least 6 rows"),
        ((T, TRUE.at(T)[0], TRUE.at(T)[1]), "both or neither"),
        ((T[::-1], TRUE.at(T)[0]), "runs backwards"),
        ((T, np.where(T[:, None] > 1.0, np.nan, TRUE.at(T)[0])), "the first in row 102"),
    ],
)
def test_a_bad_table_is_refused(args: tuple, words: str) -> None:
    with pytest.raises(DataError, match=words):
        SampledTrajectory(*args)


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


def test_rates_of_an_entry_are_those_of_differences() -> None:
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
