"""A step that is too long biases an observer, and it is said; the bias told is the one that a fine step removes."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

from observe.test_machine_trees import arm
from observe.test_machine_trees import swing as arm_swing
from strangers.graph_machines import slider_crank
from veridyn.errors import DataWarning
from veridyn.files.machine.load import parse_machine
from veridyn.mechanics.natural.channels import readout
from veridyn.mechanics.natural.equations.dynamics import initial_state
from veridyn.mechanics.natural.equations.system import natural_system
from veridyn.mechanics.natural.steps.integrate import NaturalMethod, integrate_natural
from veridyn.mechanics.tree.loops.closure import closed_motion
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.elements.element import damper, spring
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.sensor import Sensor
from veridyn.observe.filters.stepping import (
    LONGEST_STEP_S,
    MODE_SHARE,
    TOLERATED_BIAS_SIGMAS,
    bounded_step_bias,
    in_deviations,
    mode_step,
    step_bias,
)
from veridyn.observe.observe import observe
from veridyn.observe.observer_setup import machine_system
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.settings import ObserveSettings
from veridyn.simulate.simulator import Driven, simulate

PENDULUM = """
veridyn: 2
name: pendulum
gravity: [0, -9.81]
points: {O: {at: [0, 0], fixed: true}, A: {at: [0.3, 0]}}
coordinates: {phi: {of: [O, A], from: [1, 0]}}
bodies: {rod: {bar: [O, A], length: 0.3, mass: 1}}
sensors: {encoder: {kind: coordinate, on: phi, sigma: 0.01}}
"""
PROCESS_NOISE = ProcessNoise(start=0.01, start_rate=0.05)


@pytest.fixture(scope="module")
def swing() -> tuple[object, Experiment, object]:
    """Two seconds of a short pendulum that swings widely, read 20 times a second; its model is exact."""
    machine = parse_machine(PENDULUM, "pendulum")
    system = natural_system(machine)
    t, rng = np.arange(0.0, 2.0, 0.05), np.random.default_rng(0)
    how = NaturalMethod("explicit", step=5e-3, rule="DOP853")
    motion = integrate_natural(system, t, initial_state(system, {"phi": 0.0}, {"phi": 0.0}), method=how)
    table = readout(system)
    values = table.read(motion.q, motion.qd, motion.qdd)[:, 0] + 0.01 * rng.normal(size=len(t))
    return machine, Experiment({"encoder": Channel("encoder", t, values, "rad")}, "log"), motion


@pytest.mark.filterwarnings("ignore:.*the filter is too sure of itself")  # with the long step
def test_a_long_step_is_told_and_the_one_proposed_will_do(swing) -> None:
    machine, log, motion = swing
    with pytest.warns(
        DataWarning, match=r"(?s)the step of the integration is too long.*step of 0.05 s.*Try step="
    ) as told:
        rough = observe(
            machine,
            log,
            "ekf",
            ObserveSettings(
                model_error="off",
                process_noise=PROCESS_NOISE,
                start={"phi": 0.0},
                rates={"phi": 0.0},
                unknown=(),
                step=0.05,
            ),
        )
    proposed = float(str(told[0].message).split("Try step=")[1].rstrip("."))
    assert proposed < 0.05
    fine = observe(
        machine,
        log,
        "ekf",
        ObserveSettings(
            model_error="off",
            process_noise=PROCESS_NOISE,
            start={"phi": 0.0},
            rates={"phi": 0.0},
            unknown=(),
            step=proposed,
        ),
    )
    assert step_bias(fine.system, fine.estimates, fine.inputs).deviations < 0.1
    # What was told is what happened: both runs saw the same noise, so their difference is the bias.
    said = step_bias(rough.system, rough.estimates, rough.inputs)
    bounded = bounded_step_bias(
        fine.system, fine.estimates, fine.inputs
    ).deviations  # by a tenth of the intervals, or all
    assert step_bias(fine.system, fine.estimates, fine.inputs).deviations <= bounded <= TOLERATED_BIAS_SIGMAS
    assert bounded_step_bias(rough.system, rough.estimates, rough.inputs) == said
    apart = rough.system.subtract(fine.track.x, rough.track.x)
    seen = np.sqrt(np.einsum("ki,kij,kj->k", apart, np.linalg.inv(rough.track.P), apart) / 2.0).max()
    assert said.deviations == pytest.approx(seen, rel=0.5)
    assert rough.nees(motion.q, motion.qd).mean > fine.nees(motion.q, motion.qd).mean


def test_a_bias_is_told_in_deviations_though_rounding_makes_a_variance_negative() -> None:
    rng = np.random.default_rng(4)
    L = rng.normal(size=(5, 3)) * np.array([[1e-3], [2.0], [0.5], [30.0], [1e-5]])
    P = L @ L.T  # three directions in five states
    bias = L @ np.array([1.0, -2.0, 0.5])
    for sign in (1.0, -1.0):
        rounded = P + sign * 1e-15 * np.outer(np.sqrt(np.diag(P)), np.sqrt(np.diag(P))) * np.eye(5)
        assert in_deviations(bias, rounded) == pytest.approx(np.sqrt(5.25 / 5.0), rel=1e-6)
    certain = np.zeros((7, 7))
    certain[:5, :5] = P
    assert in_deviations(np.append(bias, [1.0, 1.0]), certain) == pytest.approx(np.sqrt(5.25 / 7.0), rel=1e-6)
    assert in_deviations(bias, np.zeros((5, 5))) == 0.0


def test_a_step_proposed_has_one_digit() -> None:
    from veridyn.observe.filters.stepping import StepBias

    assert StepBias(5.0, 0.0, 0.01).better == pytest.approx(1e-3)
    assert StepBias(0.6, 0.0, 0.01).better == pytest.approx(2e-3)


def sprung(stiffness: float, damping: float) -> Machine:
    """A mass of 2 kg on a spring and a damper, with an encoder."""
    return Machine.of_bodies(
        [Body("x", joint="sliding")],
        inertia={"x": [0.0] * 9 + [2.0]},
        gravity=(0.0, 0.0, 0.0),
        elements=[spring("x", stiffness, "k"), damper("x", damping, "c")],
        sensors=[Sensor("x", "coordinate", "x", 1e-3)],
    )


def test_the_default_step_of_a_tree_follows_its_fastest_oscillation() -> None:
    """ω = √(k/m − (c/2m)²) of the book; nothing shorter for what only decays, or for a slow machine."""
    omega = np.sqrt(2e4 / 2.0 - (8.0 / 4.0) ** 2)
    system, q, qd = machine_system(sprung(2e4, 8.0), ObserveSettings(model_error="off", process_noise=PROCESS_NOISE))
    assert system.longest == pytest.approx(MODE_SHARE / omega, rel=1e-9)
    assert mode_step(system, q, qd) == system.longest
    for slow in (sprung(2e4, 4e4), sprung(2.0, 0.1)):
        assert (
            machine_system(slow, ObserveSettings(model_error="off", process_noise=PROCESS_NOISE))[0].longest
            == LONGEST_STEP_S
        )
    assert (
        machine_system(sprung(2e4, 8.0), ObserveSettings(model_error="off", process_noise=PROCESS_NOISE, step=0.004))[
            0
        ].longest
        == 0.004
    )


def test_without_a_step_a_log_is_run_again_until_the_bias_is_small() -> None:
    """The arm's log warns at the old default of 0.01 s; without a step it does not, and the bias is within what is tolerated."""
    log, q, qd = arm_swing(arm(), 7)
    settings = ObserveSettings(
        model_error="off",
        process_noise=ProcessNoise(force=1e-6, start=0.01, start_rate=0.05),
        start={"upper": q[0, 0], "lower": q[0, 1]},
        rates={"upper": qd[0, 0], "lower": qd[0, 1]},
    )
    with pytest.warns(DataWarning, match="the step of the integration is too long"):
        observe(arm(), log, "ekf", replace(settings, step=LONGEST_STEP_S))
    found = observe(arm(), log, "ekf", settings)
    bias = step_bias(found.system, found.estimates, found.inputs)
    assert bias.deviations <= TOLERATED_BIAS_SIGMAS and found.system.longest < LONGEST_STEP_S


