"""Reactions, forces and accelerations of trees: Pinocchio's joint forces, equilibrium, derivatives by differences."""

from __future__ import annotations

import numpy as np
import pytest

from strangers.pinocchio_closed import PinClosed
from strangers.pinocchio_oracle import PinModel
from strangers.random_trees import random_tree
from strangers.tree_models import model, moving, small_arm, stateful_model
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.quantity import Quantity
from veridyn.mechanics.tree.readout import tree_readout
from veridyn.mechanics.tree.recursion.kinematics import body_pose
from veridyn.mechanics.tree.steps.model import TreeModel, tree_model
from veridyn.mechanics.tree.tree import Tree
from veridyn.mechanics.tree.virtual import TreeQuantities
from veridyn.model.elements.element import Marker, damper, strut
from veridyn.model.graph import Body
from veridyn.model.load import Force, Torque
from veridyn.model.motion import BaseMotion, Motion
from veridyn.model.sensor import Sensor
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import Placement, matrix_of


@pytest.mark.parametrize("base", ["fixed", "free"])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_reactions_of_open_trees_are_pinocchio_s(seed: int, base: str) -> None:
    """data.f after rnea, at every joint: force and moment in the ground's axes, without what acts along the joint's own axis."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, bodies=5, base=base, kinds=("turning", "sliding"))
    m = tree_model(tree, unknown=())
    x, v = m.start_of()
    at = m.moved(x, v, 0.4 * rng.standard_normal(2 * m.f), np.zeros(0), m.loads())
    first = 1 if base == "free" else 0
    found = TreeQuantities(m, [Quantity("joint", j) for j in range(first, len(tree.bodies))]).at(
        at.q, at.qd, at, m.loads()
    )
    f = PinWrenches(tree).at(at.q, at.qd, at.qdd)
    for k, j in enumerate(range(first, len(tree.bodies))):
        R, _ = body_pose(tree, at.q[None, -tree.n :], tree.bodies[j].name)
        R = matrix_of(at.q[3:7]) @ R[0] if base == "free" else R[0]
        own = np.concatenate(f[j])
        if tree.sigma[j] < 2:
            own[5 if tree.sigma[j] == 0 else 2] = 0.0
        expected = np.concatenate([R @ own[:3], R @ own[3:]])
        np.testing.assert_allclose(found.y[6 * k : 6 * k + 6], expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


class PinWrenches:
    """What Pinocchio says each joint carries, in the frame of its body, as force and moment."""

    def __init__(self, tree: Tree) -> None:
        self.tree, self.oracle = tree, PinModel(tree)

    def at(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        tree, n, base = self.tree, self.tree.n, None
        if tree.base == "free":
            R = matrix_of(q[3:7])
            base = BaseMotion(
                qd[None, 3:6], qdd[None, 3:6], (R.T @ (qdd[:3] - tree.gravity))[None], (R.T @ qd[:3])[None]
            )
        motion = Motion(np.zeros(1), q[None, -n:], qd[None, -n:], qdd[None, -n:], base)
        self.oracle.inverse_dynamics(motion)
        return [self._wrench(j) for j in range(len(tree.bodies))]

    def _wrench(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        f = self.oracle.data.f[self.oracle.joint[self.tree.bodies[j].name]]
        return f.linear.copy(), f.angular.copy()


def loaded() -> TreeModel:
    """Two links with a force, a torque, a spring and damper between places, a drive, and an unknown mass."""
    body = from_centre(2.0, [0.3, 0.02, 0.01], np.diag([0.02, 0.05, 0.06]))
    place = Placement(np.array([[1.0, 0, 0], [0, 0, -1.0], [0, 1.0, 0]]), np.array([0.5, 0.1, 0.0]))
    tree = Tree.build(
        [Body("upper"), Body("lower", "upper", placement=place)],
        inertia={"upper": body, "lower": body},
        elements=[
            strut("spring", Marker("ground", (0.0, 0.6, 0.2)), Marker("lower", (0.4, 0.0, 0.1)), 80.0, "k", rest=0.3),
            strut("damper", Marker("upper", (0.1, 0.2, 0.0)), Marker("lower", (0.2, 0.0, 0.1)), 5.0, "c"),
            damper("upper", 0.4, "fv"),
        ],
        loads=[
            Force("push", Marker("lower", (0.5, 0.1, 0.0)), (3.0, -2.0, 5.0)),
            Torque("twist", "lower", (0.4, 0.1, -0.6)),
        ],
    )
    return tree_model(tree, unknown=None, varying=("M_lower", "push.x", "k"))


def test_reactions_hold_a_loaded_machine_in_balance() -> None:
    """Of the whole machine: the ground's joint, gravity, loads and the spring's end make the rate of momentum, by differences."""
    m = loaded()
    x, v, u = np.array([0.4, -0.7]), np.array([0.9, 1.3]), np.concatenate([[0.5, -0.8], m.start_values])
    at = m.instant(x, v, u, m.loads())
    y = TreeQuantities(m, [Quantity("joint", 0), Quantity("element", 0)]).at(x, v, at, m.loads()).y
    h, tree = 1e-5, m.tree

    def momentum(t: float) -> tuple[np.ndarray, np.ndarray]:
        """Linear, and angular about the ground's origin, from poses alone, by central differences."""
        total = [np.zeros(3), np.zeros(3)]
        for b in tree.bodies:
            ahead, behind = (body_pose(tree, (x + s * v + 0.5 * s**2 * at.qdd)[None], b.name) for s in (t + h, t - h))
            R, p = (0.5 * (ahead[k][0] + behind[k][0]) for k in (0, 1))
            turn = (ahead[0][0] - behind[0][0]) / (2 * h) @ R.T
            w = np.array([turn[2, 1], turn[0, 2], turn[1, 0]])
            c = R @ [0.3, 0.02, 0.01]
            vc = (ahead[1][0] - behind[1][0]) / (2 * h) + np.cross(w, c)
            total[0] += 2.0 * vc
            total[1] += 2.0 * np.cross(p + c, vc) + R @ np.diag([0.02, 0.05, 0.06]) @ R.T @ w
        return total[0], total[1]

    step = 1e-3
    rate = [(a - b) / (2 * step) for a, b in zip(momentum(step), momentum(-step), strict=True)]
    places = {b.name: body_pose(tree, x[None], b.name) for b in tree.bodies}
    lower = places["lower"]
    spot = lower[1][0] + lower[0][0] @ [0.5, 0.1, 0.0]
    end = lower[1][0] + lower[0][0] @ [0.4, 0.0, 0.1]
    way = end - np.array([0.0, 0.6, 0.2])
    pull = -y[6] * way / np.linalg.norm(way)
    assert y[6] == pytest.approx(80.0 * (np.linalg.norm(way) - 0.3), rel=1e-12)
    force, moment = np.array([3.0, -2.0, 5.0]) + pull, np.array([0.4, 0.1, -0.6]) + np.cross(end, pull)
    moment = moment + np.cross(spot, [3.0, -2.0, 5.0])
    for R, p in places.values():
        weight = 2.0 * tree.gravity
        force, moment = force + weight, moment + np.cross(p[0] + R[0] @ [0.3, 0.02, 0.01], weight)
    np.testing.assert_allclose(y[:3], rate[0] - force, atol=2e-4)
    np.testing.assert_allclose(y[3:5], (rate[1] - moment)[:2], atol=2e-4)
    assert y[5] == 0.0


