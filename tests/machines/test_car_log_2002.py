"""The car of 2002 by its instruments: poses and accelerations of the simulator come back, and its rows are those of the mixed form."""

import numpy as np
import pytest

from veridyn.machines.car import car_2002
from veridyn.machines.car_log import from_log
from veridyn.machines.car_log_2002 import FRAME_6
from veridyn.machines.car_record import CarKinematics
from veridyn.machines.car_sensors import sensed, sensors_2002
from veridyn.mechanics.inverse import inverse_dynamics
from veridyn.mechanics.kinematics import body_pose
from veridyn.signals.butterworth import Butterworth
from veridyn.signals.motion import Signals
from veridyn.simulate.vehicle.description import Vehicle
from veridyn.simulate.vehicle.manoeuvre import ramp_steer
from veridyn.simulate.vehicle.run import VehicleRun, drive

QUIET = sensors_2002().quiet()
AXLE = np.array([0.0, 0.0, -0.295])  # the origin of 2002, on the line of the rear axle


@pytest.fixture(scope="module")
def run() -> VehicleRun:
    return drive(Vehicle().simplified(), ramp_steer(), duration=16.0)


def found(run: VehicleRun, machine, sensors=QUIET, rng=None):
    log = sensed(run, rng, sensors)
    return from_log(
        machine, log, CarKinematics.of(run.vehicle), sensors, Butterworth(12.0), Signals(lowpass=None, trim=0.5)
    )


def at(run: VehicleRun, t: np.ndarray, x: np.ndarray) -> np.ndarray:
    """A quantity of the run at the log's times."""
    flat = x.reshape(len(run), -1)
    return np.stack([np.interp(t, run.t, c) for c in flat.T], axis=1).reshape(len(t), *x.shape[1:])


def test_pose_and_accelerations_of_the_chassis_come_back(run: VehicleRun) -> None:
    machine = car_2002()
    motion = found(run, machine)
    assert np.allclose(np.diff(motion.t), 0.016)
    R, p = body_pose(machine, motion.q, "6")
    true_p, true_R = at(run, motion.t, run.position + run.attitude @ AXLE), at(run, motion.t, run.attitude @ FRAME_6)
    # Positions are integrated from the start of the log, so they are the same but for where and which way it began.
    assert np.abs((p - p[0]) - (true_p - true_p[0])).max() < 2e-3
    assert np.abs(R - true_R).max() < 1e-3
    assert abs(p[:, 2].mean() - true_p[:, 2].mean()) < 1e-3
    assert run.base.velocity is not None
    v = np.einsum("nij,nj->ni", run.attitude, run.base.velocity + np.cross(run.base.omega, AXLE))
    a = at(run, motion.t, np.gradient(v, run.t, axis=0))
    for k, true in ((0, -a[:, 1]), (1, a[:, 0]), (2, a[:, 2])):
        assert np.abs(motion.qdd[:, k] - true).max() < 1e-3


def test_lagrange_and_mixed_rows_say_the_same(run: VehicleRun) -> None:
    """One log through camera, lasers and Correvit, the other through the inertial unit: two ways to the suspension rows."""
    lagrange, mixed = car_2002(), car_2002(form="mixed")
    rows = ["q7", "q10", "q13", "q17"]
    one = inverse_dynamics(lagrange, found(run, lagrange), rows)
    other = inverse_dynamics(mixed, found(run, mixed), rows)
    assert np.abs(one - other).max() < 2e-3 * np.abs(one).max()


def test_weight_stands_on_the_dynamometers(run: VehicleRun) -> None:
    """Frames 8, 11, 15, 19 have y down: before the steering begins each reads what the static car carries, with a minus sign."""
    motion = found(run, car_2002())
    early = motion.t < 0.9
    loads = np.array([-motion.wrenches[b][early, 1].mean() for b in ("15", "19", "8", "11")])
    car = run.vehicle
    carried = (car.mass - 4 * car.wheels[0].mass) * car.gravity
    assert loads.sum() == pytest.approx(carried, rel=2e-3)


def test_biased_rates_do_not_tilt_the_car_for_ever(run: VehicleRun) -> None:
    motion = found(run, car_2002(), sensors_2002(), np.random.default_rng(5))
    R, _ = body_pose(car_2002(), motion.q, "6")
    down = at(run, motion.t, run.attitude @ FRAME_6)[:, 2, :]
    assert np.abs(R[:, 2, :] - down).max() < 4e-3
