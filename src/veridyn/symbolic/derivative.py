"""Exact derivatives of expressions: forward for one input, reverse for one output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from veridyn.symbolic import expression as ex
from veridyn.symbolic.expression import Expression, Graph, Number, live


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
        if operation[n] in (ex.CONST, ex.INPUT, ex.SIGN) or (_zero(da) and _zero(db)):
            continue
        rate[n] = _rule(graph, n, da, db)
    return [_signed(rate.get(y.node, 0.0), y.negative) if isinstance(y, Expression) else 0.0 for y in outputs]


def _rule(graph: Graph, n: int, da: Number, db: Number) -> Number:
    op = graph.operation[n]
    a = Expression(graph, graph.left[n], False)
    b = Expression(graph, graph.right[n], False)
    if op == ex.ADD:
        return graph.add(da, db)
    if op == ex.SUB:
        return graph.add(da, graph.mul(-1.0, db))
    if op == ex.MUL:
        left = graph.constants.get(a.node, a)
        return graph.add(graph.mul(da, b), graph.mul(left, db))
    if op == ex.DIV:
        own = Expression(graph, n, False)
        return graph.div(graph.add(da, graph.mul(-1.0, graph.mul(own, db))), b)
    if op == ex.SIN:
        return graph.mul(graph.cos(a), da)
    if op == ex.COS:
        return graph.mul(graph.mul(-1.0, graph.sin(a)), da)
    if op == ex.SQRT:
        return graph.div(graph.mul(0.5, da), Expression(graph, n, False))
    if op == ex.EXP:
        return graph.mul(Expression(graph, n, False), da)
    if op == ex.LOG:
        return graph.div(da, a)
    if op == ex.ATAN:
        return graph.div(da, graph.add(graph.mul(a, a), 1.0))
    assert op == ex.ABS  # every other operation was dealt with
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
        if op in (ex.CONST, ex.INPUT, ex.SIGN) or _zero(w):
            continue
        left, right = graph.left[n], graph.right[n]
        if op in (ex.ADD, ex.SUB):
            give(left, w)
            give(right, graph.mul(1.0 if op == ex.ADD else -1.0, w))
        elif op == ex.MUL:
            give(left, graph.mul(w, _value(graph, right)))
            give(right, graph.mul(w, _value(graph, left)))
        elif op == ex.DIV:
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
