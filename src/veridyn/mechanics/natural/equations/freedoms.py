"""Degrees of freedom in natural coordinates: at a pose, without constraints that follow from others; and those of a machine's free base.

A row that follows from others at one pose only marks a singular pose, and is needed everywhere else. One that follows from them all around
is redundant: where the rank of Φ_q is constant, the rows left out stay satisfied wherever the others are. Which rows are kept is a choice;
positions, velocities and accelerations do not depend on it, the multipliers do.

Freedoms of a machine with a free base are a change of its pose and of some added coordinates,

    ż = E(q) q̇,    Φ_q q̇ = ġ        q̇ = R ż + …,    E R = 1,    Φ_q R = 0

z are the base's place (ground's axes), its attitude, counted by turns about its own axes, and added coordinates. Rows of E are constant
but for those of turns, ω_a = yᵀ G_a q̇, so that no attitude is singular: these are the freedoms that the same machine has as a tree. An
instant over them comes with what acts there and the matrix it is solved with.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lu_factor, lu_solve, qr
from scipy.sparse import csr_array

from veridyn.arrays import Array
from veridyn.errors import DataError, Fault, ModelError, ModelWarning, SimulationError, warn
from veridyn.mechanics.formulation import Instant
from veridyn.mechanics.natural.equations.constraints import CoefficientTable, Constraints
from veridyn.mechanics.natural.equations.position import TOLERANCE, nearest_closed
from veridyn.mechanics.natural.equations.position import position as closed_pose
from veridyn.mechanics.natural.equations.system import NaturalSystem
from veridyn.mechanics.tree.recursion.kinematics import body_pose
from veridyn.mechanics.tree.steps.states import BASE_NAMES
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.place import GROUND

RANK = 1e-9  # of the largest singular value, rows scaled to length one
Indices = NDArray[np.intp]
SECOND_POSE_OFFSET = 0.02  # of the mechanism's size: how far aside the rank is looked at again
BODY_ROW_PREFERENCE = 10.0  # rows of bodies and coordinates are kept rather than those of joints


@dataclass(frozen=True)
class Mobility:
    """Rank of Φ_q by singular values, degrees of freedom, and the redundant constraints by name.

    `gap`: the last singular value kept and the first dropped, of Φ_q with rows of length one. `redundant` holds each constraint that
    follows from those before it, and `among` the constraints it follows from.
    """

    rank: int
    degrees_of_freedom: int
    gap: tuple[float, float]
    redundant: tuple[str, ...]
    among: tuple[tuple[str, ...], ...]


def mobility(system: NaturalSystem, q: Array) -> Mobility:
    """Rank and redundancy of the constraints at a pose that satisfies them; a singular pose counts as redundant while it lasts."""
    J = unit_rows(system.constraints.jacobian(q))
    m, n = J.shape
    s = np.linalg.svd(J, compute_uv=False) if m else np.zeros(0)
    rank = int((s > RANK * max(s.max(initial=0.0), 1e-300)).sum())
    gap = (float(s[rank - 1]) if rank else 0.0, float(s[rank]) if rank < len(s) else 0.0)
    redundant: list[str] = []
    among: list[tuple[str, ...]] = []
    if rank < m:
        names, kept = system.constraints.names, np.zeros((0, n))
        kept_rows: list[int] = []
        for i in range(m):
            weights = np.linalg.lstsq(kept.T, J[i], rcond=None)[0] if len(kept) else np.zeros(0)
            left = J[i] - weights @ kept
            if np.linalg.norm(left) > 1e3 * RANK:
                kept = np.vstack([kept, J[i]])
                kept_rows.append(i)
                continue
            redundant.append(names[i])
            among.append(tuple(names[k] for k, w in zip(kept_rows, weights, strict=True) if abs(w) > 1e-6))
    return Mobility(rank, n - rank, gap, tuple(redundant), tuple(among))


def unit_rows(J: Array) -> Array:
    """Φ_q with rows of length one, so that a rank does not hang on units and sizes; rows of zeros stay."""
    length = np.linalg.norm(J, axis=1)
    return J / np.where(length > 0.0, length, 1.0)[:, None]


def refuse_redundant(system: NaturalSystem, q: Array) -> Mobility:
    """The mobility, or a :class:`~veridyn.errors.ModelError` that names every redundant constraint and what it follows from."""
    found = mobility(system, q)
    if found.redundant:
        owner = dict(zip(system.constraints.names, system.constraints.owners, strict=True))
        raise ModelError(
            [
                Fault(
                    f"the constraint '{name}' is redundant at this pose.",
                    where=owner[name],
                    found="it follows from " + (", ".join(f"'{a}'" for a in others) or "nothing: it is zero"),
                    hint="Leave it out, or leave the singular pose; the augmented Lagrangian forms also run with it.",
                )
                for name, others in zip(found.redundant, found.among, strict=True)
            ],
            system.mechanism.name,
        )
    return found


@dataclass(frozen=True, eq=False)
class Reduced(NaturalSystem):
    """A mechanism over an independent set `rows` of the constraints of `whole`; made by :func:`independent_rows`.

    `poses`: where the set was chosen, and around it.
    """

    whole: NaturalSystem
    rows: Indices
    poses: tuple[Array, ...]

    @property
    def left_out(self) -> tuple[str, ...]:
        """Names of the constraints that follow from the others."""
        kept = set(self.rows.tolist())
        return tuple(name for i, name in enumerate(self.whole.constraints.names) if i not in kept)

    def spread(self, of_rows: Array) -> Array:
        """Values (…, rows) of the kept rows as ones of all of them (…, m), zero for the rest."""
        out = np.zeros((*of_rows.shape[:-1], self.whole.constraints.m))
        out[..., self.rows] = of_rows
        return out

    def undetermined(self, q: Array) -> Array:
        """Columns (m, d) of multipliers of all rows that make no force at a pose: undetermined by the equations."""
        J = self.whole.constraints.jacobian(q)
        U, s, _ = np.linalg.svd(unit_rows(J))
        rank = int((s > RANK * max(s.max(initial=0.0), 1e-300)).sum())
        length = np.linalg.norm(J, axis=1)
        return U[:, rank:] / np.where(length > 0.0, length, 1.0)[:, None]


def independent_rows(system: NaturalSystem, q: Array) -> NaturalSystem:
    """`system`, or with redundant constraints a :class:`Reduced` one, after a warning that names those that are left out.

    The pose satisfies all constraints. At a singular pose, where a constraint follows from others only while it lasts, it is refused by
    name. Among the sets tried, the one kept is farthest from losing rank at the pose and around it.
    """
    if not mobility(system, q).redundant:
        return system
    whole = system.whole if isinstance(system, Reduced) else system
    found = mobility(whole, q)
    poses = [q, *_around(whole, q, found.rank)]
    matrices = [unit_rows(whole.constraints.jacobian(p)) for p in poses]
    if any(_values(J)[found.rank :].max(initial=0.0) > RANK for J in matrices):
        refuse_redundant(whole, q)  # more rank aside: the pose is singular
    weight = np.array(
        [1.0 if owner.startswith("joint ") else BODY_ROW_PREFERENCE for owner in whole.constraints.owners]
    )
    choices = [_pivoted(J * weight[:, None], found.rank) for J in matrices]
    rows = max(choices, key=lambda rows: min(_values(J[rows]).min(initial=np.inf) for J in matrices))
    reduced = Reduced(
        whole.mechanism,
        whole.geometry,
        subset(whole.constraints, rows),
        whole.mass,
        whole.forces,
        whole,
        rows,
        tuple(poses),
        parameters=whole.parameters,
    )
    owners = dict(zip(whole.constraints.names, whole.constraints.owners, strict=True))
    warn(
        ModelWarning,
        Fault(
            "some constraints say nothing new, and the observer goes on without them.",
            where=whole.mechanism.name,
            found=", ".join(f"'{name}' ({owners[name]})" for name in reduced.left_out)
            + f" besides {found.rank} others that imply them",
            hint="Motions do not depend on which are left out; forces in joints may not be determined.",
        ),
    )
    return reduced


def subset(constraints: Constraints, rows: Indices) -> Constraints:
    """The constraints of these rows, in the order they had."""
    rows, plain = np.sort(rows), constraints.quadratic.rows
    angles = rows[rows >= plain] - plain
    return Constraints(
        constraints.n,
        tuple(constraints.names[i] for i in rows),
        tuple(constraints.owners[i] for i in rows),
        _chosen(constraints.quadratic, rows[rows < plain]),
        _chosen(constraints.angles, (3 * angles[:, None] + np.arange(3)).reshape(-1)),
        constraints.places[angles],
    )


def _chosen(table: CoefficientTable, rows: Indices) -> CoefficientTable:
    number = np.full(table.rows, -1, dtype=np.intp)
    number[rows] = np.arange(len(rows))
    entries, bends = np.flatnonzero(number[table.row] >= 0), np.flatnonzero(number[table.bend_row] >= 0)
    column = table.column[entries]
    return CoefficientTable(
        len(rows),
        table.n,
        number[table.row[entries]],
        column,
        csr_array(table.gather[entries]),
        np.flatnonzero(column < table.n),
        number[table.bend_row[bends]],
        table.bend_place[bends],
        table.bend_value[bends],
    )


def _around(system: NaturalSystem, q: Array, rank: int) -> list[Array]:
    """Closed poses on both sides of q along each direction of motion."""
    free = np.linalg.svd(unit_rows(system.constraints.jacobian(q)))[2][rank:]
    size, found = max(1.0, float(np.abs(q).max(initial=0.0))), []
    for direction in free:
        for sign in (1.0, -1.0):
            pose, residual = nearest_closed(system, q + sign * SECOND_POSE_OFFSET * size * direction)
            if residual <= TOLERANCE * size**2:
                found.append(pose)
    return found


def _pivoted(J: Array, rank: int) -> Indices:
    _, pivots = cast(tuple[Array, Indices], qr(J.T, mode="r", pivoting=True))
    return np.sort(pivots[:rank])


def _values(J: Array) -> Array:
    return np.asarray(np.linalg.svd(J, compute_uv=False), dtype=np.float64)


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
    return Freedoms((*BASE_NAMES, *joints), body, linear, turning, place, axes)


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
