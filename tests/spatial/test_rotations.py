"""Rotation matrices and quaternions: orthonormal, exact at right angles, rates against finite differences."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from strangers.random_trees import random_rotation
from veridyn.spatial.rotations import (
    MDH,
    Placement,
    is_rotation,
    matrix_of,
    quaternion,
    quaternion_rate,
    right_jacobian,
    rot_x,
    rot_y,
    rot_z,
    rotation_to_axis,
    rotation_vector,
    rpy,
    snapped,
)

ABOUT = (rot_x, rot_y, rot_z)


def rodrigues(axis: np.ndarray, angle: float) -> np.ndarray:
    """R = 1 + sin(φ) ũ + (1 − cos φ) ũ², ũ the matrix of u × of a unit vector."""
    K = np.cross(axis, np.eye(3)).T
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


def about_axis(axis: np.ndarray, angle: float) -> np.ndarray:
    return np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * axis])


@pytest.mark.parametrize("k", range(3))
def test_elementary_rotations_are_rodrigues_formula(k: int) -> None:
    for angle in np.random.default_rng(k).uniform(-7, 7, 20):
        R = ABOUT[k](angle)
        assert pytest.approx(rodrigues(np.eye(3)[k], angle), abs=1e-15) == R
        assert pytest.approx(np.eye(3), abs=1e-15) == R.T @ R
        assert np.linalg.det(R) == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize("k", range(3))
def test_right_angles_are_exact(k: int) -> None:
    """x → y → z → x: a quarter turn takes the next axis to the one after it, with no rounding left to spoil a fold."""
    i, j = (k + 1) % 3, (k + 2) % 3
    unit = np.eye(3)
    for turns in (-4, -3, -2, -1, 0, 1, 2, 3, 4):
        R = ABOUT[k](turns * np.pi / 2)
        assert set(np.unique(R)) <= {-1.0, 0.0, 1.0}
        assert np.array_equal(R, np.linalg.matrix_power(ABOUT[k](np.pi / 2), turns % 4))
    quarter = ABOUT[k](np.pi / 2)
    assert np.array_equal(quarter @ unit[i], unit[j])
    assert np.array_equal(quarter @ unit[j], -unit[i])
    assert np.array_equal(quarter @ unit[k], unit[k])


def test_rpy_is_the_product_in_the_order_of_urdf() -> None:
    roll, pitch, yaw = np.random.default_rng(3).uniform(-3, 3, 3)
    assert rpy(roll, pitch, yaw) == pytest.approx(rot_z(yaw) @ rot_y(pitch) @ rot_x(roll), abs=1e-15)
    assert np.array_equal(rpy(np.pi / 2, 0.0, np.pi / 2), [[0, 0, 1], [1, 0, 0], [0, 1, 0]])


def test_snapping_touches_only_rounding() -> None:
    values = [6e-17, -1.2e-16, 1 - 1e-16, -1 + 1e-16, 1e-13, 0.5, 1 + 1e-12]
    assert snapped(values).tolist() == [0.0, 0.0, 1.0, -1.0, 1e-13, 0.5, 1 + 1e-12]
    given = np.array([1e-17])
    assert snapped(given)[0] == 0.0
    assert given[0] == 1e-17


def test_is_rotation_refuses_reflections_scales_and_shapes() -> None:
    R = random_rotation(np.random.default_rng(0))
    assert is_rotation(R)
    assert not is_rotation(-R)
    assert not is_rotation(1.001 * R)
    assert not is_rotation(R[:2])
    assert not is_rotation(np.full((3, 3), np.nan))


def test_matrix_of_a_quaternion_is_rodrigues_formula() -> None:
    rng = np.random.default_rng(4)
    axes = rng.standard_normal((6, 3))
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    angles = rng.uniform(-np.pi, np.pi, 6)
    Q = np.array([about_axis(u, phi) for u, phi in zip(axes, angles, strict=True)])
    R = matrix_of(Q)
    assert R.shape == (6, 3, 3)
    for k in range(6):
        assert R[k] == pytest.approx(rodrigues(axes[k], angles[k]), abs=1e-15)
        assert np.array_equal(matrix_of(Q[k]), R[k])
        assert is_rotation(R[k])
        assert matrix_of(-Q[k]) == pytest.approx(R[k], abs=1e-15)
    assert matrix_of(Q.reshape(2, 3, 4)).shape == (2, 3, 3, 3)


def test_quaternion_rate_against_finite_differences() -> None:
    """Turning on by ω h in the body's frame is R → R exp(ω̃ h): the quaternion's product on the right."""
    rng = np.random.default_rng(5)
    h = 1e-5
    for _ in range(10):
        q = rng.standard_normal(4)
        q /= np.linalg.norm(q)
        omega = rng.standard_normal(3)
        rate = quaternion_rate(q, omega)
        assert q @ rate == pytest.approx(0.0, abs=1e-15)
        slope = (matrix_of(q + h * rate) - matrix_of(q - h * rate)) / (2 * h)
        R, size = matrix_of(q), np.linalg.norm(omega)
        after, before = (R @ rodrigues(omega / size, s * h * size) for s in (1, -1))
        # Central differences at h = 1e-5: truncation h² and rounding 1e-16 / h, both of order 1e-10.
        assert slope == pytest.approx((after - before) / (2 * h), abs=1e-9)


def test_the_right_jacobian_is_that_of_the_exponential() -> None:
    for theta in (np.array([0.3, -0.8, 0.5]), np.array([1e-5, 2e-5, 0.0]), np.zeros(3)):
        numeric = np.empty((3, 3))
        for k in range(3):
            d = 1e-6 * np.eye(3)[k]
            plus, minus = (Rotation.from_rotvec(theta + way * d).as_matrix() for way in (1, -1))
            numeric[:, k] = rotation_vector(minus.T @ plus) / 2e-6
        assert right_jacobian(theta) == pytest.approx(numeric, abs=1e-8)


def test_quaternions_of_all_branches() -> None:
    rng = np.random.default_rng(3)
    halves = [np.diag([1.0, -1, -1]), np.diag([-1.0, 1, -1]), np.diag([-1.0, -1, 1])]
    for R in [*halves, *(random_rotation(rng) for _ in range(30))]:
        assert matrix_of(quaternion(R)) == pytest.approx(R, abs=1e-12)


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
