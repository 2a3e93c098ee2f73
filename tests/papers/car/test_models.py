"""Models and treatments that the car's study compares."""

from __future__ import annotations

import numpy as np

from veridyn.model.motion import Motion
from veridyn.papers.car.machine import TEN_ROWS, car_20, car_38
from veridyn.papers.car.models import (
    ZERO,
    asking,
    corrected,
    every_standard,
    held,
    one_filter,
    plain_rows,
    thirty_three,
    with_unsprung,
)


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
