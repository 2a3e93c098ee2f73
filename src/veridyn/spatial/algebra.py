"""Scalars of any kind, and vectors and matrices of three of them: the operations of a recursion, exact zeros and ones folded away.

A scalar is a Python float, a NumPy array over samples, or a symbolic expression. A plain Python float is a constant of the
machine, so ``0.0 * x`` is an exact zero and ``1.0 * x`` is x itself; this is the customisation that makes the equations of one
machine short. Everything else is left to the operand's own ``+ - *``.

A vector is ``(x, y, z)``; a matrix is a tuple of three rows: tuples, so that every entry keeps its own kind.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

Scalar = Any
SATURATED_RATIO = 20.0  # where tanh is 1 to the last digit


class Algebra(Protocol):
    """The functions of one scalar that the equations of motion use besides ``+ - *``."""

    def sin(self, x: Scalar) -> Scalar: ...
    def cos(self, x: Scalar) -> Scalar: ...
    def sign(self, x: Scalar) -> Scalar: ...
    def abs(self, x: Scalar) -> Scalar: ...
    def sqrt(self, x: Scalar) -> Scalar: ...
    def exp(self, x: Scalar) -> Scalar: ...
    def log(self, x: Scalar) -> Scalar: ...
    def atan(self, x: Scalar) -> Scalar: ...

    def given(self, name: str, value: float) -> Scalar:
        """A number of the machine that a compiled kernel takes as an input of this name; elsewhere its value."""
        ...


@dataclass(frozen=True)
class FloatAlgebra:
    """One sample: Python floats."""

    def sin(self, x: float) -> float:
        return math.sin(x)

    def cos(self, x: float) -> float:
        return math.cos(x)

    def sign(self, x: float) -> float:
        return float((x > 0.0) - (x < 0.0))

    def abs(self, x: float) -> float:
        return abs(x)

    def sqrt(self, x: float) -> float:
        return math.sqrt(x)

    def exp(self, x: float) -> float:
        return math.exp(x)

    def log(self, x: float) -> float:
        return math.log(x)

    def atan(self, x: float) -> float:
        return math.atan(x)

    def given(self, name: str, value: float) -> float:
        return value


@dataclass(frozen=True)
class ArrayAlgebra:
    """Many samples at once: NumPy arrays of shape (N,)."""

    def sin(self, x: Scalar) -> Scalar:
        return np.sin(x)

    def cos(self, x: Scalar) -> Scalar:
        return np.cos(x)

    def sign(self, x: Scalar) -> Scalar:
        return np.sign(x)

    def abs(self, x: Scalar) -> Scalar:
        return np.abs(x)

    def sqrt(self, x: Scalar) -> Scalar:
        return np.sqrt(x)

    def exp(self, x: Scalar) -> Scalar:
        return np.exp(x)

    def log(self, x: Scalar) -> Scalar:
        return np.log(x)

    def atan(self, x: Scalar) -> Scalar:
        return np.arctan(x)

    def given(self, name: str, value: float) -> float:
        return value


FLOATS = FloatAlgebra()
ARRAYS = ArrayAlgebra()


def rounded_sign(x: Scalar, speed: float) -> Scalar:
    """sign(x) without its jump: x/(x⁸ + speed⁸)^⅛, which is x/speed about zero and 1 to 3e-7 from five times the speed on."""
    return x / (x**8 + speed**8) ** 0.125


def is_zero(a: Scalar) -> bool:
    """True for the exact constant zero, never for an array that happens to hold zeros."""
    return type(a) is float and a == 0.0


def mul(a: Scalar, b: Scalar) -> Scalar:
    if type(a) is float:
        if a == 0.0:
            return 0.0
        if a == 1.0:
            return b
        if a == -1.0:
            return -b
    if type(b) is float:
        if b == 0.0:
            return 0.0
        if b == 1.0:
            return a
        if b == -1.0:
            return -a
    return a * b


def add(a: Scalar, b: Scalar) -> Scalar:
    if type(a) is float and a == 0.0:
        return b
    if type(b) is float and b == 0.0:
        return a
    return a + b


def sub(a: Scalar, b: Scalar) -> Scalar:
    if type(b) is float and b == 0.0:
        return a
    if type(a) is float and a == 0.0:
        return -b
    return a - b


def hyperbolic_tangent(algebra: Algebra, x: Scalar) -> Scalar:
    """tanh(x) = 1 − 2/(e^2x + 1); the exponential stays finite, and so do its derivatives."""
    far = SATURATED_RATIO
    within = sub(mul(0.5, algebra.abs(add(x, far))), mul(0.5, algebra.abs(sub(x, far))))
    return sub(1.0, 2.0 / add(algebra.exp(mul(2.0, within)), 1.0))


def positive_part(algebra: Algebra, x: Scalar) -> Scalar:
    """x where it is above zero, else 0."""
    return mul(0.5, add(x, algebra.abs(x)))


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
