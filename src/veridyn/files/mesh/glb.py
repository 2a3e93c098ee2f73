"""Binary glTF 2.0 (GLB): the triangles of its scene, each mesh where its nodes place it.

Buffers must lie in the file itself: nothing else is read or fetched. Materials and textures are not read, so no picture is unpacked, and
compressed geometry is refused.
"""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray
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
    joined,
    limit,
    placed,
)

LARGEST_JSON = 4 << 20  # bytes; objects made of it take some twenty times as much
COMPONENTS = {5120: "i1", 5121: "u1", 5122: "i2", 5123: "u2", 5125: "u4", 5126: "f4"}
SIZES = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4}
LOOKS = ("KHR_materials", "KHR_texture", "EXT_texture", "KHR_lights", "KHR_xmp", "KHR_mesh_quantization")


def read_glb(content: bytes) -> Triangles:
    """Triangles of a GLB file."""
    head, data = _chunks(content)
    other = [e for e in head.get("extensionsRequired", []) if not str(e).startswith(LOOKS)]
    if other:
        raise MeshFault("it needs an extension that is not read.", found=", ".join(map(str, other))[:100])
    try:
        return _Scene(head, data).triangles()
    except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
        raise MeshFault("its description cannot be read.", found=f"{type(error).__name__}: {error}"[:100]) from None


def _chunks(content: bytes) -> tuple[dict[str, Any], bytes]:
    """The description and the bytes of a file."""
    if len(content) < 20 or content[:4] != b"glTF" or struct.unpack_from("<I", content, 4)[0] != 2:
        raise MeshFault("it is no GLB file.", "“glTF” and version 2 at its beginning", repr(content[:8]))
    size = struct.unpack_from("<I", content, 12)[0]
    if content[16:20] != b"JSON" or 20 + size > len(content):
        raise MeshFault("its description is missing or cut off.")
    if size > LARGEST_JSON:
        raise MeshFault("its description is too large.", f"at most {LARGEST_JSON:,} bytes", f"{size:,}")
    try:
        head = json.loads(content[20 : 20 + size])
    except (ValueError, RecursionError) as error:
        raise MeshFault("its description is no JSON.", found=str(error)[:100]) from None
    if not isinstance(head, dict):
        raise MeshFault("its description is no JSON object.")
    at = 20 + size
    if len(content) < at + 8 or content[at + 4 : at + 8] != b"BIN\0":
        return head, b""
    length = struct.unpack_from("<I", content, at)[0]
    return head, content[at + 8 : at + 8 + length]


class _Scene:
    """The nodes, meshes and accessors of a description; places inside it raise KeyError and the like where they are not there."""

    def __init__(self, head: dict[str, Any], data: bytes) -> None:
        self._head, self._data = head, data

    def triangles(self) -> Triangles:
        nodes = self._head.get("nodes", [])
        scenes = self._head.get("scenes", [])
        roots = scenes[self._head.get("scene", 0)].get("nodes", []) if scenes else range(len(nodes))
        waiting: list[tuple[int, Array]] = [(int(k), np.eye(4)) for k in roots]
        made: dict[int, Triangles | None] = {}
        parts, seen, faces, vertices = [], 0, 0, 0
        while waiting:
            number, above = waiting.pop()
            seen += 1
            limit(seen + len(waiting), MOST_NODES, "nodes, counted as often as they are placed")
            node = nodes[number]
            matrix = above @ _matrix(node)
            waiting += [(int(k), matrix) for k in node.get("children", [])]
            if "mesh" not in node:
                continue
            key = int(node["mesh"])
            if key not in made:
                made[key] = self._mesh(self._head["meshes"][key])
            mesh = made[key]
            if mesh is not None:
                faces, vertices = faces + len(mesh.faces), vertices + len(mesh.vertices)
                limit(faces, MOST_TRIANGLES, "triangles, counted as often as they are placed")
                limit(vertices, MOST_VERTICES, "vertices, counted as often as they are placed")
                parts.append(placed(mesh, matrix))
        whole = joined(parts)
        return checked(whole.vertices, whole.faces)

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
            raise MeshFault("its values are sparse, which is not read.")
        view = self._head["bufferViews"][accessor["bufferView"]]
        buffer = self._head["buffers"][view["buffer"]]
        if view["buffer"] != 0 or "uri" in buffer:
            raise MeshFault("its data lie in another file.", hint="Save it as one .glb file.")
        count = limit(int(accessor["count"]), MOST_VERTICES, "values")
        kind = np.dtype("<" + COMPONENTS[accessor["componentType"]])
        if SIZES[accessor["type"]] != size:
            raise MeshFault("its values have the wrong type.", found=str(accessor["type"]))
        wide = kind.itemsize * size
        stride = int(view.get("byteStride", wide)) or wide
        start = int(view.get("byteOffset", 0)) + int(accessor.get("byteOffset", 0))
        end = start + (count - 1) * stride + wide
        if start < 0 or stride < wide or count < 1 or end > len(self._data):
            raise MeshFault("its values reach beyond its data.", f"{len(self._data):,} bytes", f"{end:,}")
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


def _matrix(node: dict[str, Any]) -> Array:
    """Where a node is in the one above it."""
    if "matrix" in node:
        return np.array(node["matrix"], dtype=np.float64).reshape(4, 4).T
    out = np.eye(4)
    turn = Rotation.from_quat(np.array(node.get("rotation", (0.0, 0.0, 0.0, 1.0)), dtype=np.float64)).as_matrix()
    out[:3, :3] = turn * np.array(node.get("scale", (1.0, 1.0, 1.0)), dtype=np.float64)
    out[:3, 3] = np.array(node.get("translation", (0.0, 0.0, 0.0)), dtype=np.float64)
    return out
