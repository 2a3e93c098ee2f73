"""Which coordinates of a tree depend on each other, and on which parameters: the blocks of a run's sensitivities.

Two coordinates belong together where the mass matrix, a derivative of the forces, a combination with dry friction or a state of an element
ties them; what is not tied has no influence whatever on the other, so that its sensitivities are zero and need not be computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from veridyn.arrays import Array
from veridyn.mechanics.system.dry_friction import DryFriction
from veridyn.mechanics.tree.dynamics.engine import Compiled
from veridyn.mechanics.tree.tree import Tree

Pairs = Iterable[tuple[int, ...]]


@dataclass(frozen=True)
class TiedBlock:
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
) -> tuple[TiedBlock, ...]:
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
    found: list[TiedBlock] = []
    for b in range(count):
        rows = np.flatnonzero(mark == b).tolist()
        coordinates, own = [k for k in rows if k < n], [k - n for k in rows if k >= n]
        start = [*coordinates, *(n + k for k in coordinates), *(2 * n + k for k in own)]
        columns = sorted(needed[b]) + [first_state + k for k in sorted(start)]
        combinations = [i for i, c in enumerate(C) if mark[np.flatnonzero(c)[0]] == b]
        found.append(TiedBlock(tuple(coordinates), tuple(own), tuple(combinations), tuple(columns)))
    return tuple(found)


def starts(sizes: Sequence[int]) -> list[int]:
    """Where parts of these sizes begin, and the end of the last."""
    return [0, *np.cumsum(sizes, dtype=np.int64).tolist()]


# Constants of a joint controller, in the order of GAIN_COLUMN.
GAINS = (
    "kp",
    "ki",
    "kd",
    "zero",
    "command_delay",
    "measurement_delay",
    "load_friction",
    "backdrive_friction",
)


@dataclass(frozen=True, eq=False)
class Varied:
    """What sensitivities are computed by: p combinations of parameters, whose effect on all is `spread` (all, p), then the others.

    `constants` of laws are their numbers in ``tree.constants``; `gains`: constants of joint controllers (key, coordinate), such as
    ("kp", 2), with the keys GAINS. The columns of a result are these three, and behind them the initial state.
    """

    spread: Array
    constants: tuple[int, ...] = ()
    gains: tuple[tuple[str, int], ...] = ()

    @property
    def count(self) -> int:
        return self.spread.shape[1] + len(self.constants) + len(self.gains)


@dataclass(frozen=True, eq=False)
class ColumnLayout:
    """Blocks of sensitivities, where they lie, and what of the regressor and of friction enters which column."""

    n: int
    blocks: tuple[TiedBlock, ...]
    at: list[int]
    right_at: list[int]
    triples: list[tuple[int, int]]
    friction: list[tuple[int, int]]
    constants: list[tuple[int, int]]
    coefficients: list[float]
    rows: list[int]
    servo_at: list[int]
    gains: list[int]

    @classmethod
    def of(
        cls,
        tree: Tree,
        varied: Varied | None,
        dry: DryFriction | None,
        made: Mapping[str, Compiled],
        together: bool,
        lanes: int = 1,
    ) -> ColumnLayout:
        """Those of a tree with its kernels by name; none where nothing is varied, for as many runs side by side as there are lanes.

        `together`: one block for all.
        """
        n = tree.n * lanes
        size = 2 * n + len(tree.states)
        if varied is None:
            return cls(n, (), [0], [0], [], [], [], [], [], [0] * (n + 1), [-1] * (len(GAINS) * n))
        spread, states = varied.spread, len(tree.states)
        slopes = made["DERIVATIVES_KERNEL"].labels
        entries = list(enumerate(made["REGRESSOR_KERNEL"].labels)) if "REGRESSOR_KERNEL" in made else []
        C = np.zeros((0, n)) if dry is None else dry.C

        def row_of(column: int) -> int:
            return column % n if column < 2 * n else column - n

        ties = [(int(r), int(c)) for r, c in made["MASS_KERNEL"].labels]
        ties += [(int(r), row_of(int(c))) for r, c in slopes if c < size]
        by_parameter = {int(c): np.flatnonzero(spread[int(c)]).tolist() for c in np.flatnonzero(spread.any(axis=1))}
        depends = [(int(r), j) for _, (r, c) in entries for j in by_parameter[int(c)]]
        depends += [(int(r), spread.shape[1] + int(c) - size) for r, c in slopes if c >= size]
        rubbing = [] if dry is None else [
            (e, i, j, spread[column, j]) for e, (i, _, column) in enumerate(dry.elements) for j in by_parameter.get(column, ())
        ]  # fmt: skip
        depends += [(int(np.flatnonzero(C[i])[0]), j) for _, i, j, _ in rubbing]
        first_gain = spread.shape[1] + len(varied.constants)
        depends += [(j, first_gain + g) for g, (_, j) in enumerate(varied.gains)]
        blocks = blocks_of(n, states, ties, C, depends, varied.count, together)
        at = starts([b.rows * b.width for b in blocks])
        right_at = starts([(len(b.coordinates) + len(b.states)) * b.width for b in blocks])
        home = {
            row: (b, a)
            for b, one in enumerate(blocks)
            for a, row in enumerate([*one.coordinates, *(n + s for s in one.states)])
        }

        def place(row: int, column: int) -> int:
            b, a = home[row]
            return right_at[b] + a * blocks[b].width + blocks[b].columns.index(column)

        triples = [(e, place(int(r), j), spread[int(c), j]) for e, (r, c) in entries for j in by_parameter[int(c)]]
        friction = [
            (e, place(int(row), j), factor * C[i, row]) for e, i, j, factor in rubbing for row in np.flatnonzero(C[i])
        ]
        width = size + len(varied.constants)
        constants = [
            (int(r) * width + int(c), place(int(r), spread.shape[1] + int(c) - size)) for r, c in slopes if c >= size
        ]
        gains = [-1] * (len(GAINS) * n)
        for g, (key, j) in enumerate(varied.gains):
            gains[len(GAINS) * j + GAINS.index(key)] = blocks[home[j][0]].columns.index(first_gain + g)
        return cls(
            n,
            blocks,
            at,
            right_at,
            [t[:2] for t in triples],
            [t[:2] for t in friction],
            constants,
            [float(t[2]) for t in (*triples, *friction)],
            [0] * (2 * size),
            starts([blocks[home[j][0]].width for j in range(n)]),
            gains,
        )

    def lists(self) -> list[list[int]]:
        """The lists of :mod:`~veridyn.mechanics.system.run_record` from COORDINATE_FROM on."""
        found: list[list[int]] = []
        for name in ("coordinates", "states", "columns", "combinations"):
            parts = [list(getattr(b, name)) for b in self.blocks]
            if name == "columns":
                parts = [[*b.columns, *[-1] * len(b.combinations)] for b in self.blocks]
            found += [starts([len(p) for p in parts]), [x for p in parts for x in p]]
        flat = [[x for pair in pairs for x in pair] for pairs in (self.triples, self.friction, self.constants)]
        return [*found, self.at, self.right_at, *flat, self.rows, self.servo_at, self.gains]

    def kept(self, rows: Sequence[int], law_forces: bool) -> list[int]:
        """(block, row of it) of components of a state, or (−1 − block, coordinate) of forces of a law."""
        if law_forces:
            own = {j: b for b, one in enumerate(self.blocks) for j in one.coordinates}
            return [x for j in rows for x in (-1 - own[j], j)]
        home: dict[int, tuple[int, int]] = {}
        for b, one in enumerate(self.blocks):
            nb = len(one.coordinates)
            for a, j in enumerate(one.coordinates):
                home[j], home[self.n + j] = (b, a), (b, nb + a)
            for a, j in enumerate(one.states):
                home[2 * self.n + j] = (b, 2 * nb + a)
        return [x for row in rows for x in home[row]]
