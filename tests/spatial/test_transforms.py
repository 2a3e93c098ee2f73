"""The six modified Denavit-Hartenberg parameters against the product of six 4×4 matrices, and general placements."""

import pickle

import numpy as np
import pytest

from strangers.random_trees import random_rotation
from veridyn.spatial.rotations import is_rotation
from veridyn.spatial.transforms import MDH, Placement, rotation_to_axis


def turn(axis: int, angle: float) -> np.ndarray:
    T = np.eye(4)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    T[i, i] = T[j, j] = np.cos(angle)
    T[j, i], T[i, j] = np.sin(angle), -np.sin(angle)
    return T


def slide(axis: int, length: float) -> np.ndarray:
    T = np.eye(4)
    T[axis, 3] = length
    return T


def explicit(a: MDH) -> np.ndarray:
    """Rz(γ) Tz(b) Rx(α) Tx(d) Rz(θ) Tz(r)."""
    return turn(2, a.gamma) @ slide(2, a.b) @ turn(0, a.alpha) @ slide(0, a.d) @ turn(2, a.theta) @ slide(2, a.r)


@pytest.mark.parametrize("seed", range(20))
def test_mdh_is_the_product_of_six_motions(seed: int) -> None:
    a = MDH(*np.random.default_rng(seed).uniform(-3, 3, 6))
    T = explicit(a)
    assert a.rotation == pytest.approx(T[:3, :3], abs=1e-14)
    assert a.position == pytest.approx(T[:3, 3], abs=1e-14)
    assert is_rotation(a.rotation, 1e-14)


@pytest.mark.parametrize("seed", range(5))
def test_mdh_position_by_the_closed_formula(seed: int) -> None:
    """P = (d cγ + r sγ sα, d sγ − r cγ sα, r cα + b)."""
    gamma, b, alpha, d, theta, r = np.random.default_rng(100 + seed).uniform(-3, 3, 6)
    cg, sg, ca, sa = np.cos(gamma), np.sin(gamma), np.cos(alpha), np.sin(alpha)
    expected = [d * cg + r * sg * sa, d * sg - r * cg * sa, r * ca + b]
    assert MDH(gamma, b, alpha, d, theta, r).position == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("seed", range(5))
def test_the_joint_moves_along_the_frames_own_z(seed: int) -> None:
    """q added to θ turns, and q added to r slides, the frame at q = 0 along its z axis."""
    rng = np.random.default_rng(200 + seed)
    gamma, b, alpha, d, theta, r, q = rng.uniform(-2, 2, 7)
    at_zero = np.eye(4)
    still = MDH(gamma, b, alpha, d, theta, r)
    at_zero[:3, :3], at_zero[:3, 3] = still.rotation, still.position
    assert at_zero @ turn(2, q) == pytest.approx(explicit(MDH(gamma, b, alpha, d, theta + q, r)), abs=1e-14)
    assert at_zero @ slide(2, q) == pytest.approx(explicit(MDH(gamma, b, alpha, d, theta, r + q)), abs=1e-14)


def test_right_angles_leave_no_dust() -> None:
    a = MDH(gamma=np.pi / 2, b=0.1, alpha=-np.pi / 2, d=0.4, theta=np.pi, r=0.3)
    assert set(np.unique(a.rotation)) <= {-1.0, 0.0, 1.0}
    assert a.position.tolist() == [-0.3, 0.4, 0.1]
    assert MDH().position.tolist() == [0.0, 0.0, 0.0]
    assert np.array_equal(MDH().rotation, np.eye(3))


def test_small_lengths_are_not_dust() -> None:
    assert MDH(d=1e-20).position.tolist() == [1e-20, 0.0, 0.0]


def test_placements_compare_hash_and_travel_by_value() -> None:
    R = random_rotation(np.random.default_rng(1))
    p = Placement(R, [1, 2, 3])
    assert p == Placement(R.copy(), (1.0, 2.0, 3.0))
    assert hash(p) == hash(Placement(R.copy(), (1.0, 2.0, 3.0)))
    assert p != Placement(R, [1, 2, 4])
    assert p != MDH()
    assert pickle.loads(pickle.dumps(p)) == p
    assert Placement().rotation.tolist() == np.eye(3).tolist()
    assert Placement().position.tolist() == [0.0, 0.0, 0.0]


def test_a_placement_keeps_its_numbers_when_the_callers_array_changes() -> None:
    R, p = np.eye(3), np.zeros(3)
    placement = Placement(R, p)
    R[0, 0], p[0] = 7.0, 7.0
    assert placement.rotation[0, 0] == 1.0
    assert placement.position[0] == 0.0


def test_rotation_to_axis_has_that_axis_as_its_z() -> None:
    rng = np.random.default_rng(2)
    for axis in [*np.eye(3), *-np.eye(3), *rng.standard_normal((20, 3)), np.array([1e-3, 0, 5.0])]:
        R = rotation_to_axis(3.0 * axis)
        assert R[:, 2] == pytest.approx(axis / np.linalg.norm(axis), abs=1e-15)
        assert is_rotation(R, 1e-14)


@pytest.mark.parametrize("axis", [*np.eye(3), *-np.eye(3)])
def test_rotation_to_an_axis_of_the_frame_is_exact(axis: np.ndarray) -> None:
    assert set(np.unique(rotation_to_axis(axis))) <= {-1.0, 0.0, 1.0}
