"""Steps of trees: their derivative against differences, their order against an integrator."""

from __future__ import annotations

import numpy as np
import pytest

from strangers.tree_models import MACHINES, model, moving, small_arm, stateful_linkage, stateful_model
from veridyn.mechanics.system.integrate import BaseState, Method, integrate
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.steps import record as places
from veridyn.mechanics.tree.steps.model import TreeModel, tree_model
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.graph import Body
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import matrix_of


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n == "delta" else ()) for n in MACHINES])
def test_the_derivative_of_a_step_is_exact(name: str) -> None:
    m, h, eps = model(name), 0.01, 1e-6
    x, v, u = moving(m, 11)
    end = m.step(x, v, u, h, m.loads())
    scale = np.abs(end.F).max()
    for j in range(3 * m.f):
        d, du = np.zeros(2 * m.f), np.zeros(m.f)
        (d if j < 2 * m.f else du)[j % (2 * m.f)] = eps
        ends = []
        for way in (1.0, -1.0):
            s = m.moved(x, v, way * d, u + way * du, m.loads())
            e = m.step(s.q, s.qd, u + way * du, h, m.loads(), derivative=False)
            ends.append(m.difference(e.q, e.qd, end.q, end.qd))
        np.testing.assert_allclose(
            end.F[:, j], (ends[0] - ends[1]) / (2 * eps), atol=5e-7 * scale
        )  # the differences' own error


@pytest.mark.parametrize("name", ["branched arm", "free machine", "palletizer"])
def test_steps_approach_the_integrator_with_order_two(name: str) -> None:
    """Half the step, a quarter of the error, against DOP853 of the tree's own equations."""
    m = model(name, plain=True)
    x, v, _ = moving(m, 13)
    first, T = (6 if m.free else 0), 0.1
    base = BaseState(x[:3], x[3:7], v[:3], v[3:6]) if m.free else None
    t = np.array([0.0, T])
    exact = integrate(m.tree, t, x[-m.tree.n :], v[first:], base=base, method=Method("DOP853", rtol=1e-11, atol=1e-12))
    goal = exact.motion.q[-1]
    errors = []
    for steps in (20, 40):
        a, b = x, v
        for _ in range(steps):
            at = m.step(a, b, np.zeros(m.f), T / steps, m.loads(), derivative=False)
            a, b = at.q, at.qd
        error = np.abs(a[-m.tree.n :] - goal).max()
        if m.free:
            error = max(error, float(np.abs(a[:3] - exact.base_position[-1]).max()))
            error = max(error, float(np.abs(matrix_of(a[3:7]) - exact.base_rotation[-1]).max()))
        errors.append(error)
    assert errors[1] < 1e-3
    assert 3.5 < errors[0] / errors[1] < 4.5


def test_dry_friction_at_standstill_converges() -> None:
    """Friction rounded off at 0.01 rad/s is stiff: Newton's method goes back half the way where it overshoots."""
    m = tree_model(tree_of(small_arm()))
    x, v = np.array([0.0, 0.0]), np.array([0.0, 0.02])
    for _ in range(50):
        at = m.step(x, v, np.zeros(0), 0.01, m.loads(), derivative=False)
        x, v = at.q, at.qd
    assert np.isfinite(x).all()


def test_the_attitude_of_a_free_base_survives_full_turns() -> None:
    """A base that spins about each axis for several turns: unit quaternion, and momentum of a free fall."""
    tree = Tree.build(
        [Body("base", None, "fixed")],
        base="free",
        inertia={"base": from_centre(3.0, [0.0, 0.0, 0.0], np.diag([0.1, 0.2, 0.25]))},
    )
    m = tree_model(tree)
    x, v = m.start_of({"base.z": 2.0}, {"base.roll": 9.0, "base.pitch": 0.1, "base.yaw": 0.3})
    J = np.diag([0.1, 0.2, 0.25])
    before = matrix_of(x[3:7]) @ J @ v[3:6]
    for _ in range(2000):
        at = m.step(x, v, np.zeros(0), 0.001, m.loads(), derivative=False)
        x, v = at.q, at.qd
    assert abs(np.linalg.norm(x[3:7]) - 1.0) < 1e-12
    np.testing.assert_allclose(matrix_of(x[3:7]) @ J @ v[3:6], before, atol=2e-4)
    np.testing.assert_allclose(x[2], 2.0 - 0.5 * 9.81 * 4.0, rtol=1e-9)


