"""COLLADA (.dae): the triangles of its scene, each geometry where the nodes place it.

The XML is read element by element. A document type is refused, so that no entity can be declared and expanded; a node that places others
is followed as often as it is placed, up to a limit. Materials and pictures are not read. Lengths are those of the file; its unit and the
axis that points up are left to whoever names the file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.parsers import expat

import numpy as np
from scipy.spatial.transform import Rotation

from veridyn.files.mesh.limits import (
    MOST_NODES,
    MOST_TRIANGLES,
    MOST_VERTICES,
    Array,
    Indices,
    MeshFault,
    Triangles,
    checked,
    fans,
    joined,
    limit,
    numbers,
    placed,
    whole_numbers,
)

MOST_ELEMENTS = 200_000  # of the file; some hundred bytes each
DEEPEST = 100  # elements inside each other
WITH_TEXT = frozenset(("float_array", "p", "vcount", "matrix", "translate", "rotate", "scale"))
LEFT_OUT = frozenset(("library_images", "library_effects", "library_materials", "library_animations", "extra"))
PRIMITIVES = ("triangles", "polylist", "polygons")


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
            raise MeshFault(f"<{self.tag}> has no <{tag}>.")
        return found[0]

    def numbers(self) -> Array:
        return numbers("".join(self.text))

    def number(self, name: str, default: int) -> int:
        text = self.attributes.get(name, str(default)).strip()
        if not text.isdecimal() or len(text) > 9:
            raise MeshFault(f"{name} of <{self.tag}> is no number.", found=text[:40])
        return int(text)


def read_dae(content: bytes) -> Triangles:
    """Triangles of a COLLADA file."""
    root = _parsed(content)
    if root.tag != "COLLADA":
        raise MeshFault("it is no COLLADA file.", "<COLLADA>", f"<{root.tag[:40]}>")
    whole = joined(_Scene(root).parts())
    return checked(whole.vertices, whole.faces)


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
        raise MeshFault("it declares a document type.", found="<!DOCTYPE", hint="Drop it: a COLLADA file needs none.")

    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, text
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise MeshFault(f"it is not XML: {expat.ErrorString(error.code)}.", found=f"line {error.lineno}") from None
    except (LookupError, ValueError) as error:  # an encoding that is not known
        raise MeshFault("it is not XML that can be read.", found=str(error)[:60]) from None
    return top.children[0]


class _Scene:
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

    def parts(self) -> list[Triangles]:
        """Each geometry as often as the scene places it, moved there."""
        scene = self._root.one("scene").one("instance_visual_scene")
        waiting = [(self._lookup(self._nodes, scene), np.eye(4))]
        parts, seen, faces, vertices = [], 0, 0, 0
        while waiting:
            node, above = waiting.pop()
            seen += 1
            limit(seen + len(waiting), MOST_NODES, "nodes, counted as often as they are placed")
            here = above @ _matrix(node)
            waiting += [(e, here) for e in node.all("node")]
            waiting += [(self._lookup(self._nodes, e), here) for e in node.all("instance_node")]
            for instance in node.all("instance_geometry"):
                mesh = self._geometry(instance)
                if mesh is not None:
                    faces, vertices = faces + len(mesh.faces), vertices + len(mesh.vertices)
                    limit(faces, MOST_TRIANGLES, "triangles, counted as often as they are placed")
                    limit(vertices, MOST_VERTICES, "vertices, counted as often as they are placed")
                    parts.append(placed(mesh, here))
        return parts

    def _lookup(self, named: dict[str, _Element], instance: _Element) -> _Element:
        name = instance.attributes.get("url", "").removeprefix("#")
        if name not in named:
            raise MeshFault(f"<{instance.tag}> names something that is not there.", found=name[:60])
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
            position = next(
                (
                    i
                    for v in [vertices.get(source)]
                    if v
                    for i in v.all("input")
                    if i.attributes.get("semantic") == "POSITION"
                ),
                None,
            )
            name = source if position is None else position.attributes.get("source", "").removeprefix("#")
            if name not in sources:
                raise MeshFault("its corners have no places.", found=name[:60])
            places[source] = _places(sources[name])
        used, numbered = np.unique(corners, return_inverse=True)
        if int(used[0]) < 0 or int(used[-1]) >= len(places[source]):
            raise MeshFault("a face names a vertex that is not there.", found=str(int(used[-1])))
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
        raise MeshFault("its places are not in space.", "a stride of 3", str(stride))
    rows = values[start:][: (len(values) - start) // stride * stride].reshape(-1, stride)
    return rows[:, :3]


def _corners(primitive: _Element) -> tuple[Indices, str]:
    """The triangles (f, 3) of a primitive, and the name of its vertices."""
    inputs = primitive.all("input")
    named = next((i for i in inputs if i.attributes.get("semantic") == "VERTEX"), None)
    if named is None:
        raise MeshFault(f"<{primitive.tag}> has no corners.", 'an <input semantic="VERTEX">')
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


def _matrix(node: _Element) -> Array:
    """Where a node is in the one above it: its transformations, the first outermost."""
    out = np.eye(4)
    for step in node.all("matrix", "translate", "rotate", "scale"):
        values, move = step.numbers(), np.eye(4)
        if len(values) != {"matrix": 16, "translate": 3, "rotate": 4, "scale": 3}[step.tag]:
            raise MeshFault(f"<{step.tag}> has {len(values)} numbers.")
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
