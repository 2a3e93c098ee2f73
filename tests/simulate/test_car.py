"""Cars of a few numbers simulated: the motion of a stranger's integration, sensors with noise, and the way back to parameters."""

import numpy as np
import pytest

import veridyn as vd
from strangers.bicycle_drive import Bicycle
from veridyn.errors import DataError, SimulationError
from veridyn.estimators import Innovations
from veridyn.model.single_track import CarNoise, PriorValue, car_machine
from veridyn.simulate.imperfection import Imperfection
from veridyn.simulate.simulator import Steered, car_truth, steered_run

TRUTH = Bicycle(duration=10.0, rate=25.0, noise={"yaw_rate": 0.0, "ay": 0.0, "steer": 0.0, "position": 0.0})
EXACT = tuple(vd.Sensor(n, "reading", n, 1e-12) for n in ("yaw_rate", "ay", "sideslip"))


def car(**more: float | PriorValue) -> vd.Machine:
    given = {"mass": TRUTH.mass, "front": TRUTH.front, "rear": TRUTH.rear, "yaw_inertia": TRUTH.inertia}
    given |= {
        "front_stiffness": TRUTH.cf,
        "rear_stiffness": TRUTH.cr,
        "height": 0.05,
        "brake_share": 0.5,
        "drive_share": 0.5,
    }
    return car_machine("bicycle", {**given, **more}, sensors=EXACT)


def drive(**more: object) -> Steered:
    given = {"duration": 10.0, "rate": 25.0, "speed": 20.0, "steer": TRUTH.steer}
    return Steered(**{**given, **more})


class Steady(Bicycle):
    """The stranger at a constant speed: it knows no drive force."""

    def speed(self, t):
        return 20.0 + 0.0 * t


def test_the_motion_is_that_of_a_stranger() -> None:
    other = Steady(duration=10.0, rate=25.0, noise=TRUTH.noise).drive(0)
    log = vd.simulate(car(), drive(start=(0.0, 0.0)), rng=np.random.default_rng(0))
    n = len(other["t"])
    np.testing.assert_allclose(log["speed"].t[:n], other["t"])
    for name in ("yaw_rate", "ay", "sideslip"):
        size = np.abs(other[name]).max()
        np.testing.assert_allclose(log[name].values[:n], other[name], atol=2e-5 * size)


def test_the_way_and_the_forces_are_those_of_a_stranger() -> None:
    other = Steady(duration=10.0, rate=25.0, noise=TRUTH.noise).drive(0)
    truth = car_truth(steered_run(car(), drive()))
    for name in ("east", "north", "heading", "front_force", "rear_force"):
        size = np.abs(other[name]).max()
        np.testing.assert_allclose(truth[name].values[: len(other["t"])], other[name], atol=2e-5 * size)
    np.testing.assert_array_equal(truth["bank"].values, 0.0)


def test_half_the_step_changes_nothing() -> None:
    whole = vd.simulate(car(), drive(), rng=np.random.default_rng(0))["yaw_rate"].values
    half = vd.simulate(car(), drive(step=0.001), rng=np.random.default_rng(0))["yaw_rate"].values
    np.testing.assert_allclose(whole, half, atol=1e-9)


def test_a_simulated_drive_gives_its_parameters_back() -> None:
    sensors = [vd.Sensor("yaw_rate", "reading", "yaw_rate", 0.002), vd.Sensor("ay", "reading", "ay", 0.05)]
    log = vd.simulate(
        car().with_sensors(sensors), drive(speed=lambda t: 20.0 + np.sin(0.3 * t)), rng=np.random.default_rng(1)
    )
    assert log.names == ("yaw_rate", "ay", "speed", "steer", "ax")
    uncertain = car(front_stiffness=PriorValue(11.0, 4.0), rear_stiffness=PriorValue(20.0, 6.0)).with_sensors(sensors)
    fit = vd.identify(uncertain, log, Innovations(noise=CarNoise(slip_error=5e-4, bank=5e-4)))
    assert (np.abs(fit.values - [TRUTH.cf, TRUTH.cr]) < 4.0 * fit.sigma).all() and (fit.relative_sigma < 3.0).all()


def test_a_bank_pushes_the_car_aside_and_inputs_may_be_noisy() -> None:
    noisy = {"speed": Imperfection(noise=0.1)}
    rng = np.random.default_rng(2)
    log = vd.simulate(car(), drive(steer=0.0, bank=0.05), rng=rng, imperfections=noisy)
    assert log["sideslip"].values[-1] != pytest.approx(0.0, abs=1e-4)
    assert np.std(log["speed"].values) == pytest.approx(0.1, rel=0.2) and not log["steer"].values.any()


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(DataError, match="has no motors on joints"):
        vd.simulate(car(), vd.manoeuvres.Driven(1.0, 100.0, [0.0] * 3, [0.0] * 3))
    with pytest.raises(DataError, match="only a car of a few numbers is steered"):
        vd.simulate(vd.load_model("veridyn:crane.yaml"), drive())
    with pytest.raises(SimulationError, match=r"at 1.92 s the speed is 2.72 m/s"):
        vd.simulate(car(), drive(speed=lambda t: 20.0 - 9.0 * t), rng=np.random.default_rng(0))
    with pytest.raises(DataError, match="needs random numbers"):
        vd.simulate(car(), drive())
