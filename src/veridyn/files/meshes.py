"""The triangles of a mesh file, by the ending of its name and by what it holds.

    vertices, faces = load_mesh("meshes/link1.stl")

Scenes of COLLADA (.dae) and binary glTF 2.0 (.glb) files are read here, each mesh where the nodes place it.

The XML of COLLADA is read element by element. A document type is refused, so that no entity can be declared and expanded. Buffers of a
GLB file must lie in the file itself: nothing else is read or fetched, and compressed geometry is refused. A node that places others is
followed as often as it is placed, up to a limit. Materials and pictures are not read. Lengths are those of the file; its unit and the axis
that points up are left to whoever names the file.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from veridyn.arrays import Array
from veridyn.files.triangles import (
    LARGEST_FILE,
    MOST_NODES,
    MOST_TRIANGLES,
    MOST_VERTICES,
    Indices,
    Triangles,
    checked,
    fans,
    joined,
    limit,
    mesh_fault,
    numbers,
    placed,
    read_obj,
    read_ply,
    read_stl,
    whole_numbers,
)

Node = TypeVar("Node")
MOST_ELEMENTS = 200_000  # of the file; some hundred bytes each
DEEPEST = 100  # elements inside each other
WITH_TEXT = frozenset(("float_array", "p", "vcount", "matrix", "translate", "rotate", "scale"))
LEFT_OUT = frozenset(("library_images", "library_effects", "library_materials", "library_animations", "extra"))
PRIMITIVES = ("triangles", "polylist", "polygons")
LARGEST_JSON = 4 << 20  # bytes; objects made of it take some twenty times as much
COMPONENTS = {5120: "i1", 5121: "u1", 5122: "i2", 5123: "u2", 5125: "u4", 5126: "f4"}
SIZES = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4}
LOOKS = ("KHR_materials", "KHR_texture", "EXT_texture", "KHR_lights", "KHR_xmp", "KHR_mesh_quantization")


def load_mesh(file: Path) -> Triangles:
    """The triangles of a file, in its own unit; :class:`veridyn.errors.FileError` says why one is not read."""
    reader = READERS.get(file.suffix.lower())
    if reader is None:
        what, hint = "meshes of this kind are not read.", "Convert it, for instance in Blender or MeshLab."
        raise mesh_fault(what, ", ".join(READERS), file.suffix or "no ending", hint)
    try:
        size = file.stat().st_size
        if size > LARGEST_FILE:
            raise mesh_fault("it is too large.", f"at most {LARGEST_FILE >> 20} MiB", f"{size / (1 << 20):.0f} MiB")
        with file.open("rb") as stream:
            content = stream.read(LARGEST_FILE + 1)  # a pipe or a file that grows has another size than it says
    except OSError as error:
        raise mesh_fault("it cannot be read.", found=error.strerror or str(error)) from error
    if len(content) > LARGEST_FILE:
        raise mesh_fault("it is too large.", f"at most {LARGEST_FILE >> 20} MiB")
    return reader(content)


@dataclass
class _Element:
    """An element with its attributes, its children, and its text where numbers stand in it."""

    tag: str
    attributes: dict[str, str]
    children: list[_Element] = field(default_factory=list)
    text: list[str] = field(default_factory=list)

    def all(self, *tags: str) -> list[_Element]:
        return [c for c in self.children if c.tag in tags]

    def one(self, tag: str) -> _Element:
        found = self.all(tag)
        if not found:
            raise mesh_fault(f"<{self.tag}> has no <{tag}>.")
        return found[0]

    def numbers(self) -> Array:
        return numbers("".join(self.text))

    def number(self, name: str, default: int) -> int:
        text = self.attributes.get(name, str(default)).strip()
        if not text.isdecimal() or len(text) > 9:
            raise mesh_fault(f"{name} of <{self.tag}> is no number.", found=text[:40])
        return int(text)


def _assembled(
    roots: Sequence[Node],
    matrix: Callable[[Node], Array],
    below: Callable[[Node], Sequence[Node]],
    meshes: Callable[[Node], Sequence[Triangles]],
) -> Triangles:
    """The meshes of a scene, each as often as its nodes place it, moved there: `matrix` of a node, and nodes and meshes in it."""
    waiting = [(node, np.eye(4)) for node in roots]
    parts, seen, faces, vertices = [], 0, 0, 0
    while waiting:
        node, above = waiting.pop()
        seen += 1
        limit(seen + len(waiting), MOST_NODES, "nodes, counted as often as they are placed")
        here = above @ matrix(node)
        waiting += [(inner, here) for inner in below(node)]
        for mesh in meshes(node):
            faces, vertices = faces + len(mesh.faces), vertices + len(mesh.vertices)
            limit(faces, MOST_TRIANGLES, "triangles, counted as often as they are placed")
            limit(vertices, MOST_VERTICES, "vertices, counted as often as they are placed")
            parts.append(placed(mesh, here))
    whole = joined(parts)
    return checked(whole.vertices, whole.faces)


def read_dae(content: bytes) -> Triangles:
    """Triangles of a COLLADA file."""
    root = _parsed(content)
    if root.tag != "COLLADA":
        raise mesh_fault("it is no COLLADA file.", "<COLLADA>", f"<{root.tag[:40]}>")
    return _DaeScene(root).triangles()


def _parsed(content: bytes) -> _Element:
    """The elements of a file without their namespaces."""
    parser = expat.ParserCreate()
    parser.buffer_text = True
    top = _Element("", {})
    opened, count, hidden = [top], 0, 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal count, hidden
        count += 1
        limit(count, MOST_ELEMENTS, "elements")
        limit(len(opened) + hidden, DEEPEST, "elements inside each other")
        name = tag.rpartition(":")[2]
        if hidden or name in LEFT_OUT:
            hidden += 1
            return
        made = _Element(name, attributes)
        opened[-1].children.append(made)
        opened.append(made)

    def end(_: str) -> None:
        nonlocal hidden
        if hidden:
            hidden -= 1
        else:
            opened.pop()

    def text(words: str) -> None:
        if not hidden and opened[-1].tag in WITH_TEXT:
            opened[-1].text.append(words)

    def refuse(*_: object) -> None:
        raise mesh_fault("it declares a document type.", found="<!DOCTYPE", hint="Drop it: a COLLADA file needs none.")

    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, text
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise mesh_fault(f"it is not XML: {expat.ErrorString(error.code)}.", found=f"line {error.lineno}") from None
    except (LookupError, ValueError) as error:  # an encoding that is not known
        raise mesh_fault("it is not XML that can be read.", found=str(error)[:60]) from None
    return top.children[0]


class _DaeScene:
    """The nodes and geometries of a file by their names."""

    def __init__(self, root: _Element) -> None:
        self._root = root
        self._geometries = self._named("library_geometries", "geometry")
        self._nodes: dict[str, _Element] = {}
        waiting = [e for library in root.all("library_nodes", "library_visual_scenes") for e in library.children]
        while waiting:
            node = waiting.pop()
            if node.tag in ("node", "visual_scene"):
                self._nodes.setdefault(node.attributes.get("id", ""), node)
                waiting += node.children
        self._made: dict[str, Triangles | None] = {}

    def _named(self, library: str, tag: str) -> dict[str, _Element]:
        return {e.attributes.get("id", ""): e for part in self._root.all(library) for e in part.all(tag)}

    def triangles(self) -> Triangles:
        scene = self._root.one("scene").one("instance_visual_scene")
        return _assembled([self._lookup(self._nodes, scene)], _dae_matrix, self._below, self._meshes)

    def _below(self, node: _Element) -> list[_Element]:
        return [*node.all("node"), *(self._lookup(self._nodes, e) for e in node.all("instance_node"))]

    def _meshes(self, node: _Element) -> list[Triangles]:
        return [mesh for e in node.all("instance_geometry") if (mesh := self._geometry(e)) is not None]

    def _lookup(self, named: dict[str, _Element], instance: _Element) -> _Element:
        name = instance.attributes.get("url", "").removeprefix("#")
        if name not in named:
            raise mesh_fault(f"<{instance.tag}> names something that is not there.", found=name[:60])
        return named[name]

    def _geometry(self, instance: _Element) -> Triangles | None:
        key = instance.attributes.get("url", "")
        if key not in self._made:
            geometry = self._lookup(self._geometries, instance)
            parts = [part for mesh in geometry.all("mesh") for part in _mesh(mesh)]
            self._made[key] = joined(parts) if parts else None
        return self._made[key]


def _mesh(mesh: _Element) -> list[Triangles]:
    sources = {e.attributes.get("id", ""): e for e in mesh.all("source")}
    vertices = {e.attributes.get("id", ""): e for e in mesh.all("vertices")}
    places: dict[str, Array] = {}
    parts = []
    for primitive in mesh.all(*PRIMITIVES):
        corners, source = _corners(primitive)
        if not len(corners):
            continue
        if source not in places:
            inputs = vertices[source].all("input") if source in vertices else []
            position = next((i for i in inputs if i.attributes.get("semantic") == "POSITION"), None)
            name = source if position is None else position.attributes.get("source", "").removeprefix("#")
            if name not in sources:
                raise mesh_fault("its corners have no places.", found=name[:60])
            places[source] = _places(sources[name])
        used, numbered = np.unique(corners, return_inverse=True)
        if int(used[0]) < 0 or int(used[-1]) >= len(places[source]):
            raise mesh_fault("a face names a vertex that is not there.", found=str(int(used[-1])))
        parts.append(Triangles(places[source][used], numbered.reshape(corners.shape)))
    return parts


def _places(source: _Element) -> Array:
    """The places (n, 3) of a source."""
    values = source.one("float_array").numbers()
    limit(len(values), 4 * MOST_VERTICES, "numbers")
    technique = source.all("technique_common")
    accessor = technique[0].all("accessor") if technique else []
    stride = accessor[0].number("stride", 1) if accessor else 3
    start = accessor[0].number("offset", 0) if accessor else 0
    if stride < 3:
        raise mesh_fault("its places are not in space.", "a stride of 3", str(stride))
    rows = values[start:][: (len(values) - start) // stride * stride].reshape(-1, stride)
    return rows[:, :3]


def _corners(primitive: _Element) -> tuple[Indices, str]:
    """The triangles (f, 3) of a primitive, and the name of its vertices."""
    inputs = primitive.all("input")
    named = next((i for i in inputs if i.attributes.get("semantic") == "VERTEX"), None)
    if named is None:
        raise mesh_fault(f"<{primitive.tag}> has no corners.", 'an <input semantic="VERTEX">')
    wide = 1 + max(i.number("offset", 0) for i in inputs)
    lists = [whole_numbers(p.numbers(), "corners") for p in primitive.all("p")]
    every = np.concatenate([np.empty(0, dtype=np.int64), *(v[: len(v) // wide * wide] for v in lists)])
    corners = every.reshape(-1, wide)[:, named.number("offset", 0)]
    source = named.attributes.get("source", "").removeprefix("#")
    if primitive.tag == "triangles":
        limit(len(corners) // 3, MOST_TRIANGLES, "triangles")
        return corners[: len(corners) // 3 * 3].reshape(-1, 3), source
    if primitive.tag == "polygons":
        return fans(np.array([len(v) // wide for v in lists], dtype=np.int64), corners), source
    return fans(whole_numbers(primitive.one("vcount").numbers(), "numbers of corners"), corners), source


def _dae_matrix(node: _Element) -> Array:
    """Where a node is in the one above it: its transformations, the first outermost."""
    out = np.eye(4)
    for step in node.all("matrix", "translate", "rotate", "scale"):
        values, move = step.numbers(), np.eye(4)
        if len(values) != {"matrix": 16, "translate": 3, "rotate": 4, "scale": 3}[step.tag]:
            raise mesh_fault(f"<{step.tag}> has {len(values)} numbers.")
        if step.tag == "matrix":
            move = values.reshape(4, 4)
        elif step.tag == "translate":
            move[:3, 3] = values
        elif step.tag == "scale":
            move[:3, :3] = np.diag(values)
        elif values[:3].any():
            axis = values[:3] / np.linalg.norm(values[:3])
            move[:3, :3] = Rotation.from_rotvec(np.deg2rad(values[3]) * axis).as_matrix()
        out = out @ move
    return out


def read_glb(content: bytes) -> Triangles:
    """Triangles of a GLB file."""
    head, data = _chunks(content)
    other = [e for e in head.get("extensionsRequired", []) if not str(e).startswith(LOOKS)]
    if other:
        raise mesh_fault("it needs an extension that is not read.", found=", ".join(map(str, other))[:100])
    try:
        return _GlbScene(head, data).triangles()
    except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
        raise mesh_fault("its description cannot be read.", found=f"{type(error).__name__}: {error}"[:100]) from None


def _chunks(content: bytes) -> tuple[dict[str, Any], bytes]:
    """The description and the bytes of a file."""
    if len(content) < 20 or content[:4] != b"glTF" or struct.unpack_from("<I", content, 4)[0] != 2:
        raise mesh_fault("it is no GLB file.", "“glTF” and version 2 at its beginning", repr(content[:8]))
    size = struct.unpack_from("<I", content, 12)[0]
    if content[16:20] != b"JSON" or 20 + size > len(content):
        raise mesh_fault("its description is missing or cut off.")
    if size > LARGEST_JSON:
        raise mesh_fault("its description is too large.", f"at most {LARGEST_JSON:,} bytes", f"{size:,}")
    try:
        head = json.loads(content[20 : 20 + size])
    except (ValueError, RecursionError) as error:
        raise mesh_fault("its description is no JSON.", found=str(error)[:100]) from None
    if not isinstance(head, dict):
        raise mesh_fault("its description is no JSON object.")
    at = 20 + size
    if len(content) < at + 8 or content[at + 4 : at + 8] != b"BIN\0":
        return head, b""
    length = struct.unpack_from("<I", content, at)[0]
    return head, content[at + 8 : at + 8 + length]


class _GlbScene:
    """The nodes, meshes and accessors of a description; places inside it raise KeyError and the like where they are not there."""

    def __init__(self, head: dict[str, Any], data: bytes) -> None:
        self._head, self._data = head, data

    def triangles(self) -> Triangles:
        nodes = self._head.get("nodes", [])
        scenes = self._head.get("scenes", [])
        roots = scenes[self._head.get("scene", 0)].get("nodes", []) if scenes else range(len(nodes))
        made: dict[int, Triangles | None] = {}

        def meshes(node: dict[str, Any]) -> list[Triangles]:
            if "mesh" not in node:
                return []
            key = int(node["mesh"])
            if key not in made:
                made[key] = self._mesh(self._head["meshes"][key])
            mesh = made[key]
            return [] if mesh is None else [mesh]

        def below(node: dict[str, Any]) -> list[dict[str, Any]]:
            return [nodes[int(k)] for k in node.get("children", [])]

        return _assembled([nodes[int(k)] for k in roots], _glb_matrix, below, meshes)

    def _mesh(self, mesh: dict[str, Any]) -> Triangles | None:
        parts, faces, vertices = [], 0, 0
        for primitive in mesh["primitives"]:
            mode = primitive.get("mode", 4)
            if mode not in (4, 5, 6):
                continue  # points and lines
            places = self._values(primitive["attributes"]["POSITION"], 3)
            vertices = limit(vertices + len(places), MOST_VERTICES, "vertices")
            if "indices" in primitive:
                corners = self._values(primitive["indices"], 1).ravel().astype(np.int64)
            else:
                corners = np.arange(len(places))
            found = _faces(corners, mode)
            faces = limit(faces + len(found), MOST_TRIANGLES, "triangles")
            if len(found):
                parts.append(checked(np.asarray(places, dtype=np.float64), found))
        return joined(parts) if parts else None

    def _values(self, number: int, size: int) -> NDArray:
        """The values (n, size) of an accessor, within the bytes of its view."""
        accessor = self._head["accessors"][number]
        if "bufferView" not in accessor or "sparse" in accessor:
            raise mesh_fault("its values are sparse, which is not read.")
        view = self._head["bufferViews"][accessor["bufferView"]]
        buffer = self._head["buffers"][view["buffer"]]
        if view["buffer"] != 0 or "uri" in buffer:
            raise mesh_fault("its data lie in another file.", hint="Save it as one .glb file.")
        count = limit(int(accessor["count"]), MOST_VERTICES, "values")
        kind = np.dtype("<" + COMPONENTS[accessor["componentType"]])
        if SIZES[accessor["type"]] != size:
            raise mesh_fault("its values have the wrong type.", found=str(accessor["type"]))
        wide = kind.itemsize * size
        stride = int(view.get("byteStride", wide)) or wide
        start = int(view.get("byteOffset", 0)) + int(accessor.get("byteOffset", 0))
        end = start + (count - 1) * stride + wide
        if start < 0 or stride < wide or count < 1 or end > len(self._data):
            raise mesh_fault("its values reach beyond its data.", f"{len(self._data):,} bytes", f"{end:,}")
        rows = np.ndarray((count, size), kind, self._data, start, (stride, kind.itemsize))
        if accessor.get("normalized") and kind.kind in "iu":
            return np.maximum(rows / float(np.iinfo(kind).max), -1.0)
        return rows


def _faces(corners: Indices, mode: int) -> Indices:
    """Triangles of a list (4), a strip (5) or a fan (6) of corners."""
    if mode == 4:
        return corners[: len(corners) // 3 * 3].reshape(-1, 3)
    if len(corners) < 3:
        return np.empty((0, 3), dtype=np.int64)
    if mode == 6:
        return np.stack([np.full(len(corners) - 2, corners[0]), corners[1:-1], corners[2:]], axis=-1)
    strip = np.stack([corners[:-2], corners[1:-1], corners[2:]], axis=-1)
    strip[1::2] = strip[1::2, ::-1]  # every other one is turned
    return strip


def _glb_matrix(node: dict[str, Any]) -> Array:
    """Where a node is in the one above it."""
    if "matrix" in node:
        return np.array(node["matrix"], dtype=np.float64).reshape(4, 4).T
    out = np.eye(4)
    turn = Rotation.from_quat(np.array(node.get("rotation", (0.0, 0.0, 0.0, 1.0)), dtype=np.float64)).as_matrix()
    out[:3, :3] = turn * np.array(node.get("scale", (1.0, 1.0, 1.0)), dtype=np.float64)
    out[:3, 3] = np.array(node.get("translation", (0.0, 0.0, 0.0)), dtype=np.float64)
    return out


READERS = {".stl": read_stl, ".obj": read_obj, ".dae": read_dae, ".ply": read_ply, ".glb": read_glb}
