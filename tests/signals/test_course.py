"""Course over ground: all quadrants, the threshold, and its noise by drawing velocities."""

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.model.experiment import Channel
from veridyn.signals.course import course_over_ground


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
