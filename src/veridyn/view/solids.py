"""Bodies as convex solids of few faces, small enough for a page: hulls of the shapes of a URDF, or of the ellipsoids of inertia.

A solid is the convex hull of the points of a body that lie farthest in `DIRECTIONS` directions, spread evenly over the sphere once the
principal extents of the body are scaled to one, so that a disc has corners on both faces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Fault
from veridyn.files.machine.urdf_visuals import urdf_visuals
from veridyn.model.machine import Machine
from veridyn.view.meshes import BodyMesh, inertia_shapes, shapes_of

Array = NDArray[np.float64]
DIRECTIONS = 60  # at most so many corners, and twice as many faces
FLAT = 1e-3  # of its length: a thinner shape is given this thickness
ROUNDING = 1e-12  # of the distance from the body's origin: points that are nearer to each other lie at one place
GOLDEN = np.pi * (3.0 - np.sqrt(5.0))  # rad, the angle between neighbours of a spiral that covers a sphere evenly


@dataclass(frozen=True, eq=False)
class Solid:
    """A convex solid in the frame of a body: `vertices` (v, 3) in m, `faces` (f, 3), anticlockwise as seen from outside."""

    body: str
    vertices: Array
    faces: NDArray[np.int64]


def solids_of(machine: Machine, model: Path | None = None) -> tuple[list[Solid], list[Fault]]:
    """Solids of the shapes of a URDF file, and the ellipsoids of inertia of any other model; and what of the file cannot be read."""
    if model is None or model.suffix.lower() != ".urdf":
        return hulls(inertia_shapes(machine)), []
    visuals, faults = urdf_visuals(model)
    shapes, unread = shapes_of(visuals)
    return hulls([s for s in shapes if s.body in machine.by_name]), [*faults, *unread]


def hulls(shapes: Sequence[BodyMesh]) -> list[Solid]:
    """A solid for each shape that has an extent."""
    return [solid for shape in shapes if (solid := hull(shape.body, shape.vertices)) is not None]


def hull(body: str, points: Array) -> Solid | None:
    """The solid around points (v, 3); None where they lie at one place.

    Hulls are the same in any affine frame: corners are chosen and joined where the extents along the principal axes are one.
    """
    from scipy.spatial import ConvexHull

    middle = 0.5 * (points.max(axis=0) + points.min(axis=0))
    local = points - middle
    size = float(np.abs(local).max(initial=0.0))
    if not size > ROUNDING * float(np.abs(points).max(initial=0.0)):
        return None
    local = local / size
    axes = _principal_axes(local)
    along = local @ axes
    extents = 0.5 * np.ptp(along, axis=0)
    for k in np.flatnonzero(extents < FLAT):  # discs and rods
        thickness = FLAT * np.eye(3)[k]
        along = np.concatenate([along + thickness, along - thickness])
    scaled = along / np.maximum(extents, FLAT)
    chosen = np.unique(np.argmax(scaled @ directions().T, axis=0))
    # The points farthest off the plane nearest to the corners: with them the solid has a volume, however few points stand out.
    height = scaled @ _principal_axes(scaled[chosen])[:, 0]
    chosen = np.unique([*chosen, np.argmax(height), np.argmin(height)])
    corners = along[chosen] @ axes.T
    faces = ConvexHull(scaled[chosen]).simplices.astype(np.int64)
    a, b, c = (corners[faces[:, k]] for k in range(3))
    inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), a - corners.mean(axis=0)) < 0.0
    faces[inward] = faces[inward][:, ::-1]
    return Solid(body, size * corners + middle, faces)


def _principal_axes(points: Array) -> Array:
    """Columns (3, 3): the directions in which points spread, the least first."""
    centred = points - points.mean(axis=0)
    return np.linalg.eigh(centred.T @ centred)[1]


def directions() -> Array:
    """Unit vectors (DIRECTIONS − 2, 3), evenly spread; two more are found for each body."""
    count = DIRECTIONS - 2
    k = np.arange(count)
    z = 1.0 - (2.0 * k + 1.0) / count
    r = np.sqrt(1.0 - z**2)
    return np.column_stack([r * np.cos(GOLDEN * k), r * np.sin(GOLDEN * k), z])
