from dataclasses import replace

import numpy as np
import pytest

from strangers.cars import car_20
from veridyn.mechanics.ground.road_rough import rough_road
from veridyn.simulate.vehicle.description import Vehicle
from veridyn.simulate.vehicle.manoeuvre import speed_variation
from veridyn.simulate.vehicle.run import drive
from veridyn.simulate.vehicle.truth import truth


@pytest.fixture(scope="module")
def road():
    return rough_road("C", np.random.default_rng(2), length=300.0, track=1.5)


def test_the_truth_of_a_simplified_car_is_its_settings(road):
    car = Vehicle().simplified()
    car = replace(car, suspension=replace(car.suspension, friction=(0.0,) * 4))
    found = truth(drive(car, speed_variation(), road, 3.0, every=5))
    s = car.suspension
    expected = {"M_c": 1508.5, "ZZ_c": 6199.0, "M2": 24.0, "k_arf": s.bar[0], "k_arr": s.bar[1], "Cx": 0.3906}
    expected |= {f"k_{i + 1}": s.stiffness[i] for i in range(4)} | {f"off_{i + 1}": s.offset[i] for i in range(4)}
    expected |= {f"h_{i + 1}": s.damping[i] for i in range(4)}
    assert len(found) == 33 and set(found) <= set(car_20(elements=True).parameters.names)
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-9), name
    assert max(abs(found[f"fs_{i}"]) for i in (1, 2, 3, 4)) < 1e-6


def test_the_truth_of_a_nonlinear_spring_lies_among_its_slopes(road):
    car = Vehicle()
    run = drive(car, speed_variation(), road, 3.0, every=5)
    found = truth(run)
    for i in range(4):
        z = np.linspace(run.clearance[0][:, i].min(), run.clearance[0][:, i].max(), 200)
        slopes = np.gradient(car.suspension.spring(i, z), z)
        assert slopes.min() < found[f"k_{i + 1}"] < slopes.max()
        assert 0.5 < found[f"h_{i + 1}"] / car.suspension.damping[i] < 1.3
    assert found["k_arf"] > car.suspension.bar[0]
