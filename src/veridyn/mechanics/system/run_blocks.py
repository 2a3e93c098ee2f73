"""Which coordinates of a tree depend on each other, and on which parameters: the blocks of a run's sensitivities.

Two coordinates belong together where the mass matrix, a derivative of the forces, a combination with dry friction or a state of an element
ties them; what is not tied has no influence whatever on the other, so that its sensitivities are zero and need not be computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

Array = NDArray[np.float64]
Pairs = Iterable[tuple[int, ...]]


@dataclass(frozen=True)
class Block:
    """Numbers of the coordinates, of elements' own states and of combinations with friction, and the columns they depend on."""

    coordinates: tuple[int, ...]
    states: tuple[int, ...]
    combinations: tuple[int, ...]
    columns: tuple[int, ...]

    @property
    def rows(self) -> int:
        """The length of its part of a state."""
        return 2 * len(self.coordinates) + len(self.states)

    @property
    def width(self) -> int:
        """Its columns, those by the forces of friction included, which come last."""
        return len(self.columns) + len(self.combinations)


def blocks_of(
    n: int,
    states: int,
    ties: Pairs,
    C: Array,
    depends: Pairs,
    first_state: int,
    together: bool,
) -> tuple[Block, ...]:
    """Blocks of n coordinates and the states of elements' own, which are the rows n, n + 1, …

    `ties`: pairs of rows that one equation holds; `depends`: pairs (row, column). Columns from `first_state` on are those of the initial
    state (q, q̇, z). `together`: one block for all.
    """
    edges = [(a, b) for a, b in ties]
    edges += [(int(np.flatnonzero(c)[0]), int(j)) for c in C for j in np.flatnonzero(c)]
    edges += [(0, k) for k in range(n + states)] if together else []
    at = np.array(edges, dtype=np.int64).reshape(-1, 2)
    graph = coo_array((np.ones(len(at)), (at[:, 0], at[:, 1])), shape=(n + states, n + states))
    count, mark = connected_components(graph, directed=False)
    needed: list[set[int]] = [set() for _ in range(count)]
    for row, column in depends:
        needed[mark[row]].add(column)
    found: list[Block] = []
    for b in range(count):
        rows = np.flatnonzero(mark == b).tolist()
        coordinates, own = [k for k in rows if k < n], [k - n for k in rows if k >= n]
        start = [*coordinates, *(n + k for k in coordinates), *(2 * n + k for k in own)]
        columns = sorted(needed[b]) + [first_state + k for k in sorted(start)]
        combinations = [i for i, c in enumerate(C) if mark[np.flatnonzero(c)[0]] == b]
        found.append(Block(tuple(coordinates), tuple(own), tuple(combinations), tuple(columns)))
    return tuple(found)


def starts(sizes: Sequence[int]) -> list[int]:
    """Where parts of these sizes begin, and the end of the last."""
    return [0, *np.cumsum(sizes, dtype=np.int64).tolist()]
