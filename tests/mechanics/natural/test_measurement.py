"""What sensors read: every H against finite differences, a gyroscope against ω, an accelerometer against Pinocchio."""

from __future__ import annotations

import numpy as np
import pytest

from strangers.natural_mechanisms import random_mechanism
from strangers.pinocchio_natural import GRAVITY, Stranger, natural
from veridyn.errors import ModelError
from veridyn.mechanics.natural.equations.position import position
from veridyn.mechanics.natural.equations.system import system_of
from veridyn.mechanics.natural.measurement import exact_readings, readout
from veridyn.mechanics.natural.steps.integrate import NaturalMotion
from veridyn.model.place import Marker
from veridyn.model.sensor import Sensor
from veridyn.observe.jacobian import check_jacobian


def test_every_h_and_its_derivative() -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        dim = 2 + seed % 2
        system = system_of(random_mechanism(rng, dim).mechanism)
        place, turned = Marker("b2", rng.normal(size=dim)), Marker("b1", rng.normal(size=dim), rng.normal(size=dim))
        table = readout(
            system,
            [
                Sensor("e", "coordinate", "theta", 0.1, bias=0.7),
                Sensor("r", "rate", "s", 0.1),
                Sensor("p", "position", place, 0.1),
                Sensor("v", "velocity", "O", 0.1),
                Sensor("w", "velocity", turned, 0.1, axes="y"),
                Sensor("g", "gyroscope", "b2", 0.1),
                Sensor("h", "gyroscope", turned, 0.1),
                Sensor("a", "accelerometer", place, 0.1),
                Sensor("b", "accelerometer", turned, 0.1, axes="x"),
            ],
        )
        n = system.n
        x = np.concatenate([position(system), *rng.normal(size=(2, n))])
        found = check_jacobian(
            lambda x, table=table, n=n: table.read(x[:n], x[n : 2 * n], x[2 * n :]),
            lambda x, table=table, n=n: np.hstack(table.derivatives(x[:n], x[n : 2 * n], x[2 * n :])),
            x,
            outputs=table.names,
        )
        assert found.error < 1e-9
        assert table.read(x[:n], x[n : 2 * n], x[2 * n :])[0] == x[system.mechanism.index("theta")] + 0.7


def test_a_gyroscope_reads_the_angular_velocity_in_the_bodys_axes() -> None:
    stranger, system = Stranger(), system_of(natural())
    q, v = stranger.closed(np.random.default_rng(3), 1.0)
    x, xd, _ = stranger.natural_state(q, v, np.zeros(len(v)))
    table = readout(system, [Sensor("gyro", "gyroscope", "rod", 0.1)])
    omega = system.geometry.angular_velocity("rod", x, xd)
    R = system.geometry.rotation("rod", x)
    assert np.abs(table.read(x, xd, xd) - R.T @ omega).max() < 1e-12
    assert np.abs(table.read(x, xd, xd) - stranger.data.v[stranger.joint["rod"]].angular).max() < 1e-10


def test_an_accelerometer_reads_the_specific_acceleration_of_pinocchio() -> None:
    stranger, system = Stranger(), system_of(natural())
    q, v = stranger.closed(np.random.default_rng(4), 1.0)
    a = stranger.acceleration(q, v)
    x, xd, xdd = stranger.natural_state(q, v, a)
    place = (1.2, 0.4, 1.4)  # in the rod's frame, which is the ground's in the reference pose
    table = readout(system, [Sensor("imu", "accelerometer", Marker("rod", place), 0.1)])
    joint, data = stranger.joint["rod"], stranger.data
    arm = np.array(place) - stranger.origin["rod"]
    V, A = data.v[joint], data.a[joint]
    speed = V.linear + np.cross(V.angular, arm)
    felt = A.linear + np.cross(A.angular, arm) + np.cross(V.angular, speed) - data.oMi[joint].rotation.T @ GRAVITY
    assert np.abs(table.read(x, xd, xdd) - felt).max() < 1e-9


def test_exact_readings_are_channels_with_units() -> None:
    rng = np.random.default_rng(0)
    system = system_of(random_mechanism(rng, 2).mechanism)
    q = np.tile(position(system), (4, 1))
    motion = NaturalMotion(system.coordinates, np.arange(4.0), q, 0 * q, 0 * q, np.zeros((4, system.constraints.m)))
    table = readout(system, [Sensor("e", "coordinate", "theta", 0.1), Sensor("p", "position", "O", 0.1)])
    log = exact_readings(system, motion, table)
    assert log.names == ("e", "p.x", "p.y") and log["e"].unit == "rad" and log["p.x"].unit == "m"
    assert (log["e"].values == q[:, system.mechanism.index("theta")]).all()


def test_a_velocity_along_the_axes_of_its_marker() -> None:
    """The twist of a body from the geometry's own ω: Rᵀ (v + ω × r), written out here."""
    stranger, system = Stranger(), system_of(natural())
    q, v = stranger.closed(np.random.default_rng(5), 1.0)
    x, xd, _ = stranger.natural_state(q, v, np.zeros(len(v)))
    place, axis, side = (1.2, 0.4, 1.4), np.array([0.0, 3.0, 4.0]), np.array([1.0, 0.0, 0.0])
    turned = Sensor("along", "velocity", Marker("rod", place, axis, side), 0.1)
    table = readout(system, [turned, Sensor("plain", "velocity", Marker("rod", place), 0.1)])
    own = np.column_stack([axis / 5.0, side, np.cross(axis / 5.0, side)])
    found = table.read(x, xd, 0 * xd)
    assert np.abs(found[:3] - own.T @ system.geometry.rotation("rod", x).T @ found[3:]).max() < 1e-12
    joint, data = stranger.joint["rod"], stranger.data
    local = data.v[joint].linear + np.cross(data.v[joint].angular, np.array(place) - stranger.origin["rod"])
    assert np.abs(found[:3] - own.T @ local).max() < 1e-10


def test_sensors_that_cannot_be_read_are_refused() -> None:
    system = system_of(natural())
    turned = Marker("rod", (1.2, 0.4, 1.4), (1.0, 0.0, 0.0))
    with pytest.raises(ModelError, match="sensor 'p': a position is read in the ground's axes"):
        readout(system, [Sensor("p", "position", turned, 0.1)])
    with pytest.raises(ModelError, match=r"(?s)sensor 'd': natural coordinates read a distance as a coordinate"):
        readout(system, [Sensor("d", "distance", turned, 0.1, to="TA")])
