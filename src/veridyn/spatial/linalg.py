"""Vectors and matrices of three, over scalars of any kind: tuples, so that every entry keeps its own kind.

A vector is ``(x, y, z)``; a matrix is a tuple of three rows. Constant entries fold (see :mod:`veridyn.spatial.algebra`).
"""

from __future__ import annotations

from veridyn.spatial.algebra import Scalar, add, is_zero, mul, sub

Vec = tuple[Scalar, Scalar, Scalar]
Mat = tuple[Vec, Vec, Vec]

ZERO: Vec = (0.0, 0.0, 0.0)
IDENTITY: Mat = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


def is_null(a: Vec) -> bool:
    """True when all three entries are the exact constant zero."""
    return is_zero(a[0]) and is_zero(a[1]) and is_zero(a[2])


def dot(a: Vec, b: Vec) -> Scalar:
    return add(add(mul(a[0], b[0]), mul(a[1], b[1])), mul(a[2], b[2]))


def plus(a: Vec, b: Vec) -> Vec:
    return (add(a[0], b[0]), add(a[1], b[1]), add(a[2], b[2]))


def minus(a: Vec, b: Vec) -> Vec:
    return (sub(a[0], b[0]), sub(a[1], b[1]), sub(a[2], b[2]))


def scaled(s: Scalar, a: Vec) -> Vec:
    return (mul(s, a[0]), mul(s, a[1]), mul(s, a[2]))


def cross(a: Vec, b: Vec) -> Vec:
    return (
        sub(mul(a[1], b[2]), mul(a[2], b[1])),
        sub(mul(a[2], b[0]), mul(a[0], b[2])),
        sub(mul(a[0], b[1]), mul(a[1], b[0])),
    )


def rotate(A: Mat, v: Vec) -> Vec:
    """A v: a vector of the inner frame, seen from the outer one."""
    return (dot(A[0], v), dot(A[1], v), dot(A[2], v))


def rotate_back(A: Mat, v: Vec) -> Vec:
    """Aᵀ v: a vector of the outer frame, seen from the inner one."""
    return (
        add(add(mul(A[0][0], v[0]), mul(A[1][0], v[1])), mul(A[2][0], v[2])),
        add(add(mul(A[0][1], v[0]), mul(A[1][1], v[1])), mul(A[2][1], v[2])),
        add(add(mul(A[0][2], v[0]), mul(A[1][2], v[1])), mul(A[2][2], v[2])),
    )


def product(A: Mat, B: Mat) -> Mat:
    Bt = transposed(B)
    return (rotate(Bt, A[0]), rotate(Bt, A[1]), rotate(Bt, A[2]))


def transposed(A: Mat) -> Mat:
    return ((A[0][0], A[1][0], A[2][0]), (A[0][1], A[1][1], A[2][1]), (A[0][2], A[1][2], A[2][2]))


def skew(a: Vec) -> Mat:
    """ã, the matrix of ``a ×`` (paper 000, equation 13)."""
    return ((0.0, sub(0.0, a[2]), a[1]), (a[2], 0.0, sub(0.0, a[0])), (sub(0.0, a[1]), a[0], 0.0))


def rotation_matrix(e: tuple[Scalar, Scalar, Scalar, Scalar]) -> Mat:
    """The rotation of a quaternion (w, x, y, z) of any length but zero."""
    w, x, y, z = e
    s = 2.0 / (w * w + x * x + y * y + z * z)
    return (
        (1.0 - s * (y * y + z * z), s * (x * y - w * z), s * (x * z + w * y)),
        (s * (x * y + w * z), 1.0 - s * (x * x + z * z), s * (y * z - w * x)),
        (s * (x * z - w * y), s * (y * z + w * x), 1.0 - s * (x * x + y * y)),
    )
