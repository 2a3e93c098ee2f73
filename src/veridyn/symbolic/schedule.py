"""Expressions as instructions with fused products, in an order of evaluation that keeps few values alive, so that they stay in registers.

Finding the best order is hard, so several are made and the one with the fewest live values wins: depth first towards each output, in the
order of the outputs or against it, and greedily, always taking what frees the most, of those what became possible last (or first).
A product that only one sum takes becomes part of that sum.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from veridyn.symbolic.expression import ADD, MUL, OPERATIONS, SUB, Expression, Graph, Number, live

Operands = Mapping[int, tuple[int, ...]]


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
    found = {n: Instruction(OPERATIONS[graph.operation[n]], graph.operands(n)) for n in nodes}
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


def scheduled(operands: Operands, outputs: Sequence[int]) -> list[int]:
    """The keys of `operands`, each after those it is made of.

    `operands` name, for every value that takes a register, the values it is made of, numbered so that these have smaller numbers; what is
    no key is free (a constant, an input that is loaded again). `outputs` are stored where they are made.
    """
    own = {n: tuple(dict.fromkeys(m for m in found if m in operands)) for n, found in operands.items()}
    weight = _registers(own)
    wanted = [n for n in dict.fromkeys(outputs) if n in own]
    orders = [_depth_first(own, goals, weight) for goals in (wanted, wanted[::-1])]
    orders += [_greedy(own, key) for key in (_last_possible, _first_possible)]
    return min(orders, key=lambda order: live_values(own, order))


def live_values(operands: Operands, order: Sequence[int]) -> tuple[int, int]:
    """The most values alive at once in an order, and the sum of live values over all its steps."""
    last: dict[int, int] = {}
    for step, n in enumerate(order):
        for m in operands[n]:
            if m in operands:
                last[m] = step
    ending = [0] * len(order)
    for step in last.values():
        ending[step] += 1
    alive = most = total = 0
    for step, n in enumerate(order):
        alive += (n in last) - ending[step]
        most, total = max(most, alive), total + alive
    return most, total


def _registers(operands: Operands) -> dict[int, int]:
    """How many registers each value would need were nothing shared (Sethi and Ullman, 1970)."""
    need: dict[int, int] = {}
    for n in sorted(operands):
        found = sorted((need[m] for m in operands[n]), reverse=True)
        need[n] = max((k + at for at, k in enumerate(found)), default=1)
    return need


def _depth_first(operands: Operands, goals: Sequence[int], weight: Mapping[int, int]) -> list[int]:
    """One goal after the other, for each what it needs, the operand that needs most registers first."""
    order: list[int] = []
    done: set[int] = set()
    for goal in goals:
        stack = [goal]
        while stack:
            n = stack[-1]
            missing = [] if n in done else [m for m in operands[n] if m not in done]
            if missing:
                stack.append(max(missing, key=lambda m: (weight[m], -m)))
                continue
            stack.pop()
            if n not in done:
                done.add(n)
                order.append(n)
    return order


def _last_possible(n: int, step: int) -> tuple[int, int]:
    return -step, n


def _first_possible(n: int, step: int) -> tuple[int, int]:
    return n, 0


def _greedy(operands: Operands, preference: Callable[[int, int], tuple[int, int]]) -> list[int]:
    """Of all that can be computed, always what leaves the fewest values alive; `preference` decides between equals."""
    users: dict[int, list[int]] = {n: [] for n in operands}
    for n, found in operands.items():
        for m in found:
            users[m].append(n)
    waiting = {n: len(found) for n, found in operands.items()}
    left = {n: len(found) for n, found in users.items()}
    possible_at = {n: 0 for n, count in waiting.items() if count == 0}

    def growth(n: int) -> int:
        return (left[n] > 0) - sum(left[m] == 1 for m in operands[n])

    heap = [(growth(n), preference(n, 0), n) for n in possible_at]
    heapq.heapify(heap)
    order: list[int] = []
    done: set[int] = set()
    while heap:
        stated, _, n = heapq.heappop(heap)
        if n in done or stated != growth(n):
            continue  # computed, or entered again with its present growth
        done.add(n)
        order.append(n)
        for m in operands[n]:
            left[m] -= 1
            if left[m] == 1:
                for u in users[m]:
                    if u in possible_at and u not in done:
                        heapq.heappush(heap, (growth(u), preference(u, possible_at[u]), u))
        for u in users[n]:
            waiting[u] -= 1
            if waiting[u] == 0:
                possible_at[u] = len(order)
                heapq.heappush(heap, (growth(u), preference(u, len(order)), u))
    return order
