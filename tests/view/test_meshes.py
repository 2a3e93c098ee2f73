"""Shapes: volumes of closed forms, ellipsoids with the inertia of their bodies, meshes as trimesh wrote them."""

import sysconfig
from pathlib import Path

import numpy as np
import pytest

from strangers.slider_crank import write_bench
from studies.bench_robot import robot
from veridyn.files.machine.load import load_model
from veridyn.files.machine.urdf import load_urdf
from veridyn.files.machine.urdf_shapes import UrdfVisual
from veridyn.mechanics.tree.recursion.kinematics import Posture
from veridyn.spatial.inertia import INERTIAL
from veridyn.view import meshes
from veridyn.view.meshes import DIRECTIONS, hull, inertia_shapes, shapes_of, solids_of, sphere
from veridyn.view.scene import QUATERNION_STEPS, scene, tree_layer

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


ROBOTS = Path(sysconfig.get_path("purelib")) / "cmeel.prefix" / "share" / "example-robot-data" / "robots"
PANDA = ROBOTS / "panda_description" / "urdf" / "panda.urdf"


def solids_volume(vertices: np.ndarray, faces: np.ndarray) -> float:
    """By the divergence theorem; positive where faces are turned outwards."""
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    return float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6.0)


def test_a_ball_is_nearly_a_ball() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(20_000, 3))
    points = np.array([1.0, 2.0, 3.0]) + 0.5 * points / np.linalg.norm(points, axis=1, keepdims=True)
    made = hull("ball", points)
    assert made is not None
    assert len(made.vertices) <= DIRECTIONS and len(made.faces) == 2 * len(made.vertices) - 4  # Euler, triangles
    assert solids_volume(made.vertices, made.faces) == pytest.approx(4.0 / 3.0 * np.pi * 0.5**3, rel=0.15)


def test_a_box_is_the_box_itself() -> None:
    corners = np.array([(a, b, c) for a in (0.0, 0.2) for b in (-0.1, 0.1) for c in (0.0, 1.0)])
    made = hull("box", np.concatenate([corners, [[0.1, 0.0, 0.5]]]))
    assert made is not None
    assert solids_volume(made.vertices, made.faces) == pytest.approx(0.2 * 0.2 * 1.0)


@pytest.mark.parametrize("flat", [[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]], ids=["disc", "rod"])
def test_a_disc_and_a_rod_have_a_little_thickness(flat: list[float]) -> None:
    points = np.random.default_rng(1).uniform(-1.0, 1.0, (200, 3)) * flat
    made = hull("flat", points)
    assert made is not None
    assert 0.0 < solids_volume(made.vertices, made.faces) < 0.02


@pytest.mark.parametrize("half", [(1.0, 1.0, 0.02), (1.0, 0.02, 0.02), (1.0, 0.3, 0.004), (1e-3, 1.0, 1e-3)])
def test_thin_ellipsoids_are_solids_of_their_volume(half: tuple[float, float, float]) -> None:
    """Bodies of a planar machine are discs and rods: corners on both faces, not on the rim alone. 60 corners hold 85 % of a ball."""
    unit, _ = sphere()
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]
    made = hull("thin", (unit * half) @ turn.T + [3.0, -2.0, 1.0])
    assert made is not None and len(made.vertices) <= DIRECTIONS
    centre = made.vertices.mean(axis=0)
    assert solids_volume(made.vertices - centre, made.faces) == pytest.approx(
        4.0 / 3.0 * np.pi * np.prod(half), rel=0.25
    )


@pytest.mark.parametrize("seed", range(8))
def test_any_points_that_do_not_coincide_have_a_solid(seed: int) -> None:
    """Clouds of 2 to 300 points, flat or long or with one point far out, of 1e-6 to 1e6 m, far from the origin of the body or near."""
    rng = np.random.default_rng(seed)
    for k in range(50):
        points = rng.normal(size=(int(rng.integers(2, 300)), 3)) * 10.0 ** rng.uniform(-9.0, 0.0, 3)
        points[0] *= 1.0 if k % 2 else 1e4
        points = 10.0 ** rng.uniform(-6.0, 6.0) * points @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
        made = hull("cloud", points + np.abs(points).max() * rng.uniform(-10.0, 10.0, 3))
        assert made is not None
        centred = made.vertices - made.vertices.mean(axis=0)
        assert solids_volume(centred, made.faces) > 0.0
        ends = points @ (axis := np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2][0])
        assert np.ptp(made.vertices @ axis) == pytest.approx(np.ptp(ends), rel=0.1)


def test_a_planar_machine_by_points_is_drawn(tmp_path: Path) -> None:
    write_bench(tmp_path)
    machine = load_model(tmp_path / "model.yaml")
    solids, unread = solids_of(machine)
    assert [s.body for s in solids] == ["crank", "rod", "slider"] and not unread
    assert all(solids_volume(s.vertices, s.faces) > 0.0 for s in solids)


@pytest.mark.parametrize("place", [0.0, 1e3])
def test_a_point_has_no_solid(place: float) -> None:
    assert hull("point", np.full((4, 3), place)) is None
    assert hull("point", place + place * 1e-15 * np.random.default_rng(4).normal(size=(9, 3))) is None


@pytest.mark.filterwarnings("ignore::veridyn.errors.DataWarning")
@pytest.mark.skipif(not PANDA.is_file(), reason="example-robot-data is not installed")
def test_the_meshes_of_a_panda_become_small_solids_that_move_with_their_links() -> None:
    pytest.importorskip("trimesh")
    machine = load_urdf(PANDA)
    solids, unread = solids_of(machine, PANDA)
    assert len(solids) >= 8 and not unread
    q = np.random.default_rng(2).uniform(-1.0, 1.0, (5, machine.n))
    layer = tree_layer(machine, q, "panda", solids=solids)
    poses = Posture(machine, q).frames()
    for solid, carried in zip(solids, layer.solids, strict=True):
        R, p = poses[solid.body]
        place = layer.points[:, carried.point]
        assert np.allclose(place, p) and np.allclose(carried.turns, R)
    made = scene(np.arange(5.0), [layer], "panda")
    assert len(made.payload()) < 60_000
    w, x, y, z = np.array(made.layers[0].solids[-1].payload(1e-4)["turns"][:4]) / QUATERNION_STEPS
    assert 2.0 * np.arccos(abs(w)) == pytest.approx(
        np.arccos(0.5 * (np.trace(layer.solids[-1].turns[0]) - 1.0)), abs=5e-3
    )
    assert x * x + y * y + z * z + w * w == pytest.approx(1.0, abs=3e-3)
