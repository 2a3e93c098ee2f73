"""Shapes to draw: the meshes of a URDF, and bodies as the solid ellipsoids that have their mass and inertia.

A solid ellipsoid of mass m with half-axes a, b, c has the principal moments I₁ = m (b² + c²)/5 and so on; solved for the half-axes,

    a² = 5 (I₂ + I₃ − I₁) / (2 m)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault, FileError
from veridyn.files.machine.urdf_visuals import UrdfVisual
from veridyn.files.mesh.load import load_mesh
from veridyn.model.machine import Machine

Array = NDArray[np.float64]
MOST_FACES = 200_000  # of one mesh
FLAT = 1e-6  # of the largest squared half-axis: rounding, where a body is a disc or a rod
THIN = 0.02  # of the largest half-axis: the least that is drawn
ROUND, TALL = 16, 10  # faces of a sphere along its two angles


@dataclass(frozen=True, eq=False)
class BodyMesh:
    """Triangles in the frame of a body: `vertices` (v, 3) in m, `faces` (f, 3)."""

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
    x, y, z = np.array(v.size) / 2.0
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
        raise DataError(Fault("it is too large to be shown.", where, f"{MOST_FACES} triangles", f"{len(made.faces)}"))
    return made.vertices, made.faces
