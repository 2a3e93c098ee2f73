"""The way of a car through gaps of its positions, on a drive integrated by a stranger."""

import numpy as np
import pytest

from strangers.bicycle_drive import Bicycle
from veridyn.errors import ModelError
from veridyn.observe.car.path import PathNoise, path_start, path_system
from veridyn.observe.filters.ekf import EKF
from veridyn.observe.filters.run import run
from veridyn.observe.jacobian import check_jacobian
from veridyn.observe.measurements import Measurements, Status

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
