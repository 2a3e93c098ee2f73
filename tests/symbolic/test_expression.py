"""Everything is there once: hash-consing up to sign, folding of zeros, ones and constants, and the numbers stay right."""

from __future__ import annotations

import math

import numpy as np
import pytest

from strangers.evaluate import evaluate, twins
from strangers.random_trees import random_tree
from veridyn.mechanics.tree.dynamics.formula import formula
from veridyn.mechanics.tree.recursion.inputs import Request
from veridyn.mechanics.tree.tree import Tree
from veridyn.symbolic.emit_llvm import emit
from veridyn.symbolic.expression import (
    ADD,
    COS,
    MUL,
    SIN,
    SUB,
    Count,
    Expression,
    Graph,
    Number,
    along,
    count,
    forward,
    inserted,
    live,
    reverse,
    seeded,
)


def same(a: Number, b: Number, turned: bool = False) -> bool:
    """One node, seen with one sign, or with opposite ones where `turned`."""
    return a.node == b.node and (a.negative != b.negative) == turned


@pytest.fixture
def g() -> Graph:
    return Graph()


@pytest.fixture
def xy(g: Graph) -> tuple[Expression, Expression]:
    return g.input("x"), g.input("y")


def test_an_input_is_one_node(g: Graph) -> None:
    a, b = g.inputs_named(["x", "x"])
    assert same(a, b) and same(a, g.input("x")) and len(g) == 1


def test_sums_and_products_do_not_care_for_order(xy) -> None:
    x, y = xy
    assert same(x + y, y + x)
    assert same(x * y, y * x)


def test_signs_are_not_nodes(g: Graph, xy) -> None:
    x, y = xy
    turned = -x
    assert same(turned, x, turned=True) and same(-turned, x)
    assert same((-x) * y, x * y, turned=True) and same((-x) * (-y), x * y)
    assert same(x - y, y - x, turned=True)
    assert same(-x - y, x + y, turned=True)
    assert same(x + (-y), x - y) and same(-y + x, x - y)
    assert same((-x) / y, x / y, turned=True) and same((-x) / (-y), x / y)
    assert same(-3.0 * x, 3.0 * x, turned=True)
    assert len(g) == 2 + 5 + 1  # inputs; product, difference, sum, quotient, multiple; the constant


def test_what_is_asked_twice_is_made_once(g: Graph, xy) -> None:
    x, y = xy

    def make() -> Number:
        return (x * y + g.sin(x)) / (x - 2.0 * y) + g.sqrt(x * x)

    first, size = make(), len(g)
    assert same(make(), first) and len(g) == size


@pytest.mark.parametrize("zero", [0.0, 0, -0.0])
def test_zeros_fold(g: Graph, xy, zero: float) -> None:
    x, y = xy
    size = len(g)
    assert same(x + zero, x) and same(zero + x, x) and same(x - zero, x)
    assert same(zero - x, x, turned=True)
    for product in (x * zero, zero * x, g.div(zero, x)):
        assert not isinstance(product, Expression) and product == 0.0
    assert x - x == 0.0 and (-y) + y == 0.0
    assert len(g) == size


def test_ones_fold(g: Graph, xy) -> None:
    x, _ = xy
    size = len(g)
    assert same(1.0 * x, x) and same(x * 1, x) and same(x / 1.0, x)
    assert same(-1.0 * x, x, turned=True) and same(x * -1, x, turned=True) and same(x / -1.0, x, turned=True)
    assert len(g) == size


def test_constants_fold(g: Graph, xy) -> None:
    x, _ = xy
    assert g.mul(2.0, 3.0) == 6.0 and g.mul(-2.0, 3.0) == -6.0
    assert g.div(3.0, 2.0) == 1.5
    assert same(2.0 * (3.0 * x), 6.0 * x) and same(2.0 * (-3.0 * x), 6.0 * x, turned=True)
    assert same(0.5 * (2.0 * x), x) and same(-0.5 * (2.0 * x), x, turned=True)
    assert same(x / 4.0, 0.25 * x)
    assert g.sin(0.3) == math.sin(0.3) and g.cos(0.3) == math.cos(0.3)
    assert g.sqrt(9.0) == 3.0 and g.abs(-2.0) == 2.0
    assert [g.sign(v) for v in (2.0, 0.0, -0.1)] == [1.0, 0.0, -1.0]


