"""Meshes as trimesh reads them: made ones in every format, polygons and scenes by hand, and those of public robots."""

import json
import struct
import sysconfig
from pathlib import Path

import numpy as np
import pytest

from veridyn.errors import FileError
from veridyn.files.meshes import load_mesh

trimesh = pytest.importorskip("trimesh", reason="trimesh is what meshes are compared with")
ROBOTS = Path(sysconfig.get_path("purelib")) / "cmeel.prefix" / "share" / "example-robot-data" / "robots"
PUBLIC = [
    "panda_description/meshes/visual/finger.dae",
    "anymal_c_simple_description/meshes/drive.dae",
    "alexander_description/meshes/AnklePitchLink.obj",
    "allegro_hand_description/meshes/link_2.0.STL",
    "finger_edu_description/meshes/base_back.stl",
]

EMPTY = ("anymal_foot.dae",)  # to trimesh, which finds no triangles in it


def corners(mesh) -> np.ndarray:
    """The corners of all triangles, sorted: what is drawn, however vertices are numbered."""
    return np.sort(np.asarray(mesh.vertices)[np.asarray(mesh.faces)].reshape(-1))


def same(file: Path) -> None:
    """The triangles of a file are trimesh's: equal corners, and equal signed volume, so that they face the same way."""
    own, other = load_mesh(file), trimesh.load(str(file), force="mesh", process=False)
    if file.name in EMPTY:
        assert len(other.faces) == 0
        return
    assert len(own.faces) == len(other.faces)
    size = np.abs(corners(other)).max()
    assert np.abs(corners(own) - corners(other)).max() < 1e-6 * size  # trimesh keeps some of them as float32
    a, b = (np.asarray(m.vertices)[np.asarray(m.faces)] for m in (own, other))
    volumes = [float(np.einsum("ij,ij->", np.cross(t[:, 0], t[:, 1]), t[:, 2])) for t in (a, b)]
    assert volumes[0] == pytest.approx(volumes[1], abs=1e-5 * size**3)


@pytest.mark.parametrize("ending", ["stl", "stl_ascii", "obj", "ply", "ply_ascii", "glb", "dae"])
def test_a_made_mesh_in_every_format(tmp_path: Path, ending: str):
    kind, _, text = ending.partition("_")
    made = trimesh.creation.icosphere(subdivisions=2).apply_scale((0.3, 0.2, 0.1)).apply_translation((1.0, -2.0, 3.0))
    file = tmp_path / f"ball.{kind.upper() if text else kind}"
    settings = {"encoding": "ascii"} if ending == "ply_ascii" else {}
    content = made.export(file_type=ending if ending == "stl_ascii" else kind, **settings)
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    same(file)
    assert len(load_mesh(file).vertices) == len(made.vertices)  # shared ones are one


def test_a_scene_of_nodes_is_placed(tmp_path: Path):
    scene = trimesh.Scene()
    box = trimesh.creation.box(extents=(1.0, 2.0, 3.0))
    turn = trimesh.transformations.rotation_matrix(0.7, (1.0, 2.0, -1.0), (0.1, 0.0, 0.2))
    scene.add_geometry(box, node_name="a", geom_name="box", transform=turn)
    scene.add_geometry(box, node_name="b", geom_name="box", parent_node_name="a", transform=turn @ turn)
    scene.add_geometry(trimesh.creation.cone(1.0, 2.0), node_name="c", parent_node_name="b", transform=turn)
    scene.export(tmp_path / "scene.glb")
    same(tmp_path / "scene.glb")


DAE = """<?xml version="1.0"?><COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<library_geometries><geometry id="g"><mesh>
<source id="s"><float_array id="sa" count="12">0 0 0 1 0 0 1 1 0 0 1 0</float_array><technique_common>
<accessor source="#sa" count="4" stride="3"/></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#s"/></vertices>
{primitive}</mesh></geometry></library_geometries>
<library_nodes><node id="shared"><scale>2 2 1</scale><instance_geometry url="#g"/></node></library_nodes>
<library_visual_scenes><visual_scene id="all"><node><translate>0 0 5</translate><rotate>1 0 0 90</rotate>
<instance_node url="#shared"/></node></visual_scene></library_visual_scenes>
<scene><instance_visual_scene url="#all"/></scene></COLLADA>"""
INPUTS = '<input semantic="VERTEX" source="#v" offset="0"/><input semantic="NORMAL" source="#s" offset="1"/>'


@pytest.mark.parametrize(
    "primitive",
    [
        f'<triangles count="2">{INPUTS}<p>0 0 1 0 2 0 0 1 2 1 3 1</p></triangles>',
        f'<polylist count="1">{INPUTS}<vcount>4</vcount><p>0 0 1 0 2 0 3 1</p></polylist>',
        f'<polygons count="1">{INPUTS}<p>0 0 1 0 2 0 3 1</p></polygons>',
    ],
)
def test_a_square_in_collada_by_hand(tmp_path: Path, primitive: str):
    file = tmp_path / "square.dae"
    file.write_text(DAE.format(primitive=primitive))
    made = load_mesh(file)
    # twice as large in x and y, turned about x by a quarter turn, and 5 up: y becomes z
    assert made.vertices.tolist() == pytest.approx(np.array([[0, 0, 5], [2, 0, 5], [2, 0, 7], [0, 0, 7]]))
    assert made.faces.tolist() == [[0, 1, 2], [0, 2, 3]]


