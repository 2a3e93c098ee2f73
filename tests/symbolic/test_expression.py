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
from veridyn.symbolic.expression import ADD, COS, MUL, SIN, SUB, Count, Expression, Graph, Number, count, inserted, live


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
