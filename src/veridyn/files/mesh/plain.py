"""STL, binary and text, and Wavefront OBJ."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from io import BytesIO

import numpy as np

from veridyn.files.mesh.limits import (
    LONGEST_LINE,
    MOST_TRIANGLES,
    MOST_VERTICES,
    Array,
    MeshFault,
    Triangles,
    checked,
    fans,
    limit,
)

STL_HEAD = 84  # bytes: 80 of text, 4 of the number of triangles
STL_TRIANGLE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])


def read_stl(content: bytes) -> Triangles:
    """Triangles of an STL file; equal corners become one vertex. It is binary where its length is that of the triangles it announces."""
    if len(content) >= STL_HEAD:
        count = int.from_bytes(content[80:STL_HEAD], "little")
        if len(content) == STL_HEAD + count * STL_TRIANGLE.itemsize:
            limit(count, MOST_TRIANGLES, "triangles")
            corners = np.frombuffer(content, STL_TRIANGLE, offset=STL_HEAD)["corners"]
            return _merged(corners.reshape(-1, 3).astype(np.float64))
    if content.lstrip()[:5].lower() != b"solid":
        expected = "a length of 84 + 50 n bytes for the n triangles of its header, or text that begins with “solid”"
        raise MeshFault("it is no STL file.", expected, f"{len(content):,} bytes, beginning {content[:8]!r}")
    values = array("d")
    for words in _lines(content, b"vertex"):
        if len(values) >= 3 * MOST_VERTICES:
            raise MeshFault("it is too large.", f"at most {MOST_TRIANGLES:,} triangles")
        values.extend(_three(words))
    if len(values) % 9:
        raise MeshFault("it is cut off: a triangle has three corners.", found=f"{len(values) // 3} corners")
    return _merged(np.frombuffer(values, dtype=np.float64).reshape(-1, 3))


def read_obj(content: bytes) -> Triangles:
    """Faces of an OBJ file, polygons cut into triangles; lines, materials, normals and textures are not read."""
    places, counts, corners = array("d"), array("q"), array("q")
    for words in _lines(content, b"v", b"f"):
        if words[0] == b"v":
            if len(places) >= 3 * MOST_VERTICES:
                raise MeshFault("it is too large.", f"at most {MOST_VERTICES:,} vertices")
            places.extend(_three(words))
            continue
        if len(corners) + len(words) > MOST_VERTICES:
            raise MeshFault("it is too large.", f"at most {MOST_TRIANGLES:,} triangles")
        counts.append(len(words) - 1)
        try:
            named = [int(word.partition(b"/")[0]) for word in words[1:]]
            corners.extend(k - 1 if k > 0 else len(places) // 3 + k for k in named)  # −1 is the last one so far
        except (ValueError, OverflowError):
            raise MeshFault("a face names something that is no vertex.", found=repr(b" ".join(words)[:60])) from None
    vertices = np.frombuffer(places, dtype=np.float64).reshape(-1, 3) if places else np.empty((0, 3))
    if not counts:
        raise MeshFault("it holds no faces.", "lines such as “f 1 2 3”")
    return checked(vertices, fans(np.frombuffer(counts, dtype=np.int64), np.frombuffer(corners, dtype=np.int64)))


def _lines(content: bytes, *kinds: bytes) -> Iterator[list[bytes]]:
    """The words of the lines that begin with one of these, in small letters."""
    file, carried = BytesIO(content), b""
    while line := file.readline(LONGEST_LINE + 1):
        line = carried + line
        if len(line) > LONGEST_LINE:
            raise MeshFault("a line is too long.", f"at most {LONGEST_LINE:,} bytes")
        if line.rstrip().endswith(b"\\"):  # it goes on in the next
            carried = line.rstrip()[:-1] + b" "
            continue
        carried = b""
        if line[:1] in b" \t" or line[:1].lower() in b"vf":
            words = line.split()
            if words and words[0].lower() in kinds:
                yield [words[0].lower(), *words[1:]]


def _three(words: list[bytes]) -> tuple[float, float, float]:
    try:
        return float(words[1]), float(words[2]), float(words[3])
    except (ValueError, IndexError):
        raise MeshFault("a vertex is not three numbers.", found=repr(b" ".join(words)[:60])) from None


def _merged(corners: Array) -> Triangles:
    """Triangles of corners (3 f, 3) in order; corners at exactly one place become one vertex."""
    if not len(corners):
        raise MeshFault("it holds no triangles.")
    rows = np.ascontiguousarray(corners + 0.0).view(np.dtype((np.void, 24))).ravel()  # −0 is 0
    _, first, number = np.unique(rows, return_index=True, return_inverse=True)
    return checked(corners[first], number.reshape(-1, 3).astype(np.int64))
