"""The columns of some hundred samples for the questions of a diagnosis: those that separate, by machine code where it is there already.

Least squares leaves the same residual over independent columns as over all, and the machine code that streamed the log serves again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from veridyn.identify.dependent_columns import dependence
from veridyn.identify.equation_plan import EquationPlan
from veridyn.identify.sampling import Sampling
from veridyn.identify.tables import equations
from veridyn.mechanics.engine import wants_compiled
from veridyn.mechanics.inverse import external_rows
from veridyn.mechanics.regressor import regressor
from veridyn.model.motion import Motion
from veridyn.model.tree import Tree

Array = NDArray[np.float64]
Places = NDArray[np.intp]


class Columns(NamedTuple):
    """`W` (rows, N, k) of some samples; `known` (rows, N): what wrenches and known parameters ask of the rows.

    `parts` (rows, N): √Σ of the squares of what each known parameter asks, which does not cancel where a drive lifts a known machine.
    `numbers` (k,): the estimated parameters whose columns these are; `acting`: for each row, which of them can enter it.
    """

    W: Array
    known: Array
    parts: Array
    numbers: Places
    acting: tuple[Places, ...]


def columns_of(machine: Tree, m: Motion, rows: Sequence[str], every: bool = False) -> Columns:
    """The columns of the rows along a motion: those that no others make up whatever the motion, or `every` estimated one."""
    plan = _plan(machine, tuple(rows), every)
    p = machine.parameters
    numbers = np.array(sorted(set().union(*plan.columns)), dtype=np.intp)
    acting = tuple(np.searchsorted(numbers, np.array(cs, dtype=np.intp)) for cs in plan.columns)
    values = p.tie_matrix() @ np.where(np.array(p.states) == "known", p.values, 0.0)
    if not every and not values.any() and not machine.loops:
        request = equations(machine, plan.computed, plan.wanted, m)
        if wants_compiled("auto", machine, request, 0):  # from the fit: nothing is compiled for a diagnosis
            return _by_machine_code(replace(plan, compile=True), m, numbers, acting)
    T = p.estimated_matrix()[:, numbers]
    used = np.flatnonzero(T.any(axis=1) | (values != 0.0))
    D = regressor(machine, replace(m, wrenches={}), list(rows), used.tolist(), engine="numpy").transpose(1, 0, 2)
    known = D @ values[used]
    parts = np.sqrt(D**2 @ values[used] ** 2) if values.any() else np.zeros_like(known)
    if m.wrenches:
        known = known + external_rows(machine, m)[:, list(machine.select_rows(list(rows)))].T
    own = T[used]
    alone = np.array_equal(own, np.eye(len(used)))  # nothing is known or tied
    return Columns(D if alone else D @ own, known, parts, numbers, acting)


@lru_cache(maxsize=8)
def _plan(machine: Tree, rows: tuple[str, ...], every: bool) -> EquationPlan:
    rule = None if every else dependence(machine)
    return EquationPlan(machine, machine.select_rows(list(rows)), Sampling(), kept=None if rule is None else rule.kept)


def _by_machine_code(plan: EquationPlan, m: Motion, numbers: Places, acting: tuple[Places, ...]) -> Columns:
    W, known = np.zeros((len(plan.rows), len(m), len(numbers))), np.zeros((len(plan.rows), len(m)))
    tables = plan.tables(0)
    for start in range(0, len(m), tables.block):
        part = slice(start, min(start + tables.block, len(m)))
        for j, A in enumerate(tables.fill(m[part])):
            W[j, part, acting[j]] = A[:, :-1].T
            known[j, part] = A[:, -1]
    return Columns(W, known, np.zeros_like(known), numbers, acting)
