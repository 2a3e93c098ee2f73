"""The elementary functions over plain Python numbers: within units of the last place of exact or library values."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar

import numpy as np
import pytest

from strangers.evaluate import evaluate
from strangers.exact_trigonometry import error_in_ulp, nearest_to_quarter
from strangers.exact_trigonometry import sine_and_cosine as exact_sine_and_cosine
from veridyn.symbolic.elementary import (
    Arithmetic,
    arc_tangent,
    constant,
    exponential,
    logarithm,
    sine_and_cosine,
    spread,
)
from veridyn.symbolic.emit_llvm import BLOCK, emit
from veridyn.symbolic.expression import Graph, forward, reverse
from veridyn.symbolic.kernel import Kernel, compile_object, padded, this_host

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
        for found, true in zip(sine_and_cosine(Plain(), float(x)), exact_sine_and_cosine(float(x)), strict=True):
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


@pytest.mark.parametrize("value", [0.0, -0.0, 1.0, -1.5, 0.1, 5e-324, 1.7976931348623157e308])
@pytest.mark.parametrize("width", [1, 2, 8])
def test_a_constant_is_the_same_number_in_every_lane(value: float, width: int) -> None:
    lanes = constant(value, width).strip("<>").split(", ")
    assert len(lanes) == width and len(set(lanes)) == 1
    bits = lanes[0].removeprefix("double 0x")
    assert bytes.fromhex(bits) == struct.pack(">d", value)


def test_a_scalar_is_spread_over_all_lanes() -> None:
    first, second = spread(4, "v", "%a").splitlines()
    assert first == "  %v.i = insertelement <4 x double> poison, double %a, i32 0"
    assert second.count("i32 0") == 4 and second.startswith("  %v = shufflevector <4 x double> %v.i")


WIDTHS = (1, 2, 4, 8)
FARTHEST = 1e6
LAST = int(FARTHEST / (math.pi / 2))  # multiples of π/2 within reach


@cache
def kernel(width: int) -> tuple[Kernel, np.ndarray]:
    """The kernel and, for each of its outputs, 0 where it is the sine and 1 where it is the cosine."""
    g = Graph()
    x = g.input("x")
    program = emit(g, [g.sin(x), g.cos(x)], ["x"], [], width)
    made = Kernel(compile_object(program.text, this_host(width)), ("x",), (), 2, program.places)
    return made, np.array(program.order, dtype=np.uintp)


def sincos(width: int, x: np.ndarray) -> np.ndarray:
    out = np.empty((2, padded(len(x))))
    made, order = kernel(width)
    made.run([x], np.zeros(0), out.ctypes.data + out.strides[0] * order, len(x))
    return out[:, : len(x)]


@cache
def exact(x: float) -> tuple:
    return exact_sine_and_cosine(x)


def worst(width: int, x: np.ndarray) -> float:
    s, c = sincos(width, x)
    errors = [
        max(error_in_ulp(float(a), exact(v)[0]), error_in_ulp(float(b), exact(v)[1]))
        for v, a, b in zip(x.tolist(), s, c, strict=True)
    ]
    return max(errors)


@cache
def anywhere() -> np.ndarray:
    rng = np.random.default_rng(0)
    far = rng.uniform(-FARTHEST, FARTHEST, 1500)
    near = rng.uniform(-10.0, 10.0, 700)
    sizes = 10.0 ** rng.uniform(-12, 6, 500) * rng.choice([-1.0, 1.0], 500)
    return np.concatenate([far, near, sizes, [FARTHEST, -FARTHEST]])


@cache
def hardest() -> np.ndarray:
    """The doubles nearest to multiples of π/2, where one of the two nearly vanishes, and their neighbours; halfway between as well.

    Among all multiples within reach, those that come closest to a double are the ones that ask most of the reduction: they are picked
    out of 60000 by how small the sine or cosine is beside the argument's last place.
    """
    rng = np.random.default_rng(1)
    numbers = np.unique(np.concatenate([np.arange(1, 300), rng.integers(300, LAST, 60_000)]))
    # k π/2 in extended steps: what a double leaves of it, relative to its last place.
    x = numbers * (math.pi / 2)
    left = np.abs(numbers * 6.123233995736766e-17 - _product_error(numbers, math.pi / 2, x)) / np.spacing(x)
    chosen = np.unique(np.concatenate([numbers[:150], numbers[np.argsort(left)[:150]], rng.integers(1, LAST, 150)]))
    at = np.array([nearest_to_quarter(int(k)) for k in chosen])
    beside = np.concatenate([np.nextafter(at, 0.0), np.nextafter(at, np.inf)])
    halfway = np.array(
        [nearest_to_quarter(int(k)) / 2 for k in rng.integers(1, LAST, 150)]
    )  # π/4: where the octants meet
    points = np.concatenate([at, beside, halfway, np.nextafter(halfway, np.inf)])
    points = points[np.abs(points) <= FARTHEST]
    return np.concatenate([points, -points])


def _product_error(n: np.ndarray, c: float, product: np.ndarray) -> np.ndarray:
    """product − n c, exactly enough: c in two halves of 26 bits."""
    high = np.float64(np.float32(c))
    return (product - n * high) - n * (c - high)


@pytest.mark.parametrize("width", WIDTHS)
def test_within_one_ulp_anywhere(width: int) -> None:
    error = worst(width, anywhere())
    print(f"width {width}: {error:.3f} ulp over ±{FARTHEST:g} rad")
    assert error <= 1.0


@pytest.mark.parametrize("width", WIDTHS)
def test_within_one_ulp_where_one_of_them_vanishes(width: int) -> None:
    x = hardest()
    smallest = min(abs(float(v)) for p in x.tolist() for v in exact(p))
    assert smallest < 1e-13  # the points are as hard as they are meant to be
    error = worst(width, x)
    print(f"width {width}: {error:.3f} ulp next to multiples of π/2, the smallest value {smallest:.1e}")
    assert error <= 1.0


@pytest.mark.parametrize("width", WIDTHS)
def test_tiny_angles_and_zero(width: int) -> None:
    tiny = np.finfo(float).tiny
    x = np.array([0.0, -0.0, 5e-324, -5e-324, tiny / 3, tiny, 1e-200, -1e-160, 1e-30, 1e-8, -2e-8, 3e-5])
    s, c = sincos(width, x)
    assert np.array_equal(s[:9], x[:9])  # the sine of a tiny angle is the angle
    assert np.array_equal(c[:9], np.ones(9))
    assert worst(width, x) <= 1.0


@pytest.mark.parametrize("width", WIDTHS)
def test_what_is_no_number_stays_none(width: int) -> None:
    """NaN comes out where NaN or infinity went in, and nowhere else."""
    x = np.array([0.5, np.nan, 1.0, np.inf, -2.0, -np.inf, 3.0, 0.1, np.nan])
    s, c = sincos(width, x)
    wrong = ~np.isfinite(x)
    assert np.array_equal(np.isnan(s), wrong) and np.array_equal(np.isnan(c), wrong)
    assert s[~wrong] == pytest.approx(np.sin(x[~wrong]), rel=1e-15)


@pytest.mark.parametrize("width", WIDTHS)
def test_parity_is_exact(width: int) -> None:
    x = anywhere()
    s, c = sincos(width, x)
    sm, cm = sincos(width, -x)
    assert np.array_equal(sm, -s) and np.array_equal(cm, c)


def test_widths_agree_to_the_last_place() -> None:
    x = np.concatenate([anywhere(), hardest()])
    first = sincos(WIDTHS[0], x)
    for width in WIDTHS[1:]:
        assert (np.abs(sincos(width, x) - first) <= np.spacing(np.abs(first))).all()


def computed(function: str, x: np.ndarray, single: bool = False) -> np.ndarray:
    """A function of one input by compiled code."""
    graph = Graph()
    host = this_host(1) if single else this_host()
    block = 1 if single else BLOCK
    program = emit(graph, [getattr(graph, function)(graph.input("x"))], ["x"], [], host.width, block)
    kernel = Kernel(compile_object(program.text, host), ("x",), (), 1, program.places, block)
    out = np.zeros(padded(len(x)))
    kernel.run([x], np.zeros(0), np.array([out.ctypes.data], dtype=np.uintp), len(x))
    return out[: len(x)]


@pytest.mark.parametrize("single", [False, True])
def test_exponential_to_two_units_in_the_last_place(single: bool) -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-700.0, 700.0, 5000), rng.normal(size=5000), [0.0, 1e-300, -1e-20, 709.0, -708.0]])
    exact = np.exp(x)
    assert (np.abs(computed("exp", x, single) - exact) <= 2.0 * np.spacing(exact)).all()
    assert computed("exp", np.array([-800.0, -np.inf, 800.0]), single).tolist() == [0.0, 0.0, np.inf]


@pytest.mark.parametrize("single", [False, True])
def test_logarithm_to_two_units_in_the_last_place(single: bool) -> None:
    rng = np.random.default_rng(1)
    x = np.concatenate([np.exp(rng.uniform(-700.0, 700.0, 5000)), 1.0 + 0.4 * rng.uniform(-1.0, 1.0, 5000), [1.0, 2.0]])
    exact = np.log(x)
    assert (np.abs(computed("log", x, single) - exact) <= 2.0 * np.spacing(np.abs(exact))).all()
    odd = computed("log", np.array([0.0, -1.0]), single)
    assert odd[0] == -np.inf and np.isnan(odd[1])


def test_derivatives_are_those_of_complex_steps() -> None:
    graph = Graph()
    x, y = graph.input("x"), graph.input("y")
    f = graph.exp(-x * y) * graph.log(x + y * y) + graph.exp(graph.log(x) * 0.3)
    at = {"x": 0.7, "y": -1.3}
    for by, name in ((x, "x"), (y, "y")):
        step = evaluate(graph, [f], {**at, name: at[name] + 1e-30j})[0].imag / 1e-30
        assert float(evaluate(graph, forward(graph, [f], [by])[0], at)[0].real) == pytest.approx(float(step), rel=1e-13)
        assert float(evaluate(graph, reverse(graph, f, [by]), at)[0].real) == pytest.approx(float(step), rel=1e-13)


def atan_llvm_computed(x: np.ndarray, single: bool) -> np.ndarray:
    graph = Graph()
    host = this_host(1) if single else this_host()
    block = 1 if single else BLOCK
    program = emit(graph, [graph.atan(graph.input("x"))], ["x"], [], host.width, block)
    kernel = Kernel(compile_object(program.text, host), ("x",), (), 1, program.places, block)
    out = np.zeros(padded(len(x)))
    kernel.run([x], np.zeros(0), np.array([out.ctypes.data], dtype=np.uintp), len(x))
    return out[: len(x)]


@pytest.mark.parametrize("single", [False, True])
def test_arc_tangent_to_two_units_in_the_last_place(single: bool) -> None:
    rng = np.random.default_rng(0)
    edges = np.array([np.sqrt(2.0) - 1.0, np.sqrt(2.0) + 1.0])
    near = (edges[:, None] * (1.0 + np.array([-1e-15, 0.0, 1e-15]))).reshape(-1)
    x = np.concatenate([rng.normal(size=5000), np.exp(rng.uniform(-300.0, 300.0, 5000)), near, [0.0, 1e-300, 1.0]])
    x = np.concatenate([x, -x])
    exact = np.arctan(x)
    assert (np.abs(atan_llvm_computed(x, single) - exact) <= 2.0 * np.spacing(np.abs(exact))).all()
    odd = atan_llvm_computed(np.array([np.inf, -np.inf, np.nan]), single)
    assert odd[0] == np.pi / 2 and odd[1] == -np.pi / 2 and np.isnan(odd[2])


def test_derivatives_are_those_of_complex_steps_of_atan_llvm() -> None:
    graph = Graph()
    x, y = graph.input("x"), graph.input("y")
    f = graph.atan(-x * y) * graph.sin(1.7 * graph.atan(x + y * y))
    at = {"x": 0.7, "y": -1.3}
    for by, name in ((x, "x"), (y, "y")):
        step = evaluate(graph, [f], {**at, name: at[name] + 1e-30j})[0].imag / 1e-30
        assert float(evaluate(graph, forward(graph, [f], [by])[0], at)[0].real) == pytest.approx(float(step), rel=1e-13)
        assert float(evaluate(graph, reverse(graph, f, [by]), at)[0].real) == pytest.approx(float(step), rel=1e-13)


def test_a_constant_folds_and_a_sign_stays_outside() -> None:
    graph = Graph()
    x = graph.input("x")
    assert graph.atan(1.0) == np.pi / 4
    assert repr(graph.atan(-x)) == f"-{graph.atan(x)!r}"
