"""A drive observed stage by stage: a filter settles before the part that is asked for, and mistakes of the drive are findings."""

from __future__ import annotations

import numpy as np
import pytest

import veridyn as vd
from strangers.bicycle_drive import Bicycle
from veridyn.errors import DataWarning
from veridyn.files.machine.load import parse_machine
from veridyn.model.experiment import Experiment
from veridyn.observe.car.pipeline import SETTLING_S, WARM_UP_S, CarObservationRun
from veridyn.observe.observer_setup import ObserverSetup
from veridyn.observe.pipeline import observation_run

UNITS = {"speed": "m/s", "steer": "rad", "yaw_rate": "rad/s", "ay": "m/s^2"}
CAR = parse_machine(
    """veridyn: 2
name: car
car: {mass: 1200, front: 1.1, rear: 1.5, yaw_inertia: 1900, front_stiffness: {value: 14, sigma: 1}, rear_stiffness: 16}
sensors:
  - {name: yaw_rate, kind: reading, on: yaw_rate, sigma: 0.003}
  - {name: ay, kind: reading, on: ay, sigma: 0.1}
"""
)


def drive(steering: float = 1.0) -> Experiment:
    made = Bicycle(duration=60.0, rate=20.0).drive(3)
    made["steer"] = steering * made["steer"]
    return Experiment.from_arrays(made["t"], {n: made[n] for n in UNITS}, UNITS)


def part(low: float, high: float) -> CarObservationRun:
    return CarObservationRun(setup=ObserverSetup(), machine=CAR, log=drive(), span=(low, high))


def test_a_part_begins_with_a_filter_that_has_settled() -> None:
    """Its states are those of a run from ten seconds before; what is asked of quantities begins with the part."""
    states = part(30.0, 50.0).observed
    assert states.whole is not None and states.settled == 0
    assert (states.t[0], states.whole.t[0]) == pytest.approx((30.0, 30.0 - WARM_UP_S)) and states.t[-1] < 50.0
    np.testing.assert_array_equal(states.reduced, states.whole.reduced[states.whole.t >= 30.0])
    assert len(states.readings) == len(states)
    slip = states.virtual("sideslip")["sideslip"]
    np.testing.assert_array_equal(slip.t, states.t)
    np.testing.assert_array_equal(
        slip.sigma[0], states.whole.virtual("sideslip")["sideslip"].sigma[states.whole.t >= 30.0][0]
    )


def test_a_whole_drive_is_judged_from_where_it_has_settled() -> None:
    run = observation_run(CAR, drive())
    states = run.states
    assert states.t[states.settled] == pytest.approx(SETTLING_S) and run.inspection == ()
    assert part(0.0, 20.0).states.settled == 0  # too short to leave any out


def test_mistakes_of_a_drive_are_named_first_and_warned_of() -> None:
    with pytest.warns(DataWarning) as told:
        states = vd.observe(CAR, drive(-1.0))
    assert "it turns the other way than the car does" in str(told[0].message)
    assert (states.findings[0].cause, states.findings[0].place) == ("log", "channel 'steer'")
    assert states.verdict.grade == "poor"
