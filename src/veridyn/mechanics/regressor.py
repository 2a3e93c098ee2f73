"""The regressor: the columns of inverse dynamics, one for each parameter, from the same recursion.

The rows are linear in the parameters, L = D φ (18, 20). A column is what the recursion gives for one unit parameter and zeros
elsewhere; constants fold, so only what the unit touches is computed, and only on the path from its body to the ground.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.forces import element_rows, needs_velocity
from veridyn.mechanics.newton_euler import Outward, State, body_wrench, carry, outward
from veridyn.mechanics.samples import blocks, state_of
from veridyn.model.motion import Motion
from veridyn.model.tree import Rows, Tree
from veridyn.spatial.algebra import ARRAYS, Algebra, Scalar, is_zero

Array = NDArray[np.float64]
UNITS = tuple(tuple(float(k == i) for i in range(10)) for k in range(10))


def columns(
    tree: Tree,
    state: State,
    o: Outward,
    signals: Mapping[str, Scalar],
    algebra: Algebra,
    wanted: Iterable[int],
) -> Iterator[tuple[int, dict[int, Scalar]]]:
    """For each wanted parameter, the rows it enters: (column, row → scalar). Structural zeros are absent."""
    for c in wanted:
        j, k = tree.columns[c]
        if j < 0:
            entries = element_rows(tree, tree.elements[k], state, o, signals, algebra)
        else:
            wrench = body_wrench(o.w[j], o.wd[j], o.U[j], o.vd[j], UNITS[k])
            entries = carry(tree, o, j, wrench)
        yield c, {r: value for r, value in entries.items() if not is_zero(value)}


def sampled_columns(tree: Tree, motion: Motion, wanted: Iterable[int]) -> Iterator[tuple[int, dict[int, Scalar]]]:
    """:func:`columns` over the samples of one block of a motion."""
    state = state_of(tree, motion)
    o = outward(tree, state, ARRAYS, needs_velocity(tree))
    return columns(tree, state, o, motion.signals, ARRAYS, wanted)


def regressor(tree: Tree, motion: Motion, rows: Rows = "all", wanted: Sequence[int] | None = None) -> Array:
    """D (N, rows, columns) with D φ = Γ where no wrench acts: equations (18) and (20) of paper 000.

    Columns are ``tree.parameters.names``, all of them whatever their state, or those whose numbers `wanted` gives, in that order.
    """
    tree.check_motion(motion)
    chosen = {r: k for k, r in enumerate(tree.select_rows(rows))}
    asked = range(len(tree.columns)) if wanted is None else wanted
    place = {c: k for k, c in enumerate(asked)}
    D = np.zeros((len(motion), len(chosen), len(place)))
    for block in blocks(len(motion)):
        for c, entries in sampled_columns(tree, motion[block], place):
            for r, value in entries.items():
                if r in chosen:
                    D[block, chosen[r], place[c]] = value
    return D


def structure(tree: Tree) -> tuple[tuple[int, ...], ...]:
    """For each row, the columns that can enter it: those of the bodies it carries and of its elements."""
    touched: list[set[int]] = [set() for _ in tree.rows]
    first = len(tree.rows) - tree.n
    for c, (j, k) in enumerate(tree.columns):
        on = None if j >= 0 else tree.elements[k].on_body
        if j < 0 and on is None:
            for name in tree.elements[k].on:
                touched[first + tree.coordinates.index(name)].add(c)
            continue
        for i in tree.path(j if on is None else tree.index(on[0])):
            if tree.coordinate[i] >= 0:
                touched[first + tree.coordinate[i]].add(c)
        for r in range(first):
            touched[r].add(c)
    return tuple(tuple(sorted(row)) for row in touched)
