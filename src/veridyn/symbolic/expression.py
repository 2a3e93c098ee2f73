"""Expressions as a graph in which everything is there once, and their exact derivatives.

A node is a constant, an input or an operation on earlier nodes; asking for an operation that exists returns the one that exists
(hash-consing). Zeros and ones fold away. A sign is part of a reference, never a node: −x is x with its sign turned, ``a·(−b)`` is the
node ``a·b`` seen negatively, so expressions that differ only by signs are shared too.
They can be counted, and evaluated node by node with NumPy: the reference for compiled code, and what runs where nothing is compiled.
Derivatives go forward for one input, and in reverse for one output.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, Union

import numpy as np

CONST, INPUT, ADD, SUB, MUL, DIV, SIN, COS, SIGN, ABS, SQRT, EXP, LOG, ATAN = range(14)
OPERATIONS = ("const", "input", "add", "sub", "mul", "div", "sin", "cos", "sign", "abs", "sqrt", "exp", "log", "atan")

Number = Union["Expression", float]
_TWO = {ADD: np.add, SUB: np.subtract, MUL: np.multiply, DIV: np.divide}
_ONE = {SIN: np.sin, COS: np.cos, SIGN: np.sign, ABS: np.abs, SQRT: np.sqrt, EXP: np.exp, LOG: np.log, ATAN: np.arctan}


@dataclass(eq=False)
class Graph:
    """Nodes in the order of their making, which is an order of evaluation. `left` and `right` are numbers of earlier nodes."""

    operation: list[int] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    constants: dict[int, float] = field(default_factory=dict)
    inputs: dict[str, int] = field(default_factory=dict)
    _made: dict[tuple[int, int, int], int] = field(default_factory=dict)
    _constant: dict[float, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.operation)

    def input(self, name: str) -> Expression:
        """The input of this name, the same one each time."""
        if name not in self.inputs:
            self.inputs[name] = self._append(INPUT, len(self.inputs), -1)
        return Expression(self, self.inputs[name], False)

    def given(self, name: str, value: float) -> Expression:
        """A number that is not folded into the code but given with each call: the input of this name."""
        return self.input(name)

    def inputs_named(self, names: Iterable[str]) -> list[Expression]:
        return [self.input(name) for name in names]

    def node(self, operation: int, left: int, right: int = -1) -> int:
        key = (operation, left, right)
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = self._append(operation, left, right)
        return found

    def constant(self, value: float) -> int:
        """The node of a positive constant."""
        found = self._constant.get(value)
        if found is None:
            found = self._constant[value] = self._append(CONST, -1, -1)
            self.constants[found] = value
        return found

    def _append(self, operation: int, left: int, right: int) -> int:
        self.operation.append(operation)
        self.left.append(left)
        self.right.append(right)
        return len(self.operation) - 1

    def sin(self, x: Number) -> Number:
        if not isinstance(x, Expression):
            return math.sin(x)
        return Expression(self, self.node(SIN, x.node), x.negative)

    def cos(self, x: Number) -> Number:
        if not isinstance(x, Expression):
            return math.cos(x)
        return Expression(self, self.node(COS, x.node), False)

    def sign(self, x: Number) -> Number:
        if not isinstance(x, Expression):
            return float((x > 0.0) - (x < 0.0))
        return Expression(self, self.node(SIGN, x.node), x.negative)

    def abs(self, x: Number) -> Number:
        if not isinstance(x, Expression):
            return abs(x)
        return Expression(self, self.node(ABS, x.node), False)

    def sqrt(self, x: Number) -> Number:
        if not isinstance(x, Expression):
            return math.sqrt(x)
        return Expression(self, self.node(SQRT, self._positive(x)), False)

    def exp(self, x: Number) -> Number:
        if not isinstance(x, Expression):
            return math.exp(x)
        return Expression(self, self.node(EXP, self._positive(x)), False)

    def log(self, x: Number) -> Number:
        if not isinstance(x, Expression):
            return math.log(x)
        return Expression(self, self.node(LOG, self._positive(x)), False)

    def atan(self, x: Number) -> Number:
        if not isinstance(x, Expression):
            return math.atan(x)
        return Expression(self, self.node(ATAN, x.node), x.negative)

    def _positive(self, x: Expression) -> int:
        """A node that holds x with its sign: a root cannot leave the sign outside."""
        return self.node(SUB, self.constant(0.0), x.node) if x.negative else x.node

    def reference(self, x: Number) -> Expression:
        """A number as an expression of this graph: constants become nodes."""
        if isinstance(x, Expression):
            return x
        return Expression(self, self.constant(abs(float(x))), x < 0.0)

    def operands(self, n: int) -> tuple[int, ...]:
        """The nodes that an operation works on."""
        left, right = self.left[n], self.right[n]
        return (left,) if right < 0 else (left, right)

    def stores(self, outputs: Iterable[Number]) -> dict[int, list[tuple[int, bool]]]:
        """Node → the numbers of the outputs that it is, each with whether its sign is turned."""
        found: dict[int, list[tuple[int, bool]]] = {}
        for k, x in enumerate(outputs):
            reference = self.reference(x)
            found.setdefault(reference.node, []).append((k, reference.negative))
        return found

    def add(self, a: Number, b: Number) -> Number:
        if not isinstance(a, Expression):
            if not isinstance(b, Expression):
                return a + b
            if a == 0.0:
                return b
            a = self.reference(a)
        if not isinstance(b, Expression):
            if b == 0.0:
                return a
            b = self.reference(b)
        if a.negative == b.negative:
            x, y = (a.node, b.node) if a.node <= b.node else (b.node, a.node)
            return Expression(self, self.node(ADD, x, y), a.negative)
        if a.node == b.node:
            return 0.0
        # a − b and b − a are one node: the earlier operand comes first.
        if a.node < b.node:
            return Expression(self, self.node(SUB, a.node, b.node), a.negative)
        return Expression(self, self.node(SUB, b.node, a.node), b.negative)

    def mul(self, a: Number, b: Number) -> Number:
        if not isinstance(a, Expression):
            a, b = b, a
        if not isinstance(a, Expression):
            return a * float(b)  # pyright: ignore[reportArgumentType]
        if not isinstance(b, Expression):
            if b == 0.0:
                return 0.0
            if b == 1.0:
                return a
            if b == -1.0:
                return -a
            if self.operation[a.node] == MUL and self.left[a.node] in self.constants:
                inner = self.constants[self.left[a.node]] * float(b)
                return self.mul(Expression(self, self.right[a.node], a.negative), inner)
            c = self.constant(abs(b))
            return Expression(self, self.node(MUL, c, a.node), a.negative != (b < 0.0))
        x, y = (a.node, b.node) if a.node <= b.node else (b.node, a.node)
        return Expression(self, self.node(MUL, x, y), a.negative != b.negative)

    def div(self, a: Number, b: Number) -> Number:
        if not isinstance(b, Expression):
            return self.mul(a, 1.0 / b)
        if not isinstance(a, Expression):
            if a == 0.0:
                return 0.0
            a = self.reference(a)
        return Expression(self, self.node(DIV, a.node, b.node), a.negative != b.negative)


class Expression:
    """A signed reference to a node of a graph; behaves as a number in ``+ - * /``."""

    __slots__ = ("graph", "negative", "node")

    def __init__(self, graph: Graph, node: int, negative: bool) -> None:
        self.graph = graph
        self.node = node
        self.negative = negative

    def __neg__(self) -> Expression:
        return Expression(self.graph, self.node, not self.negative)

    def __add__(self, other: Number) -> Number:
        return self.graph.add(self, other)

    __radd__ = __add__

    def __sub__(self, other: Number) -> Number:
        return self.graph.add(self, -other)

    def __rsub__(self, other: Number) -> Number:
        return self.graph.add(other, -self)

    def __mul__(self, other: Number) -> Number:
        return self.graph.mul(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Number) -> Number:
        return self.graph.div(self, other)

    def __rtruediv__(self, other: Number) -> Number:
        return self.graph.div(other, self)

    def __repr__(self) -> str:
        return f"{'-' if self.negative else ''}n{self.node}"


def live(graph: Graph, outputs: Iterable[Number]) -> list[int]:
    """The nodes that outputs need, in order of evaluation."""
    needed, operation, left, right = bytearray(len(graph)), graph.operation, graph.left, graph.right
    stack = [x.node for x in outputs if isinstance(x, Expression)]
    while stack:
        n = stack.pop()
        if needed[n]:
            continue
        needed[n] = 1
        if operation[n] >= ADD:
            stack.append(left[n])
            if right[n] >= 0:
                stack.append(right[n])
    return list(compress(range(len(graph)), needed))


@dataclass(frozen=True)
class Count:
    """Multiplications, additions and subtractions, divisions, and sines and cosines, each shared expression counted once."""

    multiplications: int
    additions: int
    divisions: int
    trigonometric: int

    @property
    def total(self) -> int:
        """Multiplications and additions together, as the papers count."""
        return self.multiplications + self.additions

    def __str__(self) -> str:
        parts = [f"{self.multiplications} multiplications", f"{self.additions} additions"]
        parts += [f"{self.divisions} divisions"] if self.divisions else []
        parts += [f"{self.trigonometric} sines and cosines"] if self.trigonometric else []
        return ", ".join(parts)


def count(graph: Graph, outputs: Iterable[Number]) -> Count:
    """The operations that these outputs need."""
    ops = [graph.operation[n] for n in live(graph, outputs)]
    return Count(ops.count(MUL), ops.count(ADD) + ops.count(SUB), ops.count(DIV), ops.count(SIN) + ops.count(COS))


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


def inserted(into: Graph, graph: Graph, outputs: Sequence[Number], inputs: Mapping[str, Number]) -> list[Number]:
    """The outputs of a graph as expressions of another one, its inputs replaced; those without a replacement keep their names."""
    two = {ADD: into.add, SUB: lambda a, b: into.add(a, -b), MUL: into.mul, DIV: into.div}
    one = {SIN: into.sin, COS: into.cos, SIGN: into.sign, ABS: into.abs, SQRT: into.sqrt}
    one |= {EXP: into.exp, LOG: into.log, ATAN: into.atan}
    names = {node: name for name, node in graph.inputs.items()}
    value: dict[int, Number] = {}
    for n in live(graph, outputs):
        op = graph.operation[n]
        if op == CONST:
            value[n] = graph.constants[n]
        elif op == INPUT:
            value[n] = inputs[names[n]] if names[n] in inputs else into.input(names[n])
        elif op in two:
            value[n] = two[op](value[graph.left[n]], value[graph.right[n]])
        else:
            value[n] = one[op](value[graph.left[n]])
    return [(-value[x.node] if x.negative else value[x.node]) if isinstance(x, Expression) else x for x in outputs]


def forward(graph: Graph, outputs: Sequence[Number], by: Sequence[Expression]) -> list[list[Number]]:
    """``∂outputs[k]/∂by[i]`` as ``[i][k]``: one pass through the graph for each input, sharing what can be shared.

    The derivative of sign is zero and that of |x| is sign(x): right everywhere but at the jump.
    """
    nodes = live(graph, outputs)
    return [_rates(graph, nodes, outputs, {x.node: -1.0 if x.negative else 1.0}) for x in by]


def along(graph: Graph, outputs: Sequence[Number], rates: Mapping[str, Number]) -> list[Number]:
    """The rates of outputs where inputs have rates, by name; one pass, whatever the number of inputs."""
    seeds = {graph.inputs[name]: rate for name, rate in rates.items() if name in graph.inputs}
    return _rates(graph, live(graph, outputs), outputs, seeds)


def seeded(graph: Graph, outputs: Sequence[Number], seeds: Iterable[tuple[Number, Number]]) -> list[Number]:
    """The rates of outputs where expressions have rates, (expression, rate), and everything they are made of counts as constant."""
    given = {x.node: graph.mul(-1.0, rate) if x.negative else rate for x, rate in seeds if isinstance(x, Expression)}
    return _rates(graph, live(graph, outputs), outputs, given)


def _rates(graph: Graph, nodes: Sequence[int], outputs: Sequence[Number], seeds: Mapping[int, Number]) -> list[Number]:
    rate: dict[int, Number] = dict(seeds)
    operation, left, right, known = graph.operation, graph.left, graph.right, rate.get
    for n in nodes:
        da, db = known(left[n]), known(right[n])  # no node has the number −1 of an operand that is not there
        if da is None and db is None:
            continue
        da, db = 0.0 if da is None else da, 0.0 if db is None else db
        if operation[n] in (CONST, INPUT, SIGN) or (_zero(da) and _zero(db)):
            continue
        rate[n] = _rule(graph, n, da, db)
    return [_signed(rate.get(y.node, 0.0), y.negative) if isinstance(y, Expression) else 0.0 for y in outputs]


def _rule(graph: Graph, n: int, da: Number, db: Number) -> Number:
    op = graph.operation[n]
    a = Expression(graph, graph.left[n], False)
    b = Expression(graph, graph.right[n], False)
    if op == ADD:
        return graph.add(da, db)
    if op == SUB:
        return graph.add(da, graph.mul(-1.0, db))
    if op == MUL:
        left = graph.constants.get(a.node, a)
        return graph.add(graph.mul(da, b), graph.mul(left, db))
    if op == DIV:
        own = Expression(graph, n, False)
        return graph.div(graph.add(da, graph.mul(-1.0, graph.mul(own, db))), b)
    if op == SIN:
        return graph.mul(graph.cos(a), da)
    if op == COS:
        return graph.mul(graph.mul(-1.0, graph.sin(a)), da)
    if op == SQRT:
        return graph.div(graph.mul(0.5, da), Expression(graph, n, False))
    if op == EXP:
        return graph.mul(Expression(graph, n, False), da)
    if op == LOG:
        return graph.div(da, a)
    if op == ATAN:
        return graph.div(da, graph.add(graph.mul(a, a), 1.0))
    assert op == ABS  # every other operation was dealt with
    return graph.mul(Graph.sign(graph, a), da)  # also in a graph that rounds signs off


def reverse(graph: Graph, output: Number, by: Sequence[Expression]) -> list[Number]:
    """``∂output/∂by[i]`` for every i in one pass backwards: for a scalar goal of many unknowns."""
    if not isinstance(output, Expression):
        return [0.0 for _ in by]
    adjoint: dict[int, Number] = {output.node: -1.0 if output.negative else 1.0}

    def give(n: int, value: Number) -> None:
        adjoint[n] = graph.add(adjoint.get(n, 0.0), value)

    for n in reversed(live(graph, [output])):
        w = adjoint.get(n, 0.0)
        op = graph.operation[n]
        if op in (CONST, INPUT, SIGN) or _zero(w):
            continue
        left, right = graph.left[n], graph.right[n]
        if op in (ADD, SUB):
            give(left, w)
            give(right, graph.mul(1.0 if op == ADD else -1.0, w))
        elif op == MUL:
            give(left, graph.mul(w, _value(graph, right)))
            give(right, graph.mul(w, _value(graph, left)))
        elif op == DIV:
            share = graph.div(w, Expression(graph, right, False))
            give(left, share)
            give(right, graph.mul(-1.0, graph.mul(share, Expression(graph, n, False))))
        else:
            give(left, _rule(graph, n, w, 0.0))
    return [_signed(adjoint.get(x.node, 0.0), x.negative) for x in by]


def _value(graph: Graph, n: int) -> Number:
    return graph.constants[n] if n in graph.constants else Expression(graph, n, False)


def _zero(x: Number) -> bool:
    return not isinstance(x, Expression) and x == 0.0


def _signed(x: Number, negative: bool) -> Number:
    return -x if negative else x
