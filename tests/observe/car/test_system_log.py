"""The log of a drive for the filters of a car: one clock, inputs as means, and channels that are missing or of another unit."""

import numpy as np
import pytest

from strangers.bicycle_drive import Bicycle
from veridyn.errors import DataError, ModelError
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.single_track import car_machine
from veridyn.observe.car.path_noise import PathNoise
from veridyn.observe.car.system import (
    drive_of,
    first_yaw_rate,
    lateral_measurements,
    path_start,
    path_system,
)
from veridyn.observe.filters.methods import EKF
from veridyn.observe.filters.run import run
from veridyn.observe.measurements import Measurements, Status
from veridyn.observe.system import check_jacobian
from veridyn.signals.drive import DriveLog

CAR = car_machine("small", {"mass": 900.0, "front": 1.0, "rear": 1.4})
UNITS = {"speed": "m/s", "steer": "rad", "ax": "m/s^2", "yaw_rate": "rad/s", "ay": "m/s^2"}


def log(rates: dict[str, float] | None = None, **changed: str) -> Experiment:
    """Five seconds; `rates` of channels with a clock of their own, `changed` units."""
    units, channels = UNITS | changed, {}
    for name, unit in units.items():
        t = np.arange(0.0, 5.0, 1.0 / (rates or {}).get(name, 20.0))
        channels[name] = Channel(name, t, 10.0 + t, unit)
    return Experiment(channels, "drive")


def test_a_log_with_one_clock_is_taken_as_it_is() -> None:
    drive = drive_of(CAR, log())
    assert drive.rate == pytest.approx(20.0) and len(drive.t) == 100 and set(drive.channels) == set(UNITS)


def test_clocks_of_their_own_are_brought_to_one() -> None:
    drive = drive_of(CAR, log({"ay": 100.0, "yaw_rate": 10.0}))
    assert drive.rate == 50.0 and np.isfinite(drive.channels["speed"]).all()


def test_missing_channels_and_units_are_named_together() -> None:
    wrong = log(speed="km/h")
    wrong = Experiment({n: c for n, c in wrong.channels.items() if n not in ("ay", "ax")}, "drive")
    with pytest.raises(DataError) as error:
        drive_of(CAR, wrong)
    text = str(error.value)
    assert "channel 'ay'" in text and "channel 'speed'" in text and "sensors=" in text
    assert "'ax'" not in text  # it may be missing


def test_inputs_act_by_their_means_and_slow_samples_are_not_used() -> None:
    t = np.arange(6.0)
    speed = np.array([1.0, 2.0, 10.0, 12.0, np.nan, 14.0])
    drive = DriveLog(t=t, channels={"speed": speed, "steer": 0.1 * t, "yaw_rate": t, "ay": t}, rate=1.0)
    found = lateral_measurements(drive, CAR)
    np.testing.assert_allclose(found.inputs[2], [10.0, 0.2, 0.0, 11.0, 0.25, 0.0])
    assert (found.flags[[0, 1, 4]] == Status.MISSING).all() and (found.flags[[2, 3, 5]] == Status.USED).all()
    assert first_yaw_rate(found, CAR) == 0.0 and first_yaw_rate(found, CAR.with_sensors([])) == 0.0
    with pytest.raises(DataError, match="too few channels"):
        lateral_measurements(DriveLog(t=t, channels={"speed": speed}, rate=1.0), CAR)


OUTPUTS = ("east", "north", "wheel_rl", "wheel_rr", "yaw_rate")


def test_a_gap_is_bridged_by_wheels_and_gyroscope() -> None:
    b = Bicycle(duration=50.0, rate=25.0, amplitude=0.01, gyro_bias=0.004)
    d = b.drive(5)
    rng = np.random.default_rng(6)
    true_rate = np.gradient(d["heading"], d["t"])
    wheels = [
        1.01 * (d["speed"] + side * 1.5 * true_rate) + 0.05 * rng.normal(size=len(d["t"])) for side in (-0.5, 0.5)
    ]
    values = np.column_stack([d["east"], d["north"], *wheels, d["yaw_rate"]])
    flags = np.zeros(values.shape, dtype=np.int8)
    gap = (d["t"] > 30.0) & (d["t"] < 45.0)
    flags[np.ix_(gap, [0, 1])] = Status.MISSING
    noise = PathNoise(position=0.02, wheel=0.05, gyro=0.003, scales={"wheel_rl": 1.01, "wheel_rr": 1.01})
    system = path_system(OUTPUTS, noise, 1.5)
    found = run(EKF(), system, Measurements(d["t"], values, OUTPUTS, flags), path_start(0.0, 0.0, 0.0, 20.0))
    inside = np.flatnonzero(gap)
    assert np.abs(found.state("speed") - d["speed"])[inside].max() < 0.15
    course = d["heading"] + d["sideslip"]  # the direction of motion, which is the observer's heading
    assert np.abs(found.state("heading") - course)[inside].max() < 0.03
    assert found.state("gyro_bias")[inside[0]] == pytest.approx(0.004, abs=0.001)
    sigma = found.sigma[:, 0]
    assert sigma[inside[-1]] > 10.0 * sigma[inside[0] - 2]


def test_derivatives_and_names() -> None:
    system = path_system(OUTPUTS, PathNoise(), 1.5)
    x = np.array([3.0, 4.0, 0.7, 12.0, 0.5, 0.2, 0.01])
    F, H = system.F, system.H
    assert F is not None and H is not None
    check_jacobian(lambda z: system.f(z, np.zeros(0), 0.0), lambda z: F(z, np.zeros(0), 0.0), x)
    check_jacobian(lambda z: system.h(z, np.zeros(0), 0.0), lambda z: H(z, np.zeros(0), 0.0), x)
    with pytest.raises(ModelError, match="no sensor 'altitude'"):
        path_system(("altitude",), PathNoise(), 1.5)
