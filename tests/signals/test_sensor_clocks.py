"""A receiver that is late against the inertial unit of a vehicle: named with the estimate; mounting, known delays, straight drives."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.signal import bilinear, lfilter

from veridyn.model.experiment import Channel, Experiment
from veridyn.model.place import Marker
from veridyn.model.sensor import Sensor
from veridyn.signals.sensor_clocks import offset_findings, sensor_clock_offsets

ANTENNA, UNIT = Marker("chassis", (0.0, 0.0, 0.8)), Marker("chassis", (0.1, 0.0, 0.0))
TURNED = Marker(
    "chassis", (0.1, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
)  # x of the unit is the body's y, its y the body's z
GPS = Sensor("gps_velocity", "velocity", ANTENNA, 0.1, rate=10.0)
GYRO = Sensor("gyro", "gyroscope", UNIT, 2e-4, rate=100.0)
ACCELEROMETER = Sensor("acc", "accelerometer", UNIT, 0.5, rate=100.0)


@cache
def drive(seed, late, bends=True, turned=False):
    """A minute of driving with bends and changing speed; velocities are stamped `late` seconds after they were true.

    The receiver is 1.2 m ahead of the rear axle, so that its course leads the yaw angle; roll and pitch follow the accelerations, at 1.5 Hz
    with a damping of 0.35, and add their share of gravity.
    """
    rng = np.random.default_rng(seed)
    fine = np.arange(0.0, 62.0, 0.005)
    phases = rng.uniform(0.0, 6.0, 4)
    rate = (0.25 * np.sin(0.5 * fine + phases[0]) + 0.2 * np.sin(1.3 * fine + phases[1])) * bends
    ahead = 0.8 * np.sin(0.4 * fine + phases[2]) + 0.6 * np.sin(1.1 * fine + phases[3])
    yaw, speed = np.cumsum(rate) * 0.005 + 2.0, 9.0 + np.cumsum(ahead - ahead.mean()) * 0.005
    course = yaw + (1.2 / speed - 0.006 * speed) * rate
    left = speed * np.gradient(course, fine)
    t, slow = np.arange(0.0, 60.0, 0.01), np.arange(0.0, 60.0, 0.1)
    seen = np.maximum(slow - late, 0.0)
    v, c = np.interp(seen, fine, speed), np.interp(seen, fine, course)
    channels = {}
    for axis, values in (("x", v * np.cos(c)), ("y", v * np.sin(c)), ("z", 0.0 * v)):
        channels[f"gps_velocity.{axis}"] = (slow, values + 0.1 * rng.standard_normal(len(slow)), "m/s")
    w = np.column_stack([0.01 * rng.standard_normal((len(t), 2)), np.interp(t, fine, rate)])
    w = w @ np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]).T if turned else w
    w0 = 2.0 * np.pi * 1.5
    sways = bilinear([w0**2], [1.0, 2.0 * 0.35 * w0, w0**2], fs=200.0)
    tilted = [x + 9.81 * share * lfilter(*sways, x) for x, share in ((ahead, 0.01), (left, 0.02))]
    a = np.column_stack([*(np.interp(t, fine, x) for x in tilted), np.full(len(t), 9.81)])
    for k, axis in enumerate("xyz"):
        channels[f"gyro.{axis}"] = (t, w[:, k] + 2e-4 * rng.standard_normal(len(t)), "rad/s")
        channels[f"acc.{axis}"] = (t, a[:, k] + 0.5 * rng.standard_normal(len(t)), "m/s^2")
    return Experiment({n: Channel(n, t, v, u) for n, (t, v, u) in channels.items()}, "drive")


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_two_tenths_of_a_second_are_named(seed):
    (offset,) = sensor_clock_offsets([GPS, GYRO, ACCELEROMETER], drive(seed, 0.2))
    assert offset.seconds == pytest.approx(0.2, abs=0.03) and offset.sigma < 0.02
    (finding,) = offset_findings([offset])
    assert (finding.channel, finding.kind, finding.severity) == ("gps_velocity", "clock offset", "warning")
    assert (
        f"its clock is {offset.seconds:.3f} ± {offset.sigma:.3f} s late against '{offset.reference}'" in finding.message
    )
    assert "Give the sensor 'gps_velocity' delay: 0." in finding.message


def test_sensors_on_one_clock_are_not_accused():
    for seed in range(10, 15):
        offsets = sensor_clock_offsets([GPS, GYRO, ACCELEROMETER], drive(seed, 0.0))
        assert offsets[0].determined and offset_findings(offsets) == ()


def test_a_known_delay_is_taken_off_and_an_early_one_is_turned_round():
    assert offset_findings(sensor_clock_offsets([replace(GPS, delay=0.2), ACCELEROMETER], drive(4, 0.2))) == ()
    (finding,) = offset_findings(sensor_clock_offsets([replace(GPS, delay=0.4), ACCELEROMETER], drive(4, 0.2)))
    assert finding.channel == "acc" and "late against 'gps_velocity'" in finding.message


def test_a_gyroscope_alone_cannot_tell_sideslip_from_a_lag():
    """The course leads by 1.2/v − 0.006 v, about a tenth of a second here: that is within the deviation that is stated."""
    for late in (0.0, 0.2):
        (offset,) = sensor_clock_offsets([GPS, GYRO], drive(5, late))
        assert offset.seconds < late - 0.05
        assert abs(offset.seconds - late) < 2.0 * offset.sigma < 0.4
        assert offset_findings([offset]) == ()
    (finding,) = offset_findings(sensor_clock_offsets([GPS, GYRO], drive(5, 0.6)))
    assert "late against 'gyro'" in finding.message


def test_a_unit_that_is_mounted_turned():
    gyro = replace(GYRO, on=TURNED)
    (plain,), (turned,) = (
        sensor_clock_offsets([GPS, g], drive(5, 0.2, turned=t)) for g, t in ((GYRO, False), (gyro, True))
    )
    assert turned.seconds == pytest.approx(plain.seconds, abs=1e-3)  # the noise of other axes
    assert not sensor_clock_offsets([GPS, GYRO], drive(5, 0.2, turned=True))[0].determined


def test_a_straight_drive_is_compared_by_its_speed():
    log = drive(6, 0.2, bends=False)
    assert not sensor_clock_offsets([GPS, GYRO], log)[0].determined
    (offset,) = sensor_clock_offsets([GPS, GYRO, ACCELEROMETER], log)
    assert offset.reference == "acc" and offset.seconds == pytest.approx(0.2, abs=0.04)


def test_nothing_to_compare_is_no_offset():
    log = drive(7, 0.2)
    assert sensor_clock_offsets([GPS], log) == () and sensor_clock_offsets([GYRO], log) == ()
    other = replace(GYRO, on=Marker("trailer", (0.0, 0.0, 0.0)))
    assert sensor_clock_offsets([GPS, other], log) == ()
