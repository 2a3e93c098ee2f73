"""Curves of springs, dampers and bars: a car whose curves are of the kind that is asked, and secants by the simulator's own law."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from papers.car.car_day import day
from veridyn.identify.settings import IdentifySettings
from veridyn.identify.validate import validate
from veridyn.mechanics.ground.road import rough_road
from veridyn.papers.car.bent import (
    CURVED,
    STRAIGHT,
    SuspensionModel,
    fitted,
    kind_of,
    mean_clearances,
    secants,
    widened,
)
from veridyn.papers.car.budget import corrected
from veridyn.papers.car.knowledge import informed
from veridyn.papers.car.log import CarKinematics
from veridyn.papers.car.machine import car_38, estimated_33
from veridyn.papers.car.simulator.description import Vehicle, speed_variation
from veridyn.papers.car.simulator.run import drive, to_motion, truth


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
    assert validate(found.fit, found.motions[0], settings=IdentifySettings(sampling=how)).worst.relative_error < 0.01
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


def test_groups_of_table_ii() -> None:
    found = {
        name: kind_of(name) for name in ("k_arf", "k_1", "off_2", "h_3", "fs_4", "Cx", "zero_fx", "M2", "M_c", "XX_c")
    }
    expected = ["bars", "springs", "springs", "dampers", "dampers", "air", "air", "masses", "chassis", "chassis"]
    assert list(found.values()) == expected


def test_the_one_with_the_smaller_error_on_held_out_drives_is_chosen() -> None:
    s = day().study.selected
    assert s.errors[s.name] == min(s.errors.values()) and set(s.errors) == {STRAIGHT, CURVED}
    assert s.of(curved=True) is s.chosen and s.of(curved=False) is s.other
    assert s.takes.logs == 2 and set(s.takes.ratio) == {"chassis", "masses", "bars", "springs", "dampers", "air"}
    added = s.takes.sigma / s.chosen.sigma
    for name, extra in zip(s.chosen.names, added, strict=True):
        assert extra == pytest.approx(np.sqrt(max(0.0, s.takes.ratio[kind_of(name)] ** 2 - 1.0)), abs=1e-9)
