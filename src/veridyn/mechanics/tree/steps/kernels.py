"""The compiled kernels of a tree's motion, connected to one work record: built once for each model.

The pattern of Φ_q tells which coordinates loops tie to which: equations and dependent coordinates form blocks that have nothing to do with
each other. A suspension ties its own coordinates alone, so that a vehicle has a block for each wheel.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from veridyn.arrays import Array
from veridyn.mechanics.tree.dynamics.engine import compiled, uniform_values
from veridyn.mechanics.tree.loops.assembly import units
from veridyn.mechanics.tree.recursion.inputs import Request, loaded_bodies
from veridyn.mechanics.tree.steps import record as k
from veridyn.mechanics.tree.steps.record import TreeRecord, connect, record_of
from veridyn.mechanics.tree.steps.statement import SLOPES, Column, column_of, input_of
from veridyn.mechanics.tree.steps.step_kernel import advance_address
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import WRENCH_ROWS

FIRST_LABELS = {"motion": "M", "tangent": "BY_X", "closing": "J_CLOSING"}


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
        """OWN, BLOCK, FACTOR, EQUATION, POSITION, TIED_FROM, TIED, REACHED_FROM, REACHED of :mod:`~veridyn.mechanics.tree.steps.record`."""
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


@dataclass(frozen=True, eq=False)
class TreeKernels:
    """The record of a tree; `outside` names what kernels read besides the state: wrench.B.fx …, signal.S, and components of loads.

    `columns`: what varies behind the unknown forces, states of elements last; `bodies` have wrenches; `friction_speed` is zero where no
    friction is rounded off.
    """

    record: TreeRecord
    outside: tuple[str, ...]
    columns: tuple[Column, ...]
    bodies: tuple[int, ...]
    friction_speed: float

    def part(self, section: str) -> Array:
        """A section of the record by name, as a matrix."""
        return self.record.parts[k.SECTIONS.index(section)]

    def places(self, tree: Tree) -> InputPlaces:
        """Where further kernels of the tree find their inputs in the record."""
        starts = {name: int(self.record.I[getattr(k, name)]) for name in k.SECTIONS}
        return InputPlaces(tree, self.bodies, tree.signals, starts)

    def act(self, outside: Array) -> None:
        """Set what acts from outside, and behind it q, q̇ and q̈ of prescribed coordinates, until it is set again."""
        count = len(self.outside)
        if count:
            self.part("OUTSIDE")[0] = outside[:count]
        if len(outside) > count:
            self.part("GIVEN")[:] = outside[count:].reshape(3, -1)


def kernels_of(
    tree: Tree,
    values: Array,
    *,
    z: tuple[int, ...],
    dependent: tuple[int, ...],
    rows: tuple[int, ...],
    B: Array,
    varying: tuple[str, ...],
    wrenches: tuple[str, ...],
    friction_speed: float,
) -> TreeKernels:
    """Compile (or load) the kernels of a tree over its independent coordinates z, with the loops' equations `rows`."""
    bodies = loaded_bodies(tree, wrenches)
    signals = tree.signals
    outside = tuple(f"wrench.{tree.bodies[j].name}.{row}" for j in bodies for row in WRENCH_ROWS)
    outside += tuple(f"signal.{s}" for s in signals)
    loads = tree.load_channels
    columns = tuple(c for c in (column_of(tree, name) for name in varying) if c is not None)  # names were checked
    columns += tuple(("state", i) for i in range(len(tree.states)))
    outside += loads
    speed = friction_speed if _is_dry(tree) else 0.0
    requests = [
        Request("motion", rows, (), bodies, speed),
        Request("tangent", rows, columns, bodies, speed),
        Request("closing", rows),
    ]
    made = [compiled(tree, request, single=True) for request in requests]
    uniform = [one.kernel.parameters for one in made]
    free, n, m = tree.base == "free", tree.n, len(rows)
    base = 6 if free else 0
    f, nv, nq = len(z) + base, n + base, n + (7 if free else 0)
    u, p, ns = 2 * f + B.shape[1] + len(columns), len(columns), len(tree.states)
    shapes = {
        "X": (1, nq), "V": (1, nv), "A": (1, nv), "LAM": (1, m), "OUTSIDE": (1, len(outside)),
        "P_MOTION": (1, len(uniform[0])), "P_TANGENT": (1, len(uniform[1])),
        "M": (nv, nv), "LOAD": (nv, 1), "J": (m, n), "OPENING": (m, 1), "DRIFT": (m, 1), "STATE_RATE": (ns, 1),
        "BY_X": (nv, nv), "BY_V": (nv, nv), "LOOPS_BY_X": (m, nv), "LOOPS_BY_V": (m, nv), "SLOPE_RATES": (m, n),
        "COLUMNS": (nv, p), "RATE_BY_X": (ns, nv), "RATE_BY_V": (ns, nv), "RATE_COLUMNS": (ns, p),
        "J_CLOSING": (m, n), "OPEN_CLOSING": (m, 1),
        "R": (nv, f), "V_Z": (nv, f), "A_X": (nv, u), "LAM_X": (m, u), "S_X": (ns, u), "F": (2 * f + ns, u),
        "START": (1, nq), "EXTRA": (1, nv), "B": B.shape, "UNIT": (1, n), "UNKNOWN": (1, B.shape[1] + p),
        "GIVEN": (3, len(tree.held)), "CLOCK": (1, 1),
        "DEP": (m, m), "MASS": (f, f), "RM": (f, nv), "N": (f + ns, f + ns), "BEFORE": (f, u), "BEFORE_S": (ns, u),
        "T0": (3, 3), "T1": (3, 3), "NV_A": (1, nv), "NV_B": (1, nv), "M_A": (1, m), "M_B": (1, m),
        "S0": (1, ns), "S1": (1, ns), "S_RATE": (1, ns), "S_SIZE": (1, ns), "LEFT": (1, f + ns), "CHANGE": (1, f + ns), "BOTH": (f + ns, u),
        "KEPT": (1, 1), "AGE": (1, 1), "ENOUGH": (1, 1), "PACE": (1, 2), "SPENT": (1, 3),
        "BEGUN": (1, nq), "RIGHT": (nv, u), "LOOPS_RIGHT": (m, 2 * f),
    }  # fmt: skip
    slopes = [(i, c) for a, i, c in made[2].labels if a == SLOPES]
    ties = ties_of(slopes, z, dependent, base)
    record = record_of(
        [shapes.get(name, (1, f)) for name in k.SECTIONS],
        [z, dependent, tree.held, range(p), range(p), range(m), range(f), range(f + ns), *ties.lists()],
        len(k.KERNELS),
        [int(free), n, nv, nq, m, f, B.shape[1], p, len(tree.held), ns, len(ties.blocks), advance_address()],
    )
    kernels = TreeKernels(record, outside, columns, bodies, speed)
    starts = {name: int(record.I[getattr(k, name)]) for name in k.SECTIONS}
    place = InputPlaces(tree, bodies, signals, starts)
    for one, request, at in zip(made, requests, (k.MOTION, k.TANGENT, k.CLOSING), strict=True):
        first = k.SECTIONS.index(FIRST_LABELS[request.quantity]) - (2 if request.quantity == "closing" else 0)
        widths = [shapes.get(name, (1, f))[1] for name in k.SECTIONS]
        outputs = [starts[k.SECTIONS[first + a]] + r * widths[first + a] + c for a, r, c in one.labels]
        parameters = starts.get("P_TANGENT" if request.quantity == "tangent" else "P_MOTION", 0)
        connect(record, at, one.kernel, parameters, [place.of(name) for name in one.kernel.inputs], outputs)
    for section, own, slots in (("P_MOTION", uniform[0], k.SLOT_MOTION), ("P_TANGENT", uniform[1], k.SLOT_TANGENT)):
        kernels.part(section)[0] = uniform_values(tree, values, own)
        at = int(record.I[slots])
        for j, column in enumerate(columns):
            name = input_of(tree, column)
            if column[0] in ("load", "state"):
                record.I[at + j] = place.of(name)
            else:
                record.I[at + j] = starts[section] + own.index(name) if name in own else -1
    kernels.part("B")[:] = B
    kernels.part("UNIT")[0] = units(tree)
    R = kernels.part("R")
    R[range(base), range(base)] = 1.0
    R[[base + c for c in z], [base + c for c in range(len(z))]] = 1.0
    return kernels


