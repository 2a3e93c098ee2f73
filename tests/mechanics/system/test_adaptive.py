"""Bad input of a simulation ends it by name, with the time and the place, in every formulation and by every integrator."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

import veridyn as vd
from veridyn.errors import SimulationError
from veridyn.mechanics.natural.steps.machine_motion import integrate_natural_machine
from veridyn.mechanics.system import adaptive
from veridyn.mechanics.system.adaptive import adaptive_path, check_size
from veridyn.mechanics.system.integrate import integrate
from veridyn.mechanics.system.simulation import Inputs, Method, Trajectory
from veridyn.model.elements.element import drive_gain
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import MDH

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
    monkeypatch.setattr(adaptive, "EVALUATIONS", 500)

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
