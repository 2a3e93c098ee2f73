"""What a car of a few numbers can carry, and forms that it does not have."""

import pytest

from veridyn.errors import ModelError
from veridyn.mechanics.natural.description.of_machine import mechanism_of
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.elements.element import Element
from veridyn.model.link import Joint, Link
from veridyn.model.machine import Machine
from veridyn.model.sensor import Sensor
from veridyn.model.single_track import car_machine

SMALL = {"mass": 900.0, "front": 1.0, "rear": 1.4}


def test_sensors_are_readings_by_name() -> None:
    car = car_machine("small", SMALL)
    assert car.with_sensors([Sensor("beta", "reading", "sideslip", 0.01)]).sensors[0].name == "beta"
    with pytest.raises(ModelError) as error:
        car.with_sensors([Sensor("gyro", "gyroscope", "car", 0.01), Sensor("a", "reading", "az", 0.1)])
    assert "is read by name" in str(error.value) and "a car has no reading 'az'" in str(error.value)


def test_it_has_no_tree_and_no_points_for_a_physical_reason() -> None:
    car = car_machine("small", SMALL)
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
