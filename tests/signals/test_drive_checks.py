"""Mistakes of a drive's log are named, and a good log raises none."""

from dataclasses import replace

import numpy as np
import pytest

from strangers.bicycle_drive import Bicycle
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.sensor import Sensor
from veridyn.model.single_track import car_machine
from veridyn.signals.drive_checks import (
    clock_fault,
    log_faults,
    position_delay,
    position_format_fault,
    position_scale_fault,
    steering_fault,
    swapped_sides_fault,
)

DRIVE = Bicycle(noise={"yaw_rate": 0.003, "ay": 0.1, "steer": 0.001, "position": 0.3}).drive(7)


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
