"""Any machine as lines: joints joined to the joints before them, ends of loops, and the centre of mass of what comes last.

Of a mechanism in natural coordinates, its points, joined within each body.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.natural.system import NaturalSystem
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.kinematics import posed
from veridyn.model.machine import Machine
from veridyn.model.names import GROUND
from veridyn.spatial.algebra import Scalar
from veridyn.spatial.linalg import IDENTITY, ZERO, Mat, Vec, plus, product, rotate
from veridyn.view.meshes import BodyMesh
from veridyn.view.scene import CarriedSolid, Layer, Meaning

Array = NDArray[np.float64]
SMALL = 1e-9  # m: shorter lines are left out


def tree_layer(
    machine: Machine,
    q: Array,
    label: str,
    position: Array | None = None,
    rotation: Array | None = None,
    dashed: bool = False,
    meaning: Meaning | None = None,
    solids: Sequence[BodyMesh] = (),
) -> Layer:
    """The machine at coordinates (N, n); `position` (N, 3) and `rotation` (N, 3, 3) place a free base in the ground's frame.

    A body from which nothing goes on ends at its centre of mass, where that is known. The last of these ends leaves a line behind.
    `solids`: what its bodies look like.
    """
    N = len(q)
    R0 = np.broadcast_to(np.eye(3), (N, 3, 3)) if rotation is None else rotation
    p0 = np.zeros((N, 3)) if position is None else position

    def world(x: Array) -> Array:
        return p0 + np.einsum("nij,nj->ni", R0, x)

    tree, poses = tree_of(machine), body_poses(machine, q)
    points, lines = [world(np.zeros((N, 3)))], []
    at = {GROUND: 0}
    for b in tree.bodies:
        at[b.name] = len(points)
        points.append(world(poses[b.name][1]))
        if b.antecedent is not None:
            lines.append((at[b.antecedent], at[b.name]))

    def on(body: str, place: Array) -> int:
        """A place on a body, joined to the body's origin."""
        where = np.broadcast_to(place, (N, 3))
        if body != GROUND:
            A, p = poses[body]
            where = p + A @ place
        points.append(world(where))
        lines.append((at[body], len(points) - 1))
        return len(points) - 1

    for loop in tree.loops:
        ends = [on(end.body, np.asarray(end.placement.position)) for end in (loop.first, loop.second)]
        if loop.joint == "distance":
            lines.append((ends[0], ends[1]))
    carried = {b.antecedent for b in tree.bodies} | {e.body for loop in tree.loops for e in (loop.first, loop.second)}
    tips = [
        on(b.name, centre)
        for b in tree.bodies
        if b.name not in carried and (centre := _centre(machine, b.name)) is not None
    ]
    placed = np.stack(points, axis=1)
    long = [(a, b) for a, b in lines if np.linalg.norm(placed[:, a] - placed[:, b], axis=1).max() > SMALL]
    carrying = [CarriedSolid(at[s.body], s.vertices, s.faces, R0 @ poses[s.body][0]) for s in solids]
    return Layer(label, placed, long, trails=tips[-1:], dashed=dashed, meaning=meaning, solids=carrying)


def drawn_places(machine: Machine) -> list[tuple[int, tuple[float, float, float]]]:
    """The points of :func:`tree_layer` of an open machine, in its order: the number of a body, −1 for the ground, and a place on it."""
    tree, nowhere = tree_of(machine), (0.0, 0.0, 0.0)
    carried = {b.antecedent for b in tree.bodies}
    found = [(-1, nowhere), *((j, nowhere) for j in range(len(tree.bodies)))]
    for j, b in enumerate(tree.bodies):
        if b.name not in carried and (centre := _centre(machine, b.name)) is not None:
            found.append((j, (float(centre[0]), float(centre[1]), float(centre[2]))))
    return found


def body_poses(machine: Machine, q: Array) -> dict[str, tuple[Array, Array]]:
    """R (N, 3, 3) and p (N, 3) of every body's frame, by name, as :func:`~veridyn.mechanics.tree.recursion.kinematics.body_pose` gives them
    one by one.

    One pass from the ground outwards: R_j = R_i A_j, p_j = p_i + R_i P_j with i the antecedent of j.
    """
    tree, o, N = tree_of(machine), posed(machine, q), len(q)
    R: list[Mat] = []
    p: list[Vec] = []
    for j, i in enumerate(tree.antecedent):
        if i < 0 and machine.base == "free":
            R.append(IDENTITY)
            p.append(ZERO)
        elif i < 0:
            R.append(o.A[j])
            p.append(o.P[j])
        else:
            R.append(product(R[i], o.A[j]))
            p.append(plus(p[i], rotate(R[i], o.P[j])))

    def whole(x: Scalar) -> Array:
        return np.broadcast_to(np.asarray(x, dtype=np.float64), (N,))

    return {
        b.name: (
            np.stack([np.stack([whole(x) for x in row], axis=-1) for row in R[j]], axis=-2),
            np.stack([whole(x) for x in p[j]], axis=-1),
        )
        for j, b in enumerate(tree.bodies)
    }


def _centre(machine: Machine, body: str) -> Array | None:
    """The centre of mass of a body in its frame, where it has one."""
    b, p = machine.by_name.get(body), machine.parameters
    if b is None or not b.real:
        return None
    mass, moments = p[b.parameter("M")], np.array([p[b.parameter(f"M{a}")] for a in "XYZ"])
    if not (np.isfinite(mass) and mass > 0.0 and np.isfinite(moments).all()):
        return None
    return moments / mass


def mechanism_layer(
    label: str, machine: NaturalSystem, q: Array, dashed: bool = False, meaning: Meaning | None = None
) -> Layer:
    """Every point of the mechanism, in its own order, at coordinates (N, n), and lines between the points of each body."""
    m, g = machine.mechanism, machine.geometry
    y = np.concatenate([q, np.ones((len(q), 1))], axis=1)
    names = [p.name for p in m.points]
    points = np.zeros((len(q), len(names), 3))
    for k, name in enumerate(names):
        points[:, k, : m.dimension] = y @ g.elements[name].T
    segments = []
    for b in m.bodies:
        own = [names.index(p) for p in b.points]
        segments += list(itertools.pairwise(own)) + ([(own[-1], own[0])] if len(own) > 2 else [])
    return Layer(label, points, segments, dashed=dashed, meaning=meaning)
