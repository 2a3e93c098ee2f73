"""Freedoms of a machine in natural coordinates that has a free base: a change of its pose and of some added coordinates.

    ż = E(q) q̇,    Φ_q q̇ = ġ        q̇ = R ż + …,    E R = 1,    Φ_q R = 0

z are the base's place (ground's axes), its attitude, counted by turns about its own axes, and added coordinates. Rows of E are constant
but for those of turns, ω_a = yᵀ G_a q̇, so that no attitude is singular: these are the freedoms that the same machine has as a tree. An
instant over them comes with what acts there and the matrix it is solved with.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lu_factor, lu_solve

from veridyn.arrays import Array
from veridyn.errors import DataError, ModelError, SimulationError
from veridyn.mechanics.formulation import Instant
from veridyn.mechanics.natural.equations.position import position as closed_pose
from veridyn.mechanics.natural.equations.system import NaturalSystem
from veridyn.mechanics.tree.recursion.kinematics import body_pose
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.place import GROUND

BASE_PLACES, BASE_TURNS = ("base.x", "base.y", "base.z"), ("base.roll", "base.pitch", "base.yaw")
CLOSED = 1e-9  # relative: by how much a tree's state may miss the constraints


@dataclass(frozen=True, eq=False)
class Freedoms:
    """Freedoms by name; `linear` (f, n): constant rows of E; `turning` (3, n+1, n): forms of turns, rows 3 to 5 of a free base."""

    names: tuple[str, ...]
    body: str
    linear: Array
    turning: Array
    place: Array  # (3, n+1) the base's origin
    axes: Array  # (3, 3, n+1) its axes, where it is free

    @property
    def f(self) -> int:
        return len(self.names)

    @property
    def free(self) -> bool:
        """Whether the base is free."""
        return len(self.turning) > 0

    def rows(self, q: Array) -> Array:
        """E (f, n)."""
        E = self.linear.copy()
        if self.free:
            E[3:6] = np.append(q, 1.0) @ self.turning
        return E

    def bend(self, u: Array, v: Array) -> Array:
        """∂(E v)/∂q u (f,): symmetric but for turns."""
        out = np.zeros(self.f)
        if self.free:
            out[3:6] = u @ self.turning[:, :-1] @ v
        return out

    def attitude(self, q: Array) -> Array:
        """The rotation (…, 3, 3) of the base: its axes in the ground's frame, as columns."""
        y = np.concatenate([q, np.ones((*q.shape[:-1], 1))], axis=-1)
        return np.einsum("aik,...k->...ia", self.axes, y)

    def position(self, q: Array) -> Array:
        """(…, 3)."""
        y = np.concatenate([q, np.ones((*q.shape[:-1], 1))], axis=-1)
        return np.einsum("ik,...k->...i", self.place, y)

    def r_matrix(self, system: NaturalSystem, q: Array) -> Array:
        """R (n, f)."""
        J = system.constraints.jacobian(q)
        right = np.zeros((len(J) + self.f, self.f))
        right[len(J) :] = np.eye(self.f)
        return self._solved(system, J, q, right)

    def rates(self, system: NaturalSystem, q: Array, zd: Array) -> Array:
        """q̇ (n,) with these rates of the freedoms, prescribed coordinates as the system holds them."""
        J = system.constraints.jacobian(q)
        return self._solved(system, J, q, np.concatenate([system.constraints.rates, zd])[:, None])[:, 0]

    def _solved(self, system: NaturalSystem, J: Array, q: Array, right: Array) -> Array:
        A = np.vstack([J, self.rows(q)])
        x = np.linalg.lstsq(A, right, rcond=None)[0]
        off = float(np.abs(A @ x - right).max(initial=0.0))
        if not off <= CLOSED * max(1.0, float(np.abs(right).max(initial=0.0))):
            raise DataError(
                "these freedoms do not determine its motion here.",
                where=system.mechanism.name,
                expected=f"a pose away from where {', '.join(self.names)} lose their hold",
                found=f"rates that miss the constraints by {off:.3g}",
            )
        return np.asarray(x, dtype=np.float64)


