"""Exact derivatives: against a complex step (exact to rounding) and central differences, forward equal to reverse."""

from __future__ import annotations

import numpy as np
import pytest

from strangers.evaluate import evaluate, twins
from veridyn.symbolic.derivative import along, forward, reverse, seeded
from veridyn.symbolic.expression import Expression, Graph, Number

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
