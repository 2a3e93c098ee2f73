"""What sensors read, over floats: closed forms of machines one can draw, and outputs as numbers; and what loads do to rows."""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin
import pytest
from numpy.typing import NDArray

from strangers.pinocchio_sensors import WORLD, PinSensors
from strangers.random_trees import random_tree
from strangers.sensor_states import random_state
from veridyn.errors import DataError, ModelError
from veridyn.machines import linkage
from veridyn.mechanics.tree.dynamics.inverse import external_rows
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.kinematics import body_pose
from veridyn.mechanics.tree.recursion.sensing import (
    Output,
    in_ground,
    load_matrix,
    moving,
    outputs_of,
    place_of,
    reading,
    sizes,
)
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.graph import Body
from veridyn.model.load import Drive, Force, Load, Torque
from veridyn.model.motion import Motion
from veridyn.model.place import Marker
from veridyn.model.sensor import Sensor
from veridyn.spatial.algebra import FLOATS

Array = NDArray[np.float64]


def read(tree: Tree, sensor: Sensor, q: list[float], qd: list[float], qdd: list[float]) -> list[float]:
    m = moving(tree, q, qd, qdd, FLOATS)
    return [reading(m, output, FLOATS) for output in outputs_of(tree, sensor)]


def test_a_turning_arm_in_closed_form() -> None:
    """r = L (cos q, sin q, 0): its velocity L q̇ across, its acceleration L q̈ across and −L q̇² along; gravity pulls along −y."""
    L, g, q, w, a = 1.5, 9.81, 0.7, 2.0, -3.0
    arm = Tree.build([Body("arm")], gravity=(0, -g, 0))
    tip, s, c = Marker("arm", (L, 0, 0)), math.sin(q), math.cos(q)
    own = Marker("arm", (L, 0, 0), (1, 0, 0), (0, 1, 0))

    def found(kind: str, on: str | Marker, **more: object) -> list[float]:
        return read(arm, Sensor("s", kind, on, 0.1, **more), [q], [w], [a])

    assert found("coordinate", "arm") == [q] and found("rate", "arm") == [w]
    assert found("position", tip) == pytest.approx([L * c, L * s, 0])
    assert found("velocity", tip) == pytest.approx([-L * w * s, L * w * c, 0])
    assert found("velocity", own) == pytest.approx([0, L * w, 0])
    assert found("gyroscope", "arm") == pytest.approx([0, 0, w])
    assert found("gyroscope", Marker("arm", (9, 9, 9), (0, 0, -2), (1, 0, 0))) == pytest.approx([-w, 0, 0])
    assert found("accelerometer", tip) == pytest.approx([-L * w**2 + g * s, L * a + g * c, 0])
    assert found("accelerometer", tip, axes="y") == pytest.approx([L * a + g * c])
    assert found("distance", tip, to=Marker("ground", (0, 2, 0))) == pytest.approx([math.hypot(L * c, L * s - 2)])


def test_a_free_body_in_closed_form() -> None:
    """A quarter turn about z: the base's x is the ground's y. Free fall reads nothing, standing still reads g upwards."""
    body = Tree.build([Body("box", None, "fixed")], base="free")
    e = [math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5)]
    at = Marker("box", (2, 0, 0))
    state = [1.0, 2.0, 3.0, *e], [0.0, 5.0, 0.0, 0.0, 0.0, 4.0], [0.0] * 6
    assert sizes(body) == (7, 6)
    assert read(body, Sensor("s", "position", at, 0.1), *state) == pytest.approx([1, 4, 3])
    assert read(body, Sensor("s", "velocity", at, 0.1), *state) == pytest.approx([-8, 5, 0])
    assert read(
        body, Sensor("s", "velocity", Marker("box", (2, 0, 0), (1, 0, 0), (0, 1, 0)), 0.1), *state
    ) == pytest.approx([5, 8, 0])
    assert read(body, Sensor("s", "accelerometer", at, 0.1), *state) == pytest.approx([-32, 0, 9.81])
    falling = (*state[:2], [0.0, 0.0, -9.81, 0.0, 0.0, 0.0])
    assert read(body, Sensor("s", "accelerometer", "box", 0.1), *falling) == pytest.approx([0, 0, 0], abs=1e-12)


def test_a_quaternion_of_any_length_is_a_rotation() -> None:
    body = Tree.build([Body("box", None, "fixed")], base="free")
    sensor = Sensor("s", "position", Marker("box", (1, 2, 3)), 0.1)
    e = np.random.default_rng(0).normal(size=4)
    one, other = (read(body, sensor, [0.0] * 3 + (k * e).tolist(), [0.0] * 6, [0.0] * 6) for k in (1.0, 2.5))
    assert one == pytest.approx(other) and np.linalg.norm(one) == pytest.approx(np.sqrt(14.0))


def test_places_and_outputs_are_numbers() -> None:
    tree = Tree.build([Body("rail", joint="sliding"), Body("arm", "rail")])
    assert place_of(tree, "ground") == (-1, (0, 0, 0)) and place_of(tree, Marker("arm", (1, 2, 3))) == (1, (1, 2, 3))
    assert outputs_of(tree, Sensor("e", "rate", "arm", 0.1)) == [Output(kind="rate", on=1)]
    turned = Sensor("v", "velocity", Marker("arm", (1, 2, 3), (0, 0, 5), (0, 1, 0)), 0.1, axes="xz")
    assert outputs_of(tree, turned) == [
        Output(kind="velocity", on=1, at=(1, 2, 3), along=(0, 0, 1), own=True),
        Output(kind="velocity", on=1, at=(1, 2, 3), along=(-1, 0, 0), own=True),
    ]
    (along,) = outputs_of(tree, Sensor("v", "velocity", "arm", 0.1, axes="y"))
    assert along == Output(kind="velocity", on=1, along=(0, 1, 0))


def test_places_of_bodies_are_their_poses() -> None:
    rng = np.random.default_rng(2)
    tree = random_tree(rng, bodies=6, inertia=False)
    q = rng.normal(size=tree.n)
    m = moving(tree, q.tolist(), [0.0] * tree.n, [0.0] * tree.n, FLOATS)
    for j, b in enumerate(tree.bodies):
        R, p = body_pose(tree, q[None], b.name)
        assert in_ground(m, j, (1.0, 2.0, 3.0)) == pytest.approx(p[0] + R[0] @ [1, 2, 3])


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