@pytest.mark.parametrize("name", ["branched arm", "free machine", "linkage", "delta"])
def test_derivatives_are_those_of_differences(name: str) -> None:
    """Of reactions, cut joints, drives and accelerations, along every change of state and unknown quantity."""
    m = model(name)
    x, v, u = moving(m, 3, 0.05)
    _check_derivatives(m, x, v, u, [Quantity("joint", len(m.tree.bodies) - 1), Quantity("drive", 0), *_cuts(m)])


def test_derivatives_of_loads_elements_and_their_states() -> None:
    m = loaded()
    u = np.concatenate([[0.5, -0.8], m.start_values])
    wanted = [
        Quantity("joint", 1),
        Quantity("element", 1),
        Quantity("acceleration", 1, (0.1, 0.2, 0.3)),
        Quantity("drive", 1),
    ]
    _check_derivatives(m, np.array([0.4, -0.7]), np.array([0.9, 1.3]), u, wanted)
    m = stateful_model(("km.time", "fl.ratio"))
    u = np.concatenate([m.start_values, [0.02, -0.01]])
    _check_derivatives(m, np.array([0.3, -0.5]), np.array([0.8, -1.1]), u, [Quantity("element", k) for k in range(6)])


def _cuts(m: TreeModel) -> list[Quantity]:
    return [Quantity("cut", 0), Quantity("acceleration", 1, (0.1, 0.2, 0.3))] if m.tree.loops else []


