"""Columns that depend on others whatever the motion are left out of the factors and put back at their end.

By the closed rules (:mod:`veridyn.mechanics.tree.rules`) the columns of rigid bodies have D = D[:, kept] K for every state of the tree, so
each row, filtered, weighed, masked or added to others, has

    [W_j | Y_j] = [W_j[:, kept] | Y_j] blockdiag(K, 1),      R_j = triangle(R_kept blockdiag(K, 1)).

A factor costs the square of its columns. Of the 20-dof car's 150 columns 84 stay, and a sample costs a third of the arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from veridyn.identify.factor import RowFactor
from veridyn.identify.grouping import group
from veridyn.identify.upper import triangle_of
from veridyn.mechanics.tree.rules import structural
from veridyn.model.machine import Machine

Array = NDArray[np.float64]
EXACT = 1e-12  # of the combinations of the closed rules: what a relation may miss them by
WORTHWHILE = 0.75  # of the arithmetic of all columns: with more left, they stay
MIN_SAMPLES = 50_000  # from which on the machine code of fewer columns pays for itself


@dataclass(frozen=True, eq=False)
class Dependence:
    """Columns that are `kept`, and K (kept, p) that makes all estimated ones of them: D T = (D T)[:, kept] K."""

    kept: tuple[int, ...]
    matrix: Array

    def restored(self, factor: RowFactor, columns: tuple[int, ...]) -> RowFactor:
        """The factor of a row over all its columns from that over the kept ones."""
        place = {c: k for k, c in enumerate(self.kept)}
        K = self.matrix[np.ix_([place[c] for c in factor.columns], columns)]
        wide = np.column_stack([factor.R[:, :-1] @ K, factor.R[:, -1]])
        R = np.zeros((len(columns) + 1, len(columns) + 1), order="F")
        R[: min(len(wide), len(R))] = triangle_of(wide)
        return replace(factor, columns=columns, R=R)


@lru_cache(maxsize=32)
def dependence(machine: Machine) -> Dependence | None:
    """The dependences of a tree's estimated columns by the closed rules; None where there are none, or where the rules do not reach."""
    if machine.closed or machine.shares_coordinates:
        return None
    p = machine.parameters
    B = structural(machine) @ p.estimated_matrix() * p.typical
    kept = group(B, np.ones(B.shape[1])).kept
    if len(kept) == np.count_nonzero(B.any(axis=0)):
        return None
    K = np.linalg.lstsq(B[:, kept], B, rcond=None)[0]
    if np.abs(B[:, kept] @ K - B).max() > EXACT * np.abs(B).max():
        return None
    K[:, kept] = np.eye(len(kept))
    return Dependence(kept, K * p.typical[list(kept)][:, None] / p.typical)


def worthwhile(all_columns: tuple[tuple[int, ...], ...], fewer: tuple[tuple[int, ...], ...]) -> bool:
    """Whether factors of fewer columns save enough: they cost the square of their columns."""
    whole, left = (sum((len(cs) + 1) ** 2 for cs in columns) for columns in (all_columns, fewer))
    return left < WORTHWHILE * whole
