"""Vehicles that are drawn, and a receiver that falls silent."""

import numpy as np
import pytest

from veridyn.model.experiment import Channel, Experiment
from veridyn.papers.buggy.machine import buggy
from veridyn.papers.buggy.outage import (
    CRUISE,
    FULL,
    HALF_WIDTHS,
    drawn_vehicle,
    outage_observer,
    silenced,
    torque_at,
)


def test_vehicles_differ_within_their_bounds():
    nominal = {c.name: c.value for c in buggy().constants}
    for seed in range(5):
        drawn = {c.name: c.value for c in drawn_vehicle(np.random.default_rng(seed)).constants}
        for key, half in HALF_WIDTHS.items():
            ratio = drawn[f"tyre_fl.{key}"] / nominal[f"tyre_fl.{key}"]
            assert 0.0 < abs(ratio - 1.0) <= half
        assert 0.010 <= drawn["tyre_rr.QSY1"] <= 0.020


def test_the_observer_estimates_what_is_drawn_with_the_deviations_of_the_draws():
    machine = buggy()
    parameters = outage_observer(machine).parameters
    assert len(parameters) == 4 * 4 + 1
    assert parameters["tyre_fl.UNLOADED_RADIUS"][0] == pytest.approx(0.3683 * 0.005 / np.sqrt(3.0))
    assert parameters["M_chassis"][0] == pytest.approx(1117.8 * 0.02 / np.sqrt(3.0))


def test_a_silent_receiver_has_no_readings():
    t = np.arange(0.0, 60.0, 0.5)
    log = Experiment({n: Channel(n, t, t, "m") for n in ("gps.x", "odometer")}, "log")
    quiet = silenced(log)
    assert len(quiet["odometer"]) == len(t)
    heard = quiet["gps.x"].t
    assert not ((heard >= 25.0) & (heard < 55.0)).any() and len(heard) == 60


def test_the_driver_eases_off():
    assert torque_at(5.0) == FULL and torque_at(20.0) == CRUISE
