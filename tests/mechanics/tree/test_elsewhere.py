"""Another base, the same machine: joint forces, ranks and base rows, by Pinocchio on both trees; and a base of six virtual joints."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from strangers.pinocchio_oracle import PinModel
from strangers.pinocchio_sensors import LOCAL, WORLD, PinSensors
from strangers.random_trees import random_motion, random_tree
from strangers.sensor_states import random_sensors, random_state
from veridyn.errors import DataError, ModelError
from veridyn.identify.base import base_parameters, generic_motion
from veridyn.machines import palletizer
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.elsewhere import SIX, actuators, on_six_joints, rebased
from veridyn.mechanics.tree.loops.closure import closed_motion
from veridyn.mechanics.tree.of_machine import machine_of_tree, tree_of
from veridyn.mechanics.tree.readout import tree_readout
from veridyn.mechanics.tree.recursion.kinematics import body_motion, body_pose
from veridyn.mechanics.tree.recursion.sensing import load_matrix
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import drag, spring
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.graph import Body
from veridyn.model.load import Force, Torque
from veridyn.model.motion import BaseMotion, Motion
from veridyn.model.place import Marker
from veridyn.model.sensor import Sensor
from veridyn.papers.hexapod.machine import LEGS, circle, hexapod, machine
from veridyn.papers.humanoid.machine import cad
from veridyn.signals.motion import Signals, motion


def carried(tree: Tree, other: Tree, motion: Motion, body: str) -> Motion:
    """The same motion, told from the other base."""
    order = [tree.coordinates.index(c) for c in other.coordinates]
    base = body_motion(tree, motion, body)
    return Motion(motion.t, motion.q[:, order], motion.qd[:, order], motion.qdd[:, order], base)


@pytest.mark.parametrize("seed", range(12))
def test_joint_forces_do_not_know_the_base(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, bodies=7, base="free")
    motion = random_motion(rng, tree, 4, wrenches=False)
    body = tree.bodies[int(rng.integers(1, 7))].name
    other = rebased(tree, body)
    told = carried(tree, other, motion, body)
    order = [6 + tree.coordinates.index(c) for c in other.coordinates]
    expected = PinModel(tree).inverse_dynamics(motion)
    # Held up at the old base, which has a new frame: where the next body towards the new base hangs on it.
    way = tree.path(tree.index(body))
    place = tree.bodies[way[-2]].placement
    f, m = expected[:, :3], expected[:, 3:6]
    held = np.concatenate([f @ place.rotation, (m - np.cross(place.position, f)) @ place.rotation], axis=1)
    joints = inverse_dynamics(other, replace(told, wrenches={tree.bodies[0].name: held}))
    assert np.abs(joints[:, :6]).max() < 1e-9
    assert joints[:, 6:] == pytest.approx(expected[:, order], rel=1e-10, abs=1e-9)
    # The same total wrench, at the other body's origin, in its frame.
    found = inverse_dynamics(other, told)
    R, p = body_pose(tree, motion.q, body)
    back = np.swapaxes(R, 1, 2)
    force = np.einsum("nij,nj->ni", back, expected[:, :3])
    moment = np.einsum("nij,nj->ni", back, expected[:, 3:6] - np.cross(p, expected[:, :3]))
    assert found[:, :6] == pytest.approx(np.concatenate([force, moment], axis=1), rel=1e-10, abs=1e-9)


def test_any_link_of_the_humanoid_serves_as_base() -> None:
    for link in ("left_foot", "right_shank"):
        other = rebased(tree_of(cad()), link)
        assert other.bodies[0].name == link and other.n == 12
        assert base_parameters(machine_of_tree(other), generic_motion(other, 200), rows="base").count == 94
        assert other.parameters["M0"] == pytest.approx(tree_of(cad()).parameters["M0"])


def test_the_old_base_changes_nothing() -> None:
    tree = random_tree(np.random.default_rng(1), bodies=4, base="free")
    same = rebased(tree, tree.bodies[0].name)
    assert same.parameters.values == pytest.approx(tree.parameters.values)
    assert [b.placement for b in same.bodies[1:]] == [b.placement for b in tree.bodies[1:]]


def test_what_cannot_be_rebased_is_refused() -> None:
    with pytest.raises(ModelError, match="only a free tree"):
        rebased(random_tree(np.random.default_rng(1), bodies=3), "1")
    tree = random_tree(np.random.default_rng(1), bodies=3, base="free")
    with pytest.raises(ModelError, match="there is no body 'hand'"):
        rebased(tree, "hand")
    windy = Tree.build(tree.bodies, base="free", elements=[drag(f"{tree.bodies[0].name}.fx")])
    with pytest.raises(ModelError, match="cannot follow it"):
        rebased(windy, tree.bodies[1].name)


def in_base_axes(q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """Rates with the base's velocity in its own axes, as rows have its force."""
    w, x, y, z = q[3:7]
    return np.concatenate([pin.Quaternion(w, x, y, z).toRotationMatrix().T @ qd[:3], qd[3:]])


