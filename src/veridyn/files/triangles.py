"""Triangles of meshes, of which each file holds one: STL, Wavefront OBJ and PLY, text and binary; and how large a mesh may be.

Reading a mesh costs bounded memory whatever its file says.

Each reader checks what a file announces against these limits, and against the bytes that are there, before it makes an array of it.
"""

from __future__ import annotations

import warnings
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from io import BytesIO

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
STL_HEAD = 84  # bytes: 80 of text, 4 of the number of triangles
STL_TRIANGLE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
LONGEST_HEADER = 1 << 16  # bytes
TYPES = {"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4", "float": "f4"}
TYPES |= {"int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2", "int32": "i4", "uint32": "u4", "float32": "f4"}
TYPES |= {"double": "f8", "float64": "f8"}
CORNERS = ("vertex_indices", "vertex_index")


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
        raise mesh_fault("it is no STL file.", expected, f"{len(content):,} bytes, beginning {content[:8]!r}")
    values = array("d")
    for words in _lines(content, b"vertex"):
        if len(values) >= 3 * MOST_VERTICES:
            raise mesh_fault("it is too large.", f"at most {MOST_TRIANGLES:,} triangles")
        values.extend(_three(words))
    if len(values) % 9:
        raise mesh_fault("it is cut off: a triangle has three corners.", found=f"{len(values) // 3} corners")
    return _merged(np.frombuffer(values, dtype=np.float64).reshape(-1, 3))


def read_obj(content: bytes) -> Triangles:
    """Faces of an OBJ file, polygons cut into triangles; lines, materials, normals and textures are not read."""
    places, counts, corners = array("d"), array("q"), array("q")
    for words in _lines(content, b"v", b"f"):
        if words[0] == b"v":
            if len(places) >= 3 * MOST_VERTICES:
                raise mesh_fault("it is too large.", f"at most {MOST_VERTICES:,} vertices")
            places.extend(_three(words))
            continue
        if len(corners) + len(words) > MOST_VERTICES:
            raise mesh_fault("it is too large.", f"at most {MOST_TRIANGLES:,} triangles")
        counts.append(len(words) - 1)
        try:
            named = [int(word.partition(b"/")[0]) for word in words[1:]]
            corners.extend(k - 1 if k > 0 else len(places) // 3 + k for k in named)  # −1 is the last one so far
        except (ValueError, OverflowError):
            raise mesh_fault("a face names something that is no vertex.", found=repr(b" ".join(words)[:60])) from None
    vertices = np.frombuffer(places, dtype=np.float64).reshape(-1, 3) if places else np.empty((0, 3))
    if not counts:
        raise mesh_fault("it holds no faces.", "lines such as “f 1 2 3”")
    return checked(vertices, fans(np.frombuffer(counts, dtype=np.int64), np.frombuffer(corners, dtype=np.int64)))


def _lines(content: bytes, *kinds: bytes) -> Iterator[list[bytes]]:
    """The words of the lines that begin with one of these, in small letters."""
    file, carried = BytesIO(content), b""
    while line := file.readline(LONGEST_LINE + 1):
        line = carried + line
        if len(line) > LONGEST_LINE:
            raise mesh_fault("a line is too long.", f"at most {LONGEST_LINE:,} bytes")
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
        raise mesh_fault("a vertex is not three numbers.", found=repr(b" ".join(words)[:60])) from None


def _merged(corners: Array) -> Triangles:
    """Triangles of corners (3 f, 3) in order; corners at exactly one place become one vertex."""
    if not len(corners):
        raise mesh_fault("it holds no triangles.")
    rows = np.ascontiguousarray(corners + 0.0).view(np.dtype((np.void, 24))).ravel()  # −0 is 0
    _, first, number = np.unique(rows, return_index=True, return_inverse=True)
    return checked(corners[first], number.reshape(-1, 3).astype(np.int64))


@dataclass
class _Element:
    """`properties`: name, type and, of a list, the type of its length."""

    name: str
    count: int
    properties: list[tuple[str, str, str]] = field(default_factory=list)


def read_ply(content: bytes) -> Triangles:
    """Triangles of a PLY file, of its elements `vertex` and `face`; what else it holds is passed over."""
    order, elements, start = _header(content)
    vertices: Array | None = None
    faces: Indices | None = None
    rows = _Rows(content, start, order)
    for element in elements:
        found, counts = rows.take(element)
        if element.name == "vertex":
            if not {"x", "y", "z"} <= set(found):
                raise mesh_fault("its vertices have no place.", "properties x, y and z", ", ".join(found))
            vertices = np.stack([np.asarray(found[k], dtype=np.float64) for k in "xyz"], axis=-1)
        elif element.name == "face":
            named = next((k for k in CORNERS if k in counts), None)
            if named is None:
                raise mesh_fault("its faces have no corners.", f"a list called {CORNERS[0]}", ", ".join(found))
            faces = fans(counts[named], whole_numbers(np.asarray(found[named], dtype=np.float64), "corners"))
    if vertices is None or faces is None:
        raise mesh_fault("it holds no triangles.", "elements vertex and face", ", ".join(e.name for e in elements))
    return checked(vertices, faces)


def _header(content: bytes) -> tuple[str, list[_Element], int]:
    """Order of bytes ("" is text), elements, and where the data begin."""
    end = content.find(b"end_header", 0, LONGEST_HEADER)
    stop = content.find(b"\n", end)
    if not content.startswith(b"ply") or end < 0 or stop < 0:
        raise mesh_fault("it is no PLY file.", "a header from “ply” to “end_header”", repr(content[:8]))
    orders = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}
    order, elements = None, []
    for line in content[:end].decode("latin-1").splitlines():
        match line.split():
            case ["format", kind, _] if kind in orders:
                order = orders[kind]
            case ["element", name, count] if count.isdecimal() and len(count) < 12:
                elements.append(_Element(name, limit(int(count), MOST_VERTICES, f"elements {name}")))
            case ["property", "list", length, kind, name] if elements and length in TYPES and kind in TYPES:
                elements[-1].properties.append((name, TYPES[kind], TYPES[length]))
            case ["property", kind, name] if elements and kind in TYPES:
                elements[-1].properties.append((name, TYPES[kind], ""))
            case ["element" | "property" | "format", *_]:
                raise mesh_fault("a line of its header cannot be read.", found=line[:60])
    limit(sum(e.count for e in elements), MOST_TRIANGLES + MOST_VERTICES, "elements")
    if order is None:
        raise mesh_fault("its header names no format.", ", ".join(orders))
    if not order:  # numbers of a text are all of one type
        for e in elements:
            e.properties = [(name, "f8", length and "f8") for name, _, length in e.properties]
    return order, elements, stop + 1


