"""Braking by pressure, and inputs as sensors read them."""

from dataclasses import replace

import numpy as np
import pytest

from veridyn.papers.buggy.drive import BRAKES, DRIVES, BuggyTruth
from veridyn.papers.buggy.inputs import (
    PRESSURE,
    PRESSURE_SIGMA,
    RACK_SIGMA,
    TORQUE_GAIN,
    TORQUE_SIGMA,
    braking,
    with_measured_inputs,
)
from veridyn.papers.buggy.machine import buggy
from veridyn.papers.buggy.observers import force_observer, scored, standing_start


@pytest.fixture(scope="module")
def truth() -> BuggyTruth:
    return braking(4.0, 0.015)


def test_brakes_slow_the_buggy_by_their_torque_over_its_mass(truth: BuggyTruth):
    """(Σ gain p/r + f m g)/(m + Σ J/r²), with 1378.3 kg, wheels of 1.453 + .4 kg m² and an effective radius of .337 m."""
    assert truth.pressure is not None and truth.pressure.max() == pytest.approx(PRESSURE)
    speed = np.hypot(truth.qd[:, 0], truth.qd[:, 1])
    steady = (truth.t > 3.1) & (truth.t < 3.5)
    found = -np.polyfit(truth.t[steady], speed[steady], 1)[0]
    braked = sum(BRAKES.values()) * PRESSURE / 0.337
    expected = (braked + 0.015 * 1378.3 * 9.81) / (1378.3 + 4.0 * 1.853 / 0.337**2)
    assert found == pytest.approx(expected, rel=0.05)  # sideslip on the circle adds some percent
    first = truth.first(1.0)
    assert first.pressure is not None and len(first.pressure) == len(first.t)


def test_measured_inputs_have_their_gain_and_noise(truth: BuggyTruth):
    log = truth.log(np.random.default_rng(5), buggy().sensors)
    read = with_measured_inputs(log, truth, np.random.default_rng(6))
    np.testing.assert_array_equal(read[DRIVES[0]].values, read[DRIVES[1]].values)  # one sensor stands for both wheels
    assert np.std(read[DRIVES[0]].values - TORQUE_GAIN * truth.torque) == pytest.approx(TORQUE_SIGMA, rel=0.1)
    noise = {name: (read[name].values - log[name].values) / gain for name, gain in BRAKES.items()}
    assert np.std(noise["brake_fl"]) == pytest.approx(PRESSURE_SIGMA, rel=0.1)
    np.testing.assert_allclose(noise["brake_fl"], noise["brake_rr"], atol=1e-12)
    assert np.std(read["q.rack"].values - log["q.rack"].values) == pytest.approx(RACK_SIGMA, rel=0.1)
    np.testing.assert_array_equal(read["gps.x"].values, log["gps.x"].values)


@pytest.mark.filterwarnings("ignore:.*the step of the integration is too long")
def test_an_observer_brakes_with_the_vehicle(truth: BuggyTruth):
    """With the brakes among its inputs the estimated forces stay small; without them they have to be the brakes."""
    machine = buggy(rolling_resistance=0.015)
    log = truth.log(np.random.default_rng(5), machine.sensors)
    blind = log.replacing(*(replace(log[name], values=0.0 * truth.t) for name in BRAKES))
    found = [force_observer().observe(machine, one, standing_start(machine)) for one in (log, blind)]
    known, unknown = (scored(one, truth).rms("xd", 2.8) for one in found)
    assert known < 0.2 * unknown
