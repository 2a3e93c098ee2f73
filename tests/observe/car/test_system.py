"""The observer of a car on drives integrated by a stranger: sideslip and forces, parameters online, and what stays frozen."""

import numpy as np
import pytest

from strangers.bicycle_drive import Bicycle
from veridyn.errors import ModelError
from veridyn.model.sensor import Sensor
from veridyn.model.single_track import CarNoise, PriorValue, car_machine
from veridyn.observe.car.system import car_start, car_system, frozen_parameters, virtual_sensors
from veridyn.observe.filters.methods import EKF
from veridyn.observe.filters.run import run
from veridyn.observe.measurements import Measurements

QUIET = CarNoise(slip_error=5e-4, bank=5e-4, lateral=0.02, yaw=0.02)
SENSORS = (Sensor("yaw_rate", "reading", "yaw_rate", 0.003), Sensor("ay", "reading", "ay", 0.1))


def car_of(b: Bicycle, **more: PriorValue):
    given = {"mass": b.mass, "front": b.front, "rear": b.rear, "yaw_inertia": b.inertia, "front_stiffness": b.cf, "rear_stiffness": b.cr,
        "front_friction": b.mu, "rear_friction": b.mu}  # fmt: skip
    return car_machine("bicycle", {**given, **more}, sensors=SENSORS)


def log_of(d: dict) -> Measurements:
    inputs = np.column_stack([d["speed"], d["steer"], np.zeros(len(d["t"]))])
    return Measurements(d["t"], np.column_stack([d["yaw_rate"], d["ay"]]), ("yaw_rate", "ay"), inputs=inputs)


def test_sideslip_and_forces_are_followed_with_bands_that_hold() -> None:
    b = Bicycle(duration=30.0)
    d, car = b.drive(1), car_of(b)
    log, system = log_of(d), car_system(car_of(b), QUIET, ("yaw_rate", "ay"))
    found = run(EKF(engine="compiled"), system, log, car_start(car, QUIET, 0.0))
    seen = virtual_sensors(found, system, log.inputs, ("sideslip", "front_force", "rear_force"))
    error = seen["sideslip"].values[:, 0] - d["sideslip"]
    assert np.degrees(np.sqrt(np.mean(error[50:] ** 2))) < 0.1  # of up to 4 degrees
    assert np.degrees(np.abs(d["sideslip"]).max()) > 2.0
    assert np.mean(np.abs(error[50:]) < 2.0 * seen["sideslip"].sigma[50:, 0]) > 0.9
    for name in ("front_force", "rear_force"):
        assert np.std((seen[name].values[:, 0] - d[name])[50:]) < 0.04 * np.std(d[name])


def test_parameters_are_found_online_within_their_bounds() -> None:
    b = Bicycle(duration=40.0)
    car = car_of(b, front_stiffness=PriorValue(10.0, 4.0), steering_offset=PriorValue(0.004, 0.005))
    estimate = ("front_stiffness", "steering_offset")
    system = car_system(car, QUIET, ("yaw_rate", "ay"), estimate)
    start = car_start(car, QUIET, 0.0, estimate)
    found = run(EKF(), system, log_of(b.drive(2)), start)
    assert found.state("front_stiffness")[-1] == pytest.approx(b.cf, abs=max(3.0 * found.sigma[-1, 5], 0.05 * b.cf))
    assert found.state("steering_offset")[-1] == pytest.approx(0.0, abs=3.0 * found.sigma[-1, 6])
    assert frozen_parameters(found, estimate, start) == {}


def test_with_too_little_excitation_parameters_stay_within_bounds_and_are_reported() -> None:
    """Straight ahead on a motorway: the steering hardly moves, friction and stiffness cannot show."""
    b = Bicycle(duration=20.0, amplitude=2e-5)
    car = car_of(b, front_stiffness=PriorValue(18.0, 5.0, 8.0, 25.0), rear_friction=PriorValue(1.0, 0.3, 0.5, 1.5))
    estimate = ("front_stiffness", "rear_friction")
    system = car_system(car, QUIET, ("yaw_rate", "ay"), estimate)
    start = car_start(car, QUIET, 0.0, estimate)
    found = run(EKF(), system, log_of(b.drive(3)), start)
    assert set(frozen_parameters(found, estimate, start)) == set(estimate)
    assert (found.state("front_stiffness") >= 8.0).all() and (found.state("front_stiffness") <= 25.0).all()
    assert found.state("rear_friction")[-1] == pytest.approx(1.0, abs=0.02)


def test_considered_parameters_widen_the_bands_and_stay() -> None:
    b = Bicycle(duration=10.0)
    car = car_of(b, rear_stiffness=PriorValue(b.cr, 2.0))
    log = log_of(b.drive(4))
    spans = {}
    for consider in ((), ("rear_stiffness",)):
        system = car_system(car, QUIET, log.names, consider=consider)
        found = run(EKF(), system, log, car_start(car, QUIET, 0.0, consider=consider))
        spans[consider] = virtual_sensors(found, system, log.inputs, ("sideslip",))["sideslip"].sigma[100:].mean()
        if consider:
            assert (found.state("rear_stiffness") == b.cr).all()
    assert spans["rear_stiffness",] > 1.2 * spans[()]


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ModelError, match="there is no sensor 'yawrate'") as error:
        car_system(car_of(Bicycle()), QUIET, ("yawrate",), ("stiffness",))
    assert "there is no parameter 'stiffness'" in str(error.value)
