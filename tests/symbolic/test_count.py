"""Operations are counted once each, and a joint's sine and cosine are computed once whatever is asked."""

from __future__ import annotations

import numpy as np
import pytest

from strangers.random_trees import random_tree
from veridyn.mechanics.formula import formula
from veridyn.mechanics.symbols import Request
from veridyn.mechanics.tree.tree import Tree
from veridyn.symbolic.count import Count, count
from veridyn.symbolic.emit_llvm import emit
from veridyn.symbolic.expression import COS, SIN, Graph


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
