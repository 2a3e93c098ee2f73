"""Shapes to draw: the meshes of a URDF, and bodies as the solid ellipsoids that have their mass and inertia.

A solid ellipsoid of mass m with half-axes a, b, c has the principal moments I₁ = m (b² + c²)/5 and so on; solved for the half-axes,

    a² = 5 (I₂ + I₃ − I₁) / (2 m)

For a page both become convex solids of few faces. A solid is the convex hull of the points of a body that lie farthest in `DIRECTIONS`
directions, spread evenly over the sphere once the principal extents of the body are scaled to one, so that a disc has corners on both
faces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import DataError, Fault, FileError
from veridyn.files.machine.urdf_shapes import UrdfVisual, urdf_visuals
from veridyn.files.meshes import load_mesh
from veridyn.model.machine import Machine

MOST_FACES = 200_000  # of one mesh
FLAT = 1e-6  # of the largest squared half-axis: rounding, where a body is a disc or a rod
THIN = 0.02  # of the largest half-axis: the least that is drawn
ROUND, TALL = 16, 10  # faces of a sphere along its two angles
DIRECTIONS = 60  # at most so many corners, and twice as many faces
LEAST_THICKNESS = 1e-3  # of its length: a thinner shape is given this thickness
ROUNDING = 1e-12  # of the distance from the body's origin: points that are nearer to each other lie at one place
GOLDEN = np.pi * (3.0 - np.sqrt(5.0))  # rad, the angle between neighbours of a spiral that covers a sphere evenly


@dataclass(frozen=True, eq=False)
class BodyMesh:
    """Triangles in the frame of a body: `vertices` (v, 3) in m, `faces` (f, 3), of solids anticlockwise as seen from outside."""

    body: str
    vertices: Array
    faces: NDArray[np.int64]


def shapes_of(visuals: Sequence[UrdfVisual]) -> tuple[list[BodyMesh], list[Fault]]:
    """The triangles of each visual in its link's frame, and a fault for each that cannot be read."""
    found: list[BodyMesh] = []
    faults: list[Fault] = []
    for v in visuals:
        try:
            vertices, faces = _triangles(v)
        except DataError as error:
            faults += error.faults
            continue
        found.append(BodyMesh(v.link, vertices @ v.rotation.T + v.position, faces))
    return found, faults


def inertia_shapes(machine: Machine) -> list[BodyMesh]:
    """The solid ellipsoid of each body with a mass and a possible inertia, in the body's frame."""
    p, found = machine.parameters, []
    for b in machine.links:
        if not b.real:
            continue
        XX, XY, XZ, YY, YZ, ZZ, X, Y, Z, m = (
            p[b.parameter(s)] for s in ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M")
        )
        I = np.array([[XX, XY, XZ], [XY, YY, YZ], [XZ, YZ, ZZ]])
        if not (np.isfinite(I).all() and np.isfinite([X, Y, Z, m]).all() and m > 0.0):
            continue
        c = np.array([X, Y, Z]) / m
        with np.errstate(over="ignore", invalid="ignore"):
            about_centre = I - m * (c @ c * np.eye(3) - np.outer(c, c))
        if not np.isfinite(about_centre).all():
            continue
        values, axes = np.linalg.eigh(about_centre)
        squares = 2.5 / m * (values.sum() - 2.0 * values)
        if (squares < -FLAT * squares.max()).any():
            continue  # no body has this inertia
        unit, faces = sphere()
        half = np.sqrt(np.maximum(squares, 0.0))
        found.append(BodyMesh(b.name, (unit * np.maximum(half, THIN * half.max())) @ axes.T + c, faces))
    return found


def sphere() -> tuple[Array, NDArray[np.int64]]:
    """A sphere of radius 1 as triangles."""
    polar = np.pi * np.arange(TALL + 1) / TALL
    turn = 2.0 * np.pi * np.arange(ROUND) / ROUND
    ring = np.stack([np.cos(turn), np.sin(turn)], axis=-1)
    points = [np.column_stack([np.sin(a) * ring, np.full(ROUND, np.cos(a))]) for a in polar]
    return np.concatenate(points), _rings(TALL)


