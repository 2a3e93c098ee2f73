"""The few numbers of a car: defaults, bounds, faults that come together, and the description that other values lead to."""

import pickle
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from veridyn.errors import ModelError
from veridyn.files.machine.write_parts import equal_parts
from veridyn.model.car import PARAMETERS, TABLE, CarDescription, car_link, car_parameters, car_with, check_car

SMALL = {"mass": 900.0, "front": 1.0, "rear": 1.4}


def test_what_is_left_out_is_as_the_table_has_it() -> None:
    p = car_parameters(CarDescription(SMALL))
    assert p["yaw_inertia"] == pytest.approx(900.0 * 1.0 * 1.4)
    assert all(p[n] == TABLE[n].default for n in PARAMETERS if n not in (*SMALL, "yaw_inertia"))
    assert p.names == PARAMETERS and set(p.states) == {"known"}
    assert p.units == tuple(kind.unit for kind in TABLE.values())
    assert p.bounds["front_stiffness"] == (2.0, 80.0) and (p.typical > 0.0).all()


def test_faults_come_together_by_name() -> None:
    found = check_car(CarDescription({"mass": 900.0, "front_stifness": 1.0}, "tan"))
    text = "\n".join(str(f) for f in found)
    for words in (
        "there is no tyre law 'tan'",
        "Did you mean 'front_stiffness'",
        "'front' is missing",
        "'rear' is missing",
    ):
        assert words in text


def test_a_centre_of_mass_on_an_axle_and_values_outside_bounds_are_refused() -> None:
    (fault,) = check_car(CarDescription({**SMALL, "front": 0.2}))
    assert "far nearer to one axle" in fault.what
    text = "\n".join(str(f) for f in check_car(CarDescription({**SMALL, "rear": 0.0})))
    assert "'rear' is outside its bounds" in text and "far nearer to one axle" in text
    (fault,) = check_car(CarDescription({**SMALL, "front_friction": 0.01}))
    assert "'front_friction' is outside its bounds" in fault.what
    (fault,) = check_car(CarDescription({**SMALL, "front_friction": 1.5}, bounds={"front_friction": (0.5, 1.2)}))
    assert fault.expected == "0.5 to 1.2 1"


def test_other_values_state_what_the_table_would_not_give() -> None:
    """The yaw inertia followed from the mass; it stays as it was when the mass changes."""
    car = CarDescription({**SMALL, "front_stiffness": 15.0}, estimated=("front_stiffness",))
    new = car_with(car, car_parameters(car).replacing({"mass": 1000.0, "drag": 0.4}))
    assert dict(new.values) == {**car.values, "mass": 1000.0, "yaw_inertia": 1260.0, "drag": 0.4}
    default = car_with(car, car_parameters(car).estimated(["height"]))
    assert default.values["height"] == 0.5 and default.estimated == ("height", "front_stiffness")
    assert new.estimated == ("front_stiffness",)
    assert equal_parts(car_with(car, car_parameters(car)), car)
    with pytest.raises(ModelError, match="cannot be tied"):
        car_with(car, car_parameters(car).tied({"front_stiffness": "rear_stiffness"}))


def test_its_body_is_flat_and_has_its_mass_and_yaw_inertia() -> None:
    link = car_link(car_parameters(CarDescription({**SMALL, "yaw_inertia": 1200.0})))
    np.testing.assert_array_equal(link.ten, [600.0, 0, 0, 600.0, 0, 1200.0, 0, 0, 0, 900.0])


def test_a_description_travels() -> None:
    car = CarDescription(SMALL, "magic", ("mass",), {"mass": (800.0, 1000.0)})
    assert equal_parts(pickle.loads(pickle.dumps(car)), car)


def test_models_of_cars_are_cars() -> None:
    """A car of 1:10, 1.6 kg: such were refused, as all below 50 kg."""
    values = {"mass": 1.6, "front": 0.125, "rear": 0.135, "height": 0.03, "track": 0.16}
    assert check_car(CarDescription(values)) == []
    assert car_parameters(CarDescription(values))["yaw_inertia"] == pytest.approx(1.6 * 0.125 * 0.135)


@pytest.mark.parametrize("estimated", [("front",), ("rear",), ("front", "rear"), ()])
@pytest.mark.parametrize("front", [0.4, 1.1, 3.9])
def test_no_fit_moves_an_axle_to_where_it_is_refused(estimated: tuple[str, ...], front: float) -> None:
    """A fit that moved `front` beyond the wheelbase ended in a fault of the user's file."""
    car = CarDescription({"mass": 900.0, "front": front, "rear": 1.0}, estimated=estimated)
    bounds = car_parameters(car).bounds
    for corner in product(*(bounds[n] for n in estimated)):
        assert check_car(replace(car, values={**car.values, **dict(zip(estimated, corner, strict=True))})) == []
    for name in {"front", "rear"} - set(estimated):
        assert bounds[name] == car.bounds_of(name)