@pytest.mark.parametrize("machine", [stateful_model, stateful_linkage])
def test_the_derivative_of_a_step_with_states_of_elements_is_exact(machine) -> None:
    m, h = machine(("km.time",)), 0.01
    x, v = m.start_of()
    f, k = m.f, len(m.start_unknown)
    rng = np.random.default_rng(0)
    d = np.concatenate([0.05 * rng.standard_normal(f), 0.8 + 0.3 * rng.standard_normal(f)])
    u = m.start_unknown + np.concatenate([np.zeros(k - len(m.inner)), 0.005 * rng.standard_normal(len(m.inner))])
    start = m.moved(x, v, d, u, m.loads())
    end = m.step(start.q, start.qd, u, h, m.loads())
    assert end.F.shape == (2 * f + len(m.inner), 2 * f + k)
    for j in range(2 * f + k):
        size = np.zeros(2 * f + k)
        size[j] = 1e-6
        ends = []
        for way in (1.0, -1.0):
            s = m.moved(start.q, start.qd, way * size[: 2 * f], u + way * size[2 * f :], m.loads())
            e = m.step(s.q, s.qd, s.u, h, m.loads(), derivative=False)
            inner = (e.u - end.u)[k - len(m.inner) :]
            ends.append(np.concatenate([m.difference(e.q, e.qd, end.q, end.qd), inner]))
        slope = (ends[0] - ends[1]) / 2e-6
        np.testing.assert_allclose(end.F[:, j], slope, atol=1e-6 * np.abs(end.F).max())


def test_states_of_elements_move_as_the_integrator_moves_them() -> None:
    """Half the step, a quarter of the error, against DOP853 of the same machine with its states."""
    m, T = stateful_model(()), 0.2
    x, v, s0 = np.array([0.3, -0.5]), np.array([0.8, -0.6]), {"km.s": 0.02, "fl.z": 0.0}
    method = Method("DOP853", rtol=1e-10, atol=1e-12)
    exact = integrate(m.tree, np.array([0.0, T]), x, v, states=s0, method=method)
    states = np.array([exact.motion.signals[name][-1] for name in m.inner])
    errors = []
    for steps in (40, 80):
        a, b, u = x, v, np.array([s0[name] for name in m.inner])
        for _ in range(steps):
            at = m.step(a, b, u, T / steps, m.loads(), derivative=False)
            a, b, u = at.q, at.qd, at.u
        errors.append(max(np.abs(a - exact.motion.q[-1]).max(), np.abs(u - states).max()))
    assert errors[1] < 1e-4
    assert 3.4 < errors[0] / errors[1] < 4.6


def _driven(m: TreeModel, enough: float, steps: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Place, velocity and acceleration after so many steps that end at `enough`."""
    record = m.kernels.record
    record.W[record.I[places.ENOUGH]] = enough
    record.W[record.I[places.PACE]] = record.W[record.I[places.KEPT]] = 0.0
    x, v, u = moving(m, 17)
    a = np.zeros_like(v)
    try:
        for _ in range(steps):
            at = m.step(x, v, u, 2e-3, m.loads(), derivative=False)
            x, v, a = at.q, at.qd, at.qdd
    finally:
        record.W[record.I[places.ENOUGH]] = 0.0
    return x, v, a


@pytest.mark.parametrize("name", ["branched arm", "free machine", "palletizer"])
def test_steps_that_rely_on_the_pace_of_the_last_stay_where_they_should(name: str) -> None:
    """Sixty steps, each within 1e-7 of the machine's size: the motion is that of settled steps, and accelerations are those of its end."""
    m = model(name)
    exact, quick = _driven(m, 0.0), _driven(m, 1e4)
    size = max(1.0, float(np.abs(exact[0]).max()))
    assert 0.0 < float(np.abs(quick[1] - exact[1]).max()) < 60 * 1e-7 * size  # not the same: they did end earlier
    assert float(np.abs(quick[0] - exact[0]).max()) < 60 * 2e-3 * 60 * 1e-7 * size
    u = moving(m, 17)[2]
    there = m.instant(quick[0], quick[1], u, m.loads(), False).qdd
    assert float(np.abs(quick[2] - there).max()) < 1e3 * 1e-7 * size  # 2/h of a velocity