def _rings(count: int) -> NDArray[np.int64]:
    """Triangles between `count` + 1 rings of points."""
    faces = []
    for i in range(count):
        for k in range(ROUND):
            a, b = i * ROUND + k, i * ROUND + (k + 1) % ROUND
            faces += [(a, a + ROUND, b), (b, a + ROUND, b + ROUND)]
    return np.array(faces, dtype=np.int64)


def _triangles(v: UrdfVisual) -> tuple[Array, NDArray[np.int64]]:
    if v.kind == "mesh":
        vertices, faces = _mesh(v)
        return vertices * np.array(v.scale), faces
    if v.kind == "sphere":
        unit, faces = sphere()
        return v.size[0] * unit, faces
    if v.kind == "cylinder":
        radius, length = v.size
        turn = 2.0 * np.pi * np.arange(ROUND) / ROUND
        ring = radius * np.column_stack([np.cos(turn), np.sin(turn), np.zeros(ROUND)])
        rings = [np.zeros((ROUND, 3)), ring, ring, np.zeros((ROUND, 3))]
        ends = [-length / 2.0, -length / 2.0, length / 2.0, length / 2.0]
        return np.concatenate([r + np.array([0.0, 0.0, z]) for r, z in zip(rings, ends)]), _rings(3)
    return box(np.array(v.size))


def box(size: Array) -> tuple[Array, NDArray[np.int64]]:
    """A box about the origin with edges of lengths `size` (3,) as triangles."""
    x, y, z = size / 2.0
    corners = np.array([(a, b, c) for a in (-x, x) for b in (-y, y) for c in (-z, z)])
    sides = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    return corners, np.array([t for a, b, c, d in sides for t in ((a, b, c), (a, c, d))], dtype=np.int64)


def _mesh(v: UrdfVisual) -> tuple[Array, NDArray[np.int64]]:
    """Vertices and faces of a mesh file, in the unit of the file."""
    assert v.file is not None
    where = f"link '{v.link}', mesh {v.file}"
    try:
        made = load_mesh(v.file)
    except FileError as error:
        raise DataError([replace(fault, where=where) for fault in error.faults]) from error
    if len(made.faces) > MOST_FACES:
        raise DataError(
            "it is too large to be shown.", where=where, expected=f"{MOST_FACES} triangles", found=f"{len(made.faces)}"
        )
    return made.vertices, made.faces


def solids_of(machine: Machine, model: Path | None = None) -> tuple[list[BodyMesh], list[Fault]]:
    """Solids of the shapes of a URDF file, and the ellipsoids of inertia of any other model; and what of the file cannot be read."""
    if model is None or model.suffix.lower() != ".urdf":
        return hulls(inertia_shapes(machine)), []
    visuals, faults = urdf_visuals(model)
    shapes, unread = shapes_of(visuals)
    return hulls([s for s in shapes if s.body in machine.by_name]), [*faults, *unread]


def hulls(shapes: Sequence[BodyMesh]) -> list[BodyMesh]:
    """A solid for each shape that has an extent."""
    return [solid for shape in shapes if (solid := hull(shape.body, shape.vertices)) is not None]


def hull(body: str, points: Array) -> BodyMesh | None:
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
    for k in np.flatnonzero(extents < LEAST_THICKNESS):  # discs and rods
        thickness = LEAST_THICKNESS * np.eye(3)[k]
        along = np.concatenate([along + thickness, along - thickness])
    scaled = along / np.maximum(extents, LEAST_THICKNESS)
    chosen = np.unique(np.argmax(scaled @ directions().T, axis=0))
    # The points farthest off the plane nearest to the corners: with them the solid has a volume, however few points stand out.
    height = scaled @ _principal_axes(scaled[chosen])[:, 0]
    chosen = np.unique([*chosen, np.argmax(height), np.argmin(height)])
    corners = along[chosen] @ axes.T
    faces = ConvexHull(scaled[chosen]).simplices.astype(np.int64)
    a, b, c = (corners[faces[:, k]] for k in range(3))
    inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), a - corners.mean(axis=0)) < 0.0
    faces[inward] = faces[inward][:, ::-1]
    return BodyMesh(body, size * corners + middle, faces)


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
