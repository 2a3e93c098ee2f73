"""Prescribed coordinates: forward dynamics by Pinocchio, motions by closed equations, energy balance, derivatives by differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from strangers.pinocchio_oracle import PinModel
from strangers.random_trees import random_motion, random_tree
from veridyn.errors import DataError, ModelError
from veridyn.files.machine.load import parse_machine
from veridyn.files.machine.write import model_text
from veridyn.identify.estimate import identify
from veridyn.identify.regression.sampling import measured_rows
from veridyn.mechanics.system.compiled_run import CompiledRun
from veridyn.mechanics.system.integrate import BaseState, Inputs, Method, integrate
from veridyn.mechanics.tree.dynamics.forward import forward_derivatives, forward_dynamics
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.loops.closure import closed_motion
from veridyn.mechanics.tree.of_machine import machine_of_tree, tree_of
from veridyn.mechanics.tree.recursion.kinematics import energy
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.graph import Body, Loop
from veridyn.model.motion import Motion
from veridyn.model.place import Assembly, Attachment
from veridyn.spatial.rotations import Placement

N = 5
WAVE, SIZE = 4.0, 0.3


def sine(t: float) -> tuple[float, float, float]:
    return SIZE * np.sin(WAVE * t), SIZE * WAVE * np.cos(WAVE * t), -SIZE * WAVE**2 * np.sin(WAVE * t)


@pytest.mark.parametrize("base", ["fixed", "free"])
@pytest.mark.parametrize("seed", range(3))
def test_forward_dynamics_against_pinocchio(seed: int, base: str) -> None:
    """Given q̈ of some coordinates and forces of the others, the rest is what Pinocchio's inverse dynamics says; both engines."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, bodies=6, base=base, kinds=("turning", "sliding"))
    tree = tree.with_prescribed(tree.coordinates[1::2])
    motion = random_motion(rng, tree, N, wrenches=False)
    gamma = PinModel(tree).inverse_dynamics(motion)
    if base == "free":
        motion = replace(motion, wrenches={tree.bodies[0].name: gamma[:, :6]})
    forces = gamma[:, -tree.n :].copy()
    forces[:, list(tree.held)] = np.nan
    qdd = np.full_like(motion.qdd, 7.0)
    qdd[:, list(tree.held)] = motion.qdd[:, list(tree.held)]
    for engine in ("numpy", "compiled"):
        got = forward_dynamics(tree, replace(motion, forces=forces, qdd=qdd), engine=engine)
        assert got.qdd == pytest.approx(motion.qdd, rel=1e-8, abs=1e-8)
        assert got.forces == pytest.approx(gamma[:, -tree.n :], rel=1e-8, abs=1e-8)
        if base == "free":
            assert got.base.acceleration == pytest.approx(motion.base.acceleration, rel=1e-8, abs=1e-8)


def cart() -> Tree:
    """A pendulum of 0.4 kg and 0.7 m (a point) on a cart of 3 kg along x; gravity along −z."""
    slide = Placement(np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]))  # its z is the ground's x
    pin = Placement(np.array([[0.0, 1.0, 0.0], [0.0, 0.0, -1.0], [-1.0, 0.0, 0.0]]).T)
    m, length = 0.4, 0.7
    bob = [0.0, 0.0, 0.0, m * length**2, 0.0, m * length**2, m * length, 0.0, 0.0, m]
    bodies = [Body("x", joint="sliding", placement=slide), Body("swing", "x", placement=pin, actuated=False)]
    return Tree.build(bodies, inertia={"x": [0.0] * 9 + [3.0], "swing": bob}, prescribed=["x"])


