"""The elementary functions over plain Python numbers: within units of the last place of exact or library values."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest

from strangers.exact_trigonometry import error_in_ulp
from strangers.exact_trigonometry import sine_and_cosine as exact
from veridyn.symbolic.elementary import Arithmetic, arc_tangent, exponential, logarithm, sine_and_cosine

MASK = 2**64 - 1


def wrapped(value: int) -> int:
    """A whole number as 64 bits with a sign hold it."""
    return (value + 2**63) % 2**64 - 2**63


class Plain(Arithmetic[Any]):
    """Arithmetic on Python's own numbers; products and sums are rounded one by one, as where no fused operation exists."""

    OPERATIONS: ClassVar[dict[str, Callable[..., Any]]] = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "div": lambda a, b: a / b,
        "fma": lambda a, b, c: a * b + c,
        "bits": lambda a: struct.unpack("<q", struct.pack("<d", a))[0],
        "double": lambda i: struct.unpack("<d", struct.pack("<q", wrapped(i)))[0],
        "plus": lambda i, j: wrapped(i + j),
        "minus": lambda i, j: wrapped(i - j),
        "both": lambda i, j: wrapped((i & MASK) & (j & MASK)),
        "either": lambda i, j: wrapped((i & MASK) ^ (j & MASK)),
        "up": lambda i, k: wrapped(i << k),
        "down": lambda i, k: i >> k,
        "less": lambda a, b: a < b,
        "differs": lambda i, j: i != j,
        "choose": lambda a, b, c: a if c else b,
    }

    def number(self, value: float) -> Any:
        return float(value)

    def whole(self, value: int) -> Any:
        return int(value)

    def operation(self, name: str, *operands: Any) -> Any:
        return self.OPERATIONS[name](*operands)


@pytest.mark.parametrize("reach", [1e-8, 1.0, 10.0, 1e6])
def test_sine_and_cosine(reach: float) -> None:
    """One unit in the last place with fused operations (test_sincos_llvm); without them, half a unit more."""
    for x in np.random.default_rng(1).uniform(-reach, reach, 300):
        for found, true in zip(sine_and_cosine(Plain(), float(x)), exact(float(x)), strict=True):
            assert error_in_ulp(found, true) <= 1.5


@pytest.mark.parametrize(
    ("function", "library", "low", "high"),
    [(exponential, math.exp, -700.0, 700.0), (arc_tangent, math.atan, -50.0, 50.0), (logarithm, math.log, 1e-300, 1e6)],
)
def test_functions_of_the_library(function, library, low: float, high: float) -> None:
    """Two units in the last place, as their modules say, and one of the library's own."""
    for x in np.random.default_rng(2).uniform(low, high, 500):
        true = library(float(x))
        assert abs(function(Plain(), float(x)) - true) <= 3 * math.ulp(true)


def test_where_functions_end() -> None:
    k = Plain()
    assert exponential(k, -800.0) == 0.0 and exponential(k, 800.0) == math.inf
    assert logarithm(k, 0.0) == -math.inf and math.isnan(logarithm(k, -1.0))
    assert sine_and_cosine(k, 0.0) == (0.0, 1.0)
    assert arc_tangent(k, 1e300) == math.pi / 2
