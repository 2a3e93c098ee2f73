"""The budget against experiments: knowledge that is really wrong, a zero that is really off, a carrier that is really another one.

Models and treatments that the car's study compares.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from papers.car.car_day import day
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.papers.car.bent import SuspensionModel, fitted, mean_clearances
from veridyn.papers.car.budget import (
    ZERO,
    Answers,
    asking,
    corrected,
    every_standard,
    held,
    one_filter,
    plain_rows,
    thirty_three,
    with_carriers,
    with_unsprung,
)
from veridyn.papers.car.drive import CarDrive, campaign, shifted
from veridyn.papers.car.machine import TEN_ROWS, car_20, car_38
from veridyn.papers.car.simulator.description import speed_variation

MACHINE = thirty_three(car_38())
HOW = corrected(MACHINE)
DRIVE = "varied speed"


def test_what_is_estimated() -> None:
    def count(machine: object) -> int:
        return len(machine.parameters.select("estimated"))

    assert [count(f(car_38())) for f in (thirty_three, with_unsprung, every_standard)] == [34, 70, 75]
    assert thirty_three(car_20()).parameters.names[-1] == ZERO
    assert count(asking(thirty_three(car_38()), ["XX1"])) == 35


def test_how_rows_are_treated() -> None:
    machine = thirty_three(car_38())
    how = corrected(machine)
    assert how.filter_of("fx") == one_filter(machine).filter and how.filter_of("z1") != how.filter_of("fx")
    assert set(how.along) == {"z1", "z2", "z3", "z4"} and not plain_rows(machine).along
    assert not corrected(thirty_three(car_20())).along
    assert set(how.filters) == set(TEN_ROWS[:6])


def test_coordinates_held() -> None:
    machine = car_38()
    q = np.ones((4, machine.n))
    m = Motion(np.arange(4.0), q, q, q)
    still = held(m, machine, ("camber",))
    zero = {c for c, x in zip(machine.coordinates, still.qdd[0], strict=True) if x == 0.0}
    assert zero == {f"camber{i}" for i in range(1, 5)}
    toe = held(m, machine, ("beta",))
    assert {c for c, x in zip(machine.coordinates, toe.q[0], strict=True) if x == 0.0} == {"beta3", "beta4"}


@cache
def asked() -> Answers:
    made = campaign(np.random.default_rng(0), {DRIVE: (speed_variation(), "C", 6.0)})
    machine = with_carriers(MACHINE, made.known.carriers)
    m = made.motion(machine, DRIVE)
    return Answers.of(
        fitted(SuspensionModel(machine, True, mean_clearances(machine, [m])), [m], HOW), made, [DRIVE], HOW
    )


def refitted(motion: Motion, machine: Machine | None = None) -> np.ndarray:
    """How the reported values change, secants over the same travel."""
    found = asked().found
    other = fitted(found.model if machine is None else replace(found.model, straight=machine), [motion], HOW)
    return found.secants @ other.fit.values - found.values


def at(*names: str) -> list[int]:
    return [asked().found.names.index(n) for n in names]


@pytest.mark.parametrize(
    ("group", "item", "names"),
    [
        ("bands", "band clearance", ("M1", "M3", "h_1", "h_3")),
        pytest.param("bands", "band accelerometer", ("YY_c", "M1"), marks=pytest.mark.slow),
        ("tables", "front half_track", ("k_arf", "k_1")),
        ("lengths", "wheelbase", ("YY_c", "ZZ_c")),
    ],
)
def test_wrong_knowledge_does_what_the_budget_says(group: str, item: str, names: tuple[str, ...]) -> None:
    """One piece of knowledge moved by its deviation and the whole fit made again; first order, so 10 % of the largest of these answers."""
    a = asked()
    actual = refitted(a.made.motion(a.found.model.straight, DRIVE, a.made.known.moved({item: 1.0})))
    stated, sigma = a.to_item(group, item)[:, 0], a.found.sigma
    for k in at(*names):
        assert abs(actual[k]) > 0.05 * sigma[k], a.found.names[k]
        assert stated[k] == pytest.approx(actual[k], rel=0.1, abs=0.02 * sigma[k]), a.found.names[k]


def test_zeros_do_what_the_budget_says() -> None:
    """An accelerometer's zero off in the log itself; 15 %, as filters are left out."""
    a = asked()
    first = a.made.drives[DRIVE]
    zeros = {n: 0.01 if n == "inertial.acceleration.z" else 0.0 for n in first.log.names}
    other = replace(a.made, drives={DRIVE: CarDrive(first.run, shifted(first.log, zeros))})
    actual = refitted(other.motion(a.found.model.straight, DRIVE))
    every = a.to_zeros(dict.fromkeys(a.made.sensors.biases, 0.0) | {"accelerometer": 0.01})
    column = every[:, int(np.abs(every[at("M_c")[0]]).argmax())]  # of the three axes that which the mass answers to
    large = at("M_c", "MX_c")
    assert column[large] == pytest.approx(actual[large], rel=0.15)


def test_a_carrier_does_what_the_budget_says() -> None:
    a = asked()
    number = a.made.known.groups["carriers"].index("front MZ")
    other = a.made.known.moved({"front MZ": 1.0})
    actual = refitted(a.motions[0], with_carriers(MACHINE, other.carriers))
    large = at("XX_c", "MZ_c", "XZ_c", "M1")
    assert a.to_carriers()[large, number] == pytest.approx(actual[large], rel=0.05)


def test_parts_add_up() -> None:
    stated = day().study.budget
    assert list(stated.parts) == ["noise", "drives", "zeros", "carriers", "tables", "bands", "places", "lengths", "air"]
    assert stated.total**2 == pytest.approx(sum(x**2 for x in stated.parts.values()))
    assert stated.of("k_1")["tables"] == stated.parts["tables"][stated.names.index("k_1")]
