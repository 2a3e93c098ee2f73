"""Bodies as convex solids of few faces, small enough for a page: hulls of the shapes of a URDF, or of the ellipsoids of inertia.

A solid is the convex hull of the points of a body that lie farthest in `DIRECTIONS` directions, evenly spread over the sphere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Fault
from veridyn.files.machine.urdf_visuals import urdf_visuals
from veridyn.mechanics.tree.tree import Tree
from veridyn.view.meshes import BodyMesh, inertia_shapes, shapes_of

Array = NDArray[np.float64]
DIRECTIONS = 60  # at most so many corners, and twice as many faces
FLAT = 1e-3  # of its length: a thinner shape is given this thickness
GOLDEN = np.pi * (3.0 - np.sqrt(5.0))  # rad, the angle between neighbours of a spiral that covers a sphere evenly


@dataclass(frozen=True, eq=False)
class Solid:
    """A convex solid in the frame of a body: `vertices` (v, 3) in m, `faces` (f, 3), anticlockwise as seen from outside."""

    body: str
    vertices: Array
    faces: NDArray[np.int64]


def solids_of(tree: Tree, model: Path | None = None) -> tuple[list[Solid], list[Fault]]:
    """Solids of the shapes of a URDF file, and the ellipsoids of inertia of any other model; and what of the file cannot be read."""
    if model is None or model.suffix.lower() != ".urdf":
        return hulls(inertia_shapes(tree)), []
    visuals, faults = urdf_visuals(model)
    shapes, unread = shapes_of(visuals)
    own = {b.name for b in tree.bodies}
    return hulls([s for s in shapes if s.body in own]), [*faults, *unread]


def hulls(shapes: Sequence[BodyMesh]) -> list[Solid]:
    """A solid for each shape that has an extent."""
    return [solid for shape in shapes if (solid := hull(shape.body, shape.vertices)) is not None]


def hull(body: str, points: Array) -> Solid | None:
    """The solid around points (v, 3); None where they lie at one place."""
    from scipy.spatial import ConvexHull

    middle = 0.5 * (points.max(axis=0) + points.min(axis=0))
    size = float(np.linalg.norm(points - middle, axis=1).max(initial=0.0))
    if not size > 0.0:
        return None
    _, widths, axes = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
    thin = [a for a, w in zip(axes, np.append(widths, np.zeros(3))[:3]) if w < FLAT * widths[0]]
    for axis in thin:  # discs and rods
        points = np.concatenate([points + FLAT * size * axis, points - FLAT * size * axis])
    corners = points[np.unique(np.argmax(points @ directions().T, axis=0))]
    made = ConvexHull(corners)
    faces = made.simplices.astype(np.int64)
    a, b, c = (corners[faces[:, k]] for k in range(3))
    inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), made.equations[:, :3]) < 0.0
    faces[inward] = faces[inward][:, ::-1]
    return Solid(body, corners, faces)


def directions() -> Array:
    """Unit vectors (DIRECTIONS, 3), evenly spread."""
    k = np.arange(DIRECTIONS)
    z = 1.0 - (2.0 * k + 1.0) / DIRECTIONS
    r = np.sqrt(1.0 - z**2)
    return np.column_stack([r * np.cos(GOLDEN * k), r * np.sin(GOLDEN * k), z])
