"""Deviations of the sensors of a way are those of its readings."""

import numpy as np

from veridyn.observe.car.path_noise import PathNoise
from veridyn.observe.car.system import path_system


def test_each_sensor_has_its_deviation() -> None:
    noise = PathNoise(position=0.2, wheel=0.3, gyro=0.4)
    system = path_system(("east", "wheel_fl", "yaw_rate"), noise, 1.5)
    np.testing.assert_allclose(np.sqrt(np.diag(system.R)), [0.2, 0.3, 0.4])
