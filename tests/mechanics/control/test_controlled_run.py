"""Compiled runs under controllers, against the same laws stepped in Python, and SciPy's integrator with Pinocchio's dynamics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from tests.mechanics.control.gantries import Step, Wave, cart, gantry, servo
from tests.mechanics.control.two_links import arm

from veridyn.errors import SimulationError
from veridyn.mechanics.control.controlled_run import can_be_compiled, controlled_run
from veridyn.mechanics.control.sampled import SampledControl, with_law
from veridyn.mechanics.system.integrate import integrate
from veridyn.mechanics.system.simulation import Inputs, Method
from veridyn.mechanics.tree.recursion.inputs import complete_values
from veridyn.model.elements.element import coulomb, damper, dc_motor, stribeck
from veridyn.model.load import Drive

FINE = Method("RK4", step=1e-3)
TIMES = np.arange(61) / 150.0  # no multiple of the ticks
MOTOR = dc_motor({"q2": 30.0}, "volts", 1.2, 4e-3, 0.08, 0.08, "m")


def both(machine, command, given=None, method=FINE, q=(0.1, -0.2), t=TIMES, model=None):
    """The compiled run, and the same in Python."""
    given, still = given or Inputs(), np.zeros(machine.n)
    assert can_be_compiled(machine, given, method)
    fast = controlled_run(SampledControl(machine, command, model), t, q, still, given, method)
    law = SampledControl(machine, command, model)
    return fast, integrate(machine, t, q, still, with_law(machine, law, given), method=method)


def assert_same(fast, slow, tolerance=1e-11):
    for name in ("q", "qd", "qdd", "forces"):
        a, b = getattr(fast.motion, name), getattr(slow.motion, name)
        assert a == pytest.approx(b, rel=tolerance, abs=tolerance * np.abs(b).max()), name
    assert set(fast.motion.signals) == set(slow.motion.signals)
    for name, values in slow.motion.signals.items():
        assert fast.motion.signals[name] == pytest.approx(values, rel=tolerance, abs=tolerance * np.abs(values).max())
    assert set(fast.states) == set(slow.states)


def pair(first, second=None, **more):
    """An arm with two controllers of its own rates and delays."""
    second = second or servo(
        "cascade",
        on="q2",
        name="b",
        rate=200.0,
        kp=6.0,
        kv=2.0,
        ki=3.0,
        speed_limit=1.5,
        limit=4.0,
        command_delay=0.004,
    )
    return arm(first, second, **more)


LAWS = {
    "pd": servo(on="q1", rate=250.0, kp=60.0, kd=6.0, velocity_feedforward=0.5, acceleration_feedforward=0.1),
    "late": servo("pid", on="q1", rate=100.0, kp=40.0, ki=20.0, kd=6.0, limit=9.0, measurement_delay=0.0137),
    "slow": servo("pid", on="q1", rate=250.0, kp=60.0, ki=90.0, kd=6.0, rate_limit=300.0, anti_windup="none"),
    "back": servo("pid", on="q1", rate=250.0, kp=60.0, ki=90.0, limit=6.0, tracking_time=0.1, anti_windup="back_calculation"),
    "gravity": servo(on="q1", rate=250.0, kp=60.0, kd=6.0, feedforward="gravity", measurement_delay=0.002),
    "model": servo(on="q1", rate=250.0, kp=60.0, kd=6.0, feedforward="model", command_delay=0.003),
    "torque": servo("computed_torque", on="q1", rate=250.0, kp=100.0, kd=20.0, measurement_delay=0.006),
}  # fmt: skip


@pytest.mark.parametrize("name", LAWS)
def test_every_law_moves_an_arm_as_its_steps_in_python_do(name):
    assert_same(*both(pair(LAWS[name]), Wave(2)))


def test_dry_friction_holds_and_slides_as_in_python():
    dry = [coulomb("q1", 2.5), coulomb("q2", 0.8), damper("q2", 0.3), stribeck("q1", 0.2, 1.0)]
    fast, slow = both(pair(LAWS["late"], elements=dry), Wave(2, w=9.0))
    assert_same(fast, slow, 1e-8)  # the instants of coming to rest are found to 1e-9 of a step
    assert (np.abs(fast.motion.qd) < 1e-12).any(), "nothing ever stuck"


def test_rounded_friction_is_as_in_python():
    machine = pair(LAWS["pd"], elements=[coulomb("q1", 2.5)])
    assert_same(*both(machine, Wave(2), method=replace(FINE, friction_speed=0.05)))


def test_a_current_loop_and_a_model_of_other_values_are_as_in_python():
    current = {"motor": "m", "current_kp": 3.0, "current_ki": 400.0, "current_rate": 1000.0, "voltage_limit": 20.0}
    machine = pair(LAWS["gravity"], servo(on="q2", name="b", rate=200.0, kp=30.0, kd=2.0, **current), elements=[MOTOR])
    lighter = machine.with_parameters(0.8 * complete_values(machine))
    assert_same(*both(machine, Wave(2), model=lighter))


def test_functions_of_python_act_besides():
    drives = (Drive("push", "z", 10.0),)
    machine = replace(gantry(servo(on="x", kp=60.0, kd=12.0)), loads=drives)
    start = {"q": [0.0, 0.2], "t": np.arange(31) / 100.0}
    assert_same(*both(machine, Step(), **start))
    assert_same(*both(machine, Step(), Inputs(loads=lambda t: {"push": 5.0 * np.sin(9.0 * t)}), **start))
    push = Inputs(forces=lambda t, q, qd: np.array([np.cos(5.0 * t), -3.0 * q[1]]))
    assert_same(*both(machine, Step(), push, **start))


def test_an_arm_moves_as_pinocchio_and_scipy_say():
    pin = pytest.importorskip("pinocchio")
    machine, command = pair(LAWS["pd"], servo(on="q2", name="b", rate=250.0, kp=30.0, kd=2.0)), Wave(2)
    model = pin.Model()
    inertia = pin.Inertia(2.0, np.array([0.2, 0.01, 0.0]), np.diag([0.01, 0.03, 0.03]))
    turn = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])  # the axis of the first joint is horizontal
    first = model.addJoint(0, pin.JointModelRZ(), pin.SE3(turn, np.zeros(3)), "q1")
    second = model.addJoint(first, pin.JointModelRZ(), pin.SE3(np.eye(3), np.array([0.4, 0.0, 0.0])), "q2")
    for joint in (first, second):
        model.appendBodyToJoint(joint, inertia, pin.SE3.Identity())
    data, gains = model.createData(), ((60.0, 6.0, 0.5, 0.1), (30.0, 2.0, 0.0, 0.0))
    state, period, path = np.array([0.1, -0.2, 0.0, 0.0]), 1 / 250.0, []
    for k in range(100):
        path.append(state)
        r, rd, rdd = command.at(k * period)
        e, ed = r - state[:2], rd - state[2:]
        held = np.array([g[0] * e[j] + g[1] * ed[j] + g[2] * rd[j] + g[3] * rdd[j] for j, g in enumerate(gains)])

        def slope(_t, y, held=held):
            return np.concatenate([y[2:], pin.aba(model, data, y[:2], y[2:], held)])

        state = solve_ivp(slope, (0.0, period), state, "DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    t = np.arange(100) * period
    given = Method("RK4", step=2.5e-4)
    found = controlled_run(SampledControl(machine, command), t, [0.1, -0.2], np.zeros(2), Inputs(), given).motion
    # Kutta's rule errs by about (ω h)⁵ a step; ω = 15 1/s of the stiffer joint, so less than 1e-9 in all.
    assert np.column_stack([found.q, found.qd]) == pytest.approx(np.array(path), abs=1e-8)


def test_what_goes_wrong_is_named_with_time_and_place():
    wild = cart(servo(rate=20.0, kp=1e5))
    run = (np.arange(601) / 20.0, [0.0], [0.0], Inputs(), Method("RK4", step=0.05))
    with pytest.raises(
        SimulationError, match=r"'z'[\s\S]*run away at \d|controller 'servo'[\s\S]*force is [\s\S]* at \d"
    ):
        controlled_run(SampledControl(wild, Step()), *run)
    lost = Inputs(forces=lambda t, q, qd: [np.nan if t > 0.104 else 0.0])
    with pytest.raises(SimulationError, match=r"the force on 'z' is nan at 0\.1"):
        controlled_run(SampledControl(cart(servo(kp=1.0)), Step()), *run[:3], lost, FINE)

    def fails(t, q, qd):
        return [1.0 / (0 if t > 0.2 else 1)]

    with pytest.raises(ZeroDivisionError):
        controlled_run(SampledControl(cart(servo(kp=1.0)), Step()), *run[:3], Inputs(forces=fails), FINE)


def test_progress_is_reported_and_other_machines_are_left_to_python():
    told = []
    law = SampledControl(cart(servo(kp=1.0)), Step())
    controlled_run(law, np.arange(11) / 10.0, [0.0], [0.0], Inputs(), FINE, lambda *x: told.append(x))
    assert told[-1] == ("simulating", 1.0, 1.0)
    assert not can_be_compiled(law.machine, Inputs(), Method())
    assert not can_be_compiled(law.machine, Inputs(wrenches=lambda t, q, qd: {}), FINE)
