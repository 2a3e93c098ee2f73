"""Which coordinates loops tie to which: equations and dependent coordinates in blocks that have nothing to do with each other.

The pattern of Φ_q tells it. A suspension ties its own coordinates alone, so that a vehicle has a block for each wheel.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components


@dataclass(frozen=True)
class Ties:
    """`blocks`: (equations, places in `dependent`) of each. `own`: the velocities that are independent rates.

    For each independent coordinate, `tied` are the velocities that follow it, and `reached` the blocks it enters.
    """

    blocks: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    own: tuple[int, ...]
    tied: tuple[tuple[int, ...], ...]
    reached: tuple[tuple[int, ...], ...]

    def lists(self) -> list[list[int]]:
        """OWN, BLOCK, FACTOR, EQUATION, POSITION, TIED_FROM, TIED, REACHED_FROM, REACHED of :mod:`~veridyn.mechanics.tree.layout`."""
        sizes = [len(equations) for equations, _ in self.blocks]
        return [
            list(self.own),
            _starts(sizes),
            _starts([size * size for size in sizes])[:-1],
            [i for equations, _ in self.blocks for i in equations],
            [d for _, places in self.blocks for d in places],
            _starts([len(rows) for rows in self.tied]),
            [row for rows in self.tied for row in rows],
            _starts([len(blocks) for blocks in self.reached]),
            [b for blocks in self.reached for b in blocks],
        ]


def ties_of(slopes: Iterable[tuple[int, int]], z: Sequence[int], dependent: Sequence[int], base: int) -> Ties:
    """From the pattern (equation, coordinate) of Φ_q, the independent coordinates and the dependent ones.

    `base`: how many rates stand in front of those of the coordinates, all of them independent.
    """
    m = len(dependent)
    place = {k: d for d, k in enumerate(dependent)}
    entries = sorted(set(slopes))
    edges = np.array([(i, m + place[k]) for i, k in entries if k in place], dtype=np.int64).reshape(-1, 2)
    graph = coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(2 * m, 2 * m))
    count, mark = connected_components(graph, directed=False) if m else (0, np.zeros(0, dtype=np.int64))
    blocks = tuple(
        (tuple(np.flatnonzero(mark[:m] == b).tolist()), tuple(np.flatnonzero(mark[m:] == b).tolist()))
        for b in range(count)
    )
    reached: list[tuple[int, ...]] = [()] * base
    reached += [tuple(sorted({int(mark[i]) for i, c in entries if c == k})) for k in z]
    tied = tuple(tuple(base + dependent[d] for b in entered for d in blocks[b][1]) for entered in reached)
    return Ties(blocks, (*range(base), *(base + k for k in z)), tied, tuple(reached))


def _starts(sizes: Sequence[int]) -> list[int]:
    return [0, *np.cumsum(sizes, dtype=np.int64).tolist()]
