"""Solids of few faces hold what they stand for: convex, closed, turned outwards, and as large as the body."""

import sysconfig
from pathlib import Path

import numpy as np
import pytest

from strangers.slider_crank import write_bench
from veridyn.files.machine.load import load_model
from veridyn.files.machine.urdf import load_urdf
from veridyn.view.machine import body_poses, tree_layer
from veridyn.view.meshes import sphere
from veridyn.view.scene import QUATERNION_STEPS, scene
from veridyn.view.solids import DIRECTIONS, hull, solids_of

ROBOTS = Path(sysconfig.get_path("purelib")) / "cmeel.prefix" / "share" / "example-robot-data" / "robots"
PANDA = ROBOTS / "panda_description" / "urdf" / "panda.urdf"


def volume(vertices: np.ndarray, faces: np.ndarray) -> float:
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
    assert volume(made.vertices, made.faces) == pytest.approx(4.0 / 3.0 * np.pi * 0.5**3, rel=0.15)


def test_a_box_is_the_box_itself() -> None:
    corners = np.array([(a, b, c) for a in (0.0, 0.2) for b in (-0.1, 0.1) for c in (0.0, 1.0)])
    made = hull("box", np.concatenate([corners, [[0.1, 0.0, 0.5]]]))
    assert made is not None
    assert volume(made.vertices, made.faces) == pytest.approx(0.2 * 0.2 * 1.0)


@pytest.mark.parametrize("flat", [[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]], ids=["disc", "rod"])
def test_a_disc_and_a_rod_have_a_little_thickness(flat: list[float]) -> None:
    points = np.random.default_rng(1).uniform(-1.0, 1.0, (200, 3)) * flat
    made = hull("flat", points)
    assert made is not None
    assert 0.0 < volume(made.vertices, made.faces) < 0.02


@pytest.mark.parametrize("half", [(1.0, 1.0, 0.02), (1.0, 0.02, 0.02), (1.0, 0.3, 0.004), (1e-3, 1.0, 1e-3)])
def test_thin_ellipsoids_are_solids_of_their_volume(half: tuple[float, float, float]) -> None:
    """Bodies of a planar machine are discs and rods: corners on both faces, not on the rim alone. 60 corners hold 85 % of a ball."""
    unit, _ = sphere()
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]
    made = hull("thin", (unit * half) @ turn.T + [3.0, -2.0, 1.0])
    assert made is not None and len(made.vertices) <= DIRECTIONS
    centre = made.vertices.mean(axis=0)
    assert volume(made.vertices - centre, made.faces) == pytest.approx(4.0 / 3.0 * np.pi * np.prod(half), rel=0.25)


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
        assert volume(centred, made.faces) > 0.0
        ends = points @ (axis := np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2][0])
        assert np.ptp(made.vertices @ axis) == pytest.approx(np.ptp(ends), rel=0.1)


def test_a_planar_machine_by_points_is_drawn(tmp_path: Path) -> None:
    write_bench(tmp_path)
    machine = load_model(tmp_path / "model.yaml")
    solids, unread = solids_of(machine)
    assert [s.body for s in solids] == ["crank", "rod", "slider"] and not unread
    assert all(volume(s.vertices, s.faces) > 0.0 for s in solids)


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
    poses = body_poses(machine, q)
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
