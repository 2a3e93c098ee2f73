"""Positions that change places, or their sign, from a moment on are named with that moment, on logs that Pinocchio made."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import veridyn as vd
from strangers import untold_structure as u
from strangers.pinocchio_logs import machine
from veridyn.identify.diagnosis.exchanged import SWAPPED, TURNED, exchanged_positions
from veridyn.identify.settings import DiagnosisSettings

ROWS = ("q1", "q2", "q3", "q4")


def found_in(swap: tuple[int, ...], moment: float) -> tuple[list[str], list[str]]:
    """Causes and messages of a log whose positions are exchanged from a moment on; no swap where there are none."""
    robot, made = machine(u.four_joints()), u.untold(u.unchanged, 0, 0.0, 100)
    q = made.measured_q.copy()
    late = made.t >= moment
    if len(swap) == 2:
        q[np.ix_(late, list(swap))] = q[np.ix_(late, list(reversed(swap)))]
    elif swap:
        q[late, swap[0]] *= -1.0
    motion = vd.motion(robot, replace(made, measured_q=q).log, vd.Signals(lowpass=20.0, trim=0.2, inspection="off"))
    fit = vd.identify(robot, motion, diagnose="off")
    found = exchanged_positions(fit, [motion], ROWS, DiagnosisSettings())
    return [m.kind for m in found], [str(m) for m in found]


@pytest.mark.parametrize(("swap", "moment"), [((1, 2), 10.0), ((0, 3), 14.0), ((2,), 6.0)])
def test_it_is_named_with_its_moment(swap: tuple[int, ...], moment: float) -> None:
    kinds, messages = found_in(swap, moment)
    assert kinds == [SWAPPED if len(swap) == 2 else TURNED]
    assert all(f"'q{k + 1}'" in messages[0] for k in swap)
    said = re.search(r"from t = ([\d.]+) s", messages[0])
    assert said is not None
    # the trim of 0.2 s may move the origin of the clock; the filter of 20 Hz spreads a jump over some 50 ms
    assert abs(float(said[1]) - moment) < 0.25


def test_a_log_in_order_has_none() -> None:
    assert found_in((), 0.0) == ([], [])
