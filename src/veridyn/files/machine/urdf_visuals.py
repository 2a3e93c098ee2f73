"""What a URDF file says of the look of its links: meshes, boxes, cylinders and spheres, each placed in its link's frame."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Fault
from veridyn.files.machine.urdf_xml import XmlNode, bytes_of, parse_xml
from veridyn.spatial.rotations import rpy

Array = NDArray[np.float64]
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
