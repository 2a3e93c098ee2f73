"""Mechanisms that are driven and led: each the inverse of the other, and a pendulum that its closed form knows."""

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.files.machine.load import parse_machine
from veridyn.machines.described import crane
from veridyn.mechanics.natural.equations.system import natural_system
from veridyn.mechanics.natural.steps.driven import driven, led
from veridyn.mechanics.natural.steps.integrate import NaturalMethod
from veridyn.signals.trajectory import FourierTrajectory
from veridyn.simulate.readings import mechanism_truth, own_sensors, wrapped

PENDULUM = """
veridyn: 2
name: pendulum
gravity: [0, -9.81]
points: {O: {at: [0, 0], fixed: true}, P: {at: [0, -2]}}
bodies: {bob: {points: {O: [0, 0], P: [2, 0]}, mass: 5, centre: [2, 0], inertia: 0}}
coordinates: {swing: {of: [O, P], from: [0, -1]}}
loads:
  motor: {kind: drive, on: swing}
  wind: {kind: force, on: P, value: [0, 0]}
sensors: {encoder: {kind: coordinate, on: swing, sigma: 0.01, turns: true, bias_sigma: 0.1, delay: 0.1}}
"""


def pendulum():
    return natural_system(parse_machine(PENDULUM, "pendulum"))


def test_led_along_a_swing_the_motor_pushes_as_the_closed_form_says() -> None:
    """M = m l² θ̈ + m g l sin θ − l w cos θ under a wind w along x."""
    reference = FourierTrajectory([0.3], [[0.8, 0.1]], [[0.0, 0.2]], 0.7)
    run = led(pendulum(), 1.0, 50.0, reference, ["swing"], lambda t: {"wind": [3.0 * t, 0.0]})
    t = run.motion.t
    theta, _, accelerated = (x[:, 0] for x in reference.at(t))
    wanted = 5.0 * 4.0 * accelerated + 5.0 * 9.81 * 2.0 * np.sin(theta) - 2.0 * 3.0 * t * np.cos(theta)
    assert run.loads["motor"][:, 0] == pytest.approx(wanted, abs=1e-9)
    assert run.motion.column("swing") == pytest.approx(theta, abs=1e-12)
    assert run.motion.column("P.x") == pytest.approx(2.0 * np.sin(theta), abs=1e-12)


def test_driven_by_what_leading_took_it_moves_as_it_was_led() -> None:
    """Forward and inverse dynamics share no formula: index 3 by Newton's steps, and a projection."""
    reference = FourierTrajectory([0.3], [[0.8]], [[0.0]], 0.7)
    one = pendulum()
    taken = led(one, 0.5, 1000.0, reference, ["swing"])
    t, push = taken.motion.t, taken.loads["motor"][:, 0]
    q, qd, _ = reference.at(0.0)
    back = driven(
        one,
        0.5,
        100.0,
        lambda time: {"motor": np.interp(time, t, push)},
        start={"swing": q[0]},
        rates={"swing": qd[0]},
        method=NaturalMethod(step=1e-3),
    )
    # the trapezoidal rule at 1 ms: its error is of the order of h² times the third derivative, 1e-6 · 70
    assert back.motion.column("swing") == pytest.approx(reference.at(back.motion.t)[0][:, 0], abs=5e-5)


def test_the_truth_holds_sensors_coordinates_and_loads() -> None:
    machine = pendulum()
    run = driven(machine, 0.2, 50.0, lambda t: {"motor": 4.0, "wind": [1.0, 2.0]}, start={"swing": 0.5})
    truth = mechanism_truth(run)
    assert truth["encoder"].values == pytest.approx(truth["q.swing"].values)
    assert (truth["q.swing"].unit, truth["qdd.P.x"].unit, truth["load.motor"].unit) == ("rad", "m/s^2", "N*m")
    assert truth["load.wind.y"].values == pytest.approx(2.0) and truth["load.wind.y"].unit == "N"
    assert [name for name in truth.names if name.startswith("load.")] == ["load.motor", "load.wind.x", "load.wind.y"]


def test_sensors_are_those_of_the_file() -> None:
    machine = parse_machine(PENDULUM, "pendulum")
    drawn = [own_sensors(machine, np.random.default_rng(k))["encoder"] for k in range(200)]
    assert (drawn[0].noise, drawn[0].delay) == (0.01, 0.1)
    assert np.std([s.bias for s in drawn]) == pytest.approx(0.1, rel=3.0 / np.sqrt(400))
    run = driven(natural_system(machine), 0.2, 50.0, start={"swing": 0.5}, rates={"swing": 40.0})
    log = wrapped(machine.sensors, mechanism_truth(run))
    turned = log["encoder"].values
    assert (np.abs(turned) <= np.pi).all() and np.abs(log["q.swing"].values).max() > 4.0
    assert np.exp(1j * turned) == pytest.approx(np.exp(1j * log["q.swing"].values))


def test_what_cannot_be_led_is_refused() -> None:
    flat = FourierTrajectory([0.0], [[0.1]], [[0.0]], 1.0)
    with pytest.raises(DataError, match=r"no coordinate 'swng'(.|\n)*'swing'"):
        led(pendulum(), 1.0, 50.0, flat, ["swng"])
    with pytest.raises(DataError, match="found none"):
        led(pendulum(), 1.0, 50.0, flat, ["swing"], lambda t: {"motor": 0.0})
    both = FourierTrajectory([0.5, 0.0], np.ones((2, 1)), np.ones((2, 1)), 1.0)
    with pytest.raises(DataError, match="one free drive for each of x, swing, found motor"):
        led(natural_system(crane()), 1.0, 50.0, both, ["x", "swing"])  # nothing drives the swing of a crane
