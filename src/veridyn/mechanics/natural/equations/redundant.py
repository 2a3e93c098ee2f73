"""Degrees of freedom at a pose, and constraints that follow from others: an independent set of rows to compute with, the rest by name.

A row that follows from others at one pose only marks a singular pose, and is needed everywhere else. One that follows from them all around
is redundant: where the rank of Φ_q is constant, the rows left out stay satisfied wherever the others are. Which rows are kept is a choice;
positions, velocities and accelerations do not depend on it, the multipliers do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr
from scipy.sparse import csr_array

from veridyn.arrays import Array
from veridyn.errors import Fault, ModelError, ModelWarning, warn
from veridyn.mechanics.natural.equations.constraints import CoefficientTable, Constraints
from veridyn.mechanics.natural.equations.position import TOLERANCE, nearest_closed
from veridyn.mechanics.natural.equations.system import NaturalSystem

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
