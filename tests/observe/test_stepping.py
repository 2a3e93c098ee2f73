"""A step that is too long biases an observer, and it is said; the bias told is the one that a fine step removes."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.errors import DataWarning
from veridyn.files.natural import parse_mechanism
from veridyn.mechanics.measurement import readout
from veridyn.mechanics.natural.dynamics import initial_state
from veridyn.mechanics.natural.integrate import NaturalMethod, integrate_natural
from veridyn.mechanics.natural.system import system_of
from veridyn.model.experiment import Channel, Experiment
from veridyn.observe.observe import observe
from veridyn.observe.stepping import step_bias
from veridyn.observe.unsure import Unsure

PENDULUM = """
veridyn: 1
mechanism: pendulum
gravity: [0, -9.81]
points: {O: {at: [0, 0], fixed: true}, A: {at: [0.3, 0]}}
angles: {phi: {of: [O, A], from: [1, 0]}}
bodies: {rod: {bar: [O, A], length: 0.3, mass: 1}}
sensors: {encoder: {kind: coordinate, on: phi, sigma: 0.01}}
"""
UNSURE = Unsure(start=0.01, start_rate=0.05)


@pytest.fixture(scope="module")
def swing() -> tuple[object, Experiment, object]:
    """Two seconds of a short pendulum that swings widely, read 20 times a second; its model is exact."""
    system = system_of(parse_mechanism(PENDULUM, "pendulum"))
    t, rng = np.arange(0.0, 2.0, 0.05), np.random.default_rng(0)
    how = NaturalMethod("explicit", step=5e-3, rule="DOP853")
    motion = integrate_natural(system, t, initial_state(system, {"phi": 0.0}, {"phi": 0.0}), method=how)
    table = readout(system)
    values = table.read(motion.q, motion.qd, motion.qdd)[:, 0] + 0.01 * rng.normal(size=len(t))
    return system, Experiment({"encoder": Channel("encoder", t, values, "rad")}, "log"), motion


def test_a_long_step_is_told_and_the_one_proposed_will_do(swing) -> None:
    system, log, motion = swing
    with pytest.warns(
        DataWarning, match=r"(?s)the step of the integration is too long.*step of 0.05 s.*Try step="
    ) as told:
        rough = observe(
            system, log, "ekf", unsure=UNSURE, start={"phi": 0.0}, rates={"phi": 0.0}, unknown=(), step=0.05
        )
    proposed = float(str(told[0].message).split("Try step=")[1].rstrip("."))
    assert proposed < 0.05
    fine = observe(system, log, "ekf", unsure=UNSURE, start={"phi": 0.0}, rates={"phi": 0.0}, unknown=(), step=proposed)
    assert step_bias(fine.system, fine.estimates, fine.inputs).deviations < 0.1
    # What was told is what happened: both runs saw the same noise, so their difference is the bias.
    said = step_bias(rough.system, rough.estimates, rough.inputs)
    apart = rough.system.subtract(fine.track.x, rough.track.x)
    seen = np.sqrt(np.einsum("ki,kij,kj->k", apart, np.linalg.inv(rough.track.P), apart) / 2.0).max()
    assert said.deviations == pytest.approx(seen, rel=0.5)
    assert rough.nees(motion.q, motion.qd).mean > fine.nees(motion.q, motion.qd).mean


def test_a_step_proposed_has_one_digit() -> None:
    from veridyn.observe.stepping import StepBias

    assert StepBias(5.0, 0.0, 0.01).better == pytest.approx(1e-3)
    assert StepBias(0.6, 0.0, 0.01).better == pytest.approx(2e-3)