def freedoms_of(system: NaturalSystem, tree: Tree, names: Iterable[str]) -> Freedoms:
    """The freedoms of a machine whose base is that of the tree, and of these added coordinates."""
    m, g, n = system.mechanism, system.geometry, system.n
    joints = tuple(names)
    missing = [name for name in joints if name not in m.coordinates]
    if missing:
        raise ModelError(
            f"natural coordinates have no coordinate '{missing[0]}' here.",
            where=m.name,
            expected="added angles and distances",
            hint="Give the coordinate a name of its own in its joint, so that it is added.",
        )
    units = np.zeros((len(joints), n))
    units[range(len(joints)), [m.index(name) for name in joints]] = 1.0
    body = tree.bodies[0].name
    if tree.base != "free":
        none = np.zeros((0, 3, n + 1))
        return Freedoms(joints, GROUND, units, np.zeros((0, n + 1, n)), np.zeros((3, n + 1)), none)
    place = g.on_body(body, np.zeros(3))
    axes = np.array([g.along(body, axis) for axis in np.eye(3)])
    turning = np.zeros((3, n + 1, n))
    for a in range(3):  # ω_a = ½ (ḃ·c − b·ċ) of the two axes b and c after a
        b, c = axes[(a + 1) % 3], axes[(a + 2) % 3]
        turning[a] = 0.5 * (c.T @ b[:, :-1] - b.T @ c[:, :-1])
    linear = np.vstack([place[:, :-1], np.zeros((3, n)), units])
    return Freedoms((*BASE_PLACES, *BASE_TURNS, *joints), body, linear, turning, place, axes)


def pose_of_tree(
    system: NaturalSystem, tree: Tree, q: Array, position: Array | None = None, attitude: Array | None = None
) -> Array:
    """The natural coordinates (n,) of a closed configuration (n,) of the same machine as a tree, its base at a pose in the ground's frame.

    Added angles are as the tree has them, full turns included; what the tree does not have follows from the rest. A configuration that
    is not closed is refused.
    """
    m = system.mechanism
    dimension = m.dimension
    R0 = np.eye(3) if attitude is None else attitude
    p0 = np.zeros(3) if position is None else position
    poses = {}
    for link in {b.name for b in m.bodies} & {b.name for b in tree.bodies}:
        R, p = body_pose(tree, q[None], link)
        poses[link] = R0 @ R[0], p0 + R0 @ p[0]
    out, at, derived, known = system.guess.copy(), 0, dict(m.derived), np.ones(m.n, dtype=np.bool_)
    for kind, elements in (("points", m.points), ("vectors", m.vectors)):
        for e in elements:
            if e.fixed or e.name in derived:
                continue
            owner = next((b for b in m.bodies if b.name in poses and e.name in getattr(b, kind)), None)
            if owner is None:
                known[at : at + dimension] = False
            else:
                R, p = poses[owner.name]
                local = R[:, :dimension] @ np.asarray(getattr(owner, kind)[e.name], dtype=np.float64)
                out[at : at + dimension] = (p + local if kind == "points" else local)[:dimension]
            at += dimension
    for a in m.added:
        if a.name in tree.coordinates:
            out[at] = q[tree.coordinates.index(a.name)]
        else:
            known[at] = False
        at += 1
    held = system.holding({name: out[m.index(name)] for name in m.prescribed})
    if not known.all():
        given = {name: float(x) for name, x, yes in zip(m.coordinates, out, known, strict=True) if yes}
        return closed_pose(held, given, out)
    off = float(np.abs(held.constraints.values(out)).max(initial=0.0))
    if not off <= CLOSED * max(1.0, float(np.abs(out).max()) ** 2):
        raise DataError(
            "this configuration is not closed.", where=m.name, found=f"constraints that are open by {off:.3g}"
        )
    return out


@dataclass(frozen=True, eq=False)
class FreeInstant(Instant):
    """An instant over freedoms; `u`: unknown forces and slips there, `slopes` (f + 2w, 2f + k): derivatives of z̈ and of slip rates."""

    u: Array
    slopes: Array


@dataclass(frozen=True, eq=False)
class FreeInputs:
    """What acts: `values` of the loads, and place, rate and acceleration (3, p) of prescribed coordinates."""

    values: Array
    motion: Array

    def later(self, dt: float) -> FreeInputs:
        """Prescribed coordinates go on with their accelerations."""
        q, qd, qdd = self.motion
        return FreeInputs(self.values, np.array([q + dt * qd + 0.5 * dt**2 * qdd, qd + dt * qdd, qdd]))


class BorderedFactors:
    """The factorised [M Φ_qᵀ; Φ_q 0] of a system, with rows of one length."""

    def __init__(self, system: NaturalSystem, J: Array) -> None:
        n, m = system.n, len(J)
        B = np.zeros((n + m, n + m))
        B[:n, :n], B[:n, n:], B[n:, :n] = system.mass, J.T, J
        self._factors = lu_factor(B, check_finite=False)
        self._name = system.mechanism.name

    def __call__(self, right: Array) -> Array:
        x = lu_solve(self._factors, right, check_finite=False)
        if not np.isfinite(x).all():
            raise SimulationError(
                "its accelerations are not determined here.",
                where=self._name,
                expected="independent constraints, and mass behind every freedom",
                found="a singular matrix, or a state that is not finite",
            )
        return np.asarray(x, dtype=np.float64)
