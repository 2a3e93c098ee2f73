"""What the sensors of a tree read, y = h(q, q̇, q̈), and what loads on it do to its rows, over scalars of any kind.

A fixed tree has q, q̇, q̈ of its n coordinates. A free one has the configuration (p, e, joints): p of its base's origin in the ground's
frame, e the quaternion (w, x, y, z) of its attitude; the rates (V, ω, q̇) with V = ṗ in the ground's axes and ω in the base's own; the
accelerations (V̇, ω̇, q̈) in the same axes. With (A, P) the pose of body j in the root's frame, (R, p) that of the root in the ground's,
and V, ω, V̇ − g, U of body j in its own axes from the outward pass, a place x and a direction u on the body read

    position        p + R (P + A x)                      velocity   R A (V + ω × x), or u·(V + ω × x)
    accelerometer   u·(V̇ − g + U x)                      gyroscope  u·ω
    course          the direction of that velocity       yaw        the direction of R A u

Loads act by Q = Σ B u, one column of B for each component u of a load: by virtual work Jᵀ times a unit force or torque. Q has the sign of
the forces of joints, Γ + Q = M a + h. Rows are those of ``tree.rows``: of a free base force and moment about its origin in its own axes,
then one for each coordinate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.errors import DataError, ModelError
from veridyn.mechanics.tree.recursion.inputs import minus_gravity
from veridyn.mechanics.tree.recursion.newton_euler import Outward, State, Wrench, carry, frames_in_root, outward
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.load import Drive, Force, Load, check_loads
from veridyn.model.place import GROUND, Marker, PointRef, frame
from veridyn.model.sensor import ON_COORDINATE, Sensor
from veridyn.spatial.algebra import (
    ARRAYS,
    IDENTITY,
    ZERO,
    Algebra,
    Mat,
    Scalar,
    Vec,
    add,
    cross,
    dot,
    minus,
    mul,
    plus,
    rotate,
    rotate_back,
    rotation_matrix,
    sub,
)

Triple = tuple[float, float, float]
NOWHERE: Triple = (0.0, 0.0, 0.0)
FORWARD: Triple = (1.0, 0.0, 0.0)
SMALLEST = 1e-300  # moves an exact zero off it, and nothing else
STANDSTILL = 1e-9  # m/s, below which there is no course


@dataclass(frozen=True, kw_only=True)
class Output:
    """One output of a sensor as numbers of one tree, without names: all that a kernel depends on.

    `on`: the number of the coordinate, or of the body (−1: the ground). `at`: the place on it. `along`: the direction that is read, in
    the body's axes where `own`, else in the ground's. `to` and `to_at`: the other end of a distance.
    """

    kind: str
    on: int
    at: Triple = NOWHERE
    along: Triple = NOWHERE
    own: bool = False
    to: int = -1
    to_at: Triple = NOWHERE


@dataclass(frozen=True)
class Moving:
    """A tree in motion: the scalars of its recursion, its outward pass, poses in the root's frame, and the root's own (R, p)."""

    state: State
    o: Outward
    frames: list[tuple[Mat, Vec]]
    R: Mat
    p: Vec


def sizes(tree: Tree) -> tuple[int, int]:
    """How many numbers a configuration and its rates have: (n, n), or (7 + n, 6 + n) of a free base."""
    return (tree.n + 7, tree.n + 6) if tree.base == "free" else (tree.n, tree.n)


def moving(tree: Tree, q: Sequence[Scalar], qd: Sequence[Scalar], qdd: Sequence[Scalar], algebra: Algebra) -> Moving:
    """The motion of every body from configuration, rates and accelerations."""
    R, p = IDENTITY, ZERO
    if tree.base == "free":
        p, R = _vec(q), rotation_matrix((q[3], q[4], q[5], q[6]))
        specific = plus(_vec(qdd), minus_gravity(tree))
        state = State(
            q[7:],
            qd[6:],
            qdd[6:],
            w=_vec(qd[3:]),
            wd=_vec(qdd[3:]),
            vd=rotate_back(R, specific),
            v=rotate_back(R, _vec(qd)),
        )
    else:
        state = State(q, qd, qdd, vd=minus_gravity(tree))
    o = outward(tree, state, algebra, velocity=True)
    return Moving(state, o, frames_in_root(tree, o), R, p)


def reading(m: Moving, s: Output, algebra: Algebra) -> Scalar:
    """What one output reads, without bias."""
    o, j = m.o, s.on
    if s.kind == "coordinate":
        return m.state.q[j]
    if s.kind == "rate":
        return m.state.qd[j]
    if s.kind == "gyroscope":
        return dot(s.along, o.w[j])
    if s.kind == "accelerometer":
        return dot(s.along, plus(o.vd[j], rotate(o.U[j], s.at)))
    if s.kind == "velocity":
        v = plus(o.v[j], cross(o.w[j], s.at))
        return dot(s.along, v if s.own else rotate(m.R, rotate(m.frames[j][0], v)))
    if s.kind == "position":
        return dot(s.along, in_ground(m, j, s.at))
    if s.kind == "course":
        v = rotate(m.R, rotate(m.frames[j][0], plus(o.v[j], cross(o.w[j], s.at))))
        return direction(algebra, v[0], v[1])
    if s.kind == "yaw":
        u = rotate(m.R, rotate(m.frames[j][0], s.along))
        return direction(algebra, u[0], u[1])
    assert s.kind == "distance"  # the checks of the tree know every kind
    where = in_root if j >= 0 and s.to >= 0 else in_ground  # between two bodies the attitude does not matter
    apart = minus(where(m, s.to, s.to_at), where(m, j, s.at))
    return algebra.sqrt(dot(apart, apart))


def direction(algebra: Algebra, x: Scalar, y: Scalar) -> Scalar:
    """The angle from x to y of a vector, between −π and π, by the angle to the nearer end of the x axis; finite where there is none."""
    ahead, left = (algebra.sign(add(c, SMALLEST)) for c in (x, y))  # never zero
    length = algebra.sqrt(add(add(mul(x, x), mul(y, y)), STANDSTILL**2))
    acute = mul(2.0, algebra.atan(y / add(length, mul(ahead, x))))
    return add(mul(ahead, acute), mul(mul(0.5 * math.pi, left), sub(1.0, ahead)))


def in_root(m: Moving, j: int, at: Triple) -> Vec:
    """A place on body j in the root's frame."""
    A, P = m.frames[j]
    return plus(P, rotate(A, at))