def test_sums_of_constants_fold(g: Graph) -> None:
    assert g.add(2.0, 3.0) == 5.0
    assert g.add(2.0, -3.0) == -1.0
    assert len(g) == 0


def test_sine_is_odd_and_cosine_even(g: Graph, xy) -> None:
    x, _ = xy
    assert same(g.sin(-x), g.sin(x), turned=True)
    assert same(g.cos(-x), g.cos(x))
    assert same(g.sign(-x), g.sign(x), turned=True)
    assert same(g.abs(-x), g.abs(x))
    assert [g.operation.count(op) for op in (SIN, COS)] == [1, 1]


def test_a_root_keeps_the_sign_inside(g: Graph, xy) -> None:
    x, _ = xy
    root = g.sqrt(-x)
    assert evaluate(g, [root, -root], {"x": -4.0}) == [2.0, -2.0]


def test_division_has_an_order(g: Graph, xy) -> None:
    x, y = xy
    assert (x / y).node != (y / x).node
    values = evaluate(g, [x / y, y / x, 2.0 / x, x / 2.0], {"x": 3.0, "y": -4.0})
    assert values == [-0.75, -4.0 / 3.0, 2.0 / 3.0, 1.5]


def test_live_is_what_is_needed_in_order(g: Graph, xy) -> None:
    x, y = xy
    wanted = (x + y) * x
    g.sin(y)
    nodes = live(g, [wanted, 3.0, -x])
    assert nodes == sorted(nodes)
    assert [g.operation[n] for n in nodes if g.operation[n] >= ADD] == [ADD, MUL]
    assert live(g, [1.0]) == [] and live(g, [y]) == [y.node]


def test_it_reads_as_a_signed_node(xy) -> None:
    x, _ = xy
    assert repr(x) == "n0" and repr(-x) == "-n0"


