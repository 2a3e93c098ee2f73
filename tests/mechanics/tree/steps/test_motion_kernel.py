"""Accelerations of trees against Pinocchio, and forces of elements against inverse dynamics."""

from __future__ import annotations

import numpy as np
import pytest

from strangers.pinocchio_closed import PinClosed
from strangers.pinocchio_oracle import PinModel
from strangers.tree_models import model, moving, small_arm
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.steps.model import tree_model
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.graph import Body
from veridyn.model.motion import BaseMotion, Motion
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import matrix_of


@pytest.mark.parametrize("name", ["branched arm", "free machine"])
def test_accelerations_of_open_trees_as_pinocchio_s(name: str) -> None:
    m = model(name, plain=True)
    x, v, u = moving(m, 3)
    at = m.instant(x, v, u, m.loads())
    first = 6 if m.free else 0
    base, R = None, np.eye(3)
    if m.free:
        R = matrix_of(x[3:7])
        zero = np.zeros((1, 3))
        base = BaseMotion(v[None, 3:6], zero, zero, (R.T @ v[:3])[None])
    motion = Motion(np.zeros(1), x[None, -m.tree.n :], v[None, first:], np.zeros((1, m.tree.n)), base)
    forces = u.copy()
    if m.free:
        forces[:3] = R.T @ u[:3]  # Pinocchio's rows are in the base's axes
    expected = PinModel(m.tree).forward_dynamics(motion, forces[None])
    np.testing.assert_allclose(at.qdd[first:], expected.qdd[0], rtol=1e-9, atol=1e-9)
    if m.free:
        np.testing.assert_allclose(at.qdd[3:6], expected.omega_dot[0], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(R.T @ (at.qdd[:3] - m.tree.gravity), expected.acceleration[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["linkage", "palletizer", "delta", "hexapod"])
def test_accelerations_of_closed_trees_as_pinocchio_s(name: str) -> None:
    """Loops stay closed, and constraint dynamics gives the same accelerations."""
    m = model(name, plain=True)
    x, v, u = moving(m, 5, 0.05)
    at = m.instant(x, v, u, m.loads())
    assert m.constraint_errors(x, np.zeros(m.nv), np.zeros(m.nv))[0] < 1e-12
    expected = PinClosed(m.tree).forward(x, v, m.B @ u)
    np.testing.assert_allclose(at.qdd, expected, rtol=1e-7, atol=1e-7 * np.abs(expected).max())


def test_elements_and_signals_act() -> None:
    """Every force that inverse dynamics asks for, given as input, brings the accelerations back."""
    from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics

    tree = tree_of(small_arm())
    m = tree_model(tree)
    q, qd, qdd = np.array([0.3, -0.5]), np.array([0.8, -1.1]), np.array([2.0, -3.0])
    current = 0.7
    motion = Motion(np.zeros(1), q[None], qd[None], qdd[None], signals={"current": np.array([current])})
    gamma = inverse_dynamics(tree, motion)[0]
    loads = m.loads({"force.upper": gamma[0], "force.lower": gamma[1], "signal.current": current})
    at = m.instant(q, qd, np.zeros(0), loads)
    np.testing.assert_allclose(at.qdd, qdd, rtol=1e-9)


def test_a_balanced_wheel_has_no_forces_of_its_own() -> None:
    """The row of gravity and gyroscopic forces of a balanced wheel is zero whatever it does; J q̈ = τ, call after call."""
    wheel = Tree.build(
        [Body("wheel")], inertia={"wheel": from_centre(10.0, [0.0, 0.0, 0.0], np.diag([1.0, 1.0, 1.85]))}
    )
    m = tree_model(wheel)
    for torque in (4.0, -1.0, 0.0):
        at = m.instant(np.array([0.3]), np.array([12.0]), np.zeros(0), m.loads({"force.wheel": torque}))
        assert at.qdd[0] == pytest.approx(torque / 1.85, abs=1e-15)
    end = m.step(np.array([0.3]), np.array([12.0]), np.zeros(0), 0.01, m.loads({"force.wheel": 3.7}))
    assert (end.q[0], end.qd[0]) == pytest.approx((0.3 + 0.12 + 1e-4, 12.02), abs=1e-14)
