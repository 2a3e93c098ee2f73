"""Capsules around the collision shapes of a URDF file: boxes, cylinders, spheres, and meshes.

A capsule contains its shape, and has the least volume of those about the shape's axis: with half-length c and radius ρ of a box or
cylinder, radius R from ρ to √(ρ² + c²) and half-length c − √(R² − ρ²) of the segment. Of a mesh, axes near its principal ones are tried.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar
from scipy.spatial import ConvexHull, QhullError

from veridyn.errors import FileError, ModelError
from veridyn.files.machine.urdf import read_urdf
from veridyn.files.machine.urdf_reader import UrdfReader
from veridyn.files.machine.urdf_visuals import mesh_file
from veridyn.files.machine.urdf_xml import XmlNode, bytes_of
from veridyn.files.mesh.load import load_mesh
from veridyn.identify.excitation.capsules import Capsule

Array = NDArray[np.float64]


@dataclass(frozen=True)
class UrdfShapes:
    """`capsules` of the links, and `missing`: link → why it has none."""

    capsules: tuple[Capsule, ...]
    missing: dict[str, str]


def urdf_capsules(path: str | Path) -> UrdfShapes:
    """Capsules that contain the collision shapes of every link of a URDF file, in the frame of the link."""
    file = Path(path)
    said = read_urdf(bytes_of(file), file.name)
    read = UrdfReader(said.faults)
    capsules: list[Capsule] = []
    missing: dict[str, str] = {}
    for name, link in said.links.items():
        shapes = [node for node in link.node.children if node.tag == "collision"]
        if not shapes:
            missing[name] = "it has no collision shape"
        for node in shapes:
            R, p = read.placed(node, f"link '{name}', collision")
            try:
                start, end, radius = _capsule(read, node, name, file)
            except _UnreadError as error:
                missing[name] = str(error)
                continue
            a, b = (tuple(float(v) for v in R @ x + p) for x in (start, end))
            capsules.append(Capsule(name, (a[0], a[1], a[2]), (b[0], b[1], b[2]), radius))
    if read.faults:
        raise ModelError(sorted(read.faults.found, key=lambda f: f.line or 0), file.name)
    return UrdfShapes(tuple(capsules), missing)


class _UnreadError(Exception):
    """A shape that cannot be read, and why."""


def _capsule(read: UrdfReader, node: XmlNode, name: str, file: Path) -> tuple[Array, Array, float]:
    """Ends and radius in the frame of the shape."""
    where = f"link '{name}', collision"
    geometry = node.first("geometry")
    shape = geometry.children[0] if geometry is not None and geometry.children else None
    if shape is None:
        raise _UnreadError("its collision has no geometry")
    if shape.tag == "sphere":
        return np.zeros(3), np.zeros(3), read.positive(shape, "radius", where)
    if shape.tag in ("cylinder", "capsule"):
        radius, length = read.positive(shape, "radius", where), read.positive(shape, "length", where)
        half, R = (length / 2.0, radius) if shape.tag == "capsule" else least_capsule(length / 2.0, radius)
        return np.array([0.0, 0.0, -half]), np.array([0.0, 0.0, half]), R
    if shape.tag == "box":
        size = read.three(shape, "size", where) / 2.0
        axis = int(np.argmax(size))
        half, R = least_capsule(float(size[axis]), float(np.linalg.norm(np.delete(size, axis))))
        end = half * np.eye(3)[axis]
        return -end, end, R
    if shape.tag == "mesh":
        scale = read.three(shape, "scale", where) if "scale" in shape.attributes else np.ones(3)
        return around_points(_vertices(shape.attributes.get("filename", ""), file) * scale)
    raise _UnreadError(f"its collision is a <{shape.tag}>, which is not read")


def least_capsule(half: float, radius: float) -> tuple[float, float]:
    """Half-length of the segment and radius of the capsule of least volume around a cylinder of this half-length and radius."""

    def segment(R: float) -> float:
        return max(half - np.sqrt(max(R * R - radius * radius, 0.0)), 0.0)

    def volume(R: float) -> float:
        return 2.0 * R * R * segment(R) + 4.0 / 3.0 * R**3

    found = minimize_scalar(volume, bounds=(radius, float(np.hypot(radius, half))), method="bounded")
    R = min((radius, float(found.x)), key=volume)
    return segment(R), R


def around_points(points: Array) -> tuple[Array, Array, float]:
    """Ends and radius of a capsule that contains points (N, 3), small by a search over its axis from the principal ones."""
    x = np.asarray(points, dtype=np.float64)
    with suppress(QhullError):  # flat, or fewer than four points: all of them count
        x = x[ConvexHull(x).vertices]
    middle = (x.max(axis=0) + x.min(axis=0)) / 2.0
    V = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)[2]
    size = max(float(np.ptp(x, axis=0).max()), 1e-9)

    def made(u: Array) -> tuple[Array, Array, float]:
        axis = u[3:] / np.linalg.norm(u[3:])
        y = x - (middle + size * u[:3])
        t = y @ axis
        rho = np.linalg.norm(y - t[:, None] * axis, axis=1)
        R = float(rho.max())
        reach = np.sqrt(np.maximum(R * R - rho**2, 0.0))
        high, low = float((t - reach).max()), float((t + reach).min())
        low, high = (low, high) if low <= high else ((low + high) / 2.0,) * 2
        if low == high:
            R = float(np.linalg.norm(y - low * axis, axis=1).max())
        origin = middle + size * u[:3]
        return origin + low * axis, origin + high * axis, R

    def volume(u: Array) -> float:
        a, b, R = made(u)
        return float(R * R * np.linalg.norm(b - a) + 4.0 / 3.0 * R**3) / size**3

    best = min(
        (
            minimize(volume, np.concatenate([np.zeros(3), axis]), method="Nelder-Mead", options={"maxiter": 400})
            for axis in V
        ),
        key=lambda found: float(found.fun),
    )
    return made(np.asarray(best.x, dtype=np.float64))


def _vertices(name: str, file: Path) -> Array:
    """The vertices (N, 3) of a mesh file that a URDF names."""
    found = mesh_file(name, file)
    if found is None:
        raise _UnreadError(f"its mesh {name or 'without a filename'} is not found")
    try:
        return load_mesh(found).vertices
    except FileError as error:
        said = str(error).replace("\n", " ").rstrip(".")
        raise _UnreadError(f"its mesh {found.name} cannot be read ({said})") from None
