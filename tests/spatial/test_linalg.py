"""Vectors and matrices of tuples against NumPy's, over floats and over samples."""

import numpy as np
import pytest

from veridyn.spatial.linalg import (
    IDENTITY,
    ZERO,
    cross,
    dot,
    is_null,
    minus,
    plus,
    product,
    rotate,
    rotate_back,
    rotation_matrix,
    scaled,
    skew,
    transposed,
)
from veridyn.spatial.rotations import matrix_of

RNG = np.random.default_rng(1)
a, b = RNG.standard_normal((2, 3))
A, B = RNG.standard_normal((2, 3, 3))
N = 5
SEVERAL = RNG.standard_normal((2, N, 3))


def vec(x: np.ndarray) -> tuple:
    return tuple(x.tolist())


def mat(X: np.ndarray) -> tuple:
    return tuple(vec(row) for row in X)


CASES = {
    "dot": (dot(vec(a), vec(b)), a @ b),
    "plus": (plus(vec(a), vec(b)), a + b),
    "minus": (minus(vec(a), vec(b)), a - b),
    "scaled": (scaled(1.7, vec(a)), 1.7 * a),
    "cross": (cross(vec(a), vec(b)), np.cross(a, b)),
    "rotate": (rotate(mat(A), vec(a)), A @ a),
    "rotate_back": (rotate_back(mat(A), vec(a)), A.T @ a),
    "product": (product(mat(A), mat(B)), A @ B),
    "transposed": (transposed(mat(A)), A.T),
    "skew": (rotate(skew(vec(a)), vec(b)), np.cross(a, b)),
}


@pytest.mark.parametrize("name", CASES)
def test_floats_agree_with_numpy(name: str) -> None:
    found, expected = CASES[name]
    assert np.array(found) == pytest.approx(expected, rel=1e-14, abs=1e-15)


def test_samples_agree_with_numpy() -> None:
    """A vector of arrays (N,) is N vectors at once; a constant matrix beside it is broadcast."""
    u, v = (tuple(x.T) for x in SEVERAL)
    assert pytest.approx(np.cross(*SEVERAL), rel=1e-14, abs=1e-15) == np.array(cross(u, v)).T
    assert dot(u, v) == pytest.approx((SEVERAL[0] * SEVERAL[1]).sum(axis=1), rel=1e-14, abs=1e-15)
    assert pytest.approx(SEVERAL[0] @ A.T, rel=1e-14, abs=1e-15) == np.array(rotate(mat(A), u)).T
    assert pytest.approx(SEVERAL[0] @ A, rel=1e-14, abs=1e-15) == np.array(rotate_back(mat(A), u)).T


def test_identity_and_zero_cost_nothing() -> None:
    """The entries come back as the very same objects: nothing was multiplied or added."""
    u = tuple(SEVERAL[0].T)
    assert all(x is y for x, y in zip(rotate(IDENTITY, u), u, strict=True))
    assert all(x is y for x, y in zip(rotate_back(IDENTITY, u), u, strict=True))
    assert all(x is y for x, y in zip(plus(ZERO, u), u, strict=True))
    assert is_null(cross(ZERO, u))
    assert is_null(rotate((ZERO, ZERO, ZERO), u))
    assert is_null(scaled(0.0, u))
    assert product(IDENTITY, mat(A)) == mat(A)


def test_a_turn_about_z_leaves_the_third_entry_alone() -> None:
    x, y, z = u = tuple(SEVERAL[0].T)
    c, s = np.cos(x), np.sin(x)
    turned = rotate(((c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0)), u)
    assert turned[2] is z
    assert turned[0] == pytest.approx(c * x - s * y)


def test_null_means_constant_zeros_only() -> None:
    assert is_null(ZERO)
    assert not is_null((0.0, 0.0, np.zeros(3)))
    assert not is_null((0.0, 1e-300, 0.0))


def test_rotation_of_a_quaternion_of_any_length() -> None:
    e = RNG.standard_normal((N, 4))
    x = np.array([[rotation_matrix(tuple(row))[i] for i in range(3)] for row in e])
    assert x == pytest.approx(matrix_of(e / np.linalg.norm(e, axis=1, keepdims=True)))
    many = rotation_matrix(tuple(e.T))
    assert np.moveaxis(np.array(many), -1, 0) == pytest.approx(x)
