"""Capsules of URDF files contain the shapes they stand for: corners, rims, and vertices of meshes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from veridyn.errors import ModelError
from veridyn.files.machine.urdf_shapes import around_points, least_capsule, urdf_capsules
from veridyn.identify.excitation.capsules import Capsule

LINK = '<link name="{name}"><collision>{origin}<geometry>{shape}</geometry></collision></link>'
ORIGIN = '<origin xyz="0.1 0.2 0.3" rpy="0.3 -0.4 0.5"/>'
PLACE, TURN = np.array([0.1, 0.2, 0.3]), Rotation.from_euler("xyz", [0.3, -0.4, 0.5]).as_matrix()


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
