"""Straight or curved: groups of parameters, and the choice on a quick day."""

from __future__ import annotations

import numpy as np
import pytest

from studies.car_day import day
from veridyn.studies.papers.car.selection import CURVED, STRAIGHT, kind_of


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
