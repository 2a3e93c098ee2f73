"""Scalars of any kind: the operations a recursion needs, with exact zeros and ones folded away.

A scalar is a Python float, a NumPy array over samples, or a symbolic expression. A plain Python float is a constant of the
machine, so ``0.0 * x`` is an exact zero and ``1.0 * x`` is x itself; this is the customisation that makes the equations of one
machine short. Everything else is left to the operand's own ``+ - *``.
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
