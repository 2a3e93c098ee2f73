"""Lags that were put in are found again to a fraction of a sample, with the deviation that they have over many draws."""

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.model.experiment import Channel
from veridyn.signals.clock_offset import estimate_clock_offset


def turns(rng, duration=60.0):
    """A yaw rate of a drive with bends, and its exact integral at any time."""
    f, a, p = rng.uniform(0.05, 0.5, 6), rng.uniform(0.1, 0.3, 6), rng.uniform(0.0, 6.0, 6)

    def yaw(t):
        return (a / (2 * np.pi * f) * np.sin(2 * np.pi * f * t[:, None] + p)).sum(axis=1)

    t = np.arange(0.0, duration, 0.01)
    rate = (a * np.cos(2 * np.pi * f * t[:, None] + p)).sum(axis=1)
    return t, rate, yaw


def pair(seed, delay, noise=0.02, rate=10.0, bias=0.003):
    rng = np.random.default_rng(seed)
    t, w, yaw = turns(rng)
    gyro = Channel("gyro", t, w + bias + 0.005 * rng.standard_normal(len(t)), "rad/s")
    stamps = np.arange(0.03, 59.0, 1.0 / rate)
    return gyro, Channel("course", stamps, yaw(stamps - delay) + noise * rng.standard_normal(len(stamps)), "rad")


@pytest.mark.parametrize("delay", [0.2, 0.0, -0.137, 0.012])
def test_a_lag_is_found_and_its_deviation_is_honest(delay):
    found = [estimate_clock_offset(*pair(seed, delay)) for seed in range(12)]
    error = np.array([o.seconds - delay for o in found])
    z = error / np.array([o.sigma for o in found])
    assert np.abs(error).max() < 0.04 and np.mean([o.correlation for o in found]) > 0.9
    assert np.abs(error.mean()) < 4.0 * error.std() / np.sqrt(12.0)
    assert 0.6 < np.sqrt(np.mean(z**2)) < 1.6  # 12 draws
    beyond = [o.beyond(0.02) for o in found]
    assert all(beyond) if abs(delay) > 0.1 else np.mean(beyond) < 0.25


def test_exact_signals_give_an_exact_lag():
    found = estimate_clock_offset(*pair(3, 0.0631, noise=0.0, rate=20.0))
    assert found.seconds == pytest.approx(0.0631, abs=2e-3)  # the gyroscope still has noise


def test_motion_that_does_not_turn_says_so():
    rng = np.random.default_rng(4)
    t = np.arange(0.0, 30.0, 0.01)
    gyro = Channel("gyro", t, 0.01 * rng.standard_normal(len(t)), "rad/s")
    course = Channel("course", t[::10], 0.02 * rng.standard_normal(300), "rad")
    found = estimate_clock_offset(gyro, course)
    assert not found.determined and not found.beyond(0.0) and found.correlation < 0.5
    still = Channel("course", t[::10], np.zeros(300), "rad")
    assert not estimate_clock_offset(gyro, still).determined
    gyro, late = pair(5, 0.2)
    assert not estimate_clock_offset(gyro, late, longest=0.1).determined  # the lag is beyond the range


def test_a_bend_that_tightens_steadily_shows_no_lag():
    """Any lag of a ramp is an offset of it: the lag with the largest correlation is one of noise."""
    found = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        t = np.arange(0.0, 20.0, 0.002)
        gyro = Channel("gyro", t, 0.009 * t + 0.1 * rng.standard_normal(len(t)), "rad/s")
        slow = t[::10]
        course = Channel("course", slow, 0.0045 * slow**2 + 0.03 * rng.standard_normal(len(slow)), "rad")
        found.append(estimate_clock_offset(gyro, course))
    assert not any(o.beyond(0.02) for o in found)
    assert all(o.sigma > 0.1 for o in found if o.determined)


def test_stretches_that_are_not_usable_are_left_out():
    gyro, course = pair(6, 0.2)
    spoilt = course.values.copy()
    bad = (course.t > 20.0) & (course.t < 30.0)
    spoilt[bad] += 5.0 * np.sin(course.t[bad])
    spoilt[course.t > 45.0] += 2.0 * np.pi
    spoilt[course.t == course.t[np.searchsorted(course.t, 45.0)]] = np.nan
    found = estimate_clock_offset(gyro, Channel("course", course.t, spoilt, "rad"), usable=~bad)
    assert found.seconds == pytest.approx(0.2, abs=0.03)


def test_bad_clocks_are_refused():
    gyro, course = pair(7, 0.0)
    with pytest.raises(DataError, match="'course': its clock is not usable"):
        estimate_clock_offset(gyro, Channel("course", course.t[::-1], course.values, "rad"))
    with pytest.raises(DataError, match="'gyro': it holds values that are not numbers"):
        estimate_clock_offset(Channel("gyro", gyro.t, gyro.values * np.nan, "rad/s"), course)
    with pytest.raises(DataError, match="these times are not usable"):
        estimate_clock_offset(gyro, course, span=0.0)