@pytest.mark.parametrize("method", [Method(rtol=1e-11, atol=1e-12), Method("RK4", 0.001)])
def test_a_pendulum_on_a_driven_cart(method: Method) -> None:
    """The motion of the pendulum by its own equation, its geometry read from poses; the force of the cart by Newton's law."""
    tree = cart()
    t = np.linspace(0.0, 1.5, 31)
    start = sine(0.0)
    got = integrate(
        tree, t, [start[0], 0.4], [start[1], 0.2], Inputs(prescribed=lambda s: {"x": sine(s)}), method=method
    )
    m, length, g = 0.4, 0.7, 9.81
    way = bob_way(tree)

    def rate(time: float, y: np.ndarray) -> list[float]:
        down = np.array([0.0, 0.0, -g]) - np.array([sine(time)[2], 0.0, 0.0])  # gravity as the cart feels it
        _, across = way(y[0])
        return [y[1], float(down @ across) / length]

    exact = solve_ivp(rate, (0.0, 1.5), [0.4, 0.2], "DOP853", t, rtol=1e-12, atol=1e-13)
    assert got.motion.q[:, 1] == pytest.approx(exact.y[0], abs=1e-9)
    assert got.motion.q[:, 0] == pytest.approx([sine(s)[0] for s in t], abs=1e-15)
    assert got.motion.qdd[:, 0] == pytest.approx([sine(s)[2] for s in t], abs=1e-15)
    for k, time in enumerate(t):
        out, across = way(exact.y[0, k])
        swing = rate(time, exact.y[:, k])[1]
        bob = sine(time)[2] + length * (swing * across[0] - exact.y[1, k] ** 2 * out[0])
        assert got.motion.forces[k, 0] == pytest.approx(3.0 * sine(time)[2] + m * bob, abs=1e-7)
        assert got.motion.forces[k, 1] == 0.0


def bob_way(tree: Tree):
    """Directions out along the pendulum and across it, in the ground's axes, as functions of its angle; from its placements."""
    R = tree.bodies[0].placement.rotation @ tree.bodies[1].placement.rotation

    def way(angle: float) -> tuple[np.ndarray, np.ndarray]:
        return R @ [np.cos(angle), np.sin(angle), 0.0], R @ [-np.sin(angle), np.cos(angle), 0.0]

    return way


def closed(prescribed: tuple[str, ...] = ("crank",)) -> Tree:
    """A four-bar whose coupler carries a driven link: two degrees of freedom, the crank prescribed."""

    def at(x: float) -> Placement:
        return Placement(np.eye(3), np.array([x, 0.0, 0.0]))

    bodies = [
        Body("crank"),
        Body("coupler", "crank", placement=at(0.3), actuated=False),
        Body("rocker", placement=at(0.8), actuated=False),
        Body("arm", "coupler", placement=at(0.4)),
    ]
    pin = Loop("pin", "turning", Attachment("coupler", at(0.7)), Attachment("rocker", at(0.6)))
    bar = [0.0, 0.0, 0.0, 0.02, 0.0, 0.02, 0.1, 0.0, 0.0, 1.0]
    return Tree.build(
        bodies,
        gravity=(0.0, -9.81, 0.0),
        inertia={b.name: bar for b in bodies},
        loops=[pin],
        assembly=Assembly(hold={"crank": 1.2}, guess={"coupler": -0.8, "rocker": 1.6}),
        prescribed=prescribed,
    )


@pytest.mark.parametrize("prescribed", [("crank",), ("arm",), ("crank", "arm")])
def test_forward_dynamics_of_a_closed_machine(prescribed: tuple[str, ...]) -> None:
    """Inverse dynamics of closed machines, checked against Pinocchio elsewhere, is undone with either coordinate, or both, prescribed."""
    tree = closed(prescribed)
    rng = np.random.default_rng(1)
    given = 1.2 + 0.2 * rng.normal(size=(N, 1)), rng.normal(size=(N, 1))
    motion = closed_motion(tree, np.arange(float(N)), np.hstack(given), *rng.normal(size=(2, N, 2)), path=False)
    forces = np.zeros_like(motion.q)
    forces[:, [0, 3]] = inverse_dynamics(tree, motion)
    asked = forces.copy()
    asked[:, list(tree.held)] = np.nan
    qdd = np.zeros_like(motion.qdd)
    qdd[:, list(tree.held)] = motion.qdd[:, list(tree.held)]
    for engine in ("numpy", "compiled"):
        got = forward_dynamics(tree, replace(motion, forces=asked, qdd=qdd), engine=engine)
        assert got.qdd == pytest.approx(motion.qdd, abs=1e-8)
        assert got.forces == pytest.approx(forces, abs=1e-8)


