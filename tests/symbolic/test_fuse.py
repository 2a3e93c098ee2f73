"""Fused products: the value of every output stays what it was, and no product that is needed by itself is lost."""

from __future__ import annotations

import numpy as np
import pytest

from strangers.evaluate import twins
from veridyn.symbolic.expression import CONST, Graph
from veridyn.symbolic.fuse import instructions

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
