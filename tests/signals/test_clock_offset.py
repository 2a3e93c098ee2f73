"""Lags that were put in are found again to a fraction of a sample, with the deviation that they have over many draws."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.signal import bilinear, lfilter

from veridyn.errors import DataError
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.place import Marker
from veridyn.model.sensor import Sensor
from veridyn.signals.clock_offset import estimate_clock_offset, offset_findings, sensor_clock_offsets


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
