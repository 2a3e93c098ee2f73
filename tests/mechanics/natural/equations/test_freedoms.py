"""Redundant constraints are left out by name and the motion does not notice; singular poses and contradictions are still refused."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from strangers.natural_mechanisms import fourbar, parallelogram, random_mechanism, rotation, turning_fourbar
from veridyn.errors import DataError, ModelError, ModelWarning, SimulationError
from veridyn.mechanics.natural.description.mechanism import Mechanism
from veridyn.mechanics.natural.description.of_machine import mechanism_of
from veridyn.mechanics.natural.equations.dynamics import NaturalState, solve_accelerations
from veridyn.mechanics.natural.equations.freedoms import (
    Reduced,
    freedoms_of,
    independent_rows,
    mobility,
    pose_of_tree,
    refuse_redundant,
    subset,
)
from veridyn.mechanics.natural.equations.geometry import compact
from veridyn.mechanics.natural.equations.position import position, start_of, velocity
from veridyn.mechanics.natural.equations.system import NaturalSystem, system_of
from veridyn.mechanics.natural.steps.integrate import NaturalMethod, integrate_natural
from veridyn.mechanics.natural.steps.minimal import minimal
from veridyn.mechanics.tree.dynamics.forward import forward_dynamics
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import Element
from veridyn.model.link import Joint, Link
from veridyn.model.machine import Machine
from veridyn.model.motion import BaseMotion, Motion
from veridyn.model.place import Attachment, Marker
from veridyn.model.point_parts import MechanismJoint, Point, RigidBody, UnitVector, uniform_bar
from veridyn.model.sensor import Sensor
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import Placement, rot_x, rot_y, rot_z, rotation_of, rotation_to_axis

NONE = np.zeros(0)


def test_the_four_bar_has_one_degree_of_freedom() -> None:
    system = system_of(fourbar())
    found = refuse_redundant(system, position(system))
    assert (found.rank, found.degrees_of_freedom, found.redundant) == (4, 1, ())
    assert found.gap[0] > 0.1


def test_a_parallelogram_names_its_redundant_crank() -> None:
    system = system_of(parallelogram())
    q = position(system)
    found = mobility(system, q)
    assert found.degrees_of_freedom == 1
    assert len(found.redundant) == 1
    assert found.gap[1] < 1e-12 < 1e-2 < found.gap[0]
    name = found.redundant[0]
    with pytest.raises(ModelError, match=r"(?s)the constraint '.*' is redundant at this pose.*it follows from '"):
        refuse_redundant(system, q)
    assert any("crank" in other for other in (name, *found.among[0]))


def test_a_joint_given_twice() -> None:
    """A turning joint between bodies that already share its point and vector: its five rows say nothing new."""
    points = [Point("O", (0, 0, 0), True), Point("P", (1, 0, 0))]
    vectors = [UnitVector("u", (0, 0, 1), True), UnitVector("v", (0, 1, 0))]
    arm = RigidBody(
        "arm", {"O": (0, 0, 0), "P": (1, 0, 0)}, {"u": (0, 0, 1), "v": (0, 1, 0)}, 1.0, (0.5, 0, 0), np.eye(3)
    )
    joint = MechanismJoint(
        "pin", "turning", Marker("ground", (0, 0, 0), (0, 0, 1)), Marker("arm", (0, 0, 0), (0, 0, 1))
    )
    once = system_of(Mechanism.build(points, [arm], vectors=vectors))
    assert mobility(once, once.guess).degrees_of_freedom == 1
    twice = Mechanism.build(
        [points[0], Point("P", (1, 0, 0)), Point("R", (0, 0, 1))],
        [
            RigidBody(
                "arm", {"O": (0, 0, 0), "P": (1, 0, 0), "R": (0, 0, 1)}, {"v": (0, 1, 0)}, 1.0, (0.5, 0, 0), np.eye(3)
            )
        ],
        vectors=[vectors[1]],
        joints=[joint, MechanismJoint("again", "turning", joint.a, joint.b)],
    )
    system = system_of(twice)
    assert mobility(system, system.guess).degrees_of_freedom == 1
    assert mobility(system, system.guess).redundant == ("again: axis beside", "again: axis above")


def test_rows_by_number_are_the_rows() -> None:
    """Values, Jacobian, its rate and the curvature of some rows, against those rows of the whole table."""
    for seed in (0, 1):
        rng = np.random.default_rng(seed)
        system = system_of(random_mechanism(rng, 2 + seed).mechanism)
        c, q, qd = system.constraints, system.guess + 0.1 * rng.normal(size=system.n), rng.normal(size=system.n)
        rows = np.sort(rng.choice(c.m, c.m - 4, replace=False))
        some = subset(c, rows)
        assert some.names == tuple(c.names[i] for i in rows)
        weights = np.zeros(c.m)
        weights[rows] = rng.normal(size=len(rows))
        assert np.array_equal(some.values(q), c.values(q)[rows])
        assert np.array_equal(some.jacobian(q), c.jacobian(q)[rows])
        assert np.allclose(some.jacobian_rate(q, qd), c.jacobian_rate(q, qd)[rows], atol=1e-14)
        assert np.allclose(some.curvature(q, weights[rows]), c.curvature(q, weights), atol=1e-13)
        assert np.array_equal(some.pattern(), c.pattern()[rows])


@pytest.mark.parametrize("tilted", [False, True])
def test_a_four_bar_of_turning_joints_in_space(tilted: bool) -> None:
    """φ(4 s) = 2.53083926 rad (FACTS 6), and every constraint, also those left out, stays closed."""
    system = system_of(turning_fourbar(rotation(np.random.default_rng(0), 3) if tilted else None))
    q, qd = start_of(system, {"phi": np.pi / 3}, {"phi": 1.0})
    with pytest.warns(ModelWarning, match="some constraints say nothing new") as told:
        model = minimal(system, q, ("phi",))
    assert isinstance(model.system, Reduced) and model.f == 1
    assert all(f"'{name}'" in str(told[0].message) for name in model.system.left_out)
    assert len(model.system.left_out) == 3  # by Grübler: 18 − 20 = −2, and it moves
    assert minimal(model.system, q, ("phi",)).system is model.system  # told once
    at, z, zd, loads = q, q[model.z], qd[model.z], model.loads()
    for _ in range(800):
        after = model.step(at, z, zd, NONE, 5e-3, loads, derivative=False)
        at, z, zd = after.q, after.q[model.z], after.qd[model.z]
    assert z[0] == pytest.approx(2.53083926, abs=5e-5)
    assert np.abs(system.constraints.values(at)).max() < 1e-9
    # what no equation tells makes no force, and the kept multipliers make all of it
    for pose in model.system.poses:
        free = model.system.undetermined(pose)
        assert free.shape == (39, 3)
        assert np.abs(system.constraints.jacobian(pose).T @ free).max() < 1e-12


def test_a_parallelogram_goes_on_without_one_crank() -> None:
    system = system_of(parallelogram())
    q = position(system)
    with pytest.warns(ModelWarning):
        kept = independent_rows(system, q)
    assert isinstance(kept, Reduced) and len(kept.left_out) == 1
    flat = position(system, guess=np.array([1.0, 0.0, 2.0, 0.0, 3.0, 0.0]))
    with pytest.raises(ModelError, match="is redundant at this pose"):  # folded flat it can leave in two ways
        independent_rows(system, flat)
    with pytest.warns(ModelWarning):
        model = minimal(system, q, ("P.x",))
    with pytest.raises(SimulationError, match=r"(?s)do not determine.*lose rank here and need one that was left out"):
        model.step(flat, flat[model.z], np.array([1.0]), NONE, 1e-2, model.loads())


def test_contradictions_are_still_refused_by_name() -> None:
    machine = parallelogram()
    longer = replace(
        machine, bodies=(*machine.bodies[:2], uniform_bar("crankC", "C", "R", 6.0, 1.0), machine.bodies[3])
    )
    system = system_of(longer)
    with pytest.raises(ModelError, match="contradict"):
        position(system)


def test_a_dead_centre_is_no_redundancy() -> None:
    """Two bars in line: a row follows from the other there, and nowhere else."""
    machine = Mechanism.build(
        [Point("O", (0, 0), True), Point("B", (2, 0), True), Point("P", (1, 0))],
        [uniform_bar("one", "O", "P", 1.0, 1.0)],
        joints=[MechanismJoint("rope", "distance", "P", "B", 1.0)],
    )
    with pytest.raises(ModelError, match="is redundant at this pose"):
        minimal(system_of(machine), np.array([1.0, 0.0]))


Array = NDArray[np.float64]
CART, BOB, LENGTH, G = 3.0, 2.0, 0.7, 9.81
WAVE, SIZE = 5.0, 0.2


def end(body: str, at: tuple[float, float, float] = (0.0, 0.0, 0.0), R: Array | None = None) -> Attachment:
    return Attachment(body, Placement(np.eye(3) if R is None else R, np.array(at)))


@cache
def crane() -> Machine:
    """A bob under a cart whose place along x is prescribed."""
    across = rotation_to_axis([1.0, 0.0, 0.0])
    about = rotation_to_axis([0.0, -1.0, 0.0])
    return Machine.build(
        [
            Link(name="cart", inertia=from_centre(CART, np.zeros(3), 0.1 * np.eye(3))),
            Link(name="bob", inertia=from_centre(BOB, np.array([0.0, 0.0, -LENGTH]), np.zeros((3, 3)))),
        ],
        [
            Joint(name="way", kind="sliding", a=end("ground", R=across), b=end("cart", R=across)),
            Joint(name="swing", kind="turning", a=end("cart", R=about), b=end("bob", R=about)),
        ],
        name="crane",
        gravity=[0.0, 0.0, -G],
        sensors=[Sensor("encoder", "coordinate", "swing", 1e-3)],
        prescribed=["way"],
        formulation="natural",
    )


def led(t: float) -> tuple[float, float, float]:
    return SIZE * np.sin(WAVE * t), SIZE * WAVE * np.cos(WAVE * t), -SIZE * WAVE**2 * np.sin(WAVE * t)


def swung(angle: float, rate: float, a: float) -> tuple[float, float]:
    """θ̈ and the force on the cart, in closed form; θ counts from below towards +x."""
    bend = -(G * np.sin(angle) + a * np.cos(angle)) / LENGTH
    return bend, (CART + BOB) * a + BOB * LENGTH * (bend * np.cos(angle) - rate**2 * np.sin(angle))


def test_a_prescribed_cart_needs_the_force_of_the_closed_form() -> None:
    system = system_of(mechanism_of(crane()))
    for t, angle, rate in ((0.0, 0.3, 0.5), (0.1, -1.2, 2.0), (0.27, 1.4, -3.0)):
        at = system.holding({"way": led(t)})
        q = position(at, {"swing": angle})
        qd = velocity(at, q, {"swing": rate})
        qdd, lam = solve_accelerations(at, q, qd)
        swing, way = system.mechanism.index("swing"), system.mechanism.index("way")
        bend, force = swung(angle, rate, led(t)[2])
        assert (q[way], qd[way], qdd[way]) == pytest.approx(led(t))
        assert qdd[swing] == pytest.approx(bend, rel=1e-9)
        assert -lam[system.constraints.held[0]] == pytest.approx(force, rel=1e-9)


def test_index_3_steps_follow_a_prescribed_cart() -> None:
    """Against the closed form integrated by RK4 at a fortieth of the step: the error falls as its square."""
    system = system_of(mechanism_of(crane()))
    swing = system.mechanism.index("swing")
    x = np.array([0.3, 0.0])
    for k in range(4000):
        t, h = k * 1e-4, 1e-4

        def f(t: float, x: Array) -> Array:
            return np.array([x[1], swung(x[0], x[1], led(t)[2])[0]])

        a = f(t, x)
        b = f(t + h / 2, x + h / 2 * a)
        c = f(t + h / 2, x + h / 2 * b)
        x = x + h / 6 * (a + 2 * b + 2 * c + f(t + h, x + h * c))
    at = system.holding({"way": led(0.0)})
    q = position(at, {"swing": 0.3})
    qd = velocity(at, q, {"swing": 0.0})
    start = NaturalState(0.0, q, qd, *solve_accelerations(at, q, qd))
    errors = []
    for step in (8e-3, 4e-3):
        how = NaturalMethod(step=step)
        found = integrate_natural(system, [0.0, 0.4], start, method=how, prescribed=lambda t: {"way": led(t)})
        assert found.column("way")[-1] == pytest.approx(led(0.4)[0], abs=1e-9)
        errors.append(abs(found.q[-1, swing] - x[0]))
    assert errors[0] < 1e-3 and errors[0] / errors[1] == pytest.approx(4.0, rel=0.1)


@cache
def flier() -> Machine:
    """A body in space with an arm on a ball joint; a spring and a damper act on combinations of the arm's pitch and roll."""
    on = {"arm_pitch": 1.3, "arm_roll": -0.4}
    rng = np.random.default_rng(3)
    tilted = rot_z(0.2) @ rot_y(-0.1) @ rot_x(0.3)
    return Machine.build(
        [
            Link(name="hull", inertia=from_centre(5.0, rng.normal(size=3) * 0.1, np.diag([0.5, 0.7, 0.9]))),
            Link(name="arm", inertia=from_centre(2.0, np.array([0.3, 0.05, -0.02]), np.diag([0.02, 0.1, 0.11]))),
        ],
        [
            Joint(name="base", kind="floating", a="ground", b="hull"),
            Joint(name="arm", kind="spherical", a=end("hull", (0.4, 0.1, 0.2), tilted), b=end("arm")),
        ],
        name="flier",
        elements=[
            Element(kind="spring", on=on, value=40.0, name="stiffness", constants={"rest": 0.1}),
            Element(kind="damper", on=on, value=3.0, name="damping"),
        ],
    )