@pytest.mark.parametrize("seed", range(6))
def test_sensors_and_loads_stay_where_they_were(seed: int) -> None:
    """Readings and forces on joints from the other base are those of the original by Pinocchio; the base's state is its frame's there."""
    rng = np.random.default_rng(seed)
    plain = random_tree(rng, bodies=6, base="free")
    sensors, far = random_sensors(rng, plain), plain.bodies[-1].name
    loads = (Force("push", Marker("1", rng.normal(size=3)), (0, 0, 0)), Torque("turn", "1", (0, 0, 0), far))
    tree = replace(plain, sensors=tuple(sensors), loads=loads)
    other = rebased(tree, far)
    q, qd, qdd = random_state(rng, tree)
    stranger = PinSensors(tree, [*sensors, Sensor("base", "velocity", far, 0.1)])
    wanted = stranger.readings(q, qd, qdd)[:-3]
    model, data, f = stranger.pin.model, stranger.pin.data, stranger.frames["base", "on"]
    e = pin.Quaternion(data.oMf[f].rotation)
    order = [tree.coordinates.index(c) for c in other.coordinates]
    state = (
        np.concatenate([data.oMf[f].translation, [e.w, e.x, e.y, e.z], q[7:][order]]),
        np.concatenate(
            [
                pin.getFrameVelocity(model, data, f, WORLD).linear,
                pin.getFrameVelocity(model, data, f, LOCAL).angular,
                qd[6:][order],
            ]
        ),
        np.concatenate(
            [
                pin.getFrameClassicalAcceleration(model, data, f, WORLD).linear,
                pin.getFrameAcceleration(model, data, f, LOCAL).angular,
                qdd[6:][order],
            ]
        ),
    )
    assert tree_readout(other, engine="numpy").read(*state) == pytest.approx(wanted, abs=1e-10)
    # a force spends the same power, whichever base the rates are told from
    power = load_matrix(tree, q[None])[0].T @ in_base_axes(q, qd)
    assert load_matrix(other, state[0][None])[0].T @ in_base_axes(*state[:2]) == pytest.approx(power, abs=1e-10)


def test_from_a_log_to_the_pose() -> None:
    """Lengths of the legs on a circle, sampled: the platform's rates and accelerations come out as those of the circle."""
    tree = hexapod()
    t = np.arange(600) / 200.0
    pose, rate, acceleration = circle(0.5)(t)
    lengths = machine().lengths(pose)
    channels = {f"q.{leg}": Channel(f"q.{leg}", t, x, "m") for leg, x in zip(LEGS, lengths.T, strict=True)}
    channels |= {f"force.{leg}": Channel(f"force.{leg}", t, np.ones(600), "N") for leg in LEGS}
    driven = motion(
        actuators(tree), Experiment(channels, "circle"), Signals(trim=0.5, inspection="off")
    )  # its forces are constant
    m = closed_motion(tree, driven.t, driven.q, driven.qd, driven.qdd, forces=driven.forces)
    inside = slice(100, 500)
    assert np.abs(m.q[:, :6] - pose[inside]).max() < 1e-9
    assert np.abs(m.qd[:, :6] - rate[inside]).max() < 1e-4
    assert np.abs(m.qdd[:, :6] - acceleration[inside]).max() < 1e-3


