from dataclasses import replace

import numpy as np
import pytest

from veridyn.errors import ModelError
from veridyn.mechanics.ground.tyre_parameters import TyreParameters
from veridyn.papers.car.simulator.contact import LinearTyre
from veridyn.papers.car.simulator.description import CHASSIS, DETAILS, Vehicle, Wheel, WheelCarrier, passenger_tyre


def test_the_defaults_are_the_a_priori_values_of_table_ii():
    # Paper 000, Table II, column a priori.
    car = Vehicle()
    assert car.chassis == (622.15, 76.0, 44.12, 5898.0, -13.0, 6199.0, 2421.1, 0.0, -15.01, 1508.5)
    assert car.suspension.stiffness == (20600.0, 20600.0, 22000.0, 22000.0)
    assert car.suspension.damping == (3200.0, 3200.0, 3800.0, 3800.0)
    assert car.suspension.bar == (19033.0, 19938.0)
    assert [c.mass for c in car.carriers] == [24.0, 24.0]
    assert car.mass == pytest.approx(1508.5 + 4 * (24.0 + 18.8))


def test_simplified_keeps_the_parameters_and_drops_the_details():
    car = Vehicle().simplified()
    P = car.packed()
    assert np.array_equal(P.chassis, CHASSIS)
    assert not P.carrier[:, :9].any() and (P.carrier[:, 9] == 24.0).all()
    assert not P.tables.clearance.any() and not P.tables.rack.any() and not P.tables.compliance.any()
    assert not P.suspension.corner[:, [2, 3, 7, 9, 11]].any() and not P.suspension.bar[:, 1].any()
    assert P.driveline[0] == 0.0 and P.steering[3] == 0.0
    assert (P.air.coefficient != 0.0).sum() == 1
    assert car.simplified().suspension == car.suspension


def test_each_detail_can_be_left_out_or_kept_alone():
    car = Vehicle()
    assert replace(car.simplified(keep=DETAILS), name="") == replace(car, name="")
    bare = car.simplified()
    for detail in DETAILS:
        alone, rest = car.simplified(keep=[detail]), car.without(detail)
        assert detail in alone.name and detail in rest.name
        assert replace(alone, name="") != replace(bare, name=""), detail
        assert replace(rest, name="") != replace(car, name=""), detail
        # What is taken from the whole is what the bare car lacks.
        assert replace(alone.without(detail), name="") == replace(bare, name="")
    with pytest.raises(ModelError, match="no detail 'paht'"):
        car.without("paht")


def test_a_right_carrier_is_the_mirror_image_of_the_left_one():
    part = WheelCarrier(20.0, (0.1, -0.2, 0.3), (1.0, 0.1, 0.2, 2.0, 0.3, 3.0))
    left, right = part.ten(right=False), part.ten(right=True)
    assert right == (1.0, -0.1, 0.2, 2.0, -0.3, 3.0, 2.0, 4.0, 6.0, 20.0)
    assert left == (1.0, 0.1, 0.2, 2.0, 0.3, 3.0, 2.0, -4.0, 6.0, 20.0)


def test_impossible_cars_are_refused_whole():
    with pytest.raises(ModelError, match="no body has this inertia") as caught:
        Vehicle(chassis=(100.0, *CHASSIS[1:3], 100.0, *CHASSIS[4:]), wheels=(Wheel(mass=0.0), Wheel()), wheelbase=-1.0)
    assert len(caught.value.faults) == 3
    with pytest.raises(ModelError, match="ten numbers"):
        Vehicle(chassis=(1.0, 2.0))
    with pytest.raises(TypeError, match="one axle"):
        replace(Vehicle(), tyres=(LinearTyre(), passenger_tyre())).packed()


def test_the_tyre_is_a_magic_formula_tyre_with_a_stated_stiffness():
    tyre = passenger_tyre(200e3)
    assert isinstance(tyre, TyreParameters) and tyre.VERTICAL_STIFFNESS == 200e3