@pytest.mark.parametrize("seed", range(12))
def test_random_expressions_have_the_right_numbers(seed: int) -> None:
    """Built on symbols and on arrays side by side; folding a constant moves a number by some ulp, so 1e-11 over 120 operations."""
    rng, graph = np.random.default_rng(seed), Graph()
    inputs = {name: rng.normal(size=40) for name in "abcd"}
    pool = twins(rng, graph, inputs, 120)
    for twin, found in zip(pool, evaluate(graph, [t.symbol for t in pool], inputs), strict=True):
        assert np.broadcast_to(found, 40) == pytest.approx(twin.number, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("seed", range(4))
def test_random_graphs_hold_nothing_twice(seed: int) -> None:
    rng, graph = np.random.default_rng(seed), Graph()
    twins(rng, graph, {name: rng.normal(size=5) for name in "abc"}, 400)
    made = [(op, graph.left[n], graph.right[n]) for n, op in enumerate(graph.operation) if op >= ADD]
    assert len(set(made)) == len(made)
    ordered = [(x, y) for op, x, y in made if op in (ADD, SUB) or (op == MUL and x not in graph.constants)]
    assert all(x <= y for x, y in ordered)
    assert all(x < n and graph.right[n] < n for n, x in enumerate(graph.left) if graph.operation[n] >= ADD)
    values = list(graph.constants.values())
    assert len(set(values)) == len(values) and min(values) >= 0.0


def test_outputs_of_one_graph_become_expressions_of_another(g: Graph, xy) -> None:
    """f(x, y) with x = u + v in place, against the same arithmetic by NumPy; y keeps its name, and what exists is not made again."""
    x, y = xy
    outputs = [x * y - x / y, -g.sqrt(g.exp(x)) + g.atan(y), g.sign(x - y) * g.abs(g.sin(x) - g.cos(y)), g.log(y), 2.0]
    other = Graph()
    u, v = other.inputs_named(["u", "v"])
    there = inserted(other, g, outputs, {"x": u + v})
    size = len(other)
    assert all(same(a, b) for a, b in zip(inserted(other, g, outputs[:4], {"x": u + v}), there, strict=False))
    assert len(other) == size
    values = evaluate(other, there, {"u": 0.7, "v": 0.4, "y": 0.3})
    x, y = 1.1, 0.3
    expected = [x * y - x / y, -math.sqrt(math.exp(x)) + math.atan(y), abs(math.sin(x) - math.cos(y)), math.log(y), 2.0]
    np.testing.assert_allclose(values, expected, rtol=1e-15)


def test_shared_expressions_count_once() -> None:
    g = Graph()
    x, y = g.inputs_named("xy")
    product = x * y
    outputs = [product + x, product - x, -product, g.sin(product), g.div(1.0, product), 3.0, y]
    assert count(g, outputs) == Count(multiplications=1, additions=2, divisions=1, trigonometric=1)
    assert count(g, outputs).total == 3
    assert count(g, [y, 0.0]) == Count(0, 0, 0, 0)


def test_signs_cost_nothing() -> None:
    g = Graph()
    x, y = g.inputs_named("xy")
    assert count(g, [x * y, -x * y, x - y, y - x, -x - y]) == Count(1, 2, 0, 0)


def test_only_what_is_asked_is_counted() -> None:
    g = Graph()
    x, y = g.inputs_named("xy")
    _ = g.cos(x) * y
    assert count(g, [x + y]) == Count(0, 1, 0, 0)


@pytest.mark.parametrize(
    ("counted", "text"),
    [
        (Count(3, 2, 0, 0), "3 multiplications, 2 additions"),
        (Count(3, 2, 1, 4), "3 multiplications, 2 additions, 1 divisions, 4 sines and cosines"),
    ],
)
def test_it_says_what_it_counted(counted: Count, text: str) -> None:
    assert str(counted) == text


QUANTITIES = ("inverse", "regressor", "forward", "inverse_derivatives")


def arm(bodies: int, seed: int = 0) -> Tree:
    return random_tree(np.random.default_rng(seed), bodies=bodies, kinds=("turning",), branched=False)


@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize("base", ["fixed", "free"])
def test_sine_and_cosine_once_for_each_turning_joint(quantity: str, base: str) -> None:
    tree = random_tree(np.random.default_rng(2), bodies=7, base=base)
    turning = sum(s == 0 for s in tree.sigma)
    assert 1 <= turning < 7
    f = formula(tree, Request(quantity, tuple(range(len(tree.rows))), tuple(range(len(tree.columns)))))
    # A joint next to the ground turns about gravity or not: where it does, nothing depends on its angle.
    assert turning - 1 <= count(f.graph, f.outputs).trigonometric / 2 <= turning
    for op in (SIN, COS):
        arguments = [f.graph.left[n] for n, made in enumerate(f.graph.operation) if made == op]
        assert len(set(arguments)) == len(arguments) <= tree.n


def test_one_call_gives_both() -> None:
    """Seven joints, seven calls of sincos in the machine's text, wherever the text is cut into pieces."""
    f = formula(arm(7), Request("inverse", tuple(range(7))))
    text = emit(f.graph, f.outputs, f.samples, f.parameters, 4).text
    assert text.count("call {<4 x double>, <4 x double>} @sincos(") == 7


STEP = 1e-30  # of the complex step: nothing is subtracted, so it may be this small


def complex_step(graph: Graph, outputs: list[Number], inputs: dict[str, np.ndarray], by: str) -> list[np.ndarray]:
    moved = {name: x + 0j for name, x in inputs.items()}
    moved[by] = moved[by] + 1j * STEP
    return [np.imag(y) / STEP for y in evaluate(graph, outputs, moved)]


def difference(graph: Graph, output: Number, inputs: dict[str, np.ndarray], by: str, h: float = 1e-6) -> np.ndarray:
    ends = [evaluate(graph, [output], inputs | {by: inputs[by] + s * h})[0] for s in (1, -1)]
    return (ends[0] - ends[1]) / (2 * h)


RULES = {
    "sum": lambda g, x, y: x + y,
    "difference": lambda g, x, y: y - x,
    "product": lambda g, x, y: x * y,
    "square": lambda g, x, y: x * x,
    "quotient": lambda g, x, y: x / y,
    "inverse": lambda g, x, y: 3.0 / x,
    "own quotient": lambda g, x, y: (x * y) / (x + 2.0 * y),
    "sine": lambda g, x, y: g.sin(x * y),
    "cosine": lambda g, x, y: g.cos(x - y),
    "root": lambda g, x, y: g.sqrt(x * x + y * y),
    "root of a negative": lambda g, x, y: g.sqrt(-(0.0 - x * x - 1.0)),
    "modulus": lambda g, x, y: g.abs(x - 2.0 * y) * y,
    "sign": lambda g, x, y: g.sign(x) * y + g.sign(y) * x,
    "multiple": lambda g, x, y: -2.5 * x,
    "twice": lambda g, x, y: x + x,
    "all": lambda g, x, y: g.sqrt(g.abs(x / (y * y + 1.0)) + 0.1) * g.sin(x) / (2.0 + g.cos(y)),
}


@pytest.mark.parametrize("rule", RULES)
def test_each_rule(rule: str) -> None:
    """To 1e-13 of a complex step, to 1e-8 of central differences."""
    g, rng = Graph(), np.random.default_rng(0)
    x, y = g.inputs_named("xy")
    z = RULES[rule](g, x, y)
    inputs = {name: rng.uniform(0.3, 2.0, 30) * rng.choice([-1.0, 1.0], 30) for name in "xy"}
    columns = forward(g, [z, -z], [x, y])
    for by, (dz, minus_dz) in zip("xy", columns, strict=True):
        found, turned = (np.broadcast_to(v, 30) for v in evaluate(g, [dz, minus_dz], inputs))
        exact = np.broadcast_to(complex_step(g, [z], inputs, by)[0], 30)
        assert found == pytest.approx(exact, rel=1e-13, abs=1e-13)
        assert found == pytest.approx(difference(g, z, inputs, by), rel=1e-7, abs=1e-8)
        assert np.array_equal(turned, -found)


@pytest.mark.parametrize("seed", range(10))
def test_random_expressions(seed: int) -> None:
    """Sums of 60 random operations: complex step to 1e-11 of the largest derivative, reverse equal to forward."""
    rng, g = np.random.default_rng(seed), Graph()
    inputs = {name: rng.normal(size=20) for name in "abc"}
    pool = twins(rng, g, inputs, 60)
    total: Number = 0.0
    for twin in pool[-20:]:
        total = g.add(total, twin.symbol)
    by = [g.input(name) for name in "abc"]
    ahead = [column[0] for column in forward(g, [total], by)]
    back = reverse(g, total, by)
    for name, f, r in zip("abc", ahead, back, strict=True):
        exact = np.broadcast_to(complex_step(g, [total], inputs, name)[0], 20)
        scale = max(1.0, np.abs(exact).max())
        for found in evaluate(g, [f, r], inputs):
            assert np.abs(found - exact).max() <= 1e-11 * scale


@pytest.mark.parametrize("seed", range(3))
def test_reverse_and_forward_agree_on_many_inputs(seed: int) -> None:
    rng, g = np.random.default_rng(seed), Graph()
    names = [f"x{k}" for k in range(15)]
    inputs = {name: rng.normal(size=8) for name in names}
    goal = twins(rng, g, inputs, 150)[-1].symbol * g.input("x3")
    by = [g.input(name) for name in names]
    a = evaluate(g, [column[0] for column in forward(g, [goal], by)], inputs)
    b = evaluate(g, reverse(g, goal, by), inputs)
    for f, r in zip(a, b, strict=True):
        assert np.broadcast_to(r, 8) == pytest.approx(np.broadcast_to(f, 8), rel=1e-11, abs=1e-11)


def test_by_an_input_seen_negatively() -> None:
    g = Graph()
    x = g.input("x")
    y = g.sin(x)
    (ahead,), back = forward(g, [y], [-x])[0], reverse(g, y, [-x])[0]
    assert evaluate(g, [ahead, back], {"x": 0.3}) == pytest.approx([-np.cos(0.3)] * 2)


def test_what_does_not_depend_is_zero_without_a_node() -> None:
    g = Graph()
    x, y = g.inputs_named("xy")
    size_of = len
    outputs = [g.sin(y), 3.0, x, -x, g.sign(x)]
    before = size_of(g)
    assert forward(g, outputs, [x]) == [[0.0, 0.0, 1.0, -1.0, 0.0]]
    assert reverse(g, 3.0, [x, y]) == [0.0, 0.0] and reverse(g, -x, [x, y]) == [-1.0, 0.0]
    assert reverse(g, g.sin(y), [x]) == [0.0]
    assert size_of(g) <= before + 1  # the cosine that reverse looked at


def test_a_linear_form_has_constants_for_derivatives() -> None:
    """d(2x − 3y + x)/dx is the number 3, not a node that computes it."""
    g = Graph()
    x, y = g.inputs_named("xy")
    z = 2.0 * x - 3.0 * y + x
    slopes = [column[0] for column in forward(g, [z], [x, y])]
    assert not any(isinstance(s, Expression) for s in slopes) and slopes == [3.0, -3.0]
    assert reverse(g, z, [x, y]) == [3.0, -3.0]


def test_derivatives_share_with_the_function() -> None:
    """sin and cos of one angle serve the function and every order of derivative: four nodes of trigonometry never appear."""
    g = Graph()
    x, y = g.inputs_named("xy")
    z = g.sin(x) * y
    first = forward(g, [z], [x])[0]
    second = forward(g, first, [x])[0]
    assert second[0].node == z.node and second[0].negative


def test_along_rates_is_the_sum_over_inputs() -> None:
    """d/dt of f(x(t), y(t)) = f_x ẋ + f_y ẏ, twice: the second rate of sin(x) y is ẍ cos x y − ẋ² sin x y + 2 ẋ cos x ẏ + sin x ÿ."""
    g = Graph()
    x, y, xd, yd, xdd, ydd = g.inputs_named(["x", "y", "xd", "yd", "xdd", "ydd"])
    rates = {"x": xd, "y": yd, "xd": xdd, "yd": ydd}
    first = along(g, [g.mul(g.sin(x), y)], rates)
    second = along(g, first, rates)
    v = {"x": 0.3, "y": 2.0, "xd": 0.7, "yd": -1.1, "xdd": 0.2, "ydd": 0.5}
    s, c = np.sin(0.3), np.cos(0.3)
    assert evaluate(g, first, v)[0] == pytest.approx(0.7 * c * 2.0 + s * -1.1)
    expected = 0.2 * c * 2.0 - 0.49 * s * 2.0 + 2.0 * 0.7 * c * -1.1 + s * 0.5
    assert evaluate(g, second, v)[0] == pytest.approx(expected)
    assert along(g, [y], {"x": xd}) == [0.0]


def test_expressions_that_have_rates() -> None:
    """d(u v + x)/ds with u̇ = a, v̇ = b for u = x y and v = −(x + y): what u and v are made of counts as constant."""
    g = Graph()
    x, y, a, b = g.inputs_named("xyab")
    u, v = x * y, -(x + y)
    (found,) = seeded(g, [u * v + g.sin(u) + x], [(u, a), (v, b), (3.0, a)])
    inputs = {"x": 0.3, "y": -0.7, "a": 1.1, "b": 0.4}
    product, total = 0.3 * -0.7, 0.4
    assert evaluate(g, [found], inputs)[0] == pytest.approx(1.1 * total + product * 0.4 + np.cos(product) * 1.1)