def _is_dry(tree: Tree) -> bool:
    """Whether some element jumps at standstill."""
    return any(e.has_sign for e in tree.elements)


@dataclass(frozen=True, eq=False)
class InputPlaces:
    """Where each input of a kernel stands in the record."""

    tree: Tree
    bodies: tuple[int, ...]
    signals: tuple[str, ...]
    starts: dict[str, int]

    def of(self, name: str) -> int:
        s, base = self.starts, 6 if self.tree.base == "free" else 0
        if name.startswith("s."):
            return s["OUTSIDE"] + 6 * len(self.bodies) + self.signals.index(name[2:])
        kind, _, rest = name.partition(".")
        if kind == "c":
            return s["OUTSIDE"] + 6 * len(self.bodies) + len(self.signals) + int(rest)
        if kind in ("f", "m"):
            body, _, axis = rest.partition(".")
            return s["OUTSIDE"] + 6 * self.bodies.index(int(body)) + int(axis) + (3 if kind == "m" else 0)
        start = {
            "x": s["X"], "e": s["X"] + 3, "q": s["X"] + (7 if base else 0), "V": s["V"], "w": s["V"] + 3, "qd": s["V"] + base,
            "A": s["A"], "wd": s["A"] + 3, "qdd": s["A"] + base, "l": s["LAM"],
        }  # fmt: skip
        return start[kind] + int(rest)
