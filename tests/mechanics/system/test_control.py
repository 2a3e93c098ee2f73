"""Joints that follow a reference; and splines asked one time a call against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline, CubicSpline

from veridyn.errors import DataError
from veridyn.mechanics.system.control import Tracker, feedforward, spline_at
from veridyn.mechanics.system.integrate import Method, integrate
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.loops.closure import closed_home, closed_motion
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import coulomb, damper
from veridyn.model.graph import Body
from veridyn.model.motion import Motion
from veridyn.papers.hexapod.machine import POSE, machine, truth
from veridyn.signals.trajectory import FourierTrajectory
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import MDH


@pytest.mark.parametrize("shape", [(3,), (2, 4)])
def test_values_are_those_of_scipy_within_at_and_beyond_the_knots(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    t = np.cumsum(rng.uniform(0.1, 1.0, size=20))
    y, slopes = rng.normal(size=(2, 20, *shape))
    times = np.concatenate([t, rng.uniform(t[0], t[-1], size=50), [t[0] - 0.3, t[-1] + 0.3]])
    for spline in (CubicSpline(t, y), CubicHermiteSpline(t, y, slopes)):
        at = spline_at(spline)
        for time in times.tolist():
            assert at(time) == pytest.approx(spline(time), rel=1e-12, abs=1e-12)


class Swing:
    """A reference that any class with `at` can be."""

    def at(self, t, /):
        angle = np.asarray(t, dtype=float)[..., None] * np.array([3.0, 5.0])
        w = np.array([3.0, 5.0])
        return 0.5 * np.sin(angle), 0.5 * w * np.cos(angle), -0.5 * w**2 * np.sin(angle)


def arm(**settings):
    bodies = [Body("1", placement=MDH(alpha=np.pi / 2)), Body("2", "1", placement=MDH(d=0.4))]
    ten = from_centre(2.0, (0.2, 0.01, 0.0), np.diag([0.01, 0.03, 0.03]))
    return Tree.build(bodies, name="arm", inertia={"1": ten, "2": ten}, **settings)


def test_the_law_is_feedforward_plus_gains_times_errors():
    law = Tracker(Swing(), np.array([10.0, 20.0]), np.array([1.0, 2.0]), lambda t: np.array([t, 7.0]))
    wanted, speed, _ = Swing().at(0.3)
    error, slip = np.array([0.1, -0.2]), np.array([0.5, 0.25])
    force = law(0.3, wanted - error, speed - slip)
    assert np.allclose(force, [0.3 + 10 * 0.1 + 0.5, 7.0 - 20 * 0.2 + 2 * 0.25])
    assert np.allclose(Tracker(Swing(), law.kp, law.kd)(0.3, wanted, speed), 0.0)


def test_feedforward_is_inverse_dynamics_along_the_reference():
    tree = arm(elements=[damper("q1", 0.3)])
    table = feedforward(tree, Swing(), 0.0, 2.0)
    t = np.random.default_rng(1).uniform(0.0, 2.0, 50)
    exact = inverse_dynamics(tree, Motion(np.sort(t), *Swing().at(np.sort(t))))
    # a cubic spline at 2 ms through frequencies of about 10 rad/s: (0.02)⁴/384 of the force
    assert np.allclose([table(x) for x in np.sort(t)], exact, atol=1e-6)
    assert np.array_equal(table(-1.0), table(0.0)) and np.array_equal(table(99.0), table(2.0))


def test_soft_friction_replaces_the_jump_and_nothing_else():
    combined = coulomb({"q1": 1.0, "q2": -2.0}, 0.7)
    rough, smooth = arm(elements=[combined]), arm()
    soft, plain = (feedforward(tree, Swing(), 0.0, 2.0, friction_speed=0.2) for tree in (rough, smooth))
    for t in np.linspace(0.0, 2.0, 41):  # on the table's own times
        v = Swing().at(t)[1] @ np.array([1.0, -2.0])
        assert np.allclose(soft(t) - plain(t), 0.7 * v / (v**8 + 0.2**8) ** 0.125 * np.array([1.0, -2.0]), atol=1e-9)
    hard = feedforward(rough, Swing(), 0.0, 2.0)
    assert np.allclose(hard(0.0) - plain(0.0), 0.7 * np.sign(1.5 - 5.0) * np.array([1.0, -2.0]))


def test_a_perfect_model_tracks_and_a_wrong_one_stays_near():
    tree = arm()
    t = np.linspace(0.0, 1.0, 51)
    q, qd, _ = Swing().at(0.0)
    gains = np.array([200.0, 60.0]), np.array([20.0, 6.0])
    worst = []
    for model in (tree, tree.with_parameters(0.7 * tree.parameters.values), None):
        table = None if model is None else feedforward(model, Swing(), 0.0, 1.0)
        found = integrate(tree, t, q, qd, Tracker(Swing(), *gains, table), method=Method(rtol=1e-8, atol=1e-9))
        worst.append(np.abs(found.motion.q - Swing().at(t)[0]).max())
    assert worst[0] < 1e-7
    assert worst[0] < worst[1] < worst[2] < 0.3


def test_gains_and_tables_that_do_not_fit_are_refused():
    with pytest.raises(
        DataError, match=r"tracking control, 2 faults(.|\n)*kp(.|\n)*\(2,\), each zero or more(.|\n)*kd"
    ):
        Tracker(Swing(), np.ones(3), np.array([1.0, -1.0]))
    with pytest.raises(
        DataError, match=r"feed-forward: it has another number of coordinates(.|\n)*\(2,\), found \(3,\)"
    ):
        Tracker(Swing(), np.ones(2), np.ones(2), lambda t: np.zeros(3))
    with pytest.raises(DataError, match="an end after the start"):
        feedforward(arm(), Swing(), 1.0, 1.0)


def test_the_feedforward_of_a_closed_machine_is_what_its_drives_must_do():
    """A hexapod with friction in passive joints, some of it tied: against equations of the platform that share nothing with the tree's."""
    tree, by_hand = truth(), machine(friction_speed=1e-9)
    legs = closed_home(tree)[list(tree.independent)]
    k = np.arange(1.0, 7.0)
    swing = FourierTrajectory(legs, 0.02 * np.cos(k)[:, None], 0.02 * np.sin(k)[:, None], 1.0)
    t = np.array([0.1, 0.2, 0.3])  # knots of the table
    whole = closed_motion(tree, t, *swing.at(t))
    pose = [tree.coordinates.index(c) for c in POSE]
    assert np.abs(np.delete(whole.qd, pose, axis=1)).min() > 20 * 1e-4  # where rounding friction off changes nothing
    wanted = by_hand.forces(whole.q[:, pose], whole.qd[:, pose], whole.qdd[:, pose])
    found = feedforward(tree, swing, 0.0, 0.4, friction_speed=1e-4)
    assert np.allclose([found(time) for time in t], wanted, atol=1e-6)