def _check_derivatives(m: TreeModel, x: np.ndarray, v: np.ndarray, u: np.ndarray, wanted: list[Quantity]) -> None:
    made, f, k, eps = TreeQuantities(m, wanted), m.f, len(u), 1e-6
    at = m.instant(x, v, u, m.loads())
    s = made.at(at.q, at.qd, at, m.loads())
    G = np.zeros((len(s.y), 2 * f + k))
    G[:, :f] = s.by_x @ at.R + s.by_v @ at.qd_z
    G[:, f : 2 * f] = s.by_v @ at.R
    G += s.by_a @ at.qdd_x + s.by_lam @ at.multipliers_x
    G[:, 2 * f + len(m.unknown) :] += s.by_varying
    for j in range(2 * f + k):
        d = np.zeros(2 * f + k)
        d[j] = eps
        ys = []
        for way in (1.0, -1.0):
            there = m.moved(x, v, way * d[: 2 * f], u + way * d[2 * f :], m.loads())
            ys.append(made.at(there.q, there.qd, there, m.loads()).y)
        slope = (ys[0] - ys[1]) / (2.0 * eps)
        np.testing.assert_allclose(G[:, j], slope, atol=3e-7 * (1.0 + np.abs(slope).max() + np.abs(s.y).max()))


def test_the_force_of_a_drive_is_that_of_inverse_dynamics() -> None:
    tree = tree_of(small_arm()).without_elements(["g"])
    m = tree_model(tree, unknown=None)
    x, v, u = np.array([0.3, -0.5]), np.array([0.8, -1.1]), np.array([1.5, -0.4])
    at = m.instant(x, v, u, m.loads({"force.lower": 2.0}))
    found = (
        TreeQuantities(m, [Quantity("drive", 0), Quantity("drive", 1)]).at(x, v, at, m.loads({"force.lower": 2.0})).y
    )
    np.testing.assert_allclose(found, [1.5, 1.6], rtol=1e-9)
    motion = Motion(np.zeros(1), x[None], v[None], at.qdd[None])
    np.testing.assert_allclose(found, inverse_dynamics(tree, motion)[0], rtol=1e-9)


@pytest.mark.parametrize("name", ["branched arm", "free machine"])
def test_an_acceleration_is_an_accelerometer_s_reading_in_the_ground_s_axes_with_gravity(name: str) -> None:
    m = model(name)
    x, v, u = moving(m, 5)
    at, body = m.instant(x, v, u, m.loads()), m.tree.bodies[-1].name
    y = TreeQuantities(m, [Quantity("acceleration", len(m.tree.bodies) - 1, (0.1, 0.2, 0.3))]).at(x, v, at, m.loads()).y
    specific = tree_readout(m.tree, [Sensor("a", "accelerometer", Marker(body, (0.1, 0.2, 0.3)), 1.0)], "numpy")
    R = body_pose(m.tree, x[None, -m.tree.n :], body)[0][0]
    R = matrix_of(x[3:7]) @ R if m.free else R
    np.testing.assert_allclose(y, R @ specific.read(x, v, at.qdd) + m.tree.gravity, rtol=1e-9, atol=1e-9)


def test_what_redundant_joints_share_is_not_determined() -> None:
    """A planar linkage closed by a hinge: only forces in the plane and the moment about the axis are determined; a delta's all are."""
    m = model("linkage")
    plane = TreeQuantities(m, [Quantity("cut", 0)]).determined
    assert plane.tolist() == [True, False, True, False, True, False]
    assert TreeQuantities(model("delta"), [Quantity("cut", 0), Quantity("joint", 8)]).determined.all()
    column = TreeQuantities(model("palletizer"), [Quantity("joint", 0)]).determined
    assert column.all()  # it carries the loop and is no part of it


@pytest.mark.parametrize("name", ["delta", "hexapod"])
def test_forces_of_cut_joints_are_pinocchio_s(name: str) -> None:
    """What its constraint dynamics says acts on the first end of each ball joint; ours act on the second."""
    m = model(name, plain=True)
    x, v, u = moving(m, 5, 0.05)
    at, stranger = m.instant(x, v, u, m.loads()), PinClosed(m.tree)
    stranger.forward(x, v, m.B @ u)
    cuts = [Quantity("cut", k) for k in range(len(m.tree.loops))]
    found = TreeQuantities(m, cuts).at(at.q, at.qd, at, m.loads()).y.reshape(-1, 3)
    for y, c, held in zip(found, stranger.constraints, stranger.held, strict=True):
        R = (stranger.open.data.oMi[c.joint1_id] * c.joint1_placement).rotation
        # Pinocchio's own loops are iterated to 1e-10 or so
        np.testing.assert_allclose(y, -R @ held.contact_force.linear, atol=1e-7 * np.abs(found).max())
