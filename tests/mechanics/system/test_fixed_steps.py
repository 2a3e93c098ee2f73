"""Compiled fixed steps, against the same rule stepped in Python, which ``engine="numpy"`` is; and what is wrong named by time and joint."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.mechanics.control.gantries import cart, gantry
from tests.mechanics.control.two_links import arm

from veridyn.errors import SimulationError
from veridyn.mechanics.system.fixed_steps import has_equal_intervals, is_plain
from veridyn.mechanics.system.integrate import integrate
from veridyn.mechanics.system.simulation import Inputs, Method
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.elements.element import coulomb, damper, dc_motor, drive_gain
from veridyn.model.load import Drive

FINE = Method("RK4", step=2e-3)
TIMES = np.arange(81) / 200.0


def assert_same(machine, inputs=None, method=FINE, q=(0.4, -0.3), qd=(0.2, 0.5), tolerance=1e-11):
    fast, slow = (integrate(machine, TIMES, q, qd, inputs, method=method, engine=e) for e in ("compiled", "numpy"))
    for name in ("q", "qd", "qdd", "forces"):
        a, b = getattr(fast.motion, name), getattr(slow.motion, name)
        assert a == pytest.approx(b, rel=tolerance, abs=tolerance * max(1.0, np.abs(b).max())), name
    assert set(fast.motion.signals) == set(slow.motion.signals)
    for name, values in slow.motion.signals.items():
        assert fast.motion.signals[name] == pytest.approx(values, rel=tolerance, abs=tolerance)
    assert set(fast.states) == set(slow.states)
    return fast.motion


def test_forces_that_are_functions_of_time_and_state():
    assert_same(arm())
    assert_same(arm(), lambda t, q, qd: [3.0 * np.sin(9.0 * t) - 0.4 * qd[0], -q[1]])


def test_friction_that_holds_and_friction_that_is_rounded():
    machine = arm(elements=[coulomb("q1", 4.0), damper("q1", 1.0), coulomb("q2", 1.0)])
    motion = assert_same(machine, lambda t, q, qd: [6.0 * np.sin(20.0 * t), 0.0], tolerance=1e-8)
    assert (motion.qd == 0.0).any() or (np.abs(motion.qd) < 1e-12).any()
    assert_same(machine, method=replace(FINE, friction_speed=0.05))


def test_signals_and_states_of_elements():
    motor = dc_motor({"z": 30.0}, "volts", 1.2, 4e-3, 0.08, 0.08, "m")
    machine = cart(elements=[motor, drive_gain("z", "amps", 2.0)])
    acting = Inputs(signals=lambda t, q, qd: {"volts": 5.0 * np.cos(8.0 * t), "amps": -q[0], "beside": t})
    motion = assert_same(machine, acting, q=[0.1], qd=[0.0])
    assert set(motion.signals) == {"volts", "amps", "beside", "m.i"}


def test_drives_as_the_model_and_as_a_function_of_time_say():
    machine = replace(gantry(), loads=(Drive("push", "z", 10.0), Drive("pull", "x", -1.0)))
    assert_same(machine)
    assert_same(machine, Inputs(loads=lambda t: {"push": 3.0 * t}))


def test_a_force_that_is_no_number_and_one_that_fails():
    with pytest.raises(SimulationError, match=r"the force on 'q2' is nan at 0\.1"):
        integrate(arm(), TIMES, [0.0, 0.0], [0.0, 0.0], lambda t, q, qd: [0.0, np.nan if t > 0.1 else 0.0], method=FINE)
    with pytest.raises(ZeroDivisionError):
        integrate(arm(), TIMES, [0.0, 0.0], [0.0, 0.0], lambda t, q, qd: [0.0, 1 / (t < 0.1)], method=FINE)


def test_a_force_that_feeds_on_itself_is_named_with_time_and_joint():
    with pytest.raises(SimulationError, match=r"coordinate 'z'[\s\S]*has run away at \d+\.?\d* s"):
        integrate(
            cart(), np.arange(0.0, 60.0, 0.1), [0.1], [0.0], lambda t, q, qd: 60.0 * q, method=Method("RK4", step=0.1)
        )


def test_what_is_left_to_python():
    tree = tree_of(arm())
    assert is_plain(tree, Inputs(), FINE)
    assert not is_plain(tree, Inputs(), Method())
    assert not is_plain(tree, Inputs(wrenches=lambda t, q, qd: {}), FINE)
    assert has_equal_intervals(TIMES)
    assert not has_equal_intervals(np.array([0.0, 0.1, 0.3]))


def test_progress_is_reported():
    told = []
    integrate(cart(), TIMES, [0.1], [0.0], lambda t, q, qd: -q, method=FINE, progress=lambda *x: told.append(x))
    assert told[-1] == ("simulating", TIMES[-1], TIMES[-1])
    assert len(told) > len(TIMES)
