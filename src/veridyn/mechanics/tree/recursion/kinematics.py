"""Where bodies are and how they move: poses, Jacobians, velocities and accelerations of any body's frame; and the energies of a motion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.errors import DataError
from veridyn.mechanics.laws import potential
from veridyn.mechanics.tree.dynamics.engine import Engine, compiled, filled, wants_compiled
from veridyn.mechanics.tree.of_machine import takes_machine, tree_of
from veridyn.mechanics.tree.recursion.equations import acting, combination, strut_of
from veridyn.mechanics.tree.recursion.inputs import Request, complete_values, split, state_of
from veridyn.mechanics.tree.recursion.newton_euler import Outward, State, jacobian_entries, outward
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.machine import Machine
from veridyn.model.motion import BaseMotion, Motion
from veridyn.model.place import GROUND
from veridyn.spatial.algebra import (
    ARRAYS,
    IDENTITY,
    ZERO,
    Mat,
    Scalar,
    Vec,
    add,
    cross,
    dot,
    mul,
    plus,
    product,
    rotate,
    scaled,
)
from veridyn.spatial.inertia import inertia_matrix


@takes_machine
def body_pose(machine: Machine | Tree, q: ArrayLike, body: str) -> tuple[Array, Array]:
    """R (N, 3, 3) and p (N, 3) of a body's frame in the ground's, or in the base's where the base is free."""
    return root_pose(tree_of(machine), q, body)


def root_pose(tree: Tree, q: ArrayLike, body: str) -> tuple[Array, Array]:
    """:func:`body_pose` of a tree."""
    R, p = pose_in_root(tree, posed(tree, q), tree.index(body))
    N = len(np.asarray(q))
    return _stacked(R, N), _column(p, N)


@takes_machine
def jacobian(
    machine: Machine | Tree,
    q: ArrayLike,
    body: str,
    frame: str = "ground",
    *,
    engine: Engine = "auto",
    threads: int = 1,
) -> Array:
    """J (N, 6, n): [v; ω] = J q̇, with v of the body's origin. For a free base (N, 6, 6 + n), [v; ω] = J [v_b; ω_b; q̇].

    In the axes of the "ground" (of the base, where it is free) or of the "body" itself. By virtual work, each row of J is what a unit
    wrench on the body asks of the joints, so it is the recursion's inward pass that gives it.
    """
    tree = tree_of(machine)
    if frame not in ("ground", "body"):
        raise DataError(f"'{frame}' is no frame for a Jacobian.", expected="'ground' or 'body'")
    j = tree.index(body)
    N = len(np.atleast_1d(q))
    request = Request("jacobian", bodies=(j,))
    if wants_compiled(engine, tree, request, N):
        J = filled(compiled(tree, request), tree, at_rest(tree, q), (6, len(tree.rows)), threads=threads)
    else:
        J = own_jacobian(tree, q, j)
    if frame == "ground":
        R = root_pose(tree, q, body)[0]
        J = np.concatenate([R @ J[:, :3], R @ J[:, 3:]], axis=1)
    return J


def own_jacobian(tree: Tree, q: ArrayLike, j: int) -> Array:
    """The Jacobian of body j in its own axes, by the recursion on arrays."""
    J = np.zeros((len(np.atleast_1d(q)), 6, len(tree.rows)))
    for (k, r), value in jacobian_entries(tree, posed(tree, q), j).items():
        J[:, k, r] = value
    return J


@takes_machine
def body_motion(machine: Machine | Tree, motion: Motion, body: str) -> BaseMotion:
    """ω, ω̇, V̇ − g and V of a body along a motion, in its own frame: what an ideal inertial unit at its origin reads.

    The velocity is None where the base is free and its velocity is not given.
    """
    tree = tree_of(machine)
    tree.check_motion(motion)
    o = outward(tree, state_of(tree, motion), ARRAYS, velocity=True)
    j, N = tree.index(body), len(motion)
    known = motion.base is None or motion.base.velocity is not None
    return BaseMotion(
        _column(o.w[j], N), _column(o.wd[j], N), _column(o.vd[j], N), _column(o.v[j], N) if known else None
    )


