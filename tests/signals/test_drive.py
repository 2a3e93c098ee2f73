"""Channels of a drive on one clock."""

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.model.experiment import Channel
from veridyn.signals.drive import binned, common_clock, course_over_ground


def channel(name: str, rate: float, values, start: float = 0.0) -> Channel:
    t = start + np.arange(len(values)) / rate
    return Channel(name, t, np.asarray(values, dtype=float), "m/s")


def test_means_over_the_step_around_each_time() -> None:
    t = np.arange(100) / 100.0
    clock = (np.arange(10) + 0.5) / 10.0
    np.testing.assert_allclose(binned(t + 1e-6, t, clock, 10.0), [np.mean(t[10 * k : 10 * k + 10]) for k in range(10)])
    gap = np.where((t > 0.4) & (t < 0.6), np.nan, t)
    assert np.isnan(binned(t + 1e-6, gap, clock, 10.0)[5]) and np.isfinite(binned(t + 1e-6, gap, clock, 10.0)[3])


def test_a_shared_clock_stays_as_it_is() -> None:
    channels = {n: channel(n, 25.0, np.arange(100.0)) for n in ("speed", "yaw_rate")}
    t, rate, found = common_clock(channels, None, 1.0, 3.0)
    assert rate == pytest.approx(25.0) and t[0] == 1.0 and len(t) == 50
    np.testing.assert_array_equal(found["speed"], np.arange(25.0, 75.0))


def test_clocks_of_their_own_are_brought_to_one() -> None:
    channels = {"speed": channel("speed", 90.0, np.ones(900)), "east": channel("east", 10.0, np.arange(100.0), 0.03)}
    t, rate, found = common_clock(channels, 20.0, -np.inf, np.inf)
    assert rate == 20.0 and np.allclose(np.diff(t), 0.05)
    assert np.isfinite(found["speed"]).all()
    has = np.isfinite(found["east"])
    assert 0.4 < has.mean() < 0.6  # every other sample has a position
    np.testing.assert_allclose(found["east"][has], 10.0 * (t[has] - 0.03), atol=0.5)


def test_short_holes_of_inputs_are_bridged_and_long_ones_stay() -> None:
    values = np.arange(100.0)
    values[20:23] = values[60:80] = np.nan
    channels = {"steer": channel("steer", 20.0, values), "ay": channel("ay", 20.0, values)}
    found = common_clock(channels, None, -np.inf, np.inf)[2]
    np.testing.assert_allclose(found["steer"][20:23], [20.0, 21.0, 22.0])
    assert np.isnan(found["steer"][75]) and np.isnan(found["ay"][21])


def velocity(x, y, unit="m/s"):
    t = np.arange(len(x)) * 0.02
    return Channel("v.x", t, np.asarray(x, dtype=float), unit), Channel("v.y", t, np.asarray(y, dtype=float), unit)


def test_all_directions_and_the_threshold():
    angles = np.linspace(-3.1, 3.1, 63)
    speed = np.where(np.arange(63) % 2, 0.4, 0.6)
    course, available = course_over_ground(*velocity(speed * np.cos(angles), speed * np.sin(angles)), "c", above=0.5)
    assert (course.name, course.unit, available.name, available.unit) == ("c", "rad", "c.available", "1")
    assert course.values == pytest.approx(angles, abs=1e-12)
    assert np.array_equal(available.values, (speed > 0.5).astype(float))  # the speed, not the angle, decides


def test_noise_is_that_of_the_velocity_across():
    rng = np.random.default_rng(0)
    x, y = 3.0 + 0.1 * rng.standard_normal(4000), 2.0 + 0.1 * rng.standard_normal(4000)
    course, _, sigma = course_over_ground(*velocity(x, y), above=0.5, sigma=0.1)
    assert course.values.std() == pytest.approx(np.median(sigma.values), rel=0.05)
    assert np.median(sigma.values) == pytest.approx(0.1 / np.hypot(3.0, 2.0), rel=0.01)


def test_nothing_at_rest_and_nothing_from_nan():
    course, available, sigma = course_over_ground(*velocity([0.0, np.nan, 2.0], [0.0, 1.0, 0.0]), above=0.5, sigma=0.1)
    assert available.values.tolist() == [0.0, 0.0, 1.0] and np.isnan(course.values[1])
    assert sigma.values == pytest.approx([np.pi / np.sqrt(3.0)] * 2 + [0.05])


def test_what_is_no_velocity_is_refused():
    x, y = velocity([1.0], [1.0])
    with pytest.raises(DataError, match=r"(?s)'v.x': it is no velocity.*there is no course at rest"):
        course_over_ground(*velocity([1.0], [1.0], "km/h"), above=0.0)
    with pytest.raises(DataError, match=r"'v.y': it has another clock"):
        course_over_ground(x, Channel("v.y", y.t + 0.01, y.values, "m/s"), above=0.5)
    with pytest.raises(DataError, match="it is no deviation"):
        course_over_ground(x, y, above=0.5, sigma=0.0)
