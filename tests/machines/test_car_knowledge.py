"""What is handed in of a car: moved piece by piece, drawn, and behind a log as before it."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.machines.car import car_38
from veridyn.machines.car_drive import campaign
from veridyn.machines.car_knowledge import CarKnown
from veridyn.machines.car_sensors import sensors_2006
from veridyn.simulate.vehicle.description import Vehicle
from veridyn.simulate.vehicle.manoeuvre import sinusoidal_steering
from veridyn.studies.papers.car.models import thirty_three

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
