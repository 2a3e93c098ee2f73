import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.signals.trajectory import FourierTrajectory, JointLimits

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
    trajectory = plain.with_start(2.0)
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