def test_springs_on_combinations_and_pitch_are_those_of_the_tree() -> None:
    m = flier()
    tree, rng = tree_of(m), np.random.default_rng(4)
    mechanism = mechanism_of(m.with_formulation("natural"))
    for _ in range(3):
        q, qd = rng.uniform(-0.7, 0.7, (1, 3)), rng.normal(size=(1, 3))
        e = rng.normal(size=4)
        e /= np.linalg.norm(e)
        V, w, place = rng.normal(size=3), rng.normal(size=3), rng.normal(size=3)
        base = BaseMotion(
            w[None], np.zeros((1, 3)), np.zeros((1, 3)), V[None], position=place[None], quaternion=e[None]
        )
        expected = forward_dynamics(tree, Motion(np.zeros(1), q, qd, 0.0 * q, base, 0.0 * q), engine="numpy")
        assert expected.base is not None
        for system in (system_of(mechanism), system_of(compact(mechanism))):
            freedoms = freedoms_of(system, tree, ("arm_roll", "arm_pitch"))
            R = rotation_of(e)
            x = pose_of_tree(system, tree, q[0], place, R)
            assert freedoms.attitude(x) == pytest.approx(R, abs=1e-12)
            assert freedoms.position(x) == pytest.approx(place, abs=1e-12)
            named = [tree.coordinates.index(c) for c in ("arm_roll", "arm_pitch", "arm_yaw")]
            xd = _rates(system, tree, q[0], qd[0], place, R, V, w)
            xdd, _ = solve_accelerations(system, x, xd)
            index = [system.mechanism.index(c) for c in ("arm_roll", "arm_pitch")]
            assert xdd[index] == pytest.approx(expected.qdd[0, named[:2]], rel=1e-9, abs=1e-9)
            zdd = freedoms.rows(x) @ xdd + freedoms.bend(xd, xd)
            linear = R @ expected.base.acceleration[0] + m.gravity
            assert zdd[:6] == pytest.approx([*linear, *expected.base.omega_dot[0]], rel=1e-9, abs=1e-9)


