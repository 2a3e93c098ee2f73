import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.mechanics.system.integrate import BaseState, Inputs, Method
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.body import Body
from veridyn.model.elements.element import coulomb, damper, spring
from veridyn.signals.trajectory import FourierTrajectory
from veridyn.simulate.manoeuvre import Driven, Prescribed, Tracking, clock
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.transforms import MDH

PRECISE = Method(rtol=1e-10, atol=1e-12)


def slider(**settings):
    """2 kg on a horizontal rail."""
    body = Body("1", joint="sliding", placement=MDH(alpha=np.pi / 2))
    return Tree.build([body], name="slider", inertia={"1": from_centre(2.0, (0, 0, 0), np.eye(3))}, **settings)


def test_a_damped_oscillator_follows_its_closed_form():
    k, h, m = 50.0, 1.2, 2.0
    machine = slider(elements=[spring("q1", k), damper("q1", h)])
    found = Driven(3.0, 50.0, [0.1], [0.0], method=PRECISE).run(machine).motion
    decay = h / (2 * m)
    w = np.sqrt(k / m - decay**2)
    exact = 0.1 * np.exp(-decay * found.t) * (np.cos(w * found.t) + decay / w * np.sin(w * found.t))
    assert np.allclose(found.q[:, 0], exact, atol=1e-8)


def test_dry_friction_brakes_evenly_until_it_is_rounded_off():
    f, m, s = 3.0, 2.0, 0.002
    how = Method(rtol=1e-9, atol=1e-11, friction_speed=s)
    found = Driven(0.6, 100.0, [0.0], [0.6], method=how).run(slider(elements=[coulomb("q1", f)])).motion
    fast = found.t < 0.35  # v = v₀ − f t/m ends at 0.4 s; above 0.07 m/s, 35 s, friction is full to 1/(2·35²)
    assert np.allclose(found.qd[fast, 0], 0.6 - f / m * found.t[fast], atol=1e-3)
    assert np.abs(found.qd[found.t > 0.45, 0]).max() < 2 * s  # and never turns round


def test_a_free_body_falls_and_is_pushed():
    body = Tree.build(
        [Body("box", None, "fixed")],
        base="free",
        inertia={"box": from_centre(2.0, (0, 0, 0), np.diag([1.0, 2.0, 2.5]))},
    )
    push = Inputs(wrenches=lambda t, q, qd: {"box": [4.0, 0, 0, 0, 0, 0]})
    found = Driven(1.0, 10.0, [], [], push, BaseState(velocity=(0, 0, 3.0)), PRECISE).run(body)
    t = found.motion.t
    exact = np.column_stack([t**2, 0 * t, 3 * t - 9.81 / 2 * t**2])
    assert np.allclose(found.base_position, exact, atol=1e-9)
    assert np.allclose(found.motion.base.acceleration, [2.0, 0, 0], atol=1e-9)


def test_tracking_obeys_the_machine_whatever_the_controller_believes():
    machine = slider(elements=[spring("q1", 5.0)])
    reference = FourierTrajectory(np.zeros(1), np.array([[0.2, 0.1]]), np.zeros((1, 2)), 0.5, 0.5)
    believed = machine.with_parameters(1.2 * machine.parameters.values)
    found = Tracking(reference, 2.0, 100.0, [400.0], [40.0], believed, PRECISE).run(machine).motion
    assert np.array_equal(found.t, np.arange(201) / 100.0)
    assert np.allclose(inverse_dynamics(machine, found), found.forces, atol=1e-10)
    error = np.abs(found.q - reference.position(found.t)).max()
    assert 1e-5 < error < 0.02  # a fifth of the force is left to the feedback


def test_what_cannot_follow_is_refused():
    reference = FourierTrajectory(np.zeros(2), np.zeros((2, 1)), np.zeros((2, 1)), 1.0)
    passive = Tree.build([Body("1", actuated=False)], name="passive")
    with pytest.raises(
        DataError, match=r"2 faults(.|\n)*1 coordinates, found 2(.|\n)*cannot be made to follow(.|\n)*q1"
    ):
        Tracking(reference, 1.0, 100.0, [1.0, 1.0], [1.0, 1.0]).run(passive)
    free = Tree.build([Body("1", None, "fixed")], base="free")
    with pytest.raises(DataError, match="a base that is held"):
        Tracking(reference, 1.0, 100.0, [1.0, 1.0], [1.0, 1.0]).run(free)


def test_the_clock_ends_with_the_duration():
    assert np.array_equal(clock(0.3, 10.0), [0.0, 0.1, 0.2, 0.3])
    assert len(clock(1.0, 3.3)) == 4
    for duration, rate in ((0.0, 10.0), (1.0, 0.0), (1.0, np.inf), (np.nan, 1.0)):
        with pytest.raises(DataError, match="nothing to sample"):
            clock(duration, rate)


def test_a_prescribed_motion_is_made_and_its_forces_are_those_it_takes():
    """2 kg on a rail with a spring, a damper, dry friction and a push from outside: F = m a + k x + h v + f sign(v) − push."""
    machine = slider(elements=[spring("q1", 5.0), damper("q1", 0.5), coulomb("q1", 0.7)])
    reference = FourierTrajectory([0.1], [[0.2, 0.1]], [[0.0, 0.05]], 0.5)
    push = Inputs(wrenches=lambda t, q, qd: {"1": [0, 0, 3.0 * t, 0, 0, 0]})
    found = Prescribed(reference, 2.0, 100.0, push).run(machine).motion
    x, v, a = (y[:, 0] for y in reference.at(found.t))
    wanted = 2.0 * a + 5.0 * x + 0.5 * v + 0.7 * np.sign(v) - 3.0 * found.t
    assert np.allclose(found.q[:, 0], x) and np.allclose(found.forces[:, 0], wanted, atol=1e-12)
    with pytest.raises(DataError, match="a base that is held"):
        Prescribed(reference, 1.0, 10.0).run(Tree.build([Body("1", None, "fixed")], base="free"))


def test_tracking_against_a_wrench_from_outside():
    """A constant push that the controller does not know of leaves an error of push/kp."""
    still = FourierTrajectory([0.1], [[0.0]], [[0.0]], 1.0)
    push = Inputs(wrenches=lambda t, q, qd: {"1": [0, 0, 8.0, 0, 0, 0]})
    found = Tracking(still, 3.0, 20.0, [400.0], [60.0], slider(), PRECISE, push).run(slider()).motion
    assert found.q[-1, 0] == pytest.approx(0.1 + 8.0 / 400.0, abs=1e-5)
    assert found.forces[-1, 0] == pytest.approx(-8.0, abs=1e-2)
