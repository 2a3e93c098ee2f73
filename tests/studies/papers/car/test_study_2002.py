"""Paper 001 on a car that is its model: no anti-roll bars, straight springs, wheels that rise straight; instruments without noise."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

from veridyn.errors import IdentificationWarning
from veridyn.machines.car_drive import campaign, drives_2002
from veridyn.machines.car_sensors import sensors_2002
from veridyn.simulate.vehicle.description import Vehicle
from veridyn.studies.papers.car.study_2002 import SIXTEEN, carrying, sixteen, study_2002, true_sixteen, warn_of_errors


def test_the_sixteen_of_table_4_are_found() -> None:
    """Masses within 2 %, stiffness within 5 %: what is left comes from integrating speeds to angles and from a sample every 16 ms."""
    car = Vehicle().simplified()
    car = replace(car, suspension=replace(car.suspension, bar=(0.0, 0.0), friction=(0.0,) * 4))
    rng = np.random.default_rng(0)
    made = campaign(rng, drives_2002(quick=True), car, sensors_2002().quiet())
    with pytest.warns(
        IdentificationWarning, match="Table 4"
    ):  # without noise deviations are tiny beside errors of integration
        found = study_2002(made)
    right = {n: float(x) for n, x in zip(found.fit.names, found.fit.values, strict=True)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_errors(replace(found, truth=right))
    values = dict(zip(found.fit.names, found.fit.values, strict=True))
    assert set(values) == set(SIXTEEN)
    for name in ("M6", "MY6", "MZ6"):
        assert values[name] == pytest.approx(found.truth[name], rel=0.03), name
    for name in ("ks7", "ks10", "ks13", "ks17"):
        assert values[name] == pytest.approx(found.truth[name], rel=0.05), name
    assert found.weight.sprung == pytest.approx(car.chassis[9], rel=2e-3)
    print({row: round(100.0 * error, 2) for row, error in carrying(found.simple).items()})
    assert all(found.simple[row].relative_error < 0.05 for row in ("q3", "q5", "q7", "q10", "q13", "q17"))
    assert set(found.figures) >= {"parameters_2002", "weight_difference_percent", "mass_error_2002_percent"}


@pytest.mark.slow
def test_table_4_on_the_detailed_car_is_right_or_named() -> None:
    """Bars, bent springs and real sensors: all parameters beyond two deviations of the truth are in the warning, and no other."""
    with pytest.warns(IdentificationWarning, match="paper 001") as told:
        found = study_2002(campaign(np.random.default_rng(1), drives_2002(quick=True), Vehicle(), sensors_2002()))
    (text,) = (str(w.message) for w in told if "paper 001" in str(w.message))
    where = text.partition(": parameters of Table 4")[0].removeprefix("paper 001: ").split(", ")
    assert where == [name for name, z in found.deviations.items() if abs(z) > 2.0]
    assert found.figures["beyond_two_sigma_2002"] == len(where) > 0


def test_known_and_estimated() -> None:
    tree = sixteen(Vehicle())
    p = tree.parameters
    assert {p.names[c] for c in p.select("estimated")} == set(SIXTEEN)
    assert p["M9"] == 24.0 and p["XX9"] == 0.0
    # Roll is about z6, forward, through the rear axle: the chassis' XX, moved down by 0.295 m to the axle's height.
    XX, *_, MZ, M = Vehicle().chassis
    assert p["ZZ6"] == pytest.approx(XX + 2 * 0.295 * MZ + M * 0.295**2)


def test_the_truth_in_roll_has_the_bars_in_it() -> None:
    car = Vehicle().simplified()
    rng = np.random.default_rng(1)
    ramps = {k: (how, road, 3.0) for k, (how, road, _) in drives_2002(quick=True).items() if "ramp" in k}
    made = campaign(rng, ramps, car, sensors_2002().quiet())
    t = true_sixteen(made)
    assert t["ks13"] == pytest.approx(20600.0 + 2 * 19033.0, rel=1e-3) and t["MZ6"] == pytest.approx(2421.1)