def _rates(system: NaturalSystem, tree: Tree, q: Array, qd: Array, place: Array, R: Array, V: Array, w: Array) -> Array:
    """q̇ in natural coordinates by central differences of the pose."""
    h = 1e-6

    def at(sign: float) -> Array:
        W = sign * h * (R @ w)
        angle = np.linalg.norm(W)
        K = np.array([[0.0, -W[2], W[1]], [W[2], 0.0, -W[0]], [-W[1], W[0], 0.0]]) / angle
        turned = np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * K @ K
        return pose_of_tree(system, tree, q + sign * h * qd, place + sign * h * (R @ V), turned @ R)

    xd = (at(1.0) - at(-1.0)) / (2.0 * h)
    J = system.constraints.jacobian(pose_of_tree(system, tree, q, place, R))
    return xd - np.linalg.pinv(J) @ (J @ xd)


def test_refusals_say_what_and_where() -> None:
    system = system_of(mechanism_of(crane()))
    with pytest.raises(DataError, match="'swing' is not prescribed"):
        system.holding({"swing": 0.0})
    with pytest.raises(DataError, match="no motion of it"):
        system.holding({"way": [0.0, 1.0]})
    at = system.holding({"way": 0.0})
    q = position(at, {"swing": 0.3})
    start = NaturalState(0.0, q, np.zeros(system.n), *solve_accelerations(at, q, np.zeros(system.n)))
    with pytest.raises(ModelError, match="explicit carries no tyres and no prescribed coordinates"):
        integrate_natural(system, [0.0, 0.1], start, method=NaturalMethod(formulation="explicit"))
    with pytest.raises(ModelError, match="no coordinate 'arm_yaw'"):
        freedoms_of(system_of(mechanism_of(flier().with_formulation("natural"))), tree_of(flier()), ("arm_yaw",))
    tree = tree_of(flier())
    broken = system_of(mechanism_of(flier().with_formulation("natural")))
    with pytest.raises(DataError, match="not closed"):
        pose_of_tree(broken, tree, np.array([0.1, 0.2, 0.3]), np.zeros(3), 1.1 * np.eye(3))