def pose_in_root(tree: Tree, o: Outward, j: int) -> tuple[Mat, Vec]:
    """(A, P) of body j in the ground's frame, or in that of a free base."""
    A: Mat = IDENTITY
    P: Vec = ZERO
    for i in tree.path(j):
        if tree.base == "free" and tree.antecedent[i] < 0:
            break
        A, P = product(o.A[i], A), plus(o.P[i], rotate(o.A[i], P))
    return A, P


def posed(tree: Tree, q: ArrayLike) -> Outward:
    """The outward pass at rest: only poses are anything but zero."""
    values = _checked(tree, q)
    still = [0.0] * tree.n
    return outward(tree, State(list(np.ascontiguousarray(values.T)), still, still), ARRAYS)


class Posture:
    """Frames of the bodies of a machine at coordinates q (N, n), in the ground's frame or in that of a free base; slopes of points on them.

    Frames are made when they are first asked for, from the ground outwards: R_j = R_i A_j, p_j = p_i + R_i P_j with i the antecedent of j.
    """

    def __init__(self, machine: Machine, q: Array) -> None:
        self.N, self.n = len(q), machine.n
        self._tree = tree_of(machine)
        self._outward = posed(self._tree, q)
        self._frames: dict[int, tuple[Array, Array]] = {
            -1: (np.broadcast_to(np.eye(3), (self.N, 3, 3)), np.zeros((self.N, 3)))
        }
        if machine.base == "free":
            self._frames[0] = self._frames[-1]
        up = -np.asarray(machine.gravity, dtype=np.float64)
        size = float(np.linalg.norm(up))
        self.up = up / size if size > 0.0 else np.array([0.0, 0.0, 1.0])

    def frames(self) -> dict[str, tuple[Array, Array]]:
        """R (N, 3, 3) and p (N, 3) of every body, by name."""
        return {b.name: self._frame(j) for j, b in enumerate(self._tree.bodies)}

    def point(self, body: str, point: ArrayLike) -> Array:
        """Where a point of a body, or of the ground, is (N, 3)."""
        R, p = self._frame(self._index(body))
        return p + R @ np.asarray(point, dtype=np.float64)

    def slopes(self, body: str, x: Array) -> Array:
        """∂x/∂q (N, 3, n) of points x (N, 3) fixed to a body."""
        out = np.zeros((self.N, 3, self.n))
        for j in self._tree.path(self._index(body)):
            b, k = self._tree.bodies[j], self._tree.coordinate[j]
            if k >= 0:
                R, p = self._frame(j)
                axis = R[:, :, 2]
                moved = np.cross(axis, x - p) if b.joint == "turning" else axis
                out[:, :, k] += b.ratio * moved
        return out

    def _index(self, body: str) -> int:
        return -1 if body == GROUND else self._tree.index(body)

    def _frame(self, j: int) -> tuple[Array, Array]:
        if j not in self._frames:
            R, p = self._frame(self._tree.antecedent[j])
            A, P = _stacked(self._outward.A[j], self.N), _column(self._outward.P[j], self.N)
            self._frames[j] = R @ A, p + np.einsum("nij,nj->ni", R, P)
        return self._frames[j]


def at_rest(tree: Tree, q: ArrayLike) -> Motion:
    """A motion that stands at these coordinates."""
    values = _checked(tree, q)
    still = np.broadcast_to(0.0, values.shape)
    zero = np.broadcast_to(0.0, (len(values), 3))
    base = BaseMotion(zero, zero, zero, zero) if tree.base == "free" else None
    return Motion(np.arange(len(values), dtype=np.float64), values, still, still, base)


