"""Wheel paths and air from tables, against the simulator, whose equations were written apart."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from veridyn.machines.car import car_20, car_38
from veridyn.machines.car_paths import air, informed, paths, slopes
from veridyn.machines.car_record import CarKinematics
from veridyn.mechanics.ground.road_rough import rough_road
from veridyn.mechanics.inverse import inverse_dynamics
from veridyn.simulate.vehicle.description import Vehicle
from veridyn.simulate.vehicle.manoeuvre import speed_variation
from veridyn.simulate.vehicle.run import VehicleRun, drive, to_motion


@cache
def run() -> VehicleRun:
    """A detailed car whose carriers are points, so that their mass is all there is to them."""
    car = Vehicle()
    car = replace(car, carriers=car.simplified().carriers)
    return drive(
        car, speed_variation(), rough_road("C", np.random.default_rng(1), length=400.0, track=1.5), 4.0, every=4
    )


def test_along_its_path_a_wheel_carries_spring_damper_and_bar() -> None:
    """row(z) + Σ ∂q/∂z row(q), without elements, is what spring, damper and bar exert: all four wheels, the driven ones too."""
    machine = car_38()
    bare = machine.with_parameters(dict.fromkeys((e.parameter_name for e in machine.elements), 0.0))
    r = run()
    m = informed(to_motion(r, machine), machine, CarKinematics.of(r.vehicle))
    along = paths(machine)
    z, zd, _ = r.clearance
    suspension = r.vehicle.suspension
    for i in range(4):
        name, other = f"z{i + 1}", i + 1 if i % 2 == 0 else i - 1
        rows = inverse_dynamics(bare, m, [name, *along[name]])
        balance = rows[:, 0] + sum(m.signals[s] * rows[:, k + 1] for k, s in enumerate(along[name].values()))
        d = z[:, i] - z[:, other]
        bar = suspension.bar[i // 2] * d + suspension.bar_cube[i // 2] * d**3
        exerted = suspension.spring(i, z[:, i]) + suspension.damper(i, zd[:, i]) + bar
        # Of some 5 kN. Slopes are differences over 0.1 mm; of the shafts' torque, sin(camber) of it stays in the row of the toe.
        assert balance == pytest.approx(-exerted, abs=1.0 if i < 2 else 2e-3), name
        assert np.abs(rows[:, 0] + exerted).max() > 50.0  # the row of the clearance alone is not in balance


def test_paths_leave_out_what_comes_through_shafts() -> None:
    along = paths(car_38())
    assert "kingpin1" not in along["z1"] and "kingpin3" in along["z3"]
    assert "kingpin3" not in paths(car_38(), driven=(3, 4))["z3"]
    assert paths(car_20()) == {}


def test_slopes_are_those_of_the_tables() -> None:
    r = run()
    car = CarKinematics.of(r.vehicle)
    found = slopes(car, np.array([car.design]))[0]
    assert found[0] == pytest.approx([0.04, -0.03, -0.06, 0.17, 0.10], abs=1e-3)  # front_axle() of the simulator
    assert found[1] == pytest.approx([-0.04, -0.03, 0.06, -0.17, 0.10], abs=1e-3)


def test_air_is_the_simulators_but_for_the_drag() -> None:
    r = run()
    assert r.base.velocity is not None
    wanted = r.air_wrench.copy()
    wanted[:, 0] = 0.0
    assert air(r.vehicle.aerodynamics, r.base.velocity) == pytest.approx(wanted, abs=1e-9)


def test_a_smaller_car_gets_the_air_alone() -> None:
    machine = car_20()
    r = run()
    m = informed(to_motion(r, machine), machine, CarKinematics.of(r.vehicle), r.vehicle.aerodynamics)
    assert not m.signals and m.wrenches["chassis"].shape == (len(r), 6)
