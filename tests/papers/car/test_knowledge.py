"""What is handed in of a car: moved piece by piece, drawn, and behind a log as before it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.mechanics.ground.road import rough_road
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.papers.car.budget import thirty_three
from veridyn.papers.car.drive import campaign
from veridyn.papers.car.knowledge import CarKnown, air, informed, paths, slopes
from veridyn.papers.car.log import CarKinematics
from veridyn.papers.car.machine import car_20, car_38
from veridyn.papers.car.sensors import sensors_2006
from veridyn.papers.car.simulator.description import Vehicle, sinusoidal_steering, speed_variation
from veridyn.papers.car.simulator.run import VehicleRun, drive, to_motion

KNOWN = CarKnown.of(Vehicle(), sensors_2006())


def test_one_item_moves_one_number_by_its_deviation() -> None:
    d = KNOWN.deviations
    slope = KNOWN.moved({"front camber": 2.0}).kinematics.tables.front.by_clearance
    assert slope[3] == pytest.approx(np.array(KNOWN.kinematics.tables.front.by_clearance[3]) * (1.0 + 2.0 * d.table))
    assert slope[0] == KNOWN.kinematics.tables.front.by_clearance[0]
    assert KNOWN.moved({"band gyro": -1.0}).sensors.gyro.cutoff == pytest.approx(10.0 * (1.0 - d.band))
    assert KNOWN.moved({"inertial y": 1.0}).sensors.inertial_place == pytest.approx((1.30, d.inertial_place, -0.05))
    assert KNOWN.moved({"wheelbase": 1.0}).wheelbase == d.length
    air = KNOWN.moved({"air Cz": 1.0}).aerodynamics.coefficients[0]
    assert air[2] == pytest.approx(-0.10 * (1.0 + d.air)) and air[0] == 0.3906
    rear = KNOWN.moved({"rear MY": 1.0}).carriers[1]
    assert rear.ten(right=False)[7] == pytest.approx(24.0 * (-0.06 + d.carrier_centre))
    assert KNOWN.moved({}) == KNOWN
    with pytest.raises(DataError, match="front camber"):
        KNOWN.moved({"front cambr": 1.0})


def test_what_is_drawn_is_off_by_its_deviation() -> None:
    """Over 400 draws the rms of each cut-off is its deviation to four standard errors of an rms, 4/√800."""
    rng = np.random.default_rng(0)
    drawn = [KNOWN.drawn(rng) for _ in range(400)]
    off = np.array([[k.sensors.gyro.cutoff / 10.0 - 1.0, k.half_tracks[1] / KNOWN.deviations.length] for k in drawn])
    assert np.sqrt((off**2).mean(axis=0)) == pytest.approx([KNOWN.deviations.band, 1.0], rel=4.0 / np.sqrt(800.0))


@pytest.mark.parametrize("items", [1, pytest.param(None, marks=pytest.mark.slow)], ids=["first", "all"])
def test_places_lengths_and_air_behind_a_log_are_as_before_it(items: int | None) -> None:
    """`instead_of` on a motion against the log read anew, for the first item of each group, and in the slow form for every one."""
    machine = thirty_three(car_38())
    rng = np.random.default_rng(3)
    made = campaign(rng, {"one": (sinusoidal_steering(), "C", 2.0)})
    first = made.motion(machine, "one")
    for group in ("places", "lengths", "air"):
        for item in list(made.known.groups[group])[:items]:
            other = made.known.moved({item: 1.0})
            anew, quick = made.motion(machine, "one", other), other.instead_of(made.known, first, machine)
            assert anew.base is not None and quick.base is not None
            assert quick.q == pytest.approx(anew.q, abs=1e-12)
            assert quick.base.acceleration == pytest.approx(anew.base.acceleration, abs=1e-9)
            assert quick.base.velocity == pytest.approx(anew.base.velocity, abs=1e-12)
            assert quick.wrenches["chassis"] == pytest.approx(anew.wrenches["chassis"], abs=1e-9)


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
