"""Elements with states of their own in observers: engines agree, derivatives by differences, a hidden state found from a log."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from observe.test_machine_trees import BODY, STEP, log_of
from veridyn.mechanics.system.integrate import Inputs, Method, integrate
from veridyn.model.elements.element import Element, damper
from veridyn.model.experiment import Experiment
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.sensor import Sensor
from veridyn.observe.filters.methods import EKF, ErrorEKF, ForceErrorEKF
from veridyn.observe.observe import observe
from veridyn.observe.observer_setup import machine_system
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.settings import ObserveSettings
from veridyn.observe.system import numeric_jacobian

LUGRE = {"deflection": 0.02, "ratio": 1.4, "speed": 0.3, "time": 0.05}
MAXWELL = Element(kind="maxwell", on={"arm": 1.0}, value=40.0, name="km", constants={"time": 0.3})
FRICTION = Element(kind="lugre", on={"arm": 1.0}, value=1.5, name="fl", constants=LUGRE)
TYRE = Element(kind="relaxation", on={"arm": 1.0}, value=30.0, name="kr", signal="speed", constants={"length": 0.5})


@cache
def machine(*elements: Element) -> Machine:
    """A pendulum with an encoder and viscous friction."""
    return Machine.of_bodies(
        [Body("arm")],
        name="pendulum",
        inertia={"arm": BODY},
        gravity=(0.0, -9.81, 0.0),
        elements=[damper("arm", 0.1, "fv"), *elements],
        sensors=[Sensor("q", "coordinate", "arm", 2e-3)],
    )


@cache
def recorded(seed: int, start: float = 0.1) -> tuple[Experiment, np.ndarray, np.ndarray, np.ndarray]:
    """A swing under a constant torque with a Maxwell element that starts stretched, and its true state."""
    tree = machine(MAXWELL)
    t = np.arange(0.0, 1.5, STEP)
    torque = np.array([8.0])
    states, method = {"km.s": start}, Method("RK4", step=STEP / 4)
    found = integrate(tree, t, [-1.2], [0.5], Inputs(lambda time, q, qd: torque), states=states, method=method)
    log, q, qd = log_of(tree, found, np.full((len(t), 1), 8.0), np.random.default_rng(seed))
    return log, q, qd, found.motion.signals["km.s"]


SETTINGS = ObserveSettings(model_error="off", start={"arm": -1.2}, rates={"arm": 0.5}, step=1e-3, unknown=())


@pytest.mark.filterwarnings("ignore:.*(the filter is|reads beside|is farther off than stated)")  # without the element
def test_the_state_of_an_element_is_found_from_the_motion() -> None:
    """It starts 0.1 rad from where the observer takes it, and is found within its band; without the element the motion is not explained."""
    log, q, qd, s = recorded(0)
    process_noise = ProcessNoise(start=2e-3, start_rate=0.02, start_element=0.1, element=1e-8)
    found = observe(machine(MAXWELL), log, "ekf", replace(SETTINGS, process_noise=process_noise))
    assert found.states == ("arm", "arm_dot", "state.km.s") and found.units[-1] == "rad"
    error, sigma = found.state("state.km.s") - s, found.sigma[:, 2]
    assert abs(error[-1]) < 3.0 * sigma[-1] and sigma[-1] < 0.02
    assert 0.3 < np.mean((error[20:] / sigma[20:]) ** 2) < 3.0  # one log of one slow state
    assert found.nees(q, qd, skip=20).mean < 2.5
    plain = observe(
        machine(), log, EKF(gate=None), replace(SETTINGS, process_noise=ProcessNoise(start=2e-3, start_rate=0.02))
    )
    assert plain.nees(q, qd, skip=20).mean > 100.0


@pytest.mark.parametrize("kind", [EKF, ForceErrorEKF, ErrorEKF])
@pytest.mark.filterwarnings(
    "ignore:.*(reads beside what the model expects|the filter is)"
)  # friction that the log does not have
def test_engines_agree(kind: type[EKF]) -> None:
    log = recorded(1)[0]
    process_noise = ProcessNoise(start=2e-3, start_rate=0.02, start_element=0.1, element=1e-4, acceleration=1e-3)
    tree = machine(MAXWELL, FRICTION)
    a, b = (
        observe(tree, log, kind(engine=e), replace(SETTINGS, process_noise=process_noise)).estimates
        for e in ("compiled", "python")
    )
    for one, two in ((a.x, b.x), (a.P, b.P), (a.F, b.F), (a.K, b.K)):
        assert np.abs(one - two).max() <= 1e-12 * np.abs(two).max()


def test_the_unscented_filter_carries_the_states_too() -> None:
    log = recorded(2)[0]
    process_noise = ProcessNoise(start=2e-3, start_rate=0.02, start_element=0.1, element=1e-8)
    ekf, ukf = (
        observe(machine(MAXWELL), log, name, replace(SETTINGS, process_noise=process_noise)) for name in ("ekf", "ukf")
    )
    assert np.abs((ekf.reduced - ukf.reduced)[5:] / ekf.sigma[5:]).max() < 0.2


def test_derivatives_of_the_whole_state() -> None:
    """Of a step and of readings, with elements of all three kinds, an estimated constant and a signal as input."""
    tree = machine(MAXWELL, FRICTION, TYRE)
    more = Sensor("a", "accelerometer", "arm", 0.1, axes="xy")
    tree = replace(tree, sensors=(*tree.sensors, more))
    system, q, qd = machine_system(
        tree,
        ObserveSettings(
            model_error="off",
            process_noise=ProcessNoise(force=1.0),
            parameters=("km.time", "fl.ratio"),
            inputs=("signal.speed",),
            step=0.02,
        ),
    )
    n, rng, u = len(system.states), np.random.default_rng(0), np.array([2.0])
    d = 0.1 * rng.standard_normal(n)
    d[system.f : 2 * system.f] = 0.7
    d[-3:] *= 0.05
    x = system.add(system.belief(q, qd).x, d)
    moved, F = system.move_and_jacobian(x, u, 0.0, 0.02)
    H = system.sense_and_jacobian(x, u, 0.0)[1]
    for function, given in (
        (lambda a: system.subtract(system.move(a, u, 0.0, 0.02), moved), F),
        (lambda a: system.sense(a, u, 0.0), H),
    ):
        numeric, accuracy = numeric_jacobian(function, x, np.full(n, 0.003), system.add)
        scale = np.abs(numeric).max(axis=1, keepdims=True) + 1e-9
        assert (np.abs(given - numeric) <= 1e-6 * scale + 3.0 * accuracy).all()


@pytest.mark.filterwarnings(
    "ignore:.*(reads beside what the model expects|the filter is)"
)  # with bounds that exclude the truth
def test_a_constant_of_a_law_is_estimated_within_bounds() -> None:
    """The time of the Maxwell element is 0.3 s; the model takes 0.36 s. Bounds that exclude the truth hold it, and are reported."""
    log = recorded(3)[0]
    tree = machine(MAXWELL).with_constants({"km.time": 0.36})
    process_noise = ProcessNoise(start=2e-3, start_rate=0.02, start_element=0.1)
    free = observe(
        tree,
        log,
        "ekf",
        replace(SETTINGS, process_noise=process_noise, parameters={"km.time": (0.06, 0.0, 0.05, 2.0)}),
    )
    value, sigma = free.state("parameter.km.time")[-1], free.sigma[-1, free.states.index("parameter.km.time")]
    assert abs(value - 0.3) < 3.0 * sigma and sigma < 0.03 and free.bounded() == ()
    assert free.units[free.states.index("parameter.km.time")] == "s"
    narrow = {"km.time": (0.06, 0.0, 0.34, 2.0)}
    runs = [
        observe(tree, log, EKF(engine=engine), replace(SETTINGS, process_noise=process_noise, parameters=narrow))
        for engine in ("compiled", "python")
    ]
    for held in runs:
        assert held.state("parameter.km.time").min() >= 0.34
        assert "'km.time' stood at its bound 0.34" in held.bounded()[0] and "0.34" in held.summary()
    a, b = (r.estimates for r in runs)
    assert np.abs(a.x - b.x).max() <= 1e-12 * np.abs(b.x).max() and np.abs(a.P - b.P).max() <= 1e-12 * np.abs(b.P).max()
