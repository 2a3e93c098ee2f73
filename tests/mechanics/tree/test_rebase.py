"""Another base, the same machine: joint forces, ranks and base rows, by Pinocchio on both trees."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from strangers.pinocchio_oracle import PinModel
from strangers.pinocchio_sensors import LOCAL, WORLD, PinSensors
from strangers.random_trees import random_motion, random_tree
from strangers.sensor_states import random_sensors, random_state
from veridyn.errors import ModelError
from veridyn.identify.base import base_parameters, generic_motion
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.readout import tree_readout
from veridyn.mechanics.tree.rebase import rebased
from veridyn.mechanics.tree.recursion.kinematics import body_motion, body_pose
from veridyn.mechanics.tree.recursion.loading import load_matrix
from veridyn.mechanics.tree.to_machine import machine_of_tree
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import drag
from veridyn.model.load import Force, Torque
from veridyn.model.motion import Motion
from veridyn.model.place import Marker
from veridyn.model.sensor import Sensor
from veridyn.papers.humanoid.machine import cad


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
