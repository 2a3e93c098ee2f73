"""Loads on trees: their rows by virtual work with Pinocchio's Jacobians, on open, free and closed trees."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from numpy.typing import NDArray

from strangers.pinocchio_sensors import WORLD, PinSensors
from strangers.random_trees import random_tree
from strangers.sensor_states import random_state
from veridyn.errors import DataError, ModelError
from veridyn.machines.described import linkage
from veridyn.mechanics.tree.dynamics.inverse import external_rows
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.kinematics import body_pose
from veridyn.mechanics.tree.recursion.loading import load_matrix
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.load import Drive, Force, Load, Torque
from veridyn.model.motion import Motion
from veridyn.model.place import Marker
from veridyn.model.sensor import Sensor

Array = NDArray[np.float64]


def by_virtual_work(tree: Tree, loads: list[Load], q: Array) -> Array:
    """Jᵀ of the place or body of each load, from Pinocchio; its free flyer's columns are (v, ω) in the base's own axes."""
    places = {}
    for load in loads:
        if isinstance(load, Force):
            places[load.name] = load.at
        elif isinstance(load, Torque):
            places |= {f"{load.name} {body}": body for body in (load.body, load.against) if body != "ground"}
    stranger = PinSensors(tree, [Sensor(name, "velocity", at, 0.1) for name, at in places.items()])
    nv = tree.n + (6 if tree.base == "free" else 0)
    stranger.update(q, np.zeros(nv), np.zeros(nv))
    pin.computeJointJacobians(stranger.pin.model, stranger.pin.data, stranger.configuration)
    pin.updateFramePlacements(stranger.pin.model, stranger.pin.data)

    def jacobian(name: str) -> Array:
        f = stranger.frames[name, "on"]
        J = pin.getFrameJacobian(stranger.pin.model, stranger.pin.data, f, WORLD)
        return J.reshape(6, -1) @ stranger.pin.S

    columns = []
    for load in loads:
        if isinstance(load, Drive):
            columns.append(np.eye(nv)[:, [nv - tree.n + tree.coordinates.index(load.coordinate)]])
        elif isinstance(load, Force):
            columns.append(jacobian(load.name)[:3].T)
        else:
            signs = ((load.body, 1.0), (load.against, -1.0))
            columns.append(sum(s * jacobian(f"{load.name} {b}")[3:].T for b, s in signs if b != "ground"))
    return np.hstack(columns)


@pytest.mark.parametrize("seed", range(8))
def test_rows_by_virtual_work(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, bodies=5, base="free" if seed % 2 else "fixed", shared=seed % 3 == 0, inertia=False)
    if seed == 6:
        tree = tree_of(linkage())
    names = [b.name for b in tree.bodies]
    loads: list[Load] = [
        Drive("motor", tree.coordinates[-1]),
        Force("push", Marker(names[-1], rng.normal(size=3)), (0, 0, 0)),
        Force("pull", names[1], (0, 0, 0)),
        Torque("twist", names[-1], (0, 0, 0)),
        Torque("between", names[0], (0, 0, 0), names[-1]),
    ]
    q = np.array([random_state(rng, tree)[0] for _ in range(3)])
    found = load_matrix(tree, q, loads)
    assert found.shape == (3, len(tree.rows), 13)
    for B, row in zip(found, q, strict=True):
        assert np.abs(B - by_virtual_work(tree, loads, row)).max() < 1e-12 * max(1.0, np.abs(B).max())


def test_a_force_is_the_wrench_of_a_motion_with_the_other_sign() -> None:
    """Inverse dynamics asks −Gᵀ of a wrench in the body's frame at its origin; here that wrench is made of the force by hand."""
    rng = np.random.default_rng(3)
    tree = random_tree(rng, bodies=6, inertia=False)
    body, at, f = tree.bodies[-1].name, rng.normal(size=3), rng.normal(size=3)
    q = rng.normal(size=(1, tree.n))
    own = body_pose(tree, q, body)[0][0].T @ f
    wrench = np.concatenate([own, np.cross(at, own)])[None]
    asked = external_rows(tree, Motion(np.zeros(1), q, 0 * q, 0 * q, wrenches={body: wrench}))
    assert load_matrix(tree, q, [Force("push", Marker(body, at), f)])[0] @ f == pytest.approx(-asked[0])


def test_what_is_refused() -> None:
    tree = tree_of(linkage())
    with pytest.raises(ModelError, match="load 'motor': there is no coordinate 'q9'"):
        load_matrix(tree, np.zeros((1, 3)), [Drive("motor", "q9")])
    with pytest.raises(DataError, match=r"(?s)wrong shape of the configurations.*Expected \(N, 3\)"):
        load_matrix(tree, np.zeros(3), [])
