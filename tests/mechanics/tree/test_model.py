"""Trees over independent coordinates: accelerations against Pinocchio, derivatives against differences, steps against an integrator."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from strangers.machines import branched_arm, free_machine
from strangers.pinocchio_closed import PinClosed
from strangers.pinocchio_oracle import PinModel
from veridyn.errors import DataError, ModelError
from veridyn.machines.hexapod import truth
from veridyn.machines.parallel import delta, linkage, palletizer
from veridyn.mechanics.integrate import BaseState, Method, integrate
from veridyn.mechanics.tree.model import TreeModel, tree_model
from veridyn.model.elements import coulomb, damper, drive_gain, motor_inertia, spring
from veridyn.model.joint import Body
from veridyn.model.motion import BaseMotion, Motion
from veridyn.model.tree import Tree
from veridyn.spatial.inertia import INERTIAL, from_centre
from veridyn.spatial.rotations import matrix_of

MACHINES = {
    "branched arm": lambda: branched_arm(0),
    "free machine": lambda: free_machine(1),
    "linkage": linkage,
    "palletizer": palletizer,
    "delta": delta,
    "hexapod": truth,
}


def bare(tree: Tree) -> Tree:
    """The same machine without elements, which Pinocchio does not know."""
    inertia = {b.name: [tree.parameters[b.parameter(s)] for s in INERTIAL] for b in tree.bodies if b.real}
    return Tree.build(
        tree.bodies,
        base=tree.base,
        inertia=inertia,
        gravity=tree.gravity,
        loops=tree.loops,
        assembly=tree.assembly,
    )


@cache
def model(name: str, plain: bool = False) -> TreeModel:
    tree = MACHINES[name]()
    return tree_model(bare(tree) if plain else tree, unknown=None)


def moving(m: TreeModel, seed: int, spread: float = 0.15) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A state away from home, and unknown forces."""
    rng, spread = np.random.default_rng(seed), 0.1 * spread if m.tree.name == "hexapod" else spread
    x, v = m.start_of()
    d = np.concatenate([spread * rng.standard_normal(m.f) * m.sizes[m.own], rng.standard_normal(m.f) * m.sizes[m.own]])
    u = rng.standard_normal(m.f)
    at = m.moved(x, v, d, u, m.loads())
    return at.q, at.qd, u


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
    assert m.opening(x) < 1e-12
    expected = PinClosed(m.tree).forward(x, v, m.B @ u)
    np.testing.assert_allclose(at.qdd, expected, rtol=1e-7, atol=1e-7 * np.abs(expected).max())


@pytest.mark.parametrize("name", MACHINES)
def test_derivatives_are_those_of_the_accelerations(name: str) -> None:
    m = model(name)
    x, v, u = moving(m, 7)
    at, eps = m.instant(x, v, u, m.loads()), 1e-6
    for j in range(3 * m.f):
        d, du = np.zeros(2 * m.f), np.zeros(m.f)
        (d if j < 2 * m.f else du)[j % (2 * m.f)] = eps
        a, b = m.moved(x, v, d, u + du, m.loads()), m.moved(x, v, -d, u - du, m.loads())
        for found, ahead, behind in (
            (at.qdd_x[:, j], a.qdd, b.qdd),
            (at.multipliers_x[:, j], a.multipliers, b.multipliers),
            *([(at.qd_z[:, j], a.qd, b.qd)] if j < m.f else []),
            *([(at.R[:, j - m.f], a.qd, b.qd)] if m.f <= j < 2 * m.f else []),
        ):
            scale = 1.0 + np.abs(ahead).max(initial=0.0) + np.abs(found).max(initial=0.0)
            np.testing.assert_allclose(found, (ahead - behind) / (2 * eps), atol=2e-8 * scale)


@pytest.mark.parametrize("name", MACHINES)
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