def in_ground(m: Moving, j: int, at: Triple) -> Vec:
    """A place on body j, or on the ground (−1), in the ground's frame."""
    return at if j < 0 else plus(m.p, rotate(m.R, in_root(m, j, at)))


def outputs_of(tree: Tree, sensor: Sensor) -> list[Output]:
    """The outputs of a sensor, in the order of its channels."""
    if sensor.kind in ON_COORDINATE:
        return [Output(kind=sensor.kind, on=tree.coordinates.index(str(sensor.on)))]
    on, at = place_of(tree, sensor.on)
    if sensor.kind == "distance":
        to, to_at = place_of(tree, sensor.to or GROUND)
        return [Output(kind=sensor.kind, on=on, at=at, to=to, to_at=to_at)]
    if sensor.kind == "course":
        return [Output(kind=sensor.kind, on=on, at=at)]
    if sensor.kind == "yaw":
        axis = sensor.on.axis if isinstance(sensor.on, Marker) and sensor.on.axis else FORWARD
        return [Output(kind=sensor.kind, on=on, along=_triple(np.array(axis) / np.linalg.norm(axis)))]
    axes = np.eye(3)
    if sensor.has_own_axes and isinstance(sensor.on, Marker) and sensor.on.axis:
        axes = np.array(frame(sensor.on))
    if sensor.kind == "gyroscope":
        at = NOWHERE
    chosen = [_triple(axes["xyz".index(c)]) for c in sensor.components(3)]
    return [Output(kind=sensor.kind, on=on, at=at, along=u, own=sensor.has_own_axes) for u in chosen]


def place_of(tree: Tree, ref: PointRef) -> tuple[int, Triple]:
    """The number of a body, −1 for the ground, and a place on it; a body's name stands for its origin."""
    body, at = (ref.body, _triple(np.array(ref.at))) if isinstance(ref, Marker) else (ref, NOWHERE)
    return -1 if body == GROUND else tree.index(body), at


def _vec(x: Sequence[Scalar]) -> Vec:
    return (x[0], x[1], x[2])


def _triple(x: np.ndarray) -> Triple:
    return (float(x[0]), float(x[1]), float(x[2]))


def load_rows(
    tree: Tree, load: Load, o: Outward, frames: Sequence[tuple[Mat, Vec]], component: int, R: Mat = IDENTITY
) -> dict[int, Scalar]:
    """The generalised force of a unit of one component of a load: row → value; rows that it does not act on are left out.

    `o` and `frames`: poses of the bodies, from :func:`~veridyn.mechanics.tree.recursion.newton_euler.outward` and
    :func:`~veridyn.mechanics.tree.recursion.newton_euler.frames_in_root`. `R`: the attitude of a free base, in whose axes the ground's are
    seen.
    """
    if isinstance(load, Drive):
        return {tree.rows.index(load.coordinate): 1.0}
    unit = IDENTITY[component]
    if isinstance(load, Force):
        j, at = place_of(tree, load.at)
        f = rotate_back(frames[j][0], rotate_back(R, unit))
        return carry(tree, o, j, (f, cross(at, f)))
    rows: dict[int, Scalar] = {}
    for body, sign in ((load.body, 1.0), (load.against, -1.0)):
        if body != GROUND:
            j = tree.index(body)
            wrench: Wrench = (ZERO, rotate_back(frames[j][0], rotate_back(R, unit)))
            for r, value in carry(tree, o, j, wrench).items():
                rows[r] = add(rows.get(r, 0.0), mul(sign, value))
    return rows


def load_matrix(tree: Tree, q: ArrayLike, loads: Sequence[Load] | None = None) -> Array:
    """B (N, rows, components) with Q = B u, of configurations q (N, nq) as :mod:`veridyn.mechanics.tree.recursion.sensing` orders them.

    `loads`: by default ``tree.loads``; their components are in order, one of a drive and three of a force or torque.
    """
    chosen = tuple(tree.loads if loads is None else loads)
    faults = check_loads(chosen, [b.name for b in tree.bodies], tree.coordinates)
    if faults:
        raise ModelError(faults, tree.name)
    values, (nq, nv) = np.asarray(q, dtype=np.float64), sizes(tree)
    if values.ndim != 2 or values.shape[1] != nq:
        raise DataError(
            "wrong shape of the configurations.", where=tree.name, expected=f"(N, {nq})", found=f"{values.shape}"
        )
    still = [0.0] * nv
    m = moving(tree, list(np.ascontiguousarray(values.T)), still, still, ARRAYS)
    columns = [(load, k) for load in chosen for k in range(load.components)]
    B = np.zeros((len(values), len(tree.rows), len(columns)))
    for c, (load, k) in enumerate(columns):
        for r, value in load_rows(tree, load, m.o, m.frames, k, m.R).items():
            B[:, r, c] = value
    return B
