"""Expressions as C for a controller: C99, no allocation, no library but sin, cos and their like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from veridyn.symbolic import expression as ex
from veridyn.symbolic.expression import Graph, Number, count, live

_INFIX = {ex.ADD: "+", ex.SUB: "-", ex.MUL: "*", ex.DIV: "/"}
_FUNCTION = {**dict(enumerate(ex.OPERATIONS)), ex.ABS: "fabs"}


@dataclass(frozen=True)
class Argument:
    """One array of the C function: its name, length and what it holds, for the header's comment."""

    name: str
    length: int
    meaning: str
    output: bool = False


@dataclass(frozen=True)
class CSource:
    """A function's name, its header and the file that implements it."""

    name: str
    header: str
    code: str


def emit_c(
    name: str,
    graph: Graph,
    outputs: Sequence[tuple[str, Number]],
    inputs: Mapping[str, str],
    arguments: Sequence[Argument],
    comment: str,
) -> CSource:
    """The function ``name`` that assigns each output (its place, as in "tau[3]") from inputs (input name → C expression).

    Outputs that are not assigned are the caller's to clear; the comment in the code counts the operations.
    """
    nodes = live(graph, [value for _, value in outputs])
    by_node = {n: inputs[k] for k, n in graph.inputs.items() if k in inputs}
    text: dict[int, str] = {}
    lines = []
    for n in nodes:
        op = graph.operation[n]
        if op == ex.CONST:
            text[n] = repr(graph.constants[n])
            continue
        if op == ex.INPUT:
            text[n] = by_node[n]
            continue
        a = text[graph.left[n]]
        if op in _INFIX:
            right = f"{a} {_INFIX[op]} {text[graph.right[n]]}"
        elif op == ex.SIGN:
            right = f"(double)(({a} > 0.0) - ({a} < 0.0))"
        else:
            right = f"{_FUNCTION[op]}({a})"
        text[n] = f"x{n}"
        lines.append(f"    const double x{n} = {right};")
    for place, value in outputs:
        ref = graph.reference(value)
        source = text.get(ref.node) or repr(graph.constants[ref.node])
        lines.append(f"    {place} = {'-' if ref.negative else ''}{source};")
    unused = [f"    (void){a.name};" for a in arguments if not a.output and not any(a.name + "[" in x for x in lines)]
    signature = ", ".join(f"{'' if a.output else 'const '}double {a.name}[{max(1, a.length)}]" for a in arguments)
    meanings = "\n".join(f" *   {a.name}[{a.length}]: {a.meaning}" for a in arguments)
    counted = count(graph, [value for _, value in outputs])
    comment, meanings = (words.replace("*/", "* /").replace("/*", "/ *") for words in (comment, meanings))
    guard = f"{name.upper()}_H"
    header = f"""/* {comment}
{meanings}
 * {counted}.
 */
#ifndef {guard}
#define {guard}

#ifdef __cplusplus
extern "C" {{
#endif

void {name}({signature});

#ifdef __cplusplus
}}
#endif

#endif
"""
    body = "\n".join([*unused, *lines])
    code = f"""/* {comment}
 * {counted}.
 */
#include "{name}.h"

#include <math.h>

void {name}({signature})
{{
{body}
}}
"""
    return CSource(name, header, code)
