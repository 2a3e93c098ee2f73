"""Channels of a drive on one clock.

Straight lines of a car: known slopes found again, deviations that hold for correlated residuals, outliers set aside.
Mistakes of a drive's log are named, and a good log raises none.
"""

from dataclasses import replace

import numpy as np
import pytest

from strangers.bicycle_drive import Bicycle
from veridyn.errors import DataError
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.sensor import Sensor
from veridyn.model.single_track import car_machine
from veridyn.signals.drive import (
    binned,
    clock_fault,
    coast_down,
    common_clock,
    log_faults,
    position_delay,
    position_format_fault,
    position_scale_fault,
    robust_line,
    roll_distribution,
    roll_gradients,
    steering_fault,
    swapped_sides_fault,
    wheel_scales,
)

DRIVE = Bicycle(noise={"yaw_rate": 0.003, "ay": 0.1, "steer": 0.001, "position": 0.3}).drive(7)


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


@pytest.mark.parametrize(
    ("ratio", "words"), [(1.0, None), (15.0, "angle of the steering wheel"), (-1.0, "turns the other way")]
)
def test_a_steering_wheel_angle_is_not_taken_for_a_road_wheel_angle(ratio: float, words: str | None) -> None:
    fault = steering_fault(DRIVE["speed"], ratio * DRIVE["steer"], DRIVE["yaw_rate"], 2.6, 1.0, 50.0)
    assert (fault is None) if words is None else words in fault.what
    if ratio == 15.0:
        assert "steering_ratio: {value: 1" in fault.hint


def test_degrees_and_minutes_are_recognised() -> None:
    assert position_format_fault(np.array([37.72, 37.73]), np.array([-122.47, -122.46])) is None
    fault = position_format_fault(np.array([3743.26, 3743.9]), np.array([-12228.3, -12228.2]))
    assert "degrees and minutes" in fault.what and "3743.9" in fault.found


def test_a_way_that_is_too_long_is_named() -> None:
    t = DRIVE["t"]
    assert position_scale_fault(t, DRIVE["east"], DRIVE["north"], DRIVE["speed"]) is None
    fault = position_scale_fault(t, DRIVE["east"] / 0.6, DRIVE["north"] / 0.6, DRIVE["speed"])
    assert "degrees and minutes" in fault.hint
    assert "units" in position_scale_fault(t, 3.3 * DRIVE["east"], 3.3 * DRIVE["north"], DRIVE["speed"]).hint


@pytest.mark.parametrize("late", [0.0, 0.2, -0.35])
def test_the_offset_of_a_clock_is_estimated(late: float) -> None:
    """Positions every 0.1 s with 0.3 m of noise, stamped late."""
    t = DRIVE["t"]
    east, north = (np.interp(t - late, t, DRIVE[n]) for n in ("east", "north"))
    has = np.arange(len(t)) % 5 == 0
    east, north = np.where(has, east, np.nan), np.where(has, north, np.nan)
    found = position_delay(t, east, north, DRIVE["speed"], DRIVE["yaw_rate"], DRIVE["ay"])
    assert found.seconds == pytest.approx(late, abs=3.0 * found.sigma) and found.sigma < 0.02
    fault = clock_fault(found)
    assert (fault is None) if late == 0.0 else ("later" if late > 0.0 else "earlier") in fault.found
    without = position_delay(t, east, north, DRIVE["speed"], DRIVE["yaw_rate"], rear=1.5)
    assert without.seconds == pytest.approx(late, abs=2.0 * without.sigma) and without.sigma < 0.08


def test_a_straight_way_says_nothing_about_clocks() -> None:
    t = np.arange(0.0, 30.0, 0.1)
    assert position_delay(t, 20.0 * t, 0.0 * t, np.full(len(t), 20.0), np.zeros(len(t))) is None


def test_left_and_right_are_not_exchanged() -> None:
    v, r = DRIVE["speed"], DRIVE["yaw_rate"]
    wheels = {"rl": v - 0.75 * r, "rr": v + 0.75 * r}
    assert swapped_sides_fault(wheels, v, r, 50.0) is None
    fault = swapped_sides_fault({"rl": wheels["rr"], "rr": wheels["rl"]}, v, r, 50.0)
    assert "left and the right wheel of the rear axle" in fault.what


def test_channels_of_a_log_are_known_by_their_name_or_their_sensor() -> None:
    units = {"speed": "m/s", "yaw_rate": "rad/s", "east": "m", "north": "m"}
    read = {n: Channel(n, DRIVE["t"], DRIVE[n], u) for n, u in units.items()}
    read["steer"] = Channel("steer", DRIVE["t"], -DRIVE["steer"], "rad")
    read["gyro"] = replace(read.pop("yaw_rate"), name="gyro")
    named = {"mass": 1500.0, "front": 1.2, "rear": 1.4}
    gyro = car_machine("car", named, sensors=[Sensor("gyro", "reading", "yaw_rate", 0.003)])
    assert "turns the other way" in log_faults(Experiment(read, "drive"), gyro)[0].what
    assert log_faults(Experiment(read, "drive"), car_machine("car", named, sensors=[])) == ()
    assert log_faults(Experiment({}, "drive"), gyro) == ()
    minutes = {
        n: Channel(n, DRIVE["t"][:2], np.radians(x), "rad")
        for n, x in {"latitude": [3743.26, 3743.9], "longitude": [-12228.3, -12228.2]}.items()
    }
    assert "degrees and minutes" in log_faults(Experiment(minutes, "drive"), gyro)[0].what
