"""Channels of a drive on one clock.

Straight lines of a car: known slopes found again, deviations that hold for correlated residuals, outliers set aside.
"""

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.model.experiment import Channel
from veridyn.signals.drive import (
    binned,
    coast_down,
    common_clock,
    course_over_ground,
    robust_line,
    roll_distribution,
    roll_gradients,
    wheel_scales,
)


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


def coloured(rng, count: int, keep: float) -> np.ndarray:
    e, out = rng.normal(size=count), np.zeros(count)
    for k in range(1, count):
        out[k] = keep * out[k - 1] + np.sqrt(1.0 - keep**2) * e[k]
    return out


def test_deviations_allow_for_correlated_residuals() -> None:
    """200 lines with residuals that last ten samples: the z-scores have deviation one within a sixth."""
    z = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        x = coloured(rng, 800, 0.9)
        y = 2.0 * x + 0.3 * coloured(rng, 800, 0.9)
        line = robust_line({"slope": x}, y, 10.0, 4.0, "test")
        z.append((line.value["slope"] - 2.0) / line.sigma["slope"])
    assert 0.85 < np.std(z) < 1.3


def test_wheel_scales_with_outliers() -> None:
    rng = np.random.default_rng(1)
    speed = 15.0 + 5.0 * np.sin(np.linspace(0.0, 20.0, 2000))
    wheel = 1.012 * speed + 0.1 * rng.normal(size=2000)
    wheel[::50] = 0.0  # a sensor that drops out
    line = wheel_scales({"fl": wheel}, speed, 25.0)["fl"]
    assert line.value["scale"] == pytest.approx(1.012, abs=1e-3)


def test_roll_gradients_and_their_distribution() -> None:
    rng = np.random.default_rng(2)
    ay = 8.0 * coloured(rng, 3000, 0.98)
    travel = {}
    for axle, g in (("f", 0.006), ("r", 0.004)):
        roll = g * ay
        travel[f"{axle}l"] = -0.5 * 1.2 * roll + 1e-4 * rng.normal(size=3000)
        travel[f"{axle}r"] = 0.5 * 1.2 * roll + 0.002
    found = roll_gradients(travel, ay, 1.2, 77.0)
    assert found["front"].value["gradient"] == pytest.approx(0.006, abs=4 * found["front"].sigma["gradient"])
    assert found["rear"].value["gradient"] == pytest.approx(0.004, abs=4 * found["rear"].sigma["gradient"])
    share, sigma = roll_distribution(found, {"front": 20e3, "rear": 30e3})
    assert share == pytest.approx(0.5, abs=4 * sigma) and 0.0 < sigma < 0.01
    with pytest.raises(DataError, match="roll needs the distance"):
        roll_gradients(travel, ay, 0.0, 77.0)


def test_drag_from_coasting() -> None:
    rng = np.random.default_rng(3)
    speed = np.linspace(40.0, 10.0, 1500)
    ax = -(0.12 + 4e-4 * speed**2) + 0.05 * rng.normal(size=1500)
    line = coast_down(speed, ax, np.ones(1500, dtype=bool), 50.0)
    assert line.value["drag"] == pytest.approx(4e-4, abs=4 * line.sigma["drag"])
    with pytest.raises(DataError, match="hardly ever coasts"):
        coast_down(speed, ax, np.zeros(1500, dtype=bool), 50.0)


def test_a_drive_that_shows_nothing_is_refused() -> None:
    with pytest.raises(DataError, match="does not excite it"):
        robust_line({"slope": np.zeros(100)}, np.zeros(100), 10.0, 1.0, "test")
