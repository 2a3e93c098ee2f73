"""Expressions evaluated node by node with NumPy: the reference for compiled code, and what runs where nothing is compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from veridyn.symbolic.expression import (
    ABS,
    ADD,
    ATAN,
    CONST,
    COS,
    DIV,
    EXP,
    INPUT,
    LOG,
    MUL,
    SIGN,
    SIN,
    SQRT,
    SUB,
    Expression,
    Graph,
    Number,
    live,
)

_TWO = {ADD: np.add, SUB: np.subtract, MUL: np.multiply, DIV: np.divide}
_ONE = {SIN: np.sin, COS: np.cos, SIGN: np.sign, ABS: np.abs, SQRT: np.sqrt, EXP: np.exp, LOG: np.log, ATAN: np.arctan}


def evaluate(graph: Graph, outputs: Sequence[Number], inputs: Mapping[str, Any]) -> list[Any]:
    """The values of outputs for given inputs, each a number or an array over samples."""
    names = {node: name for name, node in graph.inputs.items()}
    value: dict[int, Any] = {}
    for n in live(graph, outputs):
        op = graph.operation[n]
        if op == CONST:
            value[n] = graph.constants[n]
        elif op == INPUT:
            value[n] = inputs[names[n]]
        elif op in _TWO:
            value[n] = _TWO[op](value[graph.left[n]], value[graph.right[n]])
        else:
            value[n] = _ONE[op](value[graph.left[n]])
    return [
        (-value[x.node] if x.negative else value[x.node]) if isinstance(x, Expression) else float(x) for x in outputs
    ]
