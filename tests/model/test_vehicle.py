"""A car of a few numbers: defaults, bounds, and faults that come together."""

import pytest

from veridyn.errors import ModelError
from veridyn.model.vehicle import PARAMETERS, TABLE, PriorValue, vehicle_of

SMALL = {"mass": PriorValue(900.0), "front": PriorValue(1.0), "rear": PriorValue(1.4)}


def test_what_is_left_out_is_as_the_table_has_it() -> None:
    car = vehicle_of("small", SMALL)
    assert car["yaw_inertia"] == pytest.approx(900.0 * 1.0 * 1.4)
    assert all(car[n] == TABLE[n].default for n in PARAMETERS if n not in (*SMALL, "yaw_inertia"))
    assert car.uncertain == () and len(car.values) == len(PARAMETERS)


def test_faults_come_together_by_name() -> None:
    with pytest.raises(ModelError) as error:
        vehicle_of("wrong", {"mass": PriorValue(900.0), "front_stifness": PriorValue(1.0)}, tyre="tan")
    text = str(error.value)
    for words in (
        "there is no tyre law 'tan'",
        "Did you mean 'front_stiffness'",
        "'front' is missing",
        "'rear' is missing",
    ):
        assert words in text


def test_a_centre_of_mass_on_an_axle_is_doubted() -> None:
    with pytest.raises(ModelError, match="far nearer to one axle"):
        vehicle_of("wrong", {**SMALL, "front": PriorValue(0.2)})


def test_values_outside_their_bounds_are_refused() -> None:
    with pytest.raises(ModelError, match="'front_friction' is outside its bounds"):
        vehicle_of("ice", {**SMALL, "front_friction": PriorValue(0.01)})


def test_other_values_keep_bounds_and_names() -> None:
    car = vehicle_of("small", {**SMALL, "front_stiffness": PriorValue(15.0, 5.0)})
    new = car.with_values({"front_stiffness": 17.0}, {"front_stiffness": 1.0})
    b = new.parameters["front_stiffness"]
    assert (b.value, b.sigma, b.lower, b.upper) == (17.0, 1.0, 2.0, 80.0)
    assert new.uncertain == ("front_stiffness",) and "17" in new.summary()