def small_arm() -> Tree:
    """Two joints with everything that identification knows on a joint."""
    body = from_centre(2.0, [0.3, 0.02, 0.01], np.diag([0.02, 0.05, 0.06]))
    return Tree.build(
        [Body("upper"), Body("lower", "upper")],
        inertia={"upper": body, "lower": body},
        gravity=(0.0, -9.81, 0.0),
        elements=[
            spring("upper", name="k"),
            damper("upper", name="fv"),
            coulomb("lower", name="fs"),
            motor_inertia("lower", name="ia"),
            drive_gain("upper", "current", name="g"),
        ],
    ).with_parameters({"k": 3.0, "fv": 0.4, "fs": 0.7, "ia": 0.1, "g": 2.5})


def test_elements_and_signals_act() -> None:
    """Every force that inverse dynamics asks for, given as input, brings the accelerations back."""
    from veridyn.mechanics.inverse import inverse_dynamics

    tree = small_arm()
    m = tree_model(tree)
    q, qd, qdd = np.array([0.3, -0.5]), np.array([0.8, -1.1]), np.array([2.0, -3.0])
    current = 0.7
    motion = Motion(np.zeros(1), q[None], qd[None], qdd[None], signals={"current": np.array([current])})
    gamma = inverse_dynamics(tree, motion)[0]
    loads = m.loads({"force.upper": gamma[0], "force.lower": gamma[1], "signal.current": current})
    at = m.instant(q, qd, np.zeros(0), loads)
    np.testing.assert_allclose(at.qdd, qdd, rtol=1e-9)


def test_parameters_that_vary_have_exact_derivatives() -> None:
    tree = small_arm()
    names = ("fv", "fs", "ia", tree.parameters.names[9])
    m = tree_model(tree, unknown=(), varying=names)
    q, qd = np.array([0.3, -0.5]), np.array([0.8, -1.1])
    start = m.start_values
    at, eps = m.instant(q, qd, start, m.loads()), 1e-6
    for j in range(len(names)):
        du = eps * np.eye(len(names))[j]
        ahead, behind = m.instant(q, qd, start + du, m.loads()), m.instant(q, qd, start - du, m.loads())
        np.testing.assert_allclose(at.qdd_x[:, 4 + j], (ahead.qdd - behind.qdd) / (2 * eps), atol=1e-7)


def test_many_states_at_once_are_as_one_by_one() -> None:
    m = model("palletizer")
    states = [moving(m, seed, 0.05) for seed in range(4)]
    x, v, u = (np.array(part) for part in zip(*states, strict=True))
    together = m.step(x, v, u, 0.005, m.loads())
    for k, (a, b, c) in enumerate(states):
        alone = m.step(a, b, c, 0.005, m.loads())
        np.testing.assert_array_equal(together.q[k], alone.q)
        np.testing.assert_array_equal(together.F[k], alone.F)


def test_dry_friction_at_standstill_converges() -> None:
    """Friction rounded off at 0.01 rad/s is stiff: Newton's method goes back half the way where it overshoots."""
    m = tree_model(small_arm())
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"unknown": ("elbow",)}, "'elbow' is no coordinate"),
        ({"unknown": ("upper", "upper")}, "named twice"),
        ({"varying": ("fw",)}, "there is no parameter 'fw', nor a load"),
        ({"independents": ("upper",)}, "every coordinate of a machine without loops is independent"),
    ],
)
def test_what_does_not_fit_is_named(change: dict, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        tree_model(small_arm(), **change)


def test_inputs_and_starts_that_do_not_exist_are_named() -> None:
    m = tree_model(small_arm())
    with pytest.raises(DataError, match=r"there is no input 'force\.uper'"):
        m.loads({"force.uper": 1.0})
    with pytest.raises(DataError, match="there is no coordinate 'uper'"):
        m.start_of({"uper": 1.0})
    with pytest.raises(DataError, match="follows from the others"):
        tree_model(linkage()).start_of(rates={linkage().coordinates[1]: 1.0})
