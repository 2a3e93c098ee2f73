"""What a log of sensors shows by itself: an output that never changes while others do, where its sensor has noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.house import arm, log

from veridyn.model.experiment import Channel, Experiment
from veridyn.model.machine import Machine
from veridyn.observe.consistency.inspection import inspected
from veridyn.observe.observer_setup import machine_system
from veridyn.observe.settings import ObserveSettings


def found(machine: Machine, *dead: str) -> list[tuple[str, str]]:
    measured = log("observe", 0)
    for name in dead:
        c = measured[name]
        measured = measured.replacing(Channel(name, c.t, np.full(len(c), c.values[0]), c.unit))
    table = machine_system(machine, ObserveSettings())[0].table
    return [(one.cause, one.place) for one in inspected(measured, table)]


def test_a_dead_encoder_is_named() -> None:
    assert found(arm()) == []
    assert found(arm(), "encoder2") == [("constant", "encoder2")]


def test_rest_and_coarse_encoders_are_not() -> None:
    """Where all rests nothing moves, and a coarse encoder of a joint that dwells repeats its reading."""
    assert found(arm(), "encoder1", "encoder2") == []
    first, second = arm().sensors
    assert found(replace(arm(), sensors=(first, replace(second, quantum=1e-3))), "encoder2") == []


def test_a_log_without_the_channel_is_for_others_to_refuse() -> None:
    table = machine_system(arm(), ObserveSettings())[0].table
    measured = log("observe", 0)
    without = Experiment({n: c for n, c in measured.channels.items() if n != "encoder1"})
    assert inspected(without, table) == ()


@pytest.mark.parametrize("clocks", [False, True])
def test_clocks_are_compared_where_a_receiver_is(clocks: bool) -> None:
    table = machine_system(arm(), ObserveSettings())[0].table
    assert inspected(log("observe", 0), table, clocks) == ()