def test_names_and_kinds() -> None:
    assert actuators(palletizer()).coordinates == ("q1", "q2", "q4")
    assert actuators(hexapod()).coordinate_kinds == ("sliding",) * 6


def test_a_missing_actuator_is_named() -> None:
    t = np.arange(50) / 100.0
    log = Experiment({f"q.{leg}": Channel(f"q.{leg}", t, np.ones(50), "m") for leg in LEGS[:3]}, "short")
    with pytest.raises(DataError, match="l4"):
        motion(actuators(hexapod()), log)


def turn(axis: int, angle: float) -> np.ndarray:
    R = np.eye(3)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    R[i, i] = R[j, j] = np.cos(angle)
    R[j, i], R[i, j] = np.sin(angle), -np.sin(angle)
    return R


def pose(tree: Tree, q: np.ndarray, body: int) -> tuple[np.ndarray, np.ndarray]:
    """By chaining: placement, then a turn about z or a slide along z, from the ground outwards."""
    R, p = np.eye(3), np.zeros(3)
    for j in reversed(tree.path(body)):
        b = tree.bodies[j]
        R, p = R @ b.placement.rotation, p + R @ b.placement.position
        if b.joint == "turning":
            R = R @ turn(2, b.ratio * q[tree.coordinate[j]])
        elif b.joint == "sliding":
            p = p + R[:, 2] * b.ratio * q[tree.coordinate[j]]
    return R, p


