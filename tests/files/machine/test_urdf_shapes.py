"""Capsules of URDF files contain the shapes they stand for: corners, rims, and vertices of meshes.

Shapes of a URDF: placed as the file says, meshes found, and what is wrong with others named.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from veridyn.errors import ModelError
from veridyn.files.machine.urdf_shapes import around_points, least_capsule, mesh_file, urdf_capsules, urdf_visuals
from veridyn.identify.excitation.capsules import Capsule

URDF = """<robot name="r">
<link name="a">
  <visual><origin xyz="1 2 3" rpy="0 0 1.5707963267948966"/><geometry><box size="1 2 3"/></geometry></visual>
  <visual><geometry><cylinder radius="0.1" length="0.4"/></geometry></visual>
  <visual><geometry><sphere radius="0.2"/></geometry></visual>
</link>
<link name="b">
  <visual><geometry><mesh filename="package://robot/meshes/b.stl" scale="0.001 0.001 0.001"/></geometry></visual>
  <visual><geometry><mesh filename="none.stl"/></geometry></visual>
  <visual><geometry><box size="1 two 3"/></geometry></visual>
  <visual><geometry><torus/></geometry></visual>
  <visual/>
</link></robot>"""
LINK = '<link name="{name}"><collision>{origin}<geometry>{shape}</geometry></collision></link>'
ORIGIN = '<origin xyz="0.1 0.2 0.3" rpy="0.3 -0.4 0.5"/>'
PLACE, TURN = np.array([0.1, 0.2, 0.3]), Rotation.from_euler("xyz", [0.3, -0.4, 0.5]).as_matrix()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "robot" / "urdf"
    folder.mkdir(parents=True)
    (tmp_path / "robot" / "meshes").mkdir()
    (tmp_path / "robot" / "meshes" / "b.stl").write_bytes(b"solid b")
    (folder / "robot.urdf").write_text(URDF)
    return folder / "robot.urdf"


def test_shapes_are_read_and_what_is_wrong_is_named(file: Path):
    found, faults = urdf_visuals(file)
    assert [(v.link, v.kind, v.size) for v in found] == [
        ("a", "box", (1.0, 2.0, 3.0)),
        ("a", "cylinder", (0.1, 0.4)),
        ("a", "sphere", (0.2,)),
        ("b", "mesh", ()),
    ]
    assert found[0].position.tolist() == [1.0, 2.0, 3.0]
    assert found[0].rotation @ [1.0, 0.0, 0.0] == pytest.approx([0.0, 1.0, 0.0], abs=1e-12)
    assert found[3].scale == (0.001,) * 3 and np.array_equal(found[3].rotation, np.eye(3))
    said = [str(f) for f in faults]
    assert len(said) == 4 and all("link 'b'" in text for text in said)
    assert "its mesh is not found" in said[0] and "none.stl" in said[0]
    assert "cannot be read" in said[1] and "no shape that is known" in said[2]


def test_packages_are_looked_for(file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    assert mesh_file("package://robot/meshes/b.stl", file) is not None
    assert mesh_file("package://other/b.stl", file) is None
    (tmp_path / "elsewhere" / "other").mkdir(parents=True)
    (tmp_path / "elsewhere" / "other" / "b.stl").write_bytes(b"")
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path / "elsewhere"))
    assert mesh_file("package://other/b.stl", file) == tmp_path / "elsewhere" / "other" / "b.stl"
    assert mesh_file(f"file://{file}", file) == file and mesh_file("file:///none", file) is None


def robot(folder: Path, **shapes: str) -> Path:
    links = "".join(LINK.format(name=name, origin=ORIGIN, shape=shape) for name, shape in shapes.items())
    file = folder / "robot.urdf"
    file.write_text(f'<robot name="r">{links}</robot>', encoding="utf-8")
    return file


def depth(c: Capsule, points: np.ndarray) -> np.ndarray:
    """Radius less distance from the segment, of points (N, 3): at least zero where they are inside."""
    a, b = np.array(c.start), np.array(c.end)
    along = b - a
    t = np.clip((points - a) @ along / max(along @ along, 1e-30), 0.0, 1.0)
    return c.radius - np.linalg.norm(points - a - t[:, None] * along, axis=1)


def test_boxes_cylinders_and_spheres_are_contained_and_touched(tmp_path: Path) -> None:
    file = robot(
        tmp_path,
        box='<box size="0.2 0.6 0.1"/>',
        rod='<cylinder radius="0.05" length="0.8"/>',
        disc='<cylinder radius="0.3" length="0.02"/>',
        ball='<sphere radius="0.25"/>',
    )
    box, rod, disc, ball = urdf_capsules(file).capsules
    turn = np.linspace(0.0, 2.0 * np.pi, 90)
    rim = np.column_stack([np.cos(turn), np.sin(turn), np.zeros(90)])
    corners = np.array([[x, y, z] for x in (-0.1, 0.1) for y in (-0.3, 0.3) for z in (-0.05, 0.05)])
    for c, points in (
        (box, corners),
        (rod, np.vstack([rim * 0.05 + [0, 0, z] for z in (-0.4, 0.4)])),
        (disc, np.vstack([rim * 0.3 + [0, 0, z] for z in (-0.01, 0.01)])),
        (ball, 0.25 * np.eye(3)),
    ):
        inside = depth(c, points @ TURN.T + PLACE)
        assert inside.min() == pytest.approx(0.0, abs=1e-6), c.body
    assert rod.radius < 0.06 and ball.start == pytest.approx(tuple(PLACE))


def test_the_least_capsule_is_the_least_of_all_radii() -> None:
    half, radius = least_capsule(0.4, 0.05)
    tried = np.linspace(0.05, np.hypot(0.4, 0.05), 5000)
    lengths = np.maximum(0.4 - np.sqrt(tried**2 - 0.05**2), 0.0)
    volumes = 2.0 * tried**2 * lengths + 4.0 / 3.0 * tried**3
    assert 2.0 * radius**2 * half + 4.0 / 3.0 * radius**3 <= volumes.min() * (1.0 + 1e-6)


def test_a_mesh_is_contained(tmp_path: Path) -> None:
    """Points of a bent tube; and the same through a file of trimesh's, scaled."""
    trimesh = pytest.importorskip("trimesh")
    rng = np.random.default_rng(0)
    points = np.column_stack([rng.uniform(-0.5, 0.5, 400), *(0.06 * rng.normal(size=(2, 400)))])
    points[:, 1] += points[:, 0] ** 2
    start, end, radius = around_points(points)
    assert depth(Capsule("x", tuple(start), tuple(end), radius), points).min() >= -1e-12
    assert radius < 0.35 and np.linalg.norm(end - start) > 0.4
    shape = trimesh.convex.convex_hull(points)
    shape.export(tmp_path / "tube.stl")
    file = robot(
        tmp_path, tube='<mesh filename="tube.stl" scale="2 2 2"/>', none='<mesh filename="package://gone/x.stl"/>'
    )
    found = urdf_capsules(file)
    assert depth(found.capsules[0], (2.0 * points) @ TURN.T + PLACE).min() >= -1e-5  # STL has single precision
    assert found.missing == {"none": "its mesh package://gone/x.stl is not found"}


def test_faults_are_named(tmp_path: Path) -> None:
    file = robot(tmp_path, a='<box size="0.1 0 0.2"/>', b='<sphere radius="-1"/>', c='<cone radius="1"/>', d="")
    with pytest.raises(ModelError) as error:
        urdf_capsules(file)
    assert "link 'a', collision" in str(error.value) and "must be above zero" in str(error.value)
    found = urdf_capsules(robot(tmp_path, c='<cone radius="1"/>', d=""))
    assert found.missing == {"c": "its collision is a <cone>, which is not read", "d": "its collision has no geometry"}
