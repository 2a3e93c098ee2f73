"""Lines through a drive whose wheels, axles and drag are known, and the reasons why it shows none."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.identify.drive_lines import drive_lines
from veridyn.model.machine import Machine
from veridyn.model.single_track import car_machine
from veridyn.signals.drive import WHEELS, DriveLog

RATE, MASS, TRACK = 50.0, 1500.0, 1.6
SCALE, GRADIENT, DRAG, ROLLING = 1.02, 0.004, 0.45, 0.12  # 1, rad/(m/s^2), N/(m/s)^2, m/s^2


def car() -> Machine:
    return car_machine("car", {"mass": MASS, "front": 1.2, "rear": 1.5, "track": TRACK})


def drive(seed: int, samples: int = 2000) -> DriveLog:
    """A car that coasts from 40 m/s while its lateral acceleration goes to and fro, with noise of 1 % and less."""
    rng, t = np.random.default_rng(seed), np.arange(samples) / RATE
    speed = 40.0 - 30.0 * t / t[-1]
    ay = 3.0 * np.sin(1.1 * t)
    channels = {"speed": speed, "ay": ay, "throttle": np.zeros(samples), "brake": np.zeros(samples)}
    channels["ax"] = -(ROLLING + DRAG / MASS * speed**2) + 0.01 * rng.standard_normal(samples)
    roll = GRADIENT * ay + 2e-5 * rng.standard_normal(samples)
    for w in WHEELS:
        side = -0.5 if w.endswith("l") else 0.5
        channels[f"wheel_{w}"] = SCALE * speed + 0.05 * rng.standard_normal(samples)
        channels[f"travel_{w}"] = side * TRACK * roll
    return DriveLog(t=t, channels=channels, rate=RATE)


def test_what_is_true_comes_back() -> None:
    found = drive_lines(car(), drive(1), drive(2), {"front": 30e3, "rear": 10e3})
    rows = {r.name: r for r in found.rows}
    truth = {"wheel_fl_scale": SCALE, "front_roll_gradient": GRADIENT, "rear_roll_gradient": GRADIENT}
    truth |= {"drag": DRAG, "rolling": ROLLING, "front_roll_share": 0.75}
    for name, value in truth.items():
        assert abs(rows[name].value - value) < 4.0 * rows[name].sigma, name
    assert found.car.parameters["drag"] == rows["drag"].value and found.not_shown == {}
    assert found.checked.keys() == found.lines.keys() and found.figures["wheel_fl_scale_error_percent"] < 0.1


def test_what_it_does_not_show_is_named() -> None:
    pedals = drive(1)
    pedals.channels["throttle"][:] = 1.0  # pyright: ignore[reportIndexIssue]
    found = drive_lines(car(), pedals, drive(2, 30), {})
    assert found.not_shown.keys() == {"drag", "front_roll_share"} and "coasts" in found.not_shown["drag"]
    assert found.checked == {} and "wheel_fl_scale_error_percent" not in found.figures
    assert found.car.parameters["drag"] == pytest.approx(car().parameters["drag"])


def test_channels_that_are_missing_have_no_line() -> None:
    bare = DriveLog(t=np.arange(200) / RATE, channels={"speed": np.full(200, 20.0)}, rate=RATE)
    found = drive_lines(car(), bare, bare, {})
    assert found.lines == {} and found.rows == () and found.not_shown == {} and found.figures == {}
