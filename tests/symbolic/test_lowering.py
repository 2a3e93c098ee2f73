"""Elementary functions over plain Python numbers: within units of the last place of exact or library values.

Orders of evaluation: every value once and after its operands, with as few alive as is known to be possible.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar

import numpy as np
import pytest

from strangers.cars import car_20
from strangers.evaluate import evaluate, twins
from strangers.exact_trigonometry import error_in_ulp, nearest_to_quarter
from strangers.exact_trigonometry import sine_and_cosine as exact_sine_and_cosine
from veridyn.mechanics.tree.dynamics.formula import formula
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.inputs import Request
from veridyn.symbolic.emit_llvm import BLOCK, emit
from veridyn.symbolic.expression import CONST, Graph, forward, reverse
from veridyn.symbolic.kernel import Kernel, compile_object, padded, this_host
from veridyn.symbolic.lowering import (
    Arithmetic,
    arc_tangent,
    constant,
    exponential,
    instructions,
    live_values,
    logarithm,
    scheduled,
    sine_and_cosine,
    spread,
)

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


BY_NAME = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "sin": np.sin, "cos": np.cos, "sign": np.sign,
    "abs": np.abs, "sqrt": np.sqrt, "exp": np.exp, "log": np.log, "atan": np.arctan, "fma": lambda a, b, c: a * b + c,
    "fnma": lambda a, b, c: c - a * b, "fms": lambda a, b, c: a * b - c,
}  # fmt: skip


def run(g: Graph, outputs, inputs, fused: bool):
    value = {n: g.constants[n] for n in range(len(g)) if g.operation[n] == CONST}
    value |= {node: inputs[name] for name, node in g.inputs.items() if name in inputs}
    for n, i in instructions(g, outputs, fused).items():
        value[n] = BY_NAME[i.name](*(value[m] for m in i.operands))
    references = [g.reference(x) for x in outputs]
    value |= g.constants
    return [(-1.0 if r.negative else 1.0) * value[r.node] for r in references]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("fused", [True, False])
def test_values_stay(seed: int, fused: bool) -> None:
    rng, g = np.random.default_rng(seed), Graph()
    inputs = {name: rng.normal(size=5) for name in "abc"}
    made = twins(rng, g, inputs, 60)
    outputs = [x.symbol for x in made[-25:]]
    for found, x in zip(run(g, outputs, inputs, fused), made[-25:], strict=True):
        np.testing.assert_allclose(found, np.broadcast_to(x.number, 5), rtol=1e-9, atol=1e-9)  # sums of thirty cancel


def test_only_products_of_one_sum_are_taken_in() -> None:
    g = Graph()
    a, b, c, d = g.inputs_named("abcd")
    twice, shown, once = a * b, b * c, c * d
    minuend = a * c
    outputs = [twice + d, twice - c, shown, shown + a, once + a, b - a * d, minuend - g.input("e")]
    names = sorted(i.name for i in instructions(g, outputs).values())
    assert names == ["add", "add", "fma", "fms", "fnma", "mul", "mul", "sub"]


def is_an_order(operands: dict[int, tuple[int, ...]], order: list[int]) -> bool:
    done: set[int] = set()
    for n in order:
        if any(m in operands and m not in done for m in operands[n]):
            return False
        done.add(n)
    return sorted(order) == sorted(operands)


@pytest.mark.parametrize("seed", range(20))
def test_random_graphs_are_ordered(seed: int) -> None:
    rng = np.random.default_rng(seed)
    operands = {n: tuple(int(m) for m in rng.integers(-3, n, 2)) if n else (-1,) for n in range(60)}
    used = {m for found in operands.values() for m in found}
    order = scheduled(operands, [n for n in operands if n not in used])
    assert is_an_order(operands, order)
    assert live_values(operands, order) <= live_values(operands, sorted(operands))


def test_a_balanced_tree_needs_one_register_for_each_level() -> None:
    """Sethi and Ullman (1970): a full binary tree of depth d needs d + 1 registers, and its leaves one by one 2^d."""
    depth = 6
    leaves = dict.fromkeys(range(2**depth), (-1,))
    operands, level, last = dict(leaves), list(leaves), 2**depth
    while len(level) > 1:
        above = []
        for a, b in zip(level[::2], level[1::2], strict=True):
            operands[last] = (a, b)
            above.append(last)
            last += 1
        level = above
    assert live_values(operands, scheduled(operands, level))[0] == depth + 1
    assert live_values(operands, sorted(operands))[0] == 2**depth


def test_live_values_are_counted() -> None:
    operands = {0: (-1,), 1: (-1,), 2: (0, 1), 3: (0,), 4: (2, 3)}
    assert live_values(operands, [0, 1, 2, 3, 4]) == (2, 7)  # 1, 2, 2, 2 and 0 that the result needs no more


def test_columns_of_a_regressor_fit_the_registers_of_a_gpu() -> None:
    """A thread has 255 registers of four bytes, so that some 110 doubles can be alive; in the order of the graph it is 150 and more."""
    tree = tree_of(car_20("all"))
    f = formula(tree, Request("regressor", tuple(range(len(tree.rows))), tuple(range(len(tree.columns)))))
    operands = {n: i.operands for n, i in instructions(f.graph, f.outputs).items()}
    order = scheduled(operands, [f.graph.reference(x).node for x in f.outputs])
    assert is_an_order(operands, order)
    inner = {n: tuple(m for m in found if m in operands) for n, found in operands.items()}
    assert live_values(inner, order)[0] < 110 < live_values(inner, sorted(operands))[0]