def test_polygons_of_text(tmp_path: Path):
    obj = tmp_path / "a.obj"
    obj.write_text("# a\no part\nv 0 0 0\nv 1 0 0 1\n v 1 1 0\nvn 0 0 1\nv 0 1 0\nf 1//1 2//1 3//1 \\\n -1\nl 1 2\n")
    assert load_mesh(obj).faces.tolist() == [[0, 1, 2], [0, 2, 3]]
    head = "ply\nformat ascii 1.0\ncomment a\nelement vertex 4\nproperty float x\nproperty float y\nproperty float z\n"
    head += "element face 2\nproperty list uchar int vertex_index\nproperty uchar red\nend_header\n"
    ply = tmp_path / "a.ply"
    ply.write_text(head + "0 0 0\n1 0 0\n1 1 0\n0 1 0\n4 0 1 2 3 9\n3 0 1 3 9\n")
    assert load_mesh(ply).faces.tolist() == [[0, 1, 2], [0, 2, 3], [0, 1, 3]]
    for face, said in (
        ("2.5 0 1 9", "lengths of lists are not whole numbers"),
        ("nan 0 1 9", "ends before its data"),
        ("-1 0 1 9", "ends before its data"),
    ):
        ply.write_text(head.replace("face 2", "face 1") + "0 0 0\n1 0 0\n1 1 0\n0 1 0\n" + face + "\n")
        with pytest.raises(FileError, match=said):
            load_mesh(ply)
    body = struct.pack(">12f", *[0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0])
    body += struct.pack(">B4iB", 4, 0, 1, 2, 3, 9) + struct.pack(">B3iB", 3, 0, 1, 3, 9)
    ply.write_bytes(head.replace("ascii", "binary_big_endian").encode() + body)
    assert load_mesh(ply).faces.tolist() == [[0, 1, 2], [0, 2, 3], [0, 1, 3]]


def glb(head: dict, data: bytes = b"") -> bytes:
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 4)
    out = struct.pack("<I4s", len(text), b"JSON") + text + struct.pack("<I4s", len(data), b"BIN\0") + data
    return b"glTF" + struct.pack("<II", 2, 12 + len(out)) + out


@pytest.mark.parametrize(
    ("mode", "faces"), [(4, [[0, 1, 2]]), (5, [[0, 1, 2], [3, 2, 1]]), (6, [[0, 1, 2], [0, 2, 3]])]
)
def test_lists_strips_and_fans_of_gltf(tmp_path: Path, mode: int, faces: list):
    data = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], dtype="<f4").tobytes()
    head = {
        "asset": {"version": "2.0"},
        "buffers": [{"byteLength": len(data)}],
        "bufferViews": [{"buffer": 0, "byteLength": len(data)}],
        "accessors": [{"bufferView": 0, "componentType": 5126, "count": 4, "type": "VEC3"}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "mode": mode}]}],
        "nodes": [{"mesh": 0, "translation": [0, 0, 1], "rotation": [0, 0, 1, 0], "scale": [2, 1, 1]}],
        "scenes": [{"nodes": [0]}],
    }
    file = tmp_path / "a.glb"
    file.write_bytes(glb(head, data))
    made = load_mesh(file)
    assert made.faces.tolist() == faces
    assert made.vertices[1] == pytest.approx([-2.0, 0.0, 1.0])  # half a turn about z


@pytest.mark.parametrize("name", PUBLIC)
def test_meshes_of_public_robots(name: str):
    if not (ROBOTS / name).is_file():
        pytest.skip(f"{name} is not part of this version")
    same(ROBOTS / name)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of trimesh's
def test_all_meshes_of_public_robots():
    files = sorted(p for p in ROBOTS.rglob("*") if p.suffix.lower() in (".stl", ".obj", ".dae", ".ply", ".glb"))
    assert len(files) > 700
    for file in files:
        same(file)


def test_what_is_no_mesh_is_named(tmp_path: Path):
    for name, content, said in (
        ("a.gltf", b"{}", r"meshes of this kind are not read.\nExpected .stl, .obj, .dae, .ply, .glb, found .gltf"),
        ("a", b"", "found no ending"),
        ("a.stl", b"\0\xff" * 60, "it is no STL file"),
        ("b.stl", b"solid a\nfacet\nvertex 1 2\n", "a vertex is not three numbers"),
        ("c.stl", b"solid a\nfacet\nvertex 1 2 3\n", "it is cut off"),
        ("d.stl", b"solid a\nvertex 1 2 nan\nvertex 1 2 3\nvertex 2 2 3\n", "places that are not finite"),
        ("a.obj", b"# nothing\n", "it holds no faces"),
        ("b.obj", b"v 0 0 0\nf 1 2 3\n", "a face names a vertex that is not there"),
        ("c.obj", b"f a b c\n", "no vertex"),
        ("a.ply", b"plywood", "it is no PLY file"),
        ("a.glb", b"glTF", "it is no GLB file"),
        ("b.glb", glb({"scenes": [{"nodes": [4]}]}), "its description cannot be read"),
        ("c.glb", glb({"extensionsRequired": ["KHR_draco_mesh_compression"]}), "an extension that is not read"),
        ("a.dae", b"<COLLADA>", "it is not XML: no element found"),
        ("b.dae", b"<COLLADA/>", "<COLLADA> has no <scene>"),
        ("c.dae", b"<robot/>", "it is no COLLADA file"),
    ):
        file = tmp_path / name
        file.write_bytes(content)
        with pytest.raises(FileError, match=said):
            load_mesh(file)
    with pytest.raises(FileError, match="No such file"):
        load_mesh(tmp_path / "none.stl")
