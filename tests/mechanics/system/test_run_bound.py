"""Compiled runs of machines with loops and on free bases, against the same rule stepped in Python by recursion and singular values
(``engine="numpy"``), which share no code of the run with them, against closed forms, and against energy that is kept."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from tests.strangers.random_trees import random_tree

from veridyn.errors import ModelError, SimulationError
from veridyn.machines import delta, linkage
from veridyn.mechanics.system import integrate as module
from veridyn.mechanics.system.compiled_run import CompiledRun
from veridyn.mechanics.system.fixed_steps import CLOSING_RATE, stepped_by_python
from veridyn.mechanics.system.integrate import BaseState, Inputs, Method, integrate
from veridyn.mechanics.tree.loops.assembly import assembled
from veridyn.mechanics.tree.loops.closing import loop_values
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.kinematics import energy
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import coulomb, damper, drive_gain
from veridyn.model.graph import Body

FINE = Method("RK4", step=5e-3, friction_speed=0.02)
TIMES = np.arange(13) / 100.0


ALONE: list[int] = []  # not empty while steps of Python are refused


@pytest.fixture
def in_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's steps fail where those of machine code are asked for, so that these are what is compared."""
    march = module.march

    def refused(*given):
        assert not ALONE, "stepped in Python"
        return march(*given)

    monkeypatch.setattr(module, "march", refused)


def assert_same(machine, q, qd, inputs=None, method=FINE, base=None, tolerance=1e-11):
    """q, q̇, q̈, forces, signals and the base of both engines agree to rounding that steps have added up."""
    ALONE.append(1)
    fast = integrate(machine, TIMES, q, qd, inputs, method=method, base=base)
    ALONE.clear()
    slow = integrate(machine, TIMES, q, qd, inputs, method=method, base=base, engine="numpy")
    for name in ("q", "qd", "qdd", "forces"):
        a, b = getattr(fast.motion, name), getattr(slow.motion, name)
        assert a == pytest.approx(b, rel=tolerance, abs=tolerance * max(1.0, np.abs(b).max(initial=0.0))), name
    if base is not None:
        for name in ("omega", "omega_dot", "acceleration", "velocity", "position", "quaternion"):
            a, b = getattr(fast.motion.base, name), getattr(slow.motion.base, name)
            assert a == pytest.approx(b, rel=tolerance, abs=tolerance * max(1.0, np.abs(b).max())), name
        assert fast.base_rotation == pytest.approx(slow.base_rotation, abs=tolerance)
    assert set(fast.motion.signals) == set(slow.motion.signals)
    for name, values in slow.motion.signals.items():
        assert fast.motion.signals[name] == pytest.approx(values, rel=tolerance, abs=tolerance)
    return fast


def home(machine):
    return assembled(tree_of(machine)).home


@cache
def floating() -> Tree:
    return random_tree(np.random.default_rng(8), bodies=4, base="free", kinds=("turning",))


@pytest.mark.usefixtures("in_machine_code")
@pytest.mark.parametrize("made", [linkage, delta])
def test_loops_under_forces_of_time_and_state(made):
    machine = made()
    drives = np.array(machine.actuated, dtype=float)

    def push(t, q, qd):
        return drives * (3.0 * np.sin(9.0 * t) - 0.4 * qd)

    fast = assert_same(machine, home(machine), np.zeros(machine.n), push)
    opening = loop_values(tree_of(machine), fast.motion.q, fast.motion.qd)
    assert np.abs(opening[:, :, machine.n]).max() < 1e-12  # m: closed to rounding at every sample
    assert np.abs(np.einsum("tij,tj->ti", opening[:, :, : machine.n], fast.motion.qd)).max() < 1e-11


@pytest.mark.usefixtures("in_machine_code")
def test_friction_of_a_joint_of_a_loop_holds_it():
    """Coulomb friction far above the torque of gravity on a linkage at rest holds it, and lets it slide once it is pushed.

    What counts as rest is a speed that this friction takes away in a moment: here 6e-7 rad/s. Let go, it falls by .04 rad in this time.
    """
    machine = linkage()
    machine = machine.with_elements([coulomb(machine.coordinates[0], 500.0, name="brake")])
    still = assert_same(machine, home(machine), np.zeros(machine.n), method=replace(FINE, friction_speed=0.0))
    assert np.ptp(still.motion.q, axis=0).max() < 1e-6
    pushed = assert_same(
        machine,
        home(machine),
        np.zeros(machine.n),
        lambda t, q, qd: np.array([900.0 * np.sin(20.0 * t), 0.0, 0.0]),
        method=replace(FINE, friction_speed=0.0),
        tolerance=1e-8,
    )
    assert np.ptp(pushed.motion.q[:, 0]) > 1e-3