@pytest.mark.parametrize("method", [Method(), Method("RK4", 0.001)])
def test_a_closed_machine_gains_the_work_of_the_prescribed_force(method: Method) -> None:
    """∫ Γ q̇ dt of the prescribed crank is the energy the machine gains; the arm swings freely."""
    tree = closed()
    t = np.linspace(0.0, 1.0, 401)

    def crank(time: float) -> tuple[float, float, float]:
        q, qd, qdd = sine(time)
        return 1.2 + q, qd, qdd

    first = closed_motion(tree, [0.0], [[crank(0.0)[0], 0.1]], [[crank(0.0)[1], 0.0]], [[0.0, 0.0]])
    got = integrate(tree, t, first.q[0], first.qd[0], Inputs(prescribed=lambda s: {"crank": crank(s)}), method=method)
    assert got.motion.q[:, 0] == pytest.approx([crank(s)[0] for s in t], abs=1e-14)
    total = energy(tree, got.motion).total
    power = got.motion.forces[:, 0] * got.motion.qd[:, 0]
    work = np.concatenate([[0.0], np.cumsum((power[1:] + power[:-1]) / 2 * np.diff(t))])
    assert np.abs(work).max() > 0.3
    assert total - total[0] == pytest.approx(work, abs=1e-4)  # the trapezoidal rule's error


def test_a_free_base_reacts_to_a_prescribed_joint() -> None:
    """Without gravity and wrenches the momentum of a free machine stays zero, whatever its prescribed joint does."""
    bodies = [
        Body("hull", None, "fixed"),
        Body("wheel", "hull", placement=Placement(np.eye(3), np.array([0.2, 0.1, 0.0]))),
    ]
    ten = [1.0, 0.0, 0.0, 1.0, 0.0, 2.0, 0.0, 0.0, 0.0, 5.0]
    wheel = [0.2, 0.0, 0.0, 0.2, 0.0, 0.3, 0.0, 0.0, 0.0, 1.0]
    tree = Tree.build(
        bodies, base="free", gravity=(0, 0, 0), inertia={"hull": ten, "wheel": wheel}, prescribed=["wheel"]
    )
    t = np.linspace(0.0, 1.0, 21)
    spin = 0.3 / (2.0 + 0.3 + 5.0 * 1.0 / 6.0 * 0.05)  # inertia of the wheel over that of all about their common centre
    begin = sine(0.0)
    base = BaseState(
        omega=(0.0, 0.0, -spin * begin[1]), velocity=(-spin * begin[1] * 0.1 / 6.0, spin * begin[1] * 0.2 / 6.0, 0.0)
    )
    got = integrate(tree, t, [begin[0]], [begin[1]], Inputs(prescribed=lambda s: {"wheel": sine(s)}), base=base)
    assert got.motion.base.omega[:, 2] == pytest.approx([-spin * sine(s)[1] for s in t], abs=1e-8)
    assert got.motion.forces[:, 0] == pytest.approx([0.3 * (1.0 - spin) * sine(s)[2] for s in t], abs=1e-7)


def test_derivatives_are_those_of_finite_differences() -> None:
    rng = np.random.default_rng(4)
    tree = random_tree(rng, bodies=4, branched=False, kinds=("turning",))
    tree = tree.with_prescribed(["q2"])
    motion = replace(random_motion(rng, tree, N, wrenches=False), forces=rng.normal(size=(N, 4)))
    exact = forward_derivatives(tree, motion)
    h = 1e-6
    for name, slope in (("q", exact.by_q), ("qd", exact.by_qd)):
        for k in range(4):
            up, down = (
                forward_dynamics(tree, replace(motion, **{name: getattr(motion, name) + way * h * np.eye(4)[k]})).qdd
                for way in (1.0, -1.0)
            )
            assert slope[:, :, k] == pytest.approx((up - down) / (2 * h), rel=1e-5, abs=1e-4)
    for k in range(4):
        name = "qdd" if k == 1 else "forces"
        up = forward_dynamics(tree, replace(motion, **{name: getattr(motion, name) + np.eye(4)[k]})).qdd
        assert exact.by_drive[:, :, k] == pytest.approx(up - forward_dynamics(tree, motion).qdd, rel=1e-6, abs=1e-7)


