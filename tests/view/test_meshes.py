"""Shapes: volumes of closed forms, ellipsoids with the inertia of their bodies, meshes as trimesh wrote them."""

from pathlib import Path

import numpy as np
import pytest

from studies.bench_robot import robot
from veridyn.files.machine.urdf_visuals import UrdfVisual
from veridyn.spatial.inertia import INERTIAL
from veridyn.view import meshes
from veridyn.view.meshes import inertia_shapes, shapes_of

trimesh = pytest.importorskip("trimesh", reason="trimesh (the extra 'view') reads meshes")
HERE = {"rotation": np.eye(3), "position": np.array([1.0, 0.0, 0.0])}


def volume(shape) -> float:
    return abs(trimesh.Trimesh(shape.vertices, shape.faces, process=True).volume)


@pytest.mark.parametrize(
    ("kind", "size", "expected", "near"),
    [
        ("box", (1.0, 2.0, 3.0), 6.0, 1e-9),
        ("sphere", (0.5,), 4.0 / 3.0 * np.pi * 0.125, 0.1),
        ("cylinder", (0.5, 2.0), np.pi * 0.5, 0.03),
    ],
)
def test_shapes_have_their_volume(kind, size, expected, near):
    (shape,), faults = shapes_of([UrdfVisual("a", kind, size=size, **HERE)])
    assert not faults and volume(shape) == pytest.approx(expected, rel=near)
    assert shape.vertices.mean(axis=0)[0] == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("ending", ["stl", "obj", "glb", "ply", "dae"])
def test_meshes_are_read_with_their_scale(tmp_path: Path, ending: str):
    file = tmp_path / f"box.{ending}"
    trimesh.creation.box(extents=(1000.0, 2000.0, 3000.0)).export(file)
    (shape,), faults = shapes_of([UrdfVisual("a", "mesh", file=file, scale=(1e-3, 1e-3, 1e-3), **HERE)])
    assert not faults and np.ptp(shape.vertices, axis=0) == pytest.approx([1.0, 2.0, 3.0])


def test_a_broken_mesh_is_named_and_the_others_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    good, broken, empty, odd = (tmp_path / name for name in ("good.stl", "broken.stl", "empty.obj", "odd.xyz9"))
    trimesh.creation.box().export(good)
    broken.write_bytes(b"\x00\xff" * 60)
    empty.write_text("# nothing\n")
    odd.write_text("?")
    found, faults = shapes_of([UrdfVisual("a", "mesh", file=f, **HERE) for f in (broken, good, empty, odd)])
    assert len(found) == 1 and len(faults) == 3
    assert [f.name in str(fault) for f, fault in zip((broken, empty, odd), faults, strict=True)] == [True] * 3
    monkeypatch.setattr(meshes, "MOST_FACES", 3)
    assert "too large" in str(shapes_of([UrdfVisual("a", "mesh", file=good, **HERE)])[1][0])


def test_ellipsoids_have_the_inertia_of_their_bodies():
    machine = robot()
    shapes = {s.body: s for s in inertia_shapes(machine)}
    assert shapes
    for body in machine.links:
        p = np.array([machine.parameters[body.parameter(s)] for s in INERTIAL])
        s = shapes[body.name]
        made = trimesh.Trimesh(s.vertices, s.faces, process=True)
        made.density = p[9] / made.volume
        centre = p[6:9] / p[9]
        assert made.center_mass == pytest.approx(centre, abs=1e-6)
        I = np.array([[p[0], p[1], p[2]], [p[1], p[3], p[4]], [p[2], p[4], p[5]]])
        about = I - p[9] * (centre @ centre * np.eye(3) - np.outer(centre, centre))
        scale = np.abs(about).max()
        assert made.moment_inertia == pytest.approx(about, abs=0.12 * scale)  # of a sphere with flat faces
