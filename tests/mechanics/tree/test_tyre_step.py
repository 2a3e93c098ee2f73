"""Tyres in the trapezoidal step: accelerations and slip rates of forward dynamics, derivatives of finite differences, one motion."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from veridyn.mechanics.system.integrate import BaseState, Method, integrate
from veridyn.mechanics.tree.dynamics.forward import forward_dynamics
from veridyn.mechanics.tree.dynamics.instant import StateAccelerations
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.steps.model import TreeModel, tree_model
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import Marker, tyre
from veridyn.model.graph import Body
from veridyn.model.motion import BaseMotion, Motion
from veridyn.papers.buggy.drive import settle
from veridyn.papers.buggy.machine import buggy
from veridyn.spatial.rotations import matrix_of

Array = NDArray[np.float64]
LAW = {
    "UNLOADED_RADIUS": 0.3683, "VERTICAL_STIFFNESS": 82.7e3, "VERTICAL_DAMPING": 500.0, "FNOMIN": 4000.0, "QSY1": 0.015,
    "BREFF": 6.1, "DREFF": 0.45, "FREFF": 0.01, "PCX1": 1.839, "PDX1": 1.1387, "PEX1": 0.627, "PKX1": 18.886,
    "PCY1": 1.3223, "PDY1": 1.0141, "PEY1": -0.638, "PKY1": -19.797, "PKY2": 1.7999, "PTX1": 1.85, "PTY1": 1.9, "PTY2": 2.25,
    "RBX1": 5.99, "RBX2": -8.26, "RCX1": 1.078, "RBY1": 6.22, "RBY2": 3.07, "RBY3": 0.016, "RCY1": 1.005,
}  # fmt: skip
ROAD = {"signal.tyre_wheel.road": 0.02, "signal.tyre_wheel.road_x": 0.03, "signal.tyre_wheel.road_y": -0.02}


@cache
def made() -> TreeModel:
    """A free wheel with a tyre, on a sloping road."""
    law = tyre(Marker("wheel", (0.0, 0.0, 0.0), axis=(0.0, 1.0, 0.0)), LAW)
    ten = [6.0, 0.0, 0.0, 9.0, 0.0, 6.0, 0.0, 0.0, 0.0, 250.0]
    return tree_model(Tree.build([Body("wheel", None, "fixed")], base="free", inertia={"wheel": ten}, elements=[law]))


def state() -> tuple[Array, Array, Array]:
    e = np.array([0.95, 0.02, 0.1, 0.3])
    x = np.array([0.4, -0.3, 0.38, *(e / np.linalg.norm(e))])
    return x, np.array([4.0, 2.6, -0.1, 0.05, 13.0, 0.1]), np.array([0.03, -0.02])


def test_accelerations_and_rates_are_those_of_forward_dynamics() -> None:
    m = made()
    x, v, u = state()
    found = m.instant(x, v, u, m.loads(ROAD), False)
    R, zero, none = matrix_of(x[None, 3:])[0], np.zeros((1, 3)), np.zeros((1, 0))
    base = BaseMotion(v[None, 3:], zero, zero, (R.T @ v[:3])[None], position=x[None, :3], quaternion=x[None, 3:])
    signals = {name.removeprefix("signal."): value for name, value in ROAD.items()}
    signals |= dict(zip(m.inner, u.tolist(), strict=True))
    heard = {name: np.array([value]) for name, value in signals.items()}
    expected = forward_dynamics(
        m.tree, Motion(np.zeros(1), none, none, none, base, none, signals=heard), engine="numpy"
    )
    assert expected.base is not None
    linear = R @ expected.base.acceleration[0] + m.tree.gravity
    assert found.qdd == pytest.approx(np.concatenate([linear, expected.base.omega_dot[0]]), rel=1e-10)
    small = m.step(x, v, u, 1e-6, m.loads(ROAD), False)
    rates = StateAccelerations(m.tree, m.values, engine="numpy").state_rates(
        none[0], none[0], signals, v[3:], R.T @ v[:3], x
    )
    assert (small.u - u) / 1e-6 == pytest.approx(rates, abs=1e-3)  # its first order


def test_the_derivative_of_a_step_is_that_of_finite_differences() -> None:
    m, h = made(), 2e-3
    x, v, u = state()
    found = m.step(x, v, u, h, m.loads(ROAD))
    columns = []
    for k in range(2 * m.f + len(u)):
        ends = []
        for sign in (1.0, -1.0):
            d, w = np.zeros(2 * m.f), u.copy()
            if k < 2 * m.f:
                d[k] = sign * 1e-6
            else:
                w[k - 2 * m.f] += sign * 1e-6
            at = m.moved(x, v, d, w, m.loads(ROAD))
            ends.append(m.step(at.q, at.qd, w, h, m.loads(ROAD), False))
        a, b = ends
        columns.append(np.concatenate([m.difference(a.q, a.qd, b.q, b.qd), a.u - b.u]) / 2e-6)
    assert pytest.approx(np.array(columns).T, rel=1e-5, abs=1e-5) == found.F


def test_steps_follow_the_motion_of_the_integrator() -> None:
    """Of second order: a quarter of the difference with half the step."""
    m, duration = made(), 0.1
    x, v, u = state()
    x = x.copy()
    x[:3] = 0.0, 0.0, 0.36  # flat, level: integrate without a road
    x[3:] = 1.0, 0.0, 0.0, 0.0
    base = BaseState(x[:3], x[3:], v[:3], v[3:])
    start = dict(zip(m.inner, u.tolist(), strict=True))
    run = integrate(
        m.tree, [0.0, duration], [], [], base=base, states=start, method=Method("RK4", step=5e-4), engine="numpy"
    )
    assert run.base_position is not None
    off = []
    for steps in (50, 100):
        a, b, c = x, v, u
        for _ in range(steps):
            at = m.step(a, b, c, duration / steps, m.loads(), False)
            a, b, c = at.q, at.qd, at.u
        slips = [run.states[name][-1] for name in m.inner]
        off.append(max(np.abs(a[:3] - run.base_position[-1]).max(), np.abs(c - slips).max()))
    assert off[1] < 2e-4 and off[1] < 0.35 * off[0]


def test_a_vehicle_at_rest_can_be_stepped():
    """Slips of exactly zero have no size of their own; a step from rest settled only where one had been given."""
    machine = buggy(rolling_resistance=0.015)
    at = settle(machine)
    model = tree_model(tree_of(machine), unknown=())
    x = np.concatenate([at.base.position, at.base.quaternion, at.q])
    found = model.step(x, np.zeros(model.nv), model.start_unknown, 2e-3, model.loads(), derivative=False)
    assert np.abs(found.qd).max() < 1e-9
