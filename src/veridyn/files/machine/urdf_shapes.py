"""Shapes of the links of a URDF file: what they look like, and capsules around what collides.

Meshes, boxes, cylinders and spheres to be seen are placed in their link's frame (:func:`urdf_visuals`).

A capsule contains its collision shape, and has the least volume of those about the shape's axis: with half-length c and radius ρ of a box
or cylinder, radius R from ρ to √(ρ² + c²) and half-length c − √(R² − ρ²) of the segment. Of a mesh, axes near its principal ones are tried.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.spatial import ConvexHull, QhullError

from veridyn.arrays import Array
from veridyn.errors import Fault, FileError, ModelError
from veridyn.files.machine.urdf import read_urdf
from veridyn.files.machine.urdf_reader import UrdfReader
from veridyn.files.machine.urdf_xml import XmlNode, bytes_of, parse_xml
from veridyn.files.meshes import load_mesh
from veridyn.identify.excitation.capsules import Capsule
from veridyn.spatial.rotations import rpy

PACKAGES = ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH")
SHAPES = {"box": ("size",), "cylinder": ("radius", "length"), "sphere": ("radius",), "mesh": ("filename",)}


@dataclass(frozen=True, eq=False)
class UrdfVisual:
    """One shape of a link: `kind` is mesh, box, cylinder or sphere; `size` its edges, radius and length, or radius, in m.

    `rotation` (3, 3) and `position` (3,) place it in the link's frame. Of a mesh, `file` is where it is and `scale` (3,) its factors.
    """

    link: str
    kind: str
    rotation: Array
    position: Array
    size: tuple[float, ...] = ()
    file: Path | None = None
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)


def urdf_visuals(path: str | Path) -> tuple[list[UrdfVisual], list[Fault]]:
    """The shapes of a file, and what is wrong with others: a mesh that is not found, a size that is no number."""
    file = Path(path)
    root = parse_xml(bytes_of(file), file.name)
    found: list[UrdfVisual] = []
    faults: list[Fault] = []
    for link in root.children:
        if link.tag != "link":
            continue
        name = link.attributes.get("name", "")
        for node in link.children:
            if node.tag == "visual":
                made = _visual(node, name, file)
                (found if isinstance(made, UrdfVisual) else faults).append(made)  # pyright: ignore[reportArgumentType]
    return found, faults


def mesh_file(name: str, urdf: Path) -> Path | None:
    """Where a mesh is: beside the URDF file, or in a package of that name above it or on the path of packages; None where nowhere."""
    if not name.startswith("package://"):
        given = urdf.parent / name.removeprefix("file://")
        return given if given.is_file() else None
    rest = name.removeprefix("package://")
    package, _, inner = rest.partition("/")
    folders = [p for parent in urdf.resolve().parents for p in (parent / rest, parent.parent / rest)]
    folders += [parent / inner for parent in urdf.resolve().parents if parent.name == package]
    for variable in PACKAGES:
        for folder in filter(None, os.environ.get(variable, "").split(os.pathsep)):
            folders += [Path(folder) / rest, Path(folder) / "share" / rest]
    return next((p for p in folders if p.is_file()), None)


def _visual(node: XmlNode, link: str, urdf: Path) -> UrdfVisual | Fault:
    where = f"link '{link}', visual"
    geometry = node.first("geometry")
    shape = None if geometry is None else next((c for c in geometry.children if c.tag in SHAPES), None)
    if shape is None:
        expected = ", ".join(f"<{s}>" for s in SHAPES)
        return Fault("it has no shape that is known.", where, expected, line=node.line)
    origin = node.first("origin")
    try:
        position = _numbers(origin, "xyz", (0.0, 0.0, 0.0))
        roll, pitch, yaw = _numbers(origin, "rpy", (0.0, 0.0, 0.0)).tolist()
        rotation = rpy(roll, pitch, yaw)
        if shape.tag != "mesh":
            size = tuple(v for key in SHAPES[shape.tag] for v in _numbers(shape, key).tolist())
            return UrdfVisual(link, shape.tag, rotation, position, size)
        scale = _numbers(shape, "scale", (1.0, 1.0, 1.0))
    except ValueError as error:
        return Fault("its numbers cannot be read.", where, found=str(error), line=shape.line)
    name = shape.attributes.get("filename", "")
    file = mesh_file(name, urdf)
    if file is None:
        hint = "It is looked for beside the URDF file, and package://NAME above it and in ROS_PACKAGE_PATH."
        return Fault("its mesh is not found.", where, found=name or "no filename", hint=hint, line=shape.line)
    factors = scale.tolist()
    return UrdfVisual(link, "mesh", rotation, position, (), file, (factors[0], factors[1], factors[2]))


def _numbers(node: XmlNode | None, key: str, default: Sequence[float] | None = None) -> Array:
    text = None if node is None else node.attributes.get(key)
    if text is None:
        if default is None:
            raise ValueError(f"{key} is missing")
        return np.array(default, dtype=np.float64)
    values = np.array([float(v) for v in text.split()])
    if not np.isfinite(values).all() or (default is not None and len(values) not in (1, len(default))):
        raise ValueError(f"{key}={text!r}")
    return values if default is None or len(values) == len(default) else np.full(len(default), values[0])


@dataclass(frozen=True)
class UrdfShapes:
    """`capsules` of the links, and `missing`: link → why it has none."""

    capsules: tuple[Capsule, ...]
    missing: dict[str, str]


def urdf_capsules(path: str | Path) -> UrdfShapes:
    """Capsules that contain the collision shapes of every link of a URDF file, in the frame of the link."""
    file = Path(path)
    content = read_urdf(bytes_of(file), file.name)
    read = UrdfReader(content.faults)
    capsules: list[Capsule] = []
    missing: dict[str, str] = {}
    for name, link in content.links.items():
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
        reason = str(error).replace("\n", " ").rstrip(".")
        raise _UnreadError(f"its mesh {found.name} cannot be read ({reason})") from None
