"""Laws of elements over coordinates in natural coordinates, as short programs that one compiled function runs for all of them.

A law f(x) is a function of lines x_i = Σ a q or Σ a q̇: the combination that it acts on and its rate, coordinates that its formula names
and their rates. With the parameter g and the line b on which it acts,

    Q = … − g f b,     K = −∂Q/∂q = … + g b Σ (∂f/∂x_i) a_iᵀ over lines of q,     C = −∂Q/∂q̇ the same over lines of q̇.

f and its exact derivatives are operations on numbered values, one after the other, as the expression graph has them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from veridyn.arrays import Array
from veridyn.mechanics.compiled import Numbers, Vector, core
from veridyn.mechanics.laws import Acting, graph_of_laws, law
from veridyn.model.elements.element import Element
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
    Graph,
    forward,
    live,
)

FIRST = 5  # row of the room below that of a strut, from where on values stand


class LawCode(NamedTuple):
    """Laws one after the other; `…_start` says where those of each begin in the lists behind it."""

    gain: Vector  # (l,) parameters
    force_start: Numbers  # the lines on which they act
    force_column: Numbers
    force_weight: Vector
    input_start: Numbers  # (l + 1,) which lines each reads
    input_rate: Numbers  # (i,) 1 for a line of rates, 0 for one of coordinates
    line_start: Numbers  # (i + 1,)
    line_column: Numbers
    line_weight: Vector
    node_start: Numbers  # (l + 1,) the operations of each
    operation: Numbers
    left: Numbers  # number of a value, or of a line that is read
    right: Numbers
    constant: Vector
    value_node: Numbers  # (l,) where f is in the end, with its sign
    value_sign: Vector
    slope_node: Numbers  # (i,) and ∂f/∂x_i
    slope_sign: Vector


def law_code(laws: Sequence[Element], index: Callable[[str], int], friction_speed: float = 0.0) -> LawCode:
    """The programs of elements that act on coordinates; `index`: name of a coordinate → its number.

    `friction_speed`: below it (rad/s, m/s) jumps are rounded off; with 0 they are as the laws have them.
    """
    parts: dict[str, list[Any]] = {name: [] for name in LawCode._fields}
    for starts in ("force_start", "input_start", "line_start", "node_start"):
        parts[starts].append(0)
    for e in laws:
        _append(parts, e, index, graph_of_laws(friction_speed))
    kinds = {"gain", "force_weight", "line_weight", "constant", "value_sign", "slope_sign"}
    arrays: dict[str, Any] = {k: np.array(x, dtype=np.float64 if k in kinds else np.int64) for k, x in parts.items()}
    return LawCode(**arrays)


def _append(parts: dict[str, list[Any]], e: Element, index: Callable[[str], int], graph: Graph) -> None:
    read = Acting(
        position=lambda: graph.input("c"),
        rate=lambda: graph.input("v"),
        acceleration=lambda: graph.input("a"),
        constant=e.constant,
        state=lambda key: graph.input(f"state.{key}"),
        coordinate=lambda name: graph.input(f"q.{name}"),
        speed=lambda name: graph.input(f"qd.{name}"),
        signals={},
        algebra=graph,
    )
    f = law(e, read)
    names = list(graph.inputs)
    found = [graph.reference(x) for x in (f, *(d[0] for d in forward(graph, [f], graph.inputs_named(names))))]
    number = {node: k for k, node in enumerate(live(graph, found))}
    for node in number:
        op = graph.operation[node]
        left, right = graph.left[node], graph.right[node]
        parts["operation"].append(op)
        parts["left"].append(left if op == INPUT else number.get(left, 0))
        parts["right"].append(number.get(right, 0))
        parts["constant"].append(graph.constants.get(node, 0.0))
    parts["node_start"].append(len(parts["operation"]))
    parts["gain"].append(e.value)
    parts["force_column"] += [index(name) for name in e.on]
    parts["force_weight"] += [float(a) for a in e.on.values()]
    parts["force_start"].append(len(parts["force_column"]))
    for name in names:
        line = e.on if name in ("c", "v") else {name.partition(".")[2]: 1.0}
        parts["line_column"] += [index(c) for c in line]
        parts["line_weight"] += [float(a) for a in line.values()]
        parts["line_start"].append(len(parts["line_column"]))
        parts["input_rate"].append(int(name == "v" or name.startswith("qd.")))
    parts["input_start"].append(len(parts["input_rate"]))
    parts["value_node"].append(number[found[0].node])
    parts["value_sign"].append(-1.0 if found[0].negative else 1.0)
    parts["slope_node"] += [number[x.node] for x in found[1:]]
    parts["slope_sign"] += [-1.0 if x.negative else 1.0 for x in found[1:]]


def law_rows(code: LawCode) -> int:
    """How many rows of room below that of a strut the largest program needs."""
    return int(np.diff(code.node_start).max(initial=0))


def evaluate_law(t: LawCode, e: int, q: Array, qd: Array, room: Array) -> float:
    """f of one law; its derivatives are left among the values in `room`."""
    for k in range(t.node_start[e], t.node_start[e + 1]):
        op, at = t.operation[k], FIRST + k - t.node_start[e]
        if op == INPUT:
            i, total = t.input_start[e] + t.left[k], 0.0
            for p in range(t.line_start[i], t.line_start[i + 1]):
                x = qd[t.line_column[p]] if t.input_rate[i] == 1 else q[t.line_column[p]]
                total += t.line_weight[p] * x
            room[at, 0] = total
            continue
        if op == CONST:
            room[at, 0] = t.constant[k]
            continue
        a, b = room[FIRST + t.left[k], 0], room[FIRST + t.right[k], 0]
        if op == ADD:
            value = a + b
        elif op == SUB:
            value = a - b
        elif op == MUL:
            value = a * b
        elif op == DIV:
            value = a / b
        elif op == SIN:
            value = np.sin(a)
        elif op == COS:
            value = np.cos(a)
        elif op == SIGN:
            value = 1.0 * (a > 0.0) - 1.0 * (a < 0.0)
        elif op == ABS:
            value = np.abs(a)
        elif op == SQRT:
            value = np.sqrt(a)
        elif op == EXP:
            value = np.exp(a)
        elif op == LOG:
            value = np.log(a)
        elif op == ATAN:
            value = np.arctan(a)
        else:
            value = np.nan
        room[at, 0] = value
    return t.value_sign[e] * room[FIRST + t.value_node[e], 0]


_evaluated = core(evaluate_law)


@core
def add_laws(t: LawCode, q: Array, qd: Array, room: Array, Q: Array) -> None:
    """Add −g f b of every law."""
    for e in range(len(t.gain)):
        add_law(t, e, t.gain[e], q, qd, room, Q)


@core
def add_law(t: LawCode, e: int, gain: float, q: Array, qd: Array, room: Array, Q: Array) -> None:
    """Add −gain f b of one law."""
    if gain == 0.0:
        return
    force = gain * _evaluated(t, e, q, qd, room)
    for p in range(t.force_start[e], t.force_start[e + 1]):
        Q[t.force_column[p]] -= t.force_weight[p] * force


@core
def add_law_tangents(t: LawCode, q: Array, qd: Array, wk: float, wc: float, room: Array, T: Array) -> None:
    """Add wk K + wc C of every law."""
    for e in range(len(t.gain)):
        _evaluated(t, e, q, qd, room)
        for i in range(t.input_start[e], t.input_start[e + 1]):
            slope = t.slope_sign[i] * room[FIRST + t.slope_node[i], 0]
            weight = t.gain[e] * slope * (wc if t.input_rate[i] == 1 else wk)
            for p in range(t.force_start[e], t.force_start[e + 1]):
                for r in range(t.line_start[i], t.line_start[i + 1]):
                    T[t.force_column[p], t.line_column[r]] += weight * t.force_weight[p] * t.line_weight[r]
