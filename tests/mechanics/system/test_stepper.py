"""Explicit steps by any tableau: their orders on a pendulum against SciPy, and exactness where the rule is exact."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

import veridyn as vd
from veridyn.errors import SimulationError
from veridyn.mechanics.natural.steps.machine_motion import integrate_natural_machine
from veridyn.mechanics.system import stepper
from veridyn.mechanics.system.integrate import integrate
from veridyn.mechanics.system.simulation import Inputs, Method, Trajectory
from veridyn.mechanics.system.stepper import RULES, SIMPLE, adaptive_path, check_size, explicit_step, march, tableau
from veridyn.model.elements.element import drive_gain
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import MDH

ORDERS = {"euler": 1, "midpoint": 2, "RK4": 4, "RK45": 5, "DOP853": 8}


def pendulum(t: float, y: np.ndarray) -> np.ndarray:
    return np.array([y[1], -9.81 * np.sin(y[0]) + 0.3 * np.cos(2.0 * t)])


@pytest.mark.parametrize("rule", [*RULES, *SIMPLE])
def test_order(rule: str) -> None:
    exact = solve_ivp(pendulum, (0.0, 1.0), [1.0, 0.0], "DOP853", rtol=1e-13, atol=1e-14).y[:, -1]
    steps = {"DOP853": (4, 8), "RK45": (32, 64)}.get(rule, (64, 128))
    off = [
        np.abs(march(tableau(rule), pendulum, np.array([0.0, 1.0]), np.array([1.0, 0.0]), 1.0 / n)[-1] - exact).max()
        for n in steps
    ]
    assert -0.5 < np.log2(off[0] / off[1]) - ORDERS[rule] < 1.0


@pytest.mark.parametrize("rule", [*RULES, *SIMPLE])
def test_conditions_of_a_rule(rule: str) -> None:
    A, b, c = tableau(rule)
    assert np.allclose(A.sum(axis=1), c) and b.sum() == pytest.approx(1.0) and (np.triu(A) == 0.0).all()


def test_a_known_first_rate_is_not_asked_again_and_mending_happens_after_each_step() -> None:
    times: list[float] = []

    def rate(t: float, y: np.ndarray) -> np.ndarray:
        times.append(t)
        return -y

    y = np.array([[1.0, 2.0], [3.0, 4.0]])
    once = explicit_step(tableau("RK4"), rate, 0.0, y, 0.1, first=-y)
    assert times == [0.05, 0.05, 0.1] and np.allclose(once, np.exp(-0.1) * y, atol=1e-7 * 4)
    mended: list[float] = []

    def back(t: np.ndarray, states: np.ndarray) -> np.ndarray:
        mended.append(float(t[0]))
        return np.zeros_like(states)

    states = march(tableau("euler"), rate, np.array([0.0, 0.3]), np.ones(2), 0.1, back)
    assert mended == pytest.approx([0.1, 0.2, 0.3]) and (states[-1] == 0.0).all()


Array = NDArray[np.float64]
T = np.linspace(0.0, 1.0, 11)
LINK = from_centre(1.0, (0.2, 0.0, 0.0), 0.01 * np.eye(3))
FIXED, CHOSEN = Method("RK4", step=5e-3, friction_speed=0.05), Method(friction_speed=0.05)
Law = Callable[[float, Array, Array], Array]


@cache
def machines() -> dict[str, tuple[Machine, Array]]:
    """An open arm, one on a free base, a four-bar with its loop, and the same in natural coordinates, each with a start."""
    bodies = [Body("1", placement=MDH(alpha=np.pi / 2)), Body("2", "1", placement=MDH(d=0.3))]
    arm = Machine.of_bodies(bodies, name="arm", inertia={"1": LINK, "2": LINK}, elements=[drive_gain("q1", "i", 2.0)])
    carried = [Body("hull", joint="fixed"), Body("1", "hull", placement=MDH(alpha=np.pi / 2))]
    flying = Machine.of_bodies(carried, name="flying", base="free", inertia={"hull": LINK, "1": LINK})
    linkage = vd.load_model("veridyn:linkage.yaml")
    still = np.zeros((1, 1))
    closed = vd.dynamics.closed_motion(linkage, np.zeros(1), still + 1.0, still, still, at=["q1"]).q[0]
    return {"open": (arm, np.full(2, 0.1)), "free": (flying, np.full(flying.n, 0.1)), "loops": (linkage, closed)}


def simulated(kind: str, method: Method, inputs: Law | Inputs) -> Trajectory:
    natural = kind == "natural"
    machine, q = machines()["loops" if natural else kind]
    run = integrate_natural_machine if natural else integrate
    given = inputs
    if kind == "open" and not isinstance(inputs, Inputs):
        given = Inputs(inputs, signals=lambda t, q, qd: {"i": 0.0})
    return run(machine, T, q, np.zeros(machine.n), given, method=method)


EVERY = pytest.mark.parametrize("kind", ["open", "free", "loops", "natural"])
BOTH = pytest.mark.parametrize("method", [FIXED, CHOSEN], ids=["fixed steps", "chosen steps"])


@EVERY
@BOTH
def test_forces_that_are_no_numbers(kind: str, method: Method) -> None:
    """From .5 s on; a step that is chosen may reach some tenths of a second beyond."""
    coordinate = machines()["loops" if kind == "natural" else kind][0].coordinates[0]
    with pytest.raises(SimulationError, match=rf"control law: the force on '{coordinate}' is nan at 0\.[5-7]\d* s"):
        simulated(kind, method, lambda t, q, qd: np.where(np.arange(len(q)) == 0, np.nan if t > 0.5 else 0.0, 0.0))


@EVERY
@BOTH
def test_what_a_law_raises_has_the_time(kind: str, method: Method) -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        simulated(kind, method, lambda t, q, qd: 0.0 * q + 1.0 / (0 if t > 0.5 else 1))
    (note,) = caught.value.__notes__
    assert re.fullmatch(r"in the control law, at 0\.[5-7]\d* s", note)


@EVERY
@BOTH
def test_another_number_of_forces(kind: str, method: Method) -> None:
    n = machines()["loops" if kind == "natural" else kind][0].n
    with pytest.raises(SimulationError, match=rf"control law: .*at 0 s\.\s*Expected \({n},\), found \({n + 1},\)"):
        simulated(kind, method, lambda t, q, qd: np.zeros(n + 1))


@EVERY
@pytest.mark.parametrize("method", [FIXED, replace(FIXED, step=0.1)], ids=["short steps", "too long a step"])
def test_a_gain_that_feeds_on_itself(kind: str, method: Method) -> None:
    """q̈ grows with q: beyond all sense within a second, in steps of any length."""
    with pytest.raises(SimulationError, match=r"at \d[\d.e-]* s") as caught:
        simulated(kind, method, lambda t, q, qd: np.where(np.arange(len(q)) == 0, 1e5 * q + 1e3 * qd, 0.0))
    if kind != "natural":  # where the points leave their constraints first
        assert "coordinate '" in str(caught.value)


@BOTH
def test_signals_that_are_no_numbers(method: Method) -> None:
    inputs = Inputs(signals=lambda t, q, qd: {"i": np.inf if t > 0.5 else 0.0})
    with pytest.raises(SimulationError, match=r"the signal 'i' is inf at 0\.[5-7]\d* s"):
        simulated("open", method, inputs)


def test_a_run_without_headway_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A swing of 10⁹ rad/s needs steps of a nanosecond: refused after a few evaluations; one of 10 rad/s goes on."""
    monkeypatch.setattr(stepper, "EVALUATIONS", 500)

    def path(rate: float) -> Array:
        return adaptive_path(
            lambda t, y: np.array([y[1], -(rate**2) * y[0]]), T, np.array([1.0, 0.0]), CHOSEN, "swing", "", ["q1", "q1"]
        )

    assert path(10.0)[-1, 0] == pytest.approx(np.cos(10.0), abs=1e-6)
    with pytest.raises(SimulationError, match=r"swing, coordinate 'q1': DOP853 makes no headway at [\d.e-]+ s"):
        path(1e9)


def test_a_method_that_stops_early() -> None:
    """ẏ = y² from 1 is 1/(1 − t): no step is short enough to pass 1 s."""
    with pytest.raises(SimulationError, match=r"DOP853 stopped at (0\.9|1)\d* s[\s\S]*Expected 2 s[\s\S]*shorter"):
        adaptive_path(lambda t, y: y**2, np.linspace(0.0, 2.0, 201), np.ones(1), CHOSEN, "growth", "shorter", ["q1"])


def test_a_state_beyond_sense_names_its_worst_coordinate() -> None:
    names = ["a", "b", "a", "b"]
    check_size(0.1, np.array([1e5, 0.0, 1e9, 0.0]), slice(0, 2), "arm", names)  # a high speed alone is none
    with pytest.raises(SimulationError, match=r"arm, coordinate 'b': .* at 0\.1 s[\s\S]*-2e\+06"):
        check_size(0.1, np.array([1e5, -2e6, 0.0, 0.0]), slice(0, 2), "arm", names)
    with pytest.raises(SimulationError, match=r"arm, coordinate 'b'"):
        check_size(0.1, np.array([0.0, 0.0, 0.0, np.nan]), slice(0, 2), "arm", names)
