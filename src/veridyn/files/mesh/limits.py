"""How large a mesh may be, so that reading one costs bounded memory whatever its file says; and its triangles.

Each reader checks what a file announces against these limits, and against the bytes that are there, before it makes an array of it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import FileError

Indices = NDArray[np.int64]

LARGEST_FILE = 64 << 20  # bytes
MOST_TRIANGLES = 1_000_000
MOST_VERTICES = 3 * MOST_TRIANGLES
MOST_NODES = 10_000  # parts of a scene, counted as often as they are placed
LONGEST_LINE = 1 << 20  # bytes, of a text file


def mesh_fault(what: str, expected: str = "", found: str = "", hint: str = "") -> FileError:
    """Why a mesh is not read: a sentence without its place, which whoever names the file adds."""
    return FileError(what, where="", expected=expected, found=found, hint=hint)


@dataclass(frozen=True, eq=False)
class Triangles:
    """`vertices` (v, 3) in the unit of the file, and `faces` (f, 3), numbers of vertices."""

    vertices: Array
    faces: Indices


def limit(count: int, most: int, what: str) -> int:
    """A number of things that is within its limit."""
    if count > most:
        raise mesh_fault("it is too large.", f"at most {most:,} {what}", f"{count:,}")
    if count < 0:
        raise mesh_fault("it announces a number below zero.", f"a number of {what}", str(count))
    return count


def numbers(text: str) -> Array:
    """The numbers of a text, eight bytes for each."""
    if not text.strip():
        return np.empty(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return np.fromstring(text, dtype=np.float64, sep=" ")
    except (ValueError, DeprecationWarning):
        raise mesh_fault("it holds text where numbers are expected.") from None


def whole_numbers(values: Array, what: str) -> Indices:
    """Values as integers; others are refused."""
    if not np.isfinite(values).all() or (np.abs(values) > 2**53).any() or (values != np.rint(values)).any():
        raise mesh_fault(f"its {what} are not whole numbers.")
    return values.astype(np.int64)


def fans(counts: Indices, corners: Indices) -> Indices:
    """Triangles (f, 3) of polygons with these numbers of corners, each cut into a fan about its first corner."""
    if (counts < 0).any() or int(counts.sum()) > len(corners):
        raise mesh_fault("its polygons have more corners than it lists.", found=f"{len(corners):,} corners")
    each = np.maximum(counts - 2, 0)
    limit(int(each.sum()), MOST_TRIANGLES, "triangles")
    first = np.repeat(np.cumsum(counts) - counts, each)
    step = np.arange(int(each.sum())) - np.repeat(np.cumsum(each) - each, each)
    return np.stack([corners[first], corners[first + step + 1], corners[first + step + 2]], axis=-1)


def checked(vertices: Array, faces: Indices) -> Triangles:
    """Triangles whose vertices are finite and whose faces name vertices that are there."""
    if not len(faces):
        raise mesh_fault("it holds no triangles.")
    if len(vertices) and not np.isfinite(vertices).all():
        raise mesh_fault("it holds places that are not finite.")
    if int(faces.min()) < 0 or int(faces.max()) >= len(vertices):
        raise mesh_fault("a face names a vertex that is not there.", f"0 to {len(vertices) - 1}", f"{int(faces.max())}")
    return Triangles(vertices, faces)


def joined(parts: list[Triangles]) -> Triangles:
    """Several meshes as one."""
    if not parts:
        raise mesh_fault("it holds no triangles.")
    starts = np.cumsum([0, *(len(p.vertices) for p in parts)])
    faces = np.concatenate([p.faces + start for p, start in zip(parts, starts)])
    return Triangles(np.concatenate([p.vertices for p in parts]), faces)


def placed(mesh: Triangles, matrix: Array) -> Triangles:
    """A mesh moved by a homogeneous matrix (4, 4); what overflows is refused by :func:`checked`. Where that mirrors it, the order of
    corners is turned round, so that the outside of a face stays outside.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        faces = mesh.faces[:, ::-1] if np.linalg.det(matrix[:3, :3]) < 0.0 else mesh.faces
        return Triangles(mesh.vertices @ matrix[:3, :3].T + matrix[:3, 3], faces)
