"""A second reader of expression graphs: every node by NumPy, one after the other, over numbers of any kind.

And twins: random expressions built side by side with the numbers they stand for, so that neither folding nor sharing is believed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veridyn.symbolic.expression import OPERATIONS, Expression, Graph, Number

Array = NDArray[Any]

_BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}
_UNARY = {
    "sin": np.sin,
    "cos": np.cos,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "atan": np.arctan,
    # By the real part, so that a complex step goes through.
    "sign": lambda x: np.sign(np.real(x)),
    "abs": lambda x: x * np.sign(np.real(x)),
}


def evaluate(graph: Graph, outputs: Sequence[Number], inputs: Mapping[str, Any]) -> list[Array]:
    """The values of outputs, where `inputs` gives arrays or numbers by name; what hangs on an input not given is left out."""
    name = {node: key for key, node in graph.inputs.items()}
    value: list[Any] = []
    for n, op in enumerate(graph.operation):
        kind = OPERATIONS[op]
        if kind == "const":
            value.append(graph.constants[n])
        elif kind == "input":
            value.append(inputs.get(name[n]))
        else:
            operands = [value[m] for m in (graph.left[n], graph.right[n]) if m >= 0]
            known = all(x is not None for x in operands)
            value.append((_BINARY | _UNARY)[kind](*operands) if known else None)
    found = []
    for x in outputs:
        if isinstance(x, Expression):
            found.append(-value[x.node] if x.negative else value[x.node])
        else:
            found.append(x)
    return [np.asarray(x) for x in found]


@dataclass
class Twin:
    """An expression and the numbers it must have."""

    symbol: Number
    number: Array


def twins(rng: np.random.Generator, graph: Graph, inputs: Mapping[str, Array], operations: int) -> list[Twin]:
    """The inputs, then random operations on them and on each other, each done twice: on symbols and on numbers.

    Numbers stay below 30; nothing is divided by less than 1/2; signs are taken of inputs only, where nothing can round them over.
    """
    pool = [Twin(graph.input(name), np.asarray(x)) for name, x in inputs.items()]
    leaves = len(pool)
    while len(pool) < leaves + operations:
        made = _random_twin(rng, graph, pool, leaves)
        pool.append(made if np.abs(made.number).max() < 30 else Twin(graph.sin(made.symbol), np.sin(made.number)))
    return pool


def _random_twin(rng: np.random.Generator, graph: Graph, pool: list[Twin], leaves: int) -> Twin:
    a, b = (pool[int(k)] for k in rng.integers(len(pool), size=2))
    kind = rng.choice(["add", "sub", "mul", "constant", "plus", "neg", "sin", "cos", "abs", "sign", "sqrt", "div"])
    if kind == "add":
        return Twin(a.symbol + b.symbol, a.number + b.number)
    if kind == "sub":
        return Twin(a.symbol - b.symbol, a.number - b.number)
    if kind == "mul":
        return Twin(a.symbol * b.symbol, a.number * b.number)
    if kind in ("constant", "plus"):
        c = float(rng.choice([0.0, 1.0, -1.0, 0.5, float(rng.normal())]))
        if kind == "plus":
            return Twin(c - a.symbol, c - a.number)
        return Twin(c * a.symbol, c * a.number)
    if kind == "neg":
        return Twin(-a.symbol, -a.number)
    if kind == "sign":
        leaf = pool[int(rng.integers(leaves))]
        return Twin(graph.sign(leaf.symbol), np.sign(leaf.number))
    if kind == "sqrt":
        return Twin(graph.sqrt(graph.add(a.symbol * a.symbol, 0.25)), np.sqrt(a.number**2 + 0.25))
    if kind == "div":
        return Twin(graph.div(a.symbol, graph.add(0.5, graph.abs(b.symbol))), a.number / (0.5 + np.abs(b.number)))
    function = {"sin": np.sin, "cos": np.cos, "abs": np.abs}[str(kind)]
    return Twin(getattr(graph, str(kind))(a.symbol), function(a.number))