def test_a_massless_prescribed_joint_can_be_simulated() -> None:
    """A steered hub without mass: no force gives it a finite acceleration, and none is asked to."""
    bodies = [Body("arm"), Body("hub", "arm", placement=Placement(np.eye(3), np.array([0.5, 0.0, 0.0])), real=False)]
    ten = [0.0, 0.0, 0.0, 0.1, 0.0, 0.1, 0.2, 0.0, 0.0, 1.0]
    tree = Tree.build(bodies, inertia={"arm": ten})
    with pytest.raises(ModelError, match="moves no mass"):
        integrate(tree, [0.0, 0.1], [0.0, 0.0], [0.0, 0.0])
    with pytest.raises(ModelError, match="passive"):
        Tree.build([Body("a", actuated=False)], prescribed=["a"])
    got = integrate(
        tree.with_prescribed(["hub"]),
        [0.0, 0.1],
        [0.0, 0.0],
        [0.0, sine(0.0)[1]],
        Inputs(prescribed=lambda s: {"hub": sine(s)}),
    )
    assert np.isfinite(got.motion.forces).all()


def test_a_row_is_used_where_its_force_is_measured() -> None:
    """Without the force of the cart the pendulum's row alone is fitted, and a note says so; with it both rows are."""
    tree = cart()
    rng = np.random.default_rng(0)
    t = np.linspace(0.0, 3.0, 300)
    q, qd, qdd = rng.normal(size=(3, 300, 2))
    motion = Motion(t, q, qd, qdd)
    gamma = PinModel(tree).inverse_dynamics(motion)
    known = replace(motion, forces=np.column_stack([gamma[:, 0] + 1e-3 * rng.normal(size=300), np.zeros(300)]))
    assert [r.row for r in identify(machine_of_tree(tree), known, "ols").rows] == ["x", "swing"]
    blind = replace(known, forces=np.full_like(gamma, np.nan))
    rows, notes = measured_rows(tree, [blind], "all")
    assert rows == ["swing"]
    assert notes == ("row 'x' is not used: the coordinate is prescribed, and its force is not measured",)
    with pytest.raises(DataError, match="no force of it is measured"):
        identify(machine_of_tree(tree), blind, rows=["x"])


def test_faults_and_files() -> None:
    tree = cart()
    again = tree_of(parse_machine(model_text(machine_of_tree(tree)), source="x"))
    assert again.prescribed == ("x",)
    with pytest.raises(ModelError, match=r"there is no coordinate 'y' to prescribe"):
        parse_machine(model_text(machine_of_tree(tree)).replace("prescribed: [x]", "prescribed: [y]"), source="x")
    with pytest.raises(DataError, match="its motion is not given"):
        integrate(tree, [0.0, 1.0], [0.0, 0.0], [0.0, 0.0])
    with pytest.raises(DataError, match="it is not prescribed"):
        integrate(
            tree.with_prescribed(()), [0.0, 1.0], [0.0, 0.0], [0.0, 0.0], Inputs(prescribed=lambda s: {"x": sine(s)})
        )
    with pytest.raises(DataError, match="start of the prescribed coordinate 'x'"):
        integrate(tree, [0.0, 1.0], [0.0, 0.0], [0.0, 0.0], Inputs(prescribed=lambda s: {"x": sine(s)}))
    with pytest.raises(ModelError, match="does not know prescribed coordinates"):
        CompiledRun(tree)
