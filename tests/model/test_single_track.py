"""A car of a few numbers as a machine: parameters, coordinates, sensors and priors."""

import pickle

import numpy as np
import pytest

from veridyn.errors import ModelError
from veridyn.model.differences import differences
from veridyn.model.single_track import (
    PriorValue,
    car_machine,
    prior_of,
    uncertain,
    with_estimate,
    with_exchanged_axles,
    with_tyre,
)

SMALL = {"mass": 900.0, "front": 1.0, "rear": 1.4, "front_stiffness": PriorValue(15.0, 5.0, upper=30.0)}


def test_it_is_a_machine_with_the_parameters_of_the_table() -> None:
    car = car_machine("small", SMALL)
    assert car.formulation == "single_track" and car.coordinates == ("x", "y", "yaw") and car.dimension == 2
    assert [s.name for s in car.sensors] == ["yaw_rate", "ay"] and car.sensors[1].unit(False) == "m/s^2"
    p = car.parameters
    assert len(p) == 23 and p["front_stiffness"] == 15.0
    assert [p.names[k] for k in p.select("estimated")] == ["front_stiffness"]
    assert prior_of(car, "front_stiffness") == PriorValue(15.0, 5.0, 2.0, 30.0)
    assert prior_of(car, "mass") == PriorValue(900.0, 0.0, 50.0, 60000.0)
    assert uncertain(car) == ("front_stiffness",)
    assert car.links[0].ten[9] == 900.0


def test_other_parameters_are_in_its_body_and_its_numbers() -> None:
    car = car_machine("small", SMALL).with_parameters({"mass": 1000.0, "front_stiffness": 17.0})
    assert car.links[0].ten[9] == 1000.0 and car.car is not None and car.car.values["front_stiffness"] == 17.0
    assert car.parameters["yaw_inertia"] == 1260.0 and car.uncertainty is None
    assert car.parameters.bounds["front_stiffness"] == (2.0, 30.0)
    assert differences(car.with_parameters({"mass": 900.0}), car) == ("car", "bodies", "parameters")
    with pytest.raises(ModelError, match="no parameter 'mas'"):
        car.with_parameters({"mas": 1.0})


def test_estimates_tyres_and_exchanged_axles() -> None:
    car = car_machine("small", {**SMALL, "front": PriorValue(1.0, 0.1, upper=1.6)})
    more = with_estimate(car, "drag", 0.4, 0.05)
    assert prior_of(more, "drag").sigma == pytest.approx(0.05) and "drag" in uncertain(more)
    assert prior_of(more, "front_stiffness").sigma == 5.0
    assert with_tyre(car, "linear").car.tyre == "linear"  # type: ignore[union-attr]
    other = with_exchanged_axles(car)
    assert prior_of(other, "rear") == PriorValue(1.0, 0.1, 0.05, 1.6)
    assert prior_of(other, "front") == PriorValue(1.4, 0.0, 0.05, 10.0)
    assert other.parameters["yaw_inertia"] == car.parameters["yaw_inertia"]


def test_all_faults_come_together() -> None:
    with pytest.raises(ModelError) as error:
        car_machine("wrong", {**SMALL, "rear": PriorValue(1.4, -1.0), "front_friction": 0.01}, "tan")
    for words in ("deviation of 'rear'", "tyre law 'tan'", "outside its bounds"):
        assert words in str(error.value)


def test_it_travels() -> None:
    car = car_machine("small", SMALL)
    assert differences(pickle.loads(pickle.dumps(car)), car) == ()
    np.testing.assert_array_equal(car.uncertainty.covariance, [[25.0]])  # type: ignore[union-attr]
