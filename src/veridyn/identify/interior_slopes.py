"""The slopes J of limits as an interior-point search uses them: whole, or in blocks where each limit is that of a few unknowns.

Limits on positions, speeds and accelerations of a joint are limits on the coefficients of that joint alone: J is then one block a joint,
and JᵀWJ of n joints costs n times less. Where other limits stand beside them, J is both, one above the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class LimitSlopes(Protocol):
    """J (limits, unknowns)."""

    def along(self, step: Array) -> Array:
        """J step (limits,)."""
        ...

    def pulled(self, forces: Array) -> Array:
        """Jᵀ forces (unknowns,)."""
        ...

    def weighed(self, weights: Array) -> Array:
        """Jᵀ diag(weights) J (unknowns, unknowns)."""
        ...


@dataclass(frozen=True, eq=False)
class WholeSlopes:
    """J as one matrix."""

    matrix: Array

    def along(self, step: Array) -> Array:
        return self.matrix @ step

    def pulled(self, forces: Array) -> Array:
        return self.matrix.T @ forces

    def weighed(self, weights: Array) -> Array:
        return self.matrix.T @ (weights[:, None] * self.matrix)


@dataclass(frozen=True, eq=False)
class BlockSlopes:
    """J in blocks (b, m, k): block i has the limits `rows` (b, m) and the unknowns `columns` (b, k), each once."""

    blocks: Array
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]

    def along(self, step: Array) -> Array:
        out = np.empty(self.rows.size)
        out[self.rows] = (self.blocks @ step[self.columns][:, :, None])[:, :, 0]
        return out

    def pulled(self, forces: Array) -> Array:
        out = np.empty(self.columns.size)
        out[self.columns] = (forces[self.rows][:, None, :] @ self.blocks)[:, 0]
        return out

    def weighed(self, weights: Array) -> Array:
        out = np.zeros((self.columns.size, self.columns.size))
        own = np.swapaxes(self.blocks, 1, 2) @ (weights[self.rows][:, :, None] * self.blocks)
        out[self.columns[:, :, None], self.columns[:, None, :]] = own
        return out


@dataclass(frozen=True, eq=False)
class StackedSlopes:
    """J of two kinds of limits: `first` those of the limits `rows`, `second` those of the `others`; each limit is of one of them."""

    first: LimitSlopes
    second: LimitSlopes
    rows: NDArray[np.intp]
    others: NDArray[np.intp]

    def along(self, step: Array) -> Array:
        out = np.empty(len(self.rows) + len(self.others))
        out[self.rows], out[self.others] = self.first.along(step), self.second.along(step)
        return out

    def pulled(self, forces: Array) -> Array:
        return self.first.pulled(forces[self.rows]) + self.second.pulled(forces[self.others])

    def weighed(self, weights: Array) -> Array:
        return self.first.weighed(weights[self.rows]) + self.second.weighed(weights[self.others])


def slopes_of(J: Array | LimitSlopes) -> LimitSlopes:
    """A matrix as slopes; slopes as they are."""
    return WholeSlopes(J) if isinstance(J, np.ndarray) else J


def in_blocks(J: Array, columns: NDArray[np.intp]) -> LimitSlopes:
    """J in blocks of the unknowns `columns` (b, k), all of them once, where every limit has slopes in one block only; else whole.

    Blocks have equally many limits, or J stays whole.
    """
    touched = np.stack([J[:, own].any(axis=1) for own in columns])
    counts = touched.sum(axis=1)
    if (touched.sum(axis=0) != 1).any() or np.ptp(counts) or not counts[0]:
        return WholeSlopes(J)
    rows = np.stack([np.flatnonzero(one) for one in touched])
    return BlockSlopes(np.stack([J[np.ix_(r, c)] for r, c in zip(rows, columns, strict=True)]), rows, columns)
