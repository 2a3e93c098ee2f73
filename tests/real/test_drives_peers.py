"""The quadruped as peers simulate it: MuJoCo with the values of the file agrees with veridyn's closed loop."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.drives_peers import SAMPLE, STEP, Go2

from real_logs import folder


@pytest.fixture(scope="module")
def robot() -> Go2:
    return Go2(folder("go2"))


def test_values_of_the_file_leave_what_veridyn_leaves(robot: Go2) -> None:
    """0.0144 rad fitted and 0.0191 held out by veridyn (docs/drives.md); steps and friction are MuJoCo's own here."""
    x = robot.start.copy()
    x[-1] = 0.0
    assert robot.rms(x) == pytest.approx((0.0144, 0.0191), rel=0.02)


def test_commands_are_held_and_late(robot: Go2) -> None:
    per, n = round(SAMPLE / STEP), 40
    whole = robot.wanted(2.0 * STEP, n)
    assert np.array_equal(whole[2 * per + 2 : 3 * per + 2], np.repeat(robot.command[2:3], per, axis=0))
    between = robot.wanted(1.5 * STEP, n)
    assert between == pytest.approx(0.5 * (robot.wanted(STEP, n) + whole))
