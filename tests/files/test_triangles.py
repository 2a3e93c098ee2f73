"""Files that ask for more memory than they are worth: all are refused, in a process whose memory is measured."""

import json
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from veridyn.errors import FileError
from veridyn.files import meshes
from veridyn.files.meshes import load_mesh
from veridyn.files.triangles import Triangles, fans, placed

SPENT = 128  # MiB that refusing all of them may take; each asks for more than that
MEASURED = """
import sys
from pathlib import Path
from veridyn.errors import FileError
from veridyn.files.meshes import load_mesh
peak = lambda: int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
before = peak()
for file in sorted(Path(sys.argv[1]).iterdir()):
    try:
        load_mesh(file)
        print("read", file.name)
    except FileError as error:
        print("refused", file.name, str(error).replace(chr(10), " "))
print(peak() - before)
"""


def glb(head: dict, data: bytes = b"") -> bytes:
    text = json.dumps(head).encode()
    out = struct.pack("<I4s", len(text), b"JSON") + text + struct.pack("<I4s", len(data), b"BIN\0") + data
    return b"glTF" + struct.pack("<II", 2, 12 + len(out)) + out


def scene(nodes: list[dict], count: int = 3, **accessor) -> bytes:
    """A GLB file of these nodes, and a mesh of `count` corners."""
    data = np.zeros((3000, 3), dtype="<f4").tobytes()
    return glb(
        {
            "buffers": [{"byteLength": len(data)}],
            "bufferViews": [{"buffer": 0, "byteLength": len(data)}],
            "accessors": [{"bufferView": 0, "componentType": 5126, "count": count, "type": "VEC3"} | accessor],
            "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
            "nodes": nodes,
            "scenes": [{"nodes": [0]}],
        },
        data,
    )


def collada(geometry: str, nodes: str = "", before: str = "") -> bytes:
    return (
        f'<?xml version="1.0"?>{before}<COLLADA><library_geometries><geometry id="g"><mesh><source id="s"><float_array>'
        '0 0 0 1 0 0 0 1 0</float_array></source><vertices id="v"><input semantic="POSITION" source="#s"/></vertices>'
        f"{geometry}</mesh></geometry></library_geometries><library_nodes>{nodes}</library_nodes><library_visual_scenes>"
        '<visual_scene id="all"><node><instance_node url="#n0"/></node></visual_scene></library_visual_scenes>'
        '<scene><instance_visual_scene url="#all"/></scene></COLLADA>'
    ).encode()


