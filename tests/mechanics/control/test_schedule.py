"""Instants of sampled controllers, against lists made by hand."""

from __future__ import annotations

import pytest
from tests.mechanics.control.gantries import servo

from veridyn.mechanics.control.schedule import CURRENT, LAW, READ, schedule


def events(*controllers, start=0.0, end):
    s = schedule(controllers, start, end)
    found = list(zip(s.what.tolist(), s.controller.tolist(), s.number.tolist(), strict=True))
    return {round(t, 9): found[a:b] for t, a, b in zip(s.time.tolist(), s.first[:-1], s.first[1:], strict=True)}


def test_a_law_reads_and_ticks_at_its_rate_and_first_of_all_the_start():
    assert events(servo(kp=1.0, rate=10.0), end=0.2) == {
        0.0: [(LAW, 0, 0)],  # there is nothing to read before the start
        0.1: [(READ, 0, 1), (LAW, 0, 1)],
        0.2: [(READ, 0, 2), (LAW, 0, 2)],
    }


def test_delayed_measurements_are_instants_of_their_own():
    found = events(servo(kp=1.0, rate=10.0, measurement_delay=0.13), start=1.0, end=1.3)
    assert found == {
        1.0: [(LAW, 0, 0)],
        1.07: [(READ, 0, 2)],
        1.1: [(LAW, 0, 1)],
        1.17: [(READ, 0, 3)],
        1.2: [(LAW, 0, 2)],
        1.3: [(LAW, 0, 3)],
    }


def test_current_loops_tick_between_ticks_of_their_law():
    c = servo(kp=1.0, rate=10.0, motor="m", current_kp=1.0, current_rate=20.0)
    assert events(c, end=0.1) == {0.0: [(LAW, 0, 0)], 0.05: [(CURRENT, 0, 0)], 0.1: [(READ, 0, 1), (LAW, 0, 1)]}


def test_instants_of_two_controllers_that_differ_by_rounding_are_one():
    a, b = servo(kp=1.0, rate=30.0), servo(kp=1.0, rate=10.0, name="b", measurement_delay=0.1)
    found = events(a, b, end=0.1)
    assert list(found) == pytest.approx([0.0, 1 / 30, 2 / 30, 0.1])
    # 0.1 − 0.1 is the start, which needs no reading; at 0.1 the first law reads and both act, in their order.
    assert found[0.1] == [(READ, 0, 3), (LAW, 0, 3), (LAW, 1, 1)]
