"""Orders of evaluation: every value once and after its operands, with as few alive as is known to be possible."""

from __future__ import annotations

import numpy as np
import pytest

from strangers.cars import car_20
from strangers.evaluate import twins
from veridyn.mechanics.tree.dynamics.formula import formula
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.inputs import Request
from veridyn.symbolic.expression import CONST, Graph
from veridyn.symbolic.schedule import instructions, live_values, scheduled

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
