"""What acts on a simulated machine: forces, friction, other parameters."""

from __future__ import annotations

import numpy as np
import pytest

from mechanics.small_trees import PENDULUM, pendulum
from strangers.random_trees import random_inertia
from veridyn.mechanics.system.integrate import Inputs, Method, integrate
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import coulomb, damper, drive_gain
from veridyn.model.graph import Body
from veridyn.spatial.rotations import MDH


def test_motion_carries_the_forces_that_acted() -> None:
    """Inverse dynamics of the result gives the inputs back: forces, wrenches, signals and elements."""
    rng = np.random.default_rng(5)
    bodies = [Body("1"), Body("2", "1", placement=MDH(alpha=np.pi / 2, d=0.3))]
    elements = [drive_gain("q2", "amps", 3.0), damper("q1", 0.4)]
    tree = Tree.build(bodies, inertia={b.name: random_inertia(rng) for b in bodies}, elements=elements)
    inputs = Inputs(
        forces=lambda t, q, qd: [np.sin(3 * t), 0.0],
        wrenches=lambda t, q, qd: {"2": [0.1, 0.2, np.cos(t), 0.0, 0.3, 0.0]},
        signals=lambda t, q, qd: {"amps": 0.5 * np.cos(2 * t)},
    )
    run = integrate(tree, np.linspace(0.0, 1.0, 11), [0.1, 0.2], [0.0, 0.0], inputs)
    motion = run.motion
    assert motion.forces[:, 0] == pytest.approx(np.sin(3 * motion.t))
    assert motion.signals["amps"] == pytest.approx(0.5 * np.cos(2 * motion.t))
    assert inverse_dynamics(tree, motion) == pytest.approx(motion.forces, abs=1e-11)
    plain = integrate(pendulum(), [0.0, 0.1], [0.1], [0.0], lambda t, q, qd: [2.0])  # a bare function is the forces
    assert np.all(plain.motion.forces == 2.0)


def test_smooth_friction_stops_a_slider() -> None:
    """m v̇ = −f sign(v), rounded off: from 1 m/s at f/m = 2 m/s² it stops after 0.5 s, and stays."""
    tree = Tree.build(
        [Body("block", joint="sliding")],
        gravity=(9.81, 0, 0),
        inertia={"block": [0.1, 0, 0, 0.1, 0, 0.1, 0, 0, 0, 1.5]},
        elements=[coulomb("block", 3.0)],
    )
    how = Method("Radau", friction_speed=1e-3, rtol=1e-6, atol=1e-8)
    run = integrate(tree, [0.0, 0.25, 1.0], [0.0], [1.0], method=how)
    assert run.motion.qd[1, 0] == pytest.approx(0.5, abs=2e-3)
    assert abs(run.motion.qd[2, 0]) < 1e-3
    assert run.motion.q[2, 0] == pytest.approx(0.25, abs=2e-3)


def test_other_parameters_may_be_given() -> None:
    heavy = np.array(PENDULUM) * 2.0
    t = np.linspace(0, 0.5, 3)
    a = integrate(pendulum(), t, [1.0], [0.0], lambda t, q, qd: [1.0]).motion.q
    b = integrate(pendulum(), t, [1.0], [0.0], lambda t, q, qd: [2.0], parameters=heavy).motion.q
    assert a == pytest.approx(b, abs=1e-9)
