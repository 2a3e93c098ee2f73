"""Shapes of a URDF: placed as the file says, meshes found, and what is wrong with others named."""

from pathlib import Path

import numpy as np
import pytest

from veridyn.files.machine.urdf_visuals import mesh_file, urdf_visuals

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
