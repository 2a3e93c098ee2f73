"""The step of a small machine as one formula: its stages written out one after the other, and its derivative along every column.

    y⁺ = y + h Σ_i b_i k_i,    k_i = f(y + h Σ_j A_ij k_j, u(t + c_i h), −Cᵀ f_dry),    S⁺_p = ∂y⁺/∂y S_p + ∂y⁺/∂x_p

What a machine of some hundred operations does in a stage takes less time than to call its kernels and to go through its lists; written out,
the stages of a step are one kernel without a loop. Dry friction has given forces over a part of a step, so it must neither change with
speed and place nor grow with the load. :mod:`veridyn.mechanics.system.run_stages` and
:mod:`veridyn.mechanics.system.run_sensitivity` state the same step for machines of any size, and take it where a formula has met no
usable state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics.compiled import merged
from veridyn.mechanics.system import run_record as record
from veridyn.mechanics.system.dry_friction import DryFriction
from veridyn.mechanics.system.run_blocks import TiedBlock, Varied
from veridyn.mechanics.system.run_record import call_part
from veridyn.mechanics.system.run_stages import along_speed, copy, is_usable, set_leap
from veridyn.mechanics.system.stepper import Tableau
from veridyn.mechanics.tree.dynamics.engine import Compiled, signature
from veridyn.mechanics.tree.recursion.inputs import Label, Request
from veridyn.mechanics.tree.steps.record import call_kernel
from veridyn.mechanics.tree.tree import Tree
from veridyn.spatial.algebra import is_zero
from veridyn.symbolic.expression import Count, Graph, Number, along, inserted
from veridyn.symbolic.kernel import formula_kernel
from veridyn.symbolic.sources import note_sources

MAX_OPERATIONS = 3000  # of a formula: beyond, its compilation takes longer than a fit saves by it
# in LEAP: h, the share of the interval at the start of the step, and that which it covers
H_PLACE, SHARE_PLACE, SPAN_PLACE = range(3)
STATE, NEARNESS, SLOPE = range(3)  # first numbers of the labels: of a state, of a stage, of a block, row and column
Found = dict[Label, Number]
Numbers = NDArray[np.int64]
note_sources(__name__)


def is_short(forward: Compiled, stages: int, columns: int = 0) -> bool:
    """Whether a step with so many columns of sensitivities is short enough to be written out."""
    return forward.count.total * stages * (1 + 2 * columns) <= MAX_OPERATIONS


def step_kernel(tree: Tree, speed: float, rule: Tableau) -> Compiled:
    """(STATE, k) of y⁺ and (NEARNESS, i): how near to singular the mass matrix is at stage i."""
    return _compiled(tree, ("step", speed, _numbers(rule)), lambda graph: _step(graph, tree, speed, rule), ())


def tangent_kernel(
    tree: Tree, speed: float, rule: Tableau, varied: Varied, dry: DryFriction | None, blocks: Sequence[TiedBlock]
) -> Compiled:
    """:func:`step_kernel`, and (SLOPE, b, row, p): the sensitivities of block b after the step."""
    how = (varied.spread.tolist(), varied.constants, None if dry is None else (dry.C.tolist(), dry.columns), blocks)

    def made(graph: Graph) -> Found:
        found = _step(graph, tree, speed, rule)
        after = [found[STATE, k] for k in range(2 * tree.n + len(tree.states))]
        slopes: Found = {}
        for b, block in enumerate(blocks):
            own = _rows(tree, block)
            for p in range(block.width):
                rates: dict[str, Number] = {f"y.{k}": graph.input(f"S.{b}.{r}.{p}") for r, k in enumerate(own)}
                rates |= _entering(tree, graph, varied, dry, block, p)
                moved = along(graph, [after[k] for k in own], rates)
                slopes |= {(SLOPE, b, r, p): value for r, value in enumerate(moved)}
        return found | slopes

    return _compiled(tree, ("tangent", speed, _numbers(rule), how), made, blocks)


def _numbers(rule: Tableau) -> tuple[object, ...]:
    return rule.A.tolist(), rule.b.tolist(), rule.c.tolist()


def _compiled(
    tree: Tree, words: Sequence[object], made: Callable[[Graph], Found], blocks: Sequence[TiedBlock]
) -> Compiled:
    """The kernel of a formula of a tree, from memory, from disk, or made now."""
    inputs = {f"step.{k}" for k in (H_PLACE, SHARE_PLACE, SPAN_PLACE)} | {
        f"y.{k}" for k in range(2 * tree.n + len(tree.states))
    }
    inputs |= {f"{side}.{j}" for side in ("before", "after", "push") for j in range(tree.n + len(tree.signals))}
    inputs |= {f"friction.{e}" for e in range(len(tree.elements))}
    inputs |= {f"S.{b}.{r}.{p}" for b, one in enumerate(blocks) for r in range(one.rows) for p in range(one.width)}
    kernel, labels = formula_kernel(
        __name__,
        (signature(tree), repr(words)),
        lambda graph: {label: value for label, value in made(graph).items() if not is_zero(value)},
        inputs,
        apart=True,
    )
    return Compiled(kernel, tuple(tuple(label) for label in labels), Count(0, 0, 0, 0))


def _rows(tree: Tree, block: TiedBlock) -> list[int]:
    """Which components of a state the rows of a block are."""
    n = tree.n
    return [*block.coordinates, *(n + k for k in block.coordinates), *(2 * n + k for k in block.states)]


def _step(graph: Graph, tree: Tree, speed: float, rule: Tableau) -> Found:
    from veridyn.mechanics.tree.dynamics.formula import formula  # here: a kernel on disk needs no formula

    requests = [Request("forward_checked", tuple(range(tree.n)), friction_speed=speed)]
    requests += [Request("state_rates", friction_speed=speed)] if tree.states else []
    formulas = [formula(tree, request) for request in requests]
    own = {s.name for s in tree.states}
    measured = [name for name in tree.signals if name not in own]
    n, size = tree.n, 2 * tree.n + len(tree.states)
    y: list[Number] = [graph.input(f"y.{k}") for k in range(size)]
    h, share, span = (graph.input(f"step.{k}") for k in (H_PLACE, SHARE_PLACE, SPAN_PLACE))
    slopes: list[list[Number]] = []
    found: Found = {}
    for i in range(len(rule.b)):
        at = _moved(graph, y, h, rule.A[i, :i].tolist(), slopes)
        part = graph.add(share, graph.mul(float(rule.c[i]), span))
        given: dict[str, Number] = {}
        for j in range(n + len(measured)):
            before, after = graph.input(f"before.{j}"), graph.input(f"after.{j}")
            value = graph.add(before, graph.mul(part, graph.add(after, -before)))
            name = f"t.{j}" if j < n else f"s.{measured[j - n]}"
            given[name] = graph.add(value, graph.input(f"push.{j}")) if j < n else value
        given |= {f"q.{j}": at[j] for j in range(n)} | {f"qd.{j}": at[n + j] for j in range(n)}
        given |= {f"s.{s.name}": at[2 * n + j] for j, s in enumerate(tree.states)}
        rate: list[Number] = [*at[n : 2 * n], *[0.0] * (size - n)]
        for f, one in enumerate(formulas):
            made = dict(zip(one.labels, inserted(graph, one.graph, one.outputs, given), strict=True))
            if f == 0:
                rate[n : 2 * n] = [made.get((j,), 0.0) for j in range(n)]
                found[NEARNESS, i] = made.get((n,), 0.0)
                given |= {f"qdd.{j}": rate[n + j] for j in range(n)}
            else:
                rate[2 * n :] = [made.get((j,), 0.0) for j in range(size - 2 * n)]
        slopes.append(rate)
    end = _moved(graph, y, h, rule.b.tolist(), slopes)
    return found | {(STATE, k): value for k, value in enumerate(end)}


def _moved(
    graph: Graph, y: Sequence[Number], h: Number, weights: Sequence[float], slopes: Sequence[Sequence[Number]]
) -> list[Number]:
    """y + h Σ w_j k_j."""
    out: list[Number] = []
    for k, start in enumerate(y):
        total: Number = 0.0
        for weight, slope in zip(weights, slopes, strict=False):
            if weight != 0.0:
                total = graph.add(total, graph.mul(weight, slope[k]))
        out.append(graph.add(start, graph.mul(h, total)))
    return out


def _entering(
    tree: Tree, graph: Graph, varied: Varied, dry: DryFriction | None, block: TiedBlock, p: int
) -> Mapping[str, Number]:
    """The rates of what is not the state, along column p of a block: of parameters, constants, or forces of dry friction."""
    spread, elements = varied.spread, [] if dry is None else dry.elements
    C = None if dry is None else dry.C
    if p >= len(block.columns):  # by a force of friction itself
        assert C is not None
        row = C[block.combinations[p - len(block.columns)]]
        return {f"push.{j}": -float(c) for j, c in enumerate(row) if c != 0.0}
    column, own = block.columns[p], spread.shape[1]
    if column >= own + len(varied.constants):
        return {}
    if column >= own:
        return {f"const.{varied.constants[column - own]}": 1.0}
    rubbing = {c for _, _, c in elements}
    rates: dict[str, Number] = {
        f"p.{c}": float(factor) for c, factor in enumerate(spread[:, column]) if factor != 0.0 and c not in rubbing
    }
    for e, (i, _, c) in enumerate(elements):
        if C is not None and spread[c, column] != 0.0:
            acting = graph.mul(-float(spread[c, column]), graph.input(f"friction.{e}"))
            for j, factor in enumerate(C[i]):
                if factor != 0.0:
                    rates[f"push.{j}"] = graph.add(rates.get(f"push.{j}", 0.0), graph.mul(float(factor), acting))
    return rates


@merged
def glides(I: Numbers, W: Array, instant: float, h: float, sensitive: bool) -> bool:
    """Whether a step that is one formula leads from Y, and S, to where everything slides on as it does; it is taken then."""
    n, m, end = I[record.COUNT], I[record.COMBINATIONS], I[record.STAGE] if sensitive else I[record.END]
    for i in range(m):
        w = along_speed(I, W, i, I[record.Y] + n)
        if not abs(w) > W[I[record.REST] + i] or I[I[record.PENDING] + i]:
            return False
        W[I[record.TRIED] + i] = np.sign(w)
    set_leap(I, W, instant, h, I[record.TRIED])
    call_kernel(I, record.TANGENT_KERNEL if sensitive else record.STEP_KERNEL)
    if not is_usable(I, W, end):
        return False
    for i in range(m):
        if not along_speed(I, W, i, end + n) * W[I[record.TRIED] + i] > 0.0:
            return False
    copy(W, end, I[record.SIZE], I[record.Y])
    copy(W, I[record.TRIED], m, I[record.SHARE])
    if sensitive:
        copy(W, I[record.S_STAGE], I[record.LENGTH], I[record.S])
        call_part(I, record.SENSITIVITY_CODE, W, record.HOLD_STILL, 0.0, 0.0, 0)
    return True