VERTEX = '<input semantic="VERTEX" source="#v" offset="0"/>'
ONE = '<node id="n0"><instance_geometry url="#g"/></node>'
LAUGHS = "<!DOCTYPE a [" + "".join(f'<!ENTITY l{k} "{f"&l{k - 1};" * 10}">' for k in range(1, 10)) + "]>"
DOUBLED = "".join(f'<node id="n{k}">{f"""<instance_node url="#n{k + 1}"/>""" * 2}</node>' for k in range(60))
HEADER = "ply\nformat {} 1.0\nelement vertex {}\nproperty float x\nproperty float y\nproperty float z\n{}end_header\n"
BOMBS = {
    "a.ply": HEADER.format("ascii", 2_000_000_000, "").encode() + b"0 0 0\n",
    "b.ply": HEADER.format("binary_little_endian", 900_000, "").encode() + bytes(12),
    "c.ply": HEADER.format("ascii", 0, "element face 1\nproperty list int int vertex_index\n").encode()
    + b"2000000000 1\n",
    "d.ply": HEADER.format("binary_little_endian", 0, "element face 1\nproperty list int int vertex_index\n").encode()
    + struct.pack("<I", 2_000_000_000),
    "e.ply": HEADER.format("ascii", 0, "".join(f"element e{k} 3000000\n" for k in range(2000))).encode(),
    "a.stl": bytes(80) + struct.pack("<I", 4_000_000_000) + bytes(50),
    "a.obj": b"v 0 0 0\n" + b"f" + b" 1" * 600_000 + b"\n",
    "b.obj": b"v 0 0 0\nf 1 1 99999999999999999999999\n",
    "a.dae": collada("<triangles><p>0 1 2</p></triangles>&l9;", ONE, LAUGHS),
    "b.dae": collada(f"<polylist>{VERTEX}<vcount>2000000000</vcount><p>0 1 2</p></polylist>", ONE),
    "c.dae": collada(f"<triangles>{VERTEX}<p>0 1 2</p></triangles>", DOUBLED + ONE.replace("n0", "n60")),
    "d.dae": collada("", '<node id="n0"><instance_node url="#n0"/></node>'),
    "e.dae": b"<COLLADA>" * 100_000,
    "f.dae": b"<COLLADA>" + b"<a/>" * 2_000_000,
    "g.dae": collada(
        '<triangles><input semantic="VERTEX" source="#v" offset="999999999"/><p>0 1 2</p></triangles>', ONE
    ),
    "a.glb": scene([{"mesh": 0}], 2_000_000_000),
    "b.glb": scene([{"mesh": 0}], 900_000, bufferView=None),
    "c.glb": scene([{"children": list(range(1, 5001))}, *[{"mesh": 0}] * 5000], 3000),
    "d.glb": scene([{"children": [0, 0]}]),
    "e.glb": scene([{"children": [1] * 9000}, {"children": [2] * 9000}, {"mesh": 0}]),
    "f.glb": glb({"a": ["" for _ in range(1_100_000)]}),
}


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="the peak of memory is read from /proc")
def test_files_that_ask_for_much_memory_are_refused_without_it(tmp_path: Path):
    for name, content in BOMBS.items():
        (tmp_path / name).write_bytes(content)
    with zipfile.ZipFile(tmp_path / "b.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        packed.writestr("a.stl", bytes(200_000_000))
    for ending in ("stl", "obj", "dae", "ply", "glb"):
        (tmp_path / f"zip.{ending}").write_bytes((tmp_path / "b.zip").read_bytes())
    with (tmp_path / "large.stl").open("wb") as sparse:
        sparse.truncate(3_000_000_000)
    done = subprocess.run([sys.executable, "-c", MEASURED, tmp_path], capture_output=True, text=True, check=True)
    *said, spent = done.stdout.splitlines()
    assert [line.split()[0] for line in said] == ["refused"] * (len(BOMBS) + 7), done.stdout
    assert int(spent) < SPENT << 10, done.stdout  # kiB


def test_what_is_refused_is_told_with_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name, said in (
        ("a.ply", r"at most 3,000,000 elements vertex, found 2,000,000,000"),
        ("a.dae", "it declares a document type"),
        ("b.dae", "its polygons have more corners than it lists"),
        ("c.dae", "at most 10,000 nodes, counted as often as they are placed"),
        ("a.glb", "at most 3,000,000 values, found 2,000,000,000"),
        ("c.glb", "at most 1,000,000 triangles, counted as often as they are placed"),
    ):
        (tmp_path / name).write_bytes(BOMBS[name])
        with pytest.raises(FileError, match=said):
            load_mesh(tmp_path / name)
    monkeypatch.setattr(meshes, "LARGEST_FILE", 10)
    with pytest.raises(FileError, match="it is too large"):
        load_mesh(tmp_path / "a.glb")


def test_polygons_become_fans():
    found = fans(np.array([3, 0, 5, 2, 4]), np.arange(14))
    expected = [[0, 1, 2], [3, 4, 5], [3, 5, 6], [3, 6, 7], [10, 11, 12], [10, 12, 13]]
    assert found.tolist() == expected
    with pytest.raises(FileError, match="more corners than it lists"):
        fans(np.array([4]), np.arange(3))


def test_the_outside_of_a_mirrored_mesh_stays_outside():
    corner = Triangles(np.vstack([np.zeros(3), np.eye(3)]), np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]))

    def volume(mesh: Triangles) -> float:
        a, b, c = np.moveaxis(mesh.vertices[mesh.faces], 1, 0)
        return float(np.einsum("ij,ij->", np.cross(a, b), c)) / 6.0

    assert volume(corner) == pytest.approx(1.0 / 6.0)
    assert volume(placed(corner, np.diag([-1.0, 2.0, 1.0, 1.0]))) == pytest.approx(2.0 / 6.0)
    assert volume(placed(corner, np.diag([-1.0, -2.0, 1.0, 1.0]))) == pytest.approx(2.0 / 6.0)