def crank(formulation: str) -> Machine:
    return replace(slider_crank(), sensors=(Sensor("crank", "coordinate", "phi", 1e-3),)).with_formulation(formulation)


@pytest.mark.parametrize("speed", [20.0, pytest.param(60.0, marks=pytest.mark.slow)])
def test_the_default_step_of_natural_coordinates_is_that_of_the_tree(speed: float) -> None:
    """At 20 rad/s steps of 0.01 s bias both by far (NIS 18 in natural coordinates), at 60 rad/s they do not converge in either."""
    tree = tree_of(crank("tree"))
    first = closed_motion(tree, [0.0], [[0.7]], [[speed]], [[0.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its speed
        log = simulate(crank("tree"), Driven(0.3, 100.0, first.q[0], first.qd[0]), rng=np.random.default_rng(0))
    settings = ObserveSettings(
        model_error="off", process_noise=ProcessNoise(acceleration=1e-4), unknown=(), start={"phi": 0.7}
    )
    one, two = (observe(crank(f), log, "ekf", replace(settings, rates={"phi": speed})) for f in ("tree", "natural"))
    assert one.system.longest == two.system.longest < LONGEST_STEP_S
    assert one.nis().consistent and two.nis().mean == pytest.approx(one.nis().mean, rel=0.01)
    assert np.abs(one.state("phi") - two.state("phi")).max() < 0.05e-3  # 0.05 of the sensor's deviation