class _Rows:
    """Rows of bytes, each list after its length; text becomes bytes first, eight for each number."""

    def __init__(self, content: bytes, start: int, order: str) -> None:
        self._content, self._at, self._order = content, start, order
        if not order:
            self._content, self._at, self._order = numbers(content[start:].decode("latin-1")).tobytes(), 0, "="

    def take(self, element: _Element) -> tuple[dict[str, NDArray], dict[str, Indices]]:
        """Columns of the next rows: of a list, all of its entries, and how many each row has."""
        columns, lists = _empty(element)
        row = self._row(element)
        if row is not None:
            rows = np.frombuffer(self._content, row, element.count, self._at)
            for k, (name, _, length) in enumerate(element.properties):
                columns[name] = rows[f"v{k}"].ravel()
                if length:
                    lists[name] = whole_numbers(rows[f"n{k}"].astype(np.float64), "lengths of lists")
            same = all((c == rows[f"v{k}"].shape[1]).all() for k, c in _listed(element, lists))
            if same:
                self._at += element.count * row.itemsize
                return columns, lists
        gathered, counts = _Gathered(columns), _Gathered(lists)
        for _ in range(element.count if element.properties else 0):
            for name, kind, length in element.properties:
                size = self._length(length, element) if length else 1
                gathered[name].extend(self._read(kind, size, element).tolist())
                if length:
                    counts[name].append(size)
        return gathered.arrays(), {name: c.astype(np.int64) for name, c in counts.arrays().items()}

    def _row(self, element: _Element) -> np.dtype | None:
        """The layout of the first row, which others may share."""
        at, fields = self._at, []
        for k, (_, kind, length) in enumerate(element.properties):
            if length:
                size = np.dtype(self._order + length)
                if at + size.itemsize > len(self._content):
                    return None
                count = np.frombuffer(self._content, size, 1, at)[0]
                if not 0 <= float(count) * np.dtype(kind).itemsize <= len(self._content) - at:
                    return None
                fields += [(f"n{k}", size), (f"v{k}", self._order + kind, (int(count),))]
            else:
                fields.append((f"v{k}", self._order + kind))
            at = self._at + np.dtype(fields).itemsize
        fits = element.count * np.dtype(fields).itemsize <= len(self._content) - self._at
        return np.dtype(fields) if element.count and fields and fits else None

    def _length(self, kind: str, element: _Element) -> int:
        found = self._read(kind, 1, element)[0]
        if not 0 <= found <= len(self._content):
            raise _short(element)
        return int(found)

    def _read(self, kind: str, count: int, element: _Element) -> NDArray:
        size = np.dtype(kind).itemsize * count
        if self._at + size > len(self._content):
            raise _short(element)
        self._at += size
        return np.frombuffer(self._content, self._order + kind, count, self._at - size)


class _Gathered(dict[str, array]):
    """Values of rows that differ in length, by name, eight bytes for each."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__({name: array("d") for name in names})

    def arrays(self) -> dict[str, Array]:
        return {name: np.array(values) for name, values in self.items()}


def _empty(element: _Element) -> tuple[dict[str, NDArray], dict[str, Indices]]:
    columns = {name: np.empty(0) for name, _, _ in element.properties}
    return columns, {name: np.empty(0, dtype=np.int64) for name, _, length in element.properties if length}


def _listed(element: _Element, lists: dict[str, Indices]) -> list[tuple[int, Indices]]:
    return [(k, lists[name]) for k, (name, _, length) in enumerate(element.properties) if length]


def _short(element: _Element) -> FileError:
    return mesh_fault("it ends before its data do.", f"{element.count:,} elements {element.name}")