def _checked(tree: Tree, q: ArrayLike) -> Array:
    values = np.asarray(q, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] != tree.n:
        raise DataError(
            "wrong shape of the coordinates.", where=tree.name, expected=f"(N, {tree.n})", found=f"{values.shape}"
        )
    return values


def _column(v: Vec, N: int) -> Array:
    return np.stack([np.broadcast_to(np.asarray(x, dtype=np.float64), (N,)) for x in v], axis=-1)


def _stacked(A: Mat, N: int) -> Array:
    rows: list[Scalar] = [_column(row, N) for row in A]
    return np.stack(rows, axis=1)


@dataclass(frozen=True)
class Energy:
    """Joules, (N,) each: of motion, in the field of gravity, and stored in springs and offsets, on coordinates and between places."""

    kinetic: Array
    gravity: Array
    elastic: Array

    @property
    def total(self) -> Array:
        return self.kinetic + self.gravity + self.elastic


@takes_machine
def energy(
    machine: Machine | Tree,
    motion: Motion,
    *,
    base_rotation: ArrayLike | None = None,
    base_position: ArrayLike | None = None,
    parameters: Array | None = None,
) -> Energy:
    """Energies along a motion; d(total)/dt is the power of the forces and wrenches less what friction takes.

    T = Σ ½ (M V² + 2 V·(ω × MS) + ω·J ω), in gravity −g·(M p + R MS). A free base must give its velocity, and its pose
    (N, 3, 3) and (N, 3) in the ground's frame for the part in gravity's field.
    """
    tree = tree_of(machine)
    tree.check_motion(motion)
    N = len(motion)
    free = tree.base == "free"
    if free and (motion.base is None or motion.base.velocity is None or base_rotation is None or base_position is None):
        raise DataError(
            "the energy of a free tree needs its base's velocity and pose.",
            where=tree.name,
            expected="motion.base.velocity, base_rotation (N, 3, 3) and base_position (N, 3)",
        )
    X, gains = split(tree, complete_values(tree, parameters))
    state = state_of(tree, motion)
    o = outward(tree, state, ARRAYS, velocity=True)
    R = np.asarray(base_rotation, dtype=np.float64) if free else np.broadcast_to(np.eye(3), (N, 3, 3))
    p = np.asarray(base_position, dtype=np.float64) if free else np.zeros((N, 3))
    g = np.einsum("nji,j->ni", R, tree.gravity)  # gravity in the root's axes
    kinetic: Scalar = 0.0
    moment = np.zeros((N, 3))
    mass = 0.0
    for j, x in X.items():
        v, w, MS, M = o.v[j], o.w[j], x[6:9], x[9]
        ms = (MS[0], MS[1], MS[2])
        kinetic = add(kinetic, mul(0.5 * M, dot(v, v)))
        kinetic = add(kinetic, dot(v, cross(w, ms)))
        kinetic = add(kinetic, mul(0.5, dot(w, rotate(inertia_matrix(x), w))))
        A, P = pose_in_root(tree, o, j)
        moment += np.stack(
            [np.broadcast_to(np.asarray(c, dtype=np.float64), (N,)) for c in plus(scaled(M, P), rotate(A, ms))], axis=-1
        )
        mass += M
    elastic = np.zeros(N)
    for e, gain in zip(tree.elements, gains, strict=True):
        if e.on_body is not None:  # it follows the body's axes, and stores nothing
            continue
        strut = None if e.between is None else strut_of(tree, e.between, o, ARRAYS)
        stored = potential(e, acting(tree, e, state, motion.signals, ARRAYS, strut))
        if stored is not None:
            elastic += gain * stored
        elif e.kind == "inertia":
            kinetic = add(kinetic, 0.5 * gain * combination(tree, e, state.qd) ** 2)
    height = -np.einsum("ni,ni->n", g, moment) - mass * (p @ tree.gravity)
    return Energy(np.broadcast_to(np.asarray(kinetic, dtype=np.float64), (N,)).copy(), height, elastic)
