"""The equations of a closed machine: those of its open tree, projected onto the coordinates that are free to move.

The forces of cut joints do no work in a motion that keeps the loops closed, so with G = ∂q/∂q_a the rows Gᵀ Γ hold none of them:
(7) of paper 002, with friction of passive joints in it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.arrays import Array
from veridyn.errors import DataError
from veridyn.mechanics.tree.accept import takes_machine
from veridyn.mechanics.tree.dynamics.engine import Engine
from veridyn.mechanics.tree.loops.assembly import Split, loop_values, splitting, widest
from veridyn.mechanics.tree.loops.solver import check_regular, inverse, slopes
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.equations import structure
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion

LOOP_TOLERANCE_M = 1e-6  # m, and relative for rates: what a motion may open a loop by


@takes_machine
def loop_jacobian(
    machine: Machine | Tree, q: ArrayLike, at: str | Sequence[str] = "actuated", *, engine: Engine = "auto"
) -> Array:
    """∂q/∂q_g (N, n, n_given) at closed positions (N, n), for coordinates `at` as in
    :func:`~veridyn.mechanics.tree.loops.closure.close`."""
    tree = tree_of(machine)
    split = splitting(tree, at)
    where = np.asarray(q, dtype=np.float64)
    if where.ndim != 2 or where.shape[1] != tree.n:
        expected = f"(N, {tree.n})"
        raise DataError("wrong shape.", where=tree.name, expected=expected, found=f"{where.shape}")
    T = loop_values(tree, where, engine=engine)
    _check_closed(tree, T[:, :, tree.n])
    return _whole(split, where, T)


def projection(machine: Machine | Tree, motion: Motion, engine: Engine = "auto") -> Array:
    """∂q/∂q_a (N, n, independent) along a motion, which must keep the loops closed: positions, rates and accelerations."""
    tree = tree_of(machine)
    split = splitting(tree)
    n = tree.n
    T = loop_values(tree, motion.q, motion.qd, engine=engine)
    _check_closed(tree, T[:, :, n])
    J = T[:, :, :n]
    for what, x, bias in (("rates", motion.qd, 0.0), ("accelerations", motion.qdd, T[:, :, n + 1])):
        terms = J * x[:, None, :]
        off = np.abs(terms.sum(axis=-1) + bias)
        size = np.abs(terms).sum(axis=-1) + np.abs(bias) + 1.0
        if (off > LOOP_TOLERANCE_M * size).any():
            k = int(np.argmax((off / size).max(axis=1)))
            raise DataError(
                f"the {what} of this motion open its loops.",
                where=f"{tree.name}, sample {k}",
                found=widest(tree, off[k]) + " a second" + ("" if what == "rates" else " squared"),
                hint="Make the motion with closed_motion: the passive joints follow from the actuated ones.",
            )
    return _whole(split, motion.q, T)


def projected(
    tree: Tree, G: Array, rows: Sequence[int], own: Sequence[int], values: Array, columns: Sequence[int] | None = None
) -> Array:
    """Rows (N, rows, …) of a closed tree from those of the open one: `values` (N, own, …) are its rows `own`.

    Where the last axis holds `columns` of the regressor, only those that can enter a row are looked at.
    """
    first = len(tree.rows) - tree.n
    at = {r: k for k, r in enumerate(own)}
    independent = {k: i for i, k in enumerate(tree.independent)}
    affected = None if columns is None else _affected_rows(tree, own, columns)
    V = np.moveaxis(values, 0, -1)  # samples together in memory
    out = np.zeros((len(rows), *V.shape[1:]))
    for i, r in enumerate(rows):
        out[i] = V[at[r]]
        if r >= first and r - first in tree.looped:
            for j in tree.feeding(r - first)[1:]:
                weight, k = G[:, j, independent[r - first]], at[first + j]
                if affected is None:
                    out[i] += weight * V[k]
                else:
                    out[i, affected[k]] += weight * V[k, affected[k]]
    return np.moveaxis(out, -1, 0)


def _affected_rows(tree: Tree, own: Sequence[int], columns: Sequence[int]) -> list[NDArray[np.intp]]:
    """For each row of the open tree, the places of the columns that can enter it."""
    enters = structure(tree)
    return [np.flatnonzero(np.isin(columns, enters[r])) for r in own]


def open_rows(machine: Machine | Tree, rows: Sequence[int]) -> tuple[int, ...]:
    """The rows of the open tree that enter these rows of the closed one: themselves first."""
    tree = tree_of(machine)
    first = len(tree.rows) - tree.n
    passive = [first + j for r in rows if r >= first for j in tree.feeding(r - first)[1:]]
    return tuple(dict.fromkeys((*rows, *passive)))


def _whole(split: Split, q: Array, T: Array) -> Array:
    B, condition, sign = inverse(split, T)
    check_regular(split, q, condition, sign, split.sign)
    G = np.zeros((len(q), split.tree.n, len(split.given)))
    G[:, split.given, range(len(split.given))] = 1.0
    G[:, split.solved] = slopes(split, T, B)
    return G


def _check_closed(tree: Tree, opening: Array) -> None:
    wide = np.abs(opening).max(axis=1, initial=0.0)
    if (wide > LOOP_TOLERANCE_M).any():
        k = int(np.argmax(wide > LOOP_TOLERANCE_M))
        raise DataError(
            "this motion does not keep its loops closed.",
            where=f"{tree.name}, sample {k}",
            found=widest(tree, opening[k]),
            hint="Make the motion with closed_motion: the passive joints follow from the actuated ones.",
        )
