"""Curves of springs, dampers and bars: a car whose curves are of the kind that is asked, and secants by the simulator's own law."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from veridyn.identify.validate import validate
from veridyn.machines.car import car_38, estimated_33
from veridyn.machines.car_paths import informed
from veridyn.machines.car_record import CarKinematics
from veridyn.mechanics.ground.road_rough import rough_road
from veridyn.simulate.vehicle.description import Vehicle
from veridyn.simulate.vehicle.manoeuvre import speed_variation
from veridyn.simulate.vehicle.run import drive, to_motion
from veridyn.simulate.vehicle.truth import truth
from veridyn.studies.papers.car.bent import SuspensionModel, fitted, mean_clearances, secants, widened
from veridyn.studies.papers.car.models import corrected


def test_secants_of_cubic_springs_and_bars_are_found() -> None:
    """Straight dampers: then all curves are of the kind that is asked, and the truth is exact but for dry friction, rounded off over 1 "
    "mm/s."""
    car = Vehicle()
    simple = car.simplified()
    springs = replace(
        simple.suspension, square=car.suspension.square, cube=car.suspension.cube, bar_cube=car.suspension.bar_cube
    )
    car = replace(car, carriers=simple.carriers, driveline=simple.driveline, suspension=springs)
    run = drive(
        car, speed_variation(), rough_road("C", np.random.default_rng(3), length=600.0, track=1.5), 10.0, every=2
    )
    machine = estimated_33(car_38())
    m = informed(to_motion(run, machine), machine, CarKinematics.of(car), car.aerodynamics)
    how = corrected(machine)
    found = fitted(SuspensionModel(machine, True, mean_clearances(machine, [m])), [m], how)
    true, secant = truth(run), dict(zip(found.names, found.values, strict=True))
    for name in ("k_1", "k_2", "k_3", "k_4", "k_arf", "k_arr", "off_1", "off_3"):
        assert secant[name] == pytest.approx(true[name], rel=2e-3), name
    bends = dict(zip(found.fit.names, found.fit.values, strict=True))
    assert bends["k2_1"] == pytest.approx(25e3, rel=0.5) and bends["k3_arf"] == pytest.approx(4e5, rel=0.2)
    assert validate(found.fit, found.motions[0], sampling=how).worst.relative_error < 0.01
    assert set(found.names) == {machine.parameters.names[k] for k in machine.parameters.select("estimated")}


def test_a_straight_model_reports_its_own_parameters() -> None:
    machine = estimated_33(car_38())
    names, J = secants(SuspensionModel(machine, False, np.zeros(4)), ("k_1", "h_1", "off_1"), [])
    assert names == ("k_1", "h_1", "off_1") and np.array_equal(J, np.eye(3))


def test_bends_are_estimated_beside_the_rest() -> None:
    machine = estimated_33(car_38())
    wide = widened(machine)
    assert len(wide.parameters.select("estimated")) == 33 + 18
    units = dict(zip(wide.parameters.names, wide.parameters.units, strict=True))
    assert (units["k2_1"], units["h2_4"], units["k3_arr"]) == ("N/m^2", "N*s^2/m^2", "N/m^3")
