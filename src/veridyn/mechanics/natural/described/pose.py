"""Where the bodies of a mechanism start, and what their points and vectors fix of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.mechanics.natural.mechanism import Mechanism
from veridyn.model.names import GROUND
from veridyn.model.point_parts import RigidBody
from veridyn.spatial.rotations import rot_z

Array = NDArray[np.float64]
Pose = tuple[Array, Array]
NEW_DIRECTION_SINE = 1e-6  # sine from which on a direction counts as a new one, as in mechanics/natural


def in_space(x: ArrayLike) -> Array:
    """A place or direction of the plane as one in space; one in space as it is."""
    a = np.asarray(x, dtype=np.float64)
    return np.append(a, 0.0) if a.shape == (2,) else a


def body_directions(body: RigidBody) -> list[Array]:
    """Unit vectors along a body's vectors and from its first point to the others, in its frame."""
    points = [in_space(x) for x in body.points.values()]
    found = [x - points[0] for x in points[1:]] + [in_space(x) for x in body.vectors.values()]
    return [x / n for x in found if (n := float(np.linalg.norm(x))) > 0.0]


def rank_of(directions: Sequence[Array]) -> int:
    """How many of these directions are independent."""
    if not directions:
        return 0
    s = np.linalg.svd(np.column_stack(directions), compute_uv=False)
    return int((s > NEW_DIRECTION_SINE * s[0]).sum())


def orientation_left(body: RigidBody, dimension: int) -> int:
    """How many turns of a body its points and vectors do not show: 3 or 1 of a particle, 1 of a rod in space, else none."""
    rank = rank_of(body_directions(body))
    if dimension == 2:
        return 0 if rank else 1
    return {0: 3, 1: 1}.get(rank, 0)


def fitted_rotation(here: Sequence[Array], there: Sequence[Array]) -> Array:
    """The rotation that takes directions `there` nearest to those `here`; turns that they do not show are left out."""
    if not here:
        return np.eye(3)
    U, _, Vt = np.linalg.svd(sum((np.outer(g, x) for g, x in zip(here, there, strict=True)), np.zeros((3, 3))))
    return U @ np.diag([1.0, 1.0, np.sign(np.linalg.det(U @ Vt))]) @ Vt


def mechanism_poses(m: Mechanism) -> dict[str, Pose]:
    """Rotation and position of every body, and of the ground, about where the description starts them."""
    at = {p.name: in_space(p.at) for p in m.points} | {v.name: in_space(v.along) for v in m.vectors}
    poses: dict[str, Pose] = {GROUND: (np.eye(3), np.zeros(3))}
    for b in m.bodies:
        points = list(b.points)
        local = {name: in_space(x) for name, x in (*b.points.items(), *b.vectors.items())}
        here = [_unit(at[p] - at[points[0]]) for p in points[1:]] + [at[v] for v in b.vectors]
        there = [_unit(local[p] - local[points[0]]) for p in points[1:]] + [local[v] for v in b.vectors]
        if m.dimension == 2:
            turn = sum(float(x[0] * g[1] - x[1] * g[0]) for g, x in zip(here, there, strict=True))
            R = rot_z(float(np.arctan2(turn, sum(float(g @ x) for g, x in zip(here, there, strict=True)))))
        else:
            R = fitted_rotation(here, there)
        poses[b.name] = (R, np.mean([at[p] - R @ local[p] for p in points], axis=0))
    return poses


def _unit(x: Array) -> Array:
    return x / max(float(np.linalg.norm(x)), 1e-300)
