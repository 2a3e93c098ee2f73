from dataclasses import replace

import numpy as np
import pytest

from veridyn.errors import DataError, ModelError
from veridyn.mechanics.ground.tyre_parameters import TyreParameters
from veridyn.papers.car.simulator import description as vm
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


T = np.linspace(-1.0, 12.0, 13001)


@pytest.mark.parametrize(
    "made",
    [
        vm.sinusoidal_steering(),
        vm.ramp_steer(),
        vm.ramp_steer(110 * vm.KMH, -0.06),
        vm.straight_braking(),
        vm.straight(),
        vm.speed_variation(),
        vm.standstill(),
    ],
    ids=lambda m: m.name,
)
def test_inputs_are_smooth_and_hold_still_before_the_start(made):
    u = made.inputs(T)
    assert u.shape == (len(T), 6) and np.isfinite(u).all()
    before = T <= 0.0
    assert (u[before][:, :2] == u[0, :2]).all() and not u[before, 2].any()
    assert np.abs(np.diff(u[:, 0])).max() < 2e-3 * 2.0  # at most 2 rad/s of steering
    assert np.allclose(np.gradient(u[:, 1], T)[1500:-1], u[1500:-1, 2], atol=1e-5)


def test_names_and_sizes_are_those_of_the_papers():
    left, right = vm.ramp_steer(90 * vm.KMH, 0.05), vm.ramp_steer(110 * vm.KMH, -0.05)
    assert left.name == "ramp steer to the left at 90 km/h" and right.name == "ramp steer to the right at 110 km/h"
    t = np.array([0.5, 1.0, 4.0, 5.0])
    assert np.allclose(left.steering(t), [0.0, 0.0, 0.125, 0.175])
    assert np.allclose(right.steering(t), -left.steering(t))
    sine = vm.sinusoidal_steering(160 * vm.KMH, 0.4, 0.5)
    assert sine.name == "sinusoidal steering at 160 km/h"
    assert sine.steering(np.array([2.5]))[0] == pytest.approx(0.4)


def test_the_controller_rests_once_braking_began():
    u = vm.straight_braking(30.0, 5.0, start=2.0).inputs(T)
    assert (u[T <= 2.0, 4] == 1.0).all() and not u[T > 2.01, 4].any()
    assert u[-1, 3] == pytest.approx(5.0)


def test_impossible_wishes_are_refused():
    with pytest.raises(DataError, match="negative speed"):
        vm.straight(-3.0).inputs(T)
    with pytest.raises(DataError, match="not a number"):
        vm.VehicleManoeuvre("odd", lambda t: t * np.nan).inputs(T)


def test_a_restless_engine_has_its_torque_and_one_seed_gives_one_engine():
    made = vm.restless(vm.straight(30.0), np.random.default_rng(4), 50.0)
    t = np.arange(2.0, 22.0, 1e-2)
    assert made.pedal(t).std() == pytest.approx(50.0, rel=0.02)  # whole periods of every line
    again = vm.restless(vm.straight(30.0), np.random.default_rng(4), 50.0)
    assert np.array_equal(made.pedal(t), again.pedal(t)) and made.pedal(np.zeros(1))[0] == 0.0
