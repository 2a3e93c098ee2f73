"""A car of a few numbers as a machine: parameters, coordinates, sensors and priors."""

import pickle

import numpy as np
import pytest

from veridyn.errors import ModelError
from veridyn.files.machine.write_parts import differences
from veridyn.mechanics.natural.description.of_machine import mechanism_of
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.elements.element import Element
from veridyn.model.link import Joint, Link
from veridyn.model.machine import Machine
from veridyn.model.sensor import Sensor
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
    assert prior_of(car, "mass") == PriorValue(900.0, 0.0, 0.5, 60000.0)
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
    assert prior_of(other, "rear") == PriorValue(1.0, 0.1, 0.35, 1.6)  # the wheelbase of a likely car
    assert prior_of(other, "front") == PriorValue(1.4, 0.0, 0.01, 10.0)
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


SMALL_CAR = {"mass": 900.0, "front": 1.0, "rear": 1.4}


def test_sensors_are_readings_by_name() -> None:
    car = car_machine("small", SMALL_CAR)
    assert car.with_sensors([Sensor("beta", "reading", "sideslip", 0.01)]).sensors[0].name == "beta"
    with pytest.raises(ModelError) as error:
        car.with_sensors([Sensor("gyro", "gyroscope", "car", 0.01), Sensor("a", "reading", "az", 0.1)])
    assert "is read by name" in str(error.value) and "a car has no reading 'az'" in str(error.value)


def test_it_has_no_tree_and_no_points_for_a_physical_reason() -> None:
    car = car_machine("small", SMALL_CAR)
    for form in (tree_of, mechanism_of, lambda m: m.with_formulation("tree"), lambda m: m.with_formulation("natural")):
        with pytest.raises(ModelError, match=r"formulation single_track has no form as .*: its speed is an input"):
            form(car)
    with pytest.raises(ModelError, match="has no elements"):
        car.with_elements([Element(kind="damper", on={"yaw": 1.0}, value=1.0)])


def test_a_machine_of_bodies_is_no_car_and_has_no_readings() -> None:
    rod = Link(name="rod", inertia=[0.33, 0, 0, 0.33, 0, 0, 0, 0, -0.5, 1.0])
    hinge = Joint(name="hinge", a="ground", b="rod")
    pendulum = Machine.build([rod], [hinge])
    with pytest.raises(ModelError, match="not by the few numbers of a car"):
        pendulum.with_formulation("single_track")
    for formulation in ("tree", "natural"):
        with pytest.raises(ModelError, match="only a car described by a few numbers"):
            Machine.build([rod], [hinge], sensors=[Sensor("r", "reading", "ay", 0.1)], formulation=formulation)