@pytest.mark.usefixtures("in_machine_code")
def test_a_free_base_with_joints_dampers_and_signals():
    tree = floating()
    names = tree.coordinates
    tree = tree.with_elements([damper(names[0], 0.3), drive_gain(names[1], "amps", 0.5), coulomb(names[2], 0.1)])
    rng = np.random.default_rng(1)
    start = BaseState(quaternion=rng.normal(size=4), velocity=(0.3, 0.0, 1.0), omega=(0.5, -1.0, 0.7))
    inputs = Inputs(
        forces=lambda t, q, qd: -0.2 * q, signals=lambda t, q, qd: {"amps": np.cos(8.0 * t), "beside": float(t)}
    )
    assert_same(tree, rng.normal(size=tree.n), rng.normal(size=tree.n), inputs, base=start, tolerance=1e-10)


def test_energy_of_a_floating_machine_is_kept():
    """Order four: 1 ms over 1 s of tumbling loses less than 1e-8 of the kinetic energy it begins with."""
    tree, rng = floating(), np.random.default_rng(1)
    start = BaseState(quaternion=rng.normal(size=4), velocity=(0.3, 0.0, 1.0), omega=(0.5, -1.0, 0.7))
    t = np.arange(101) / 100.0
    found = integrate(
        tree, t, rng.normal(size=tree.n), rng.normal(size=tree.n), base=start, method=Method("RK4", step=1e-3)
    )
    E = energy(tree, found.motion, base_rotation=found.base_rotation, base_position=found.base_position)
    assert np.abs(E.total - E.total[0]).max() < 1e-8 * E.kinetic[0]


def test_a_body_without_joints_falls_on_a_parabola():
    tree = Tree.build(
        [Body("stone", None, "fixed")], base="free", inertia={"stone": [0.1, 0, 0, 0.1, 0, 0.1, 0, 0, 0, 2.0]}
    )
    t = np.linspace(0.0, 1.0, 5)
    start = BaseState(velocity=(1.0, 0.0, 3.0), omega=(1.0, 2.0, 3.0))
    found = integrate(tree, t, [], [], base=start, method=Method("RK4", step=0.01))
    assert found.base_position == pytest.approx(np.column_stack([t, 0 * t, 3.0 * t - 0.5 * 9.81 * t**2]), abs=1e-12)
    assert found.motion.base.acceleration == pytest.approx(np.zeros((5, 3)), abs=1e-12)


def test_what_runs_away_is_named_with_time_and_joint():
    machine = linkage()
    with pytest.raises(SimulationError, match=r"run away at .* s") as caught:
        integrate(
            machine,
            np.arange(2001) / 1000.0,
            home(machine),
            np.zeros(machine.n),
            lambda t, q, qd: np.array([1e5 * (1.0 + qd[0]) * (1.0 + q[0] ** 2), 0.0, 0.0]),
            method=Method("RK4", step=1e-3, friction_speed=0.02),
        )
    assert "coordinate '" in str(caught.value)
    with pytest.raises(SimulationError, match=r"force on 'q1' is nan at 0.05 s"):
        integrate(
            machine,
            TIMES,
            home(machine),
            np.zeros(machine.n),
            lambda t, q, qd: np.array([np.nan if t >= 0.05 else 0.0, 0.0, 0.0]),
            method=FINE,
        )
    with pytest.raises(ZeroDivisionError) as law:
        integrate(
            machine, TIMES, home(machine), np.zeros(3), lambda t, q, qd: [1.0 / (1.0 - 10 * t // 1), 0, 0], method=FINE
        )
    assert any("in the control law, at 0.1 s" in note for note in law.value.__notes__)


def test_what_is_compiled_and_what_is_not():
    tree = tree_of(linkage())
    assert stepped_by_python(tree, Inputs(), FINE, TIMES) == ""
    assert stepped_by_python(tree, Inputs(wrenches=lambda t, q, qd: {}), FINE, TIMES) == ""
    assert stepped_by_python(tree, Inputs(), FINE, TIMES**2) == "samples at unequal intervals"
    rubbing = floating().with_elements([coulomb(floating().coordinates[0], 0.1)])
    assert stepped_by_python(rubbing, Inputs(), FINE, TIMES) == ""
    stiff = replace(FINE, friction_speed=0.0)
    assert stepped_by_python(rubbing, Inputs(), stiff, TIMES) == "dry friction that holds on a free base"
    with pytest.raises(ModelError, match="open machine on a fixed base"):
        CompiledRun(tree)
    assert CompiledRun(tree, closing_rate=CLOSING_RATE).size == 2 * tree.n
