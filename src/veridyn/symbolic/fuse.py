"""Expressions as instructions with fused products: a product that only one sum takes becomes part of that sum."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from veridyn.symbolic.expression import ADD, MUL, OPERATIONS, SUB, Expression, Graph, Number, live


@dataclass(frozen=True)
class Instruction:
    """An operation by name on nodes: those of the graph, and "fma" a b + c, "fnma" c − a b, "fms" a b − c."""

    name: str
    operands: tuple[int, ...]


def instructions(graph: Graph, outputs: Iterable[Number], fused: bool = True) -> dict[int, Instruction]:
    """Node → instruction for all that `outputs` need beyond constants and inputs, in an order of evaluation.

    What is an output, or is used twice, is computed by itself. Where both sides of a sum are such products, the first is taken in.
    """
    wanted = list(outputs)
    nodes = [n for n in live(graph, wanted) if graph.operation[n] >= ADD]
    found = {n: Instruction(OPERATIONS[graph.operation[n]], _operands(graph, n)) for n in nodes}
    if not fused:
        return found
    uses: dict[int, int] = {}
    for n in nodes:
        for m in found[n].operands:
            uses[m] = uses.get(m, 0) + 1
    stored = {x.node for x in wanted if isinstance(x, Expression)}
    for n in nodes:
        op = graph.operation[n]
        if op not in (ADD, SUB):
            continue
        for at, m in enumerate(found[n].operands):
            if graph.operation[m] == MUL and uses[m] == 1 and m not in stored:
                other = found[n].operands[1 - at]
                name = "fma" if op == ADD else ("fms", "fnma")[at]
                found[n] = Instruction(name, (*found.pop(m).operands, other))
                break
    return found


def _operands(graph: Graph, n: int) -> tuple[int, ...]:
    left, right = graph.left[n], graph.right[n]
    return (left,) if right < 0 else (left, right)