def rpy_pose(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x, y, z, yaw, pitch, roll = q[:6]
    return turn(2, yaw) @ turn(1, pitch) @ turn(0, roll), np.array([x, y, z])


@pytest.mark.parametrize("seed", range(8))
def test_the_base_sits_where_its_six_coordinates_say(seed: int) -> None:
    rng = np.random.default_rng(seed)
    free = random_tree(rng, base="free")
    tree = on_six_joints(free)
    q = rng.standard_normal(tree.n)
    R0, p0 = rpy_pose(q)
    R, p = pose(tree, q, tree.index(free.bodies[0].name))
    assert pytest.approx(R0, abs=1e-15) == R
    assert p == pytest.approx(p0, abs=1e-15)
    for j, b in enumerate(free.bodies):
        Rj, pj = pose(free, q[6:], j)
        R, p = pose(tree, q, tree.index(b.name))
        assert pytest.approx(R0 @ Rj, abs=1e-14) == R
        assert p == pytest.approx(R0 @ pj + p0, abs=1e-13)


@pytest.mark.parametrize("axis", range(6))
def test_each_coordinate_moves_one_way(axis: int) -> None:
    tree = on_six_joints(random_tree(np.random.default_rng(1), bodies=2, base="free"))
    q = np.zeros(tree.n)
    q[axis] = 0.3
    R, p = pose(tree, q, tree.index("1"))
    if axis < 3:
        assert np.array_equal(R, np.eye(3))
        assert p == pytest.approx(0.3 * np.eye(3)[axis], abs=1e-16)
    else:
        assert pytest.approx(turn(5 - axis, 0.3), abs=1e-15) == R  # yaw about z, pitch about y, roll about x
        assert np.array_equal(p, np.zeros(3))


def test_placements_of_the_six_fold() -> None:
    """The six virtual joints hold nothing but 0, 1 and −1, so they cost little more than sines and cosines."""
    tree = on_six_joints(random_tree(np.random.default_rng(2), base="free"))
    for b in tree.bodies[:7]:
        assert set(np.unique(b.placement.rotation)) <= {-1.0, 0.0, 1.0}
        assert not b.placement.position.any()


def test_names_kinds_and_parameters_are_kept() -> None:
    free = random_tree(np.random.default_rng(3), bodies=6, base="free")
    tree = on_six_joints(free, prefix="b_")
    assert tree.coordinates == tuple(f"b_{s}" for s in SIX) + free.coordinates
    assert tree.coordinate_kinds[:6] == ("sliding",) * 3 + ("turning",) * 3
    assert not any(tree.actuated[:6])
    assert tree.actuated[6:] == free.actuated
    assert tree.base == "fixed"
    assert np.array_equal(tree.gravity, free.gravity)
    assert tree.parameters.names == free.parameters.names
    assert np.array_equal(tree.parameters.values, free.parameters.values)
    assert sum(not b.real for b in tree.bodies) == 6


def test_elements_come_along() -> None:
    bodies = [Body("chassis", None, "fixed"), Body("wheel", "chassis", "sliding")]
    free = Tree.build(bodies, base="free", elements=[spring("wheel", 5.0), drag("chassis.fx", 0.4)])
    tree = on_six_joints(free)
    assert tree.elements == free.elements
    assert tree.parameters.names == free.parameters.names
    assert tree.parameters["k_wheel"] == 5.0


@pytest.mark.parametrize("seed", range(6))
def test_joint_forces_agree_and_base_rows_map_by_the_jacobian(seed: int) -> None:
    """L₁..₆ = J_bᵀ [f; m] with J_b the base's local Jacobian, by Pinocchio on both descriptions."""
    rng = np.random.default_rng(seed)
    free = random_tree(rng, base="free")
    tree = on_six_joints(free)
    lagrange = random_motion(rng, tree, 3, wrenches=False)
    six = PinModel(tree)
    base = free.bodies[0].name
    h = 1e-5
    J = six.jacobian(lagrange.q, base, local=True)
    Jd = (
        six.jacobian(lagrange.q + h * lagrange.qd, base, local=True)
        - six.jacobian(lagrange.q - h * lagrange.qd, base, local=True)
    ) / (2 * h)
    twist = np.einsum("kij,kj->ki", J, lagrange.qd)
    rate = np.einsum("kij,kj->ki", J, lagrange.qdd) + np.einsum("kij,kj->ki", Jd, lagrange.qd)
    v, omega = twist[:, :3], twist[:, 3:]
    R, _ = six.frame_pose(lagrange.q, base)
    specific = rate[:, :3] + np.cross(omega, v) - np.einsum("kji,j->ki", R, free.gravity)

    newton = Motion(
        lagrange.t,
        lagrange.q[:, 6:],
        lagrange.qd[:, 6:],
        lagrange.qdd[:, 6:],
        base=BaseMotion(omega, rate[:, 3:], specific),
    )
    L, rows = six.inverse_dynamics(lagrange), PinModel(free).inverse_dynamics(newton)
    scale = np.abs(L).max()
    # Jd is a central difference at h = 1e-5: its error is of order 1e-10.
    assert L[:, 6:] == pytest.approx(rows[:, 6:], abs=1e-8 * scale)
    assert L[:, :6] == pytest.approx(np.einsum("kij,ki->kj", J[:, :, :6], rows[:, :6]), abs=1e-8 * scale)


def test_a_fixed_tree_is_refused() -> None:
    with pytest.raises(ModelError, match="only a free tree can be put on six joints"):
        on_six_joints(random_tree(np.random.default_rng(0)))


def test_sensors_and_loads_are_the_same() -> None:
    """With six joints at yaw, pitch and roll of zero the two descriptions of the base's motion are one."""
    rng = np.random.default_rng(4)
    tree = random_tree(rng, bodies=4, base="free")
    tree = replace(tree, sensors=tuple(random_sensors(rng, tree)), loads=(Force("push", "2", (1, 2, 3)),))
    six = on_six_joints(tree)
    assert six.sensors == tree.sensors and six.loads == tree.loads
    q, rates = rng.normal(size=tree.n), rng.normal(size=tree.n + 3)
    base, still = rng.normal(size=3), np.zeros(3)
    free = tree_readout(tree, engine="numpy")
    found = tree_readout(six, engine="numpy").read(
        np.concatenate([base, still, q]), np.concatenate([rates[:3], still, rates[3:]]), np.zeros(6 + tree.n)
    )
    wanted = free.read(
        np.concatenate([base, [1, 0, 0, 0], q]), np.concatenate([rates[:3], still, rates[3:]]), np.zeros(6 + tree.n)
    )
    assert found == pytest.approx(wanted, abs=1e-11)
