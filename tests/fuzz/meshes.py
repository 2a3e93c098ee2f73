"""A box in every mesh format, written by hand."""

from __future__ import annotations

import json
import struct

import numpy as np

CORNERS = np.array([(x, y, z) for x in (0.0, 0.1) for y in (0.0, 0.2) for z in (0.0, 0.3)])
SIDES = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
FACES = np.array([t for a, b, c, d in SIDES for t in ((a, b, c), (a, c, d))])


def stl() -> bytes:
    body = b"".join(struct.pack("<12fH", 0, 0, 0, *CORNERS[face].ravel(), 0) for face in FACES)
    return bytes(80) + struct.pack("<I", len(FACES)) + body


def stl_text() -> bytes:
    facets = "".join(
        "facet normal 0 0 0\nouter loop\n"
        + "".join(f"vertex {x:g} {y:g} {z:g}\n" for x, y, z in CORNERS[face])
        + "endloop\nendfacet\n"
        for face in FACES
    )
    return f"solid box\n{facets}endsolid box\n".encode()


def obj() -> bytes:
    lines = [f"v {x:g} {y:g} {z:g}" for x, y, z in CORNERS] + ["vn 0 0 1"]
    return "\n".join([*lines, *("f " + " ".join(f"{k + 1}//1" for k in side) for side in SIDES), ""]).encode()


def ply() -> bytes:
    return (
        _ply("binary_little_endian")
        + CORNERS.astype("<f4").tobytes()
        + b"".join(struct.pack("<B4i", 4, *side) for side in SIDES)
    )


def ply_text() -> bytes:
    rows = [f"{x:g} {y:g} {z:g}" for x, y, z in CORNERS] + [f"4 {a} {b} {c} {d}" for a, b, c, d in SIDES]
    return _ply("ascii") + "\n".join([*rows, ""]).encode()


def _ply(order: str) -> bytes:
    places = "".join(f"property float {axis}\n" for axis in "xyz")
    faces = f"element face {len(SIDES)}\nproperty list uchar int vertex_indices\n"
    return f"ply\nformat {order} 1.0\nelement vertex {len(CORNERS)}\n{places}{faces}end_header\n".encode()


def glb() -> bytes:
    places, corners = CORNERS.astype("<f4").tobytes(), FACES.astype("<u2").tobytes()
    head = {
        "asset": {"version": "2.0"},
        "buffers": [{"byteLength": len(places + corners)}],
        "bufferViews": [
            {"buffer": 0, "byteLength": len(places)},
            {"buffer": 0, "byteOffset": len(places), "byteLength": len(corners)},
        ],
        "accessors": [
            {"bufferView": 0, "componentType": 5126, "count": len(CORNERS), "type": "VEC3"},
            {"bufferView": 1, "componentType": 5123, "count": FACES.size, "type": "SCALAR"},
        ],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1}]}],
        "nodes": [{"children": [1], "translation": [0, 0, 1]}, {"mesh": 0, "rotation": [0, 0, 0.6, 0.8]}],
        "scenes": [{"nodes": [0]}],
        "scene": 0,
    }
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 4)
    data = places + corners
    out = struct.pack("<I4s", len(text), b"JSON") + text + struct.pack("<I4s", len(data), b"BIN\0") + data
    return b"glTF" + struct.pack("<II", 2, 12 + len(out)) + out


def dae() -> bytes:
    places = " ".join(f"{x:g}" for x in CORNERS.ravel())
    corners = " ".join(str(k) for side in SIDES for k in side)
    return f"""<?xml version="1.0" encoding="utf-8"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<library_geometries><geometry id="box"><mesh>
<source id="places"><float_array id="numbers" count="{CORNERS.size}">{places}</float_array>
<technique_common><accessor source="#numbers" count="{len(CORNERS)}" stride="3"/></technique_common></source>
<vertices id="all"><input semantic="POSITION" source="#places"/></vertices>
<polylist count="{len(SIDES)}"><input semantic="VERTEX" source="#all" offset="0"/>
<vcount>{"4 " * len(SIDES)}</vcount><p>{corners}</p></polylist>
</mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="scene"><node id="n"><rotate>0 0 1 90</rotate><instance_geometry url="#box"/></node>
</visual_scene></library_visual_scenes><scene><instance_visual_scene url="#scene"/></scene></COLLADA>
""".encode()
