"""What sensors on a link read, and how that changes with its deflection, against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

import veridyn as vd
from veridyn.errors import DataError
from veridyn.identify.flexible.link_sensors import link_sensors, own_numbers, rates_of, recorded, sensor_samples
from veridyn.identify.flexible.recording import samples_of

RATE, G, X, Y = 500.0, 9.81, 0.5, 0.2  # Hz; m/s²; place of the sensors on the bar, m
T = np.arange(0.0, 12.0, 1.0 / RATE)
W, V = 2.0, 5.0  # rad/s, of motor and deflection
MOTOR = 0.4 * np.sin(W * T)
FLEX = np.stack([1e-3 * V**k * np.sin(V * T + 0.5 * np.pi * k) for k in range(4)])  # and its derivatives


def accelerometer(q, qd, qdd):
    """r̈ − g in the axes of a bar that turns about z by q, gravity along −y, by hand."""
    x = G * np.sin(q) - X * qd**2 - Y * qdd
    return np.stack([x, G * np.cos(q) + X * qdd - Y * qd**2])


def machine() -> vd.Machine:
    bar = vd.Link(name="bar", inertia=[0.01, 0, 0, 0.3, 0, 0.3, 0.6, 0, 0, 2.0])
    place = vd.Marker("bar", (X, Y, 0.1))
    sensors = [
        vd.Sensor("imu", "accelerometer", place, 0.02, axes="xy"),
        vd.Sensor("gyro", "gyroscope", place, 0.01, axes="z"),
    ]
    hinge = vd.Joint(name="hip", a="ground", b="bar", actuated=True)
    rigid = vd.Machine.build([bar], [hinge], gravity=(0.0, -G, 0.0), sensors=sensors)
    return vd.model.with_flexible_joints(rigid, {"hip": vd.model.Flexible(stiffness=500.0, inertia=0.2)})


def log(without: tuple[str, ...] = ()) -> vd.Experiment:
    qd, qdd = 0.4 * W * np.cos(W * T) - FLEX[1], -0.4 * W**2 * np.sin(W * T) - FLEX[2]
    x, y = accelerometer(MOTOR - FLEX[0], qd, qdd)
    values = {"q.hip_motor": MOTOR, "force.hip_motor": MOTOR, "imu.x": x, "imu.y": y, "gyro.z": qd, "qd.hip": qd}
    units = {
        "q.hip_motor": "rad",
        "force.hip_motor": "N*m",
        "imu.x": "m/s^2",
        "imu.y": "m/s^2",
        "gyro.z": "rad/s",
        "qd.hip": "rad/s",
    }
    return vd.Experiment.from_arrays(T, {n: v for n, v in values.items() if n not in without}, units)


def test_derivatives_of_a_sine():
    """The rounding of differences grows with each of them; low-passed signals have less of it."""
    found = rates_of(np.stack([np.sin(V * T), np.cos(V * T)]), RATE, 5)[:, :, 100:-100]
    for k, off in enumerate((1e-12, 1e-12, 1e-9, 1e-8, 1e-4, 1e-2)):
        expected = V**k * np.sin(V * T[100:-100] + 0.5 * np.pi * k)
        np.testing.assert_allclose(found[k, 0], expected, atol=off * V**k)


def test_sensors_of_a_log():
    """Those of the model that the log has with all their channels; the rate of the link where there is no gyroscope."""
    names = [
        [s.sensor.name for s in link_sensors(machine(), "hip", [log(without)])]
        for without in ((), ("gyro.z",), ("imu.y",))
    ]
    assert names == [["imu", "gyro"], ["imu", "qd.hip"], ["gyro"]]


@pytest.mark.parametrize("given", [0.0, 1.0])
def test_a_deflection_of_known_size_explains_what_is_read(given: float):
    """Around none, to the square of 1 mrad; around the deflection itself, to what the low-pass leaves of it."""
    one, gyro = link_sensors(machine(), "hip", [log()])
    recording, readings = recorded([one, gyro], "hip", log())
    joint = samples_of(recording, 0.2, 5.0, edge=4.5)
    flex = rates_of(joint.passed(FLEX[0]), RATE, 3)[:, joint.kept]
    for sensor, own in zip((one, gyro), readings, strict=True):
        x = sensor_samples(sensor, own, joint, 0, 1, given * FLEX[0], 0.0)
        size = float(np.abs(x.slopes).max() * np.abs(flex[:3]).max())
        np.testing.assert_allclose(x.measured, x.reading(flex, 0.0), atol=1e-3 * size)
        assert x.columns.shape[:2] == (len(own_numbers(sensor, [x], ["run"], 0.01, 0.005)), len(sensor.rows))


def test_columns_are_what_the_numbers_of_a_sensor_change():
    """Its place, by the closed form at another one; its turn, by the same bar turned."""
    one = link_sensors(machine(), "hip", [log()])[0]
    recording, (readings,) = recorded([one], "hip", log())
    joint = samples_of(recording, 0.2, 20.0, edge=4.5)
    x = sensor_samples(one, readings, joint, 0, 1, np.zeros(len(T)), 0.0)
    q, qd, qdd = (MOTOR[joint.kept], 0.4 * W * np.cos(W * T[joint.kept]), -0.4 * W**2 * np.sin(W * T[joint.kept]))
    names = [n.name for n in own_numbers(one, [x], ["run"], 0.01, 0.005)]
    by_place = x.columns[names.index("place of imu along x")]
    np.testing.assert_allclose(by_place, np.stack([-(qd**2), qdd]), atol=2e-4)
    turn = x.columns[names.index("turn of imu")]
    np.testing.assert_allclose(turn, np.stack([G * np.cos(q), -G * np.sin(q)]), atol=2e-3)
    gain = x.columns[names.index("gain of imu.y along x")]
    np.testing.assert_allclose(gain[1], accelerometer(q, qd, qdd)[0], atol=2e-3)
    assert not gain[0].any()


def test_a_free_base_is_refused():
    body = vd.Link(name="trunk", inertia=[0.1, 0, 0, 0.1, 0, 0.1, 0, 0, 0, 5.0])
    leg = vd.Link(name="leg", inertia=[0.01, 0, 0, 0.01, 0, 0.01, 0, 0, 0, 1.0])
    joint = vd.Joint(name="hip", a="trunk", b="leg", actuated=True)
    loose = vd.Machine.build([body, leg], [vd.Joint(name="base", kind="floating", a="ground", b="trunk"), joint])
    with pytest.raises(DataError, match="free base"):
        link_sensors(loose, "hip", [])
