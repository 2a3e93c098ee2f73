"""Readings of sensors and their exact derivatives as expressions of one graph.

Inputs are q.k, qd.k and qdd.k: the numbers of a configuration, of its rates and of its accelerations as :mod:`veridyn.mechanics.sensing`
orders them, those of a free base included. Derivatives with respect to a configuration are in its tangent: dp in the ground's axes, dθ
with R → R exp(dθ~) in the base's own, and dq of the joints; so they have as many entries as rates have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from veridyn.mechanics.sensing import Moving, Output, moving, reading, sizes
from veridyn.mechanics.tree.tree import Tree
from veridyn.spatial.linalg import IDENTITY, product, skew
from veridyn.symbolic.derivative import forward, seeded
from veridyn.symbolic.expression import Expression, Graph, Number

Label = tuple[int, ...]


def reading_entries(tree: Tree, graph: Graph, outputs: Sequence[object]) -> dict[Label, Number]:
    """(output, 0): the readings."""
    return {(i, 0): value for i, value in enumerate(_Symbolic(tree, graph, outputs).values)}


def reading_derivatives(tree: Tree, graph: Graph, outputs: Sequence[object]) -> dict[Label, Number]:
    """(output, 0): the readings; (output, 1 + k) by tangent coordinate k of the configuration, then by rates, then by accelerations."""
    s = _Symbolic(tree, graph, outputs)
    columns = [s.values, *s.by_configuration(), *forward(graph, s.values, s.qd), *forward(graph, s.values, s.qdd)]
    return {(i, k): column[i] for k, column in enumerate(columns) for i in range(len(s.values))}


class _Symbolic:
    """The sensors of a tree on symbols."""

    def __init__(self, tree: Tree, graph: Graph, outputs: Sequence[object]) -> None:
        self.tree, self.graph = tree, graph
        nq, nv = sizes(tree)
        self.q, self.qd, self.qdd = (
            graph.inputs_named(f"{symbol}.{k}" for k in range(count))
            for symbol, count in (("q", nq), ("qd", nv), ("qdd", nv))
        )
        self.moving: Moving = moving(tree, self.q, self.qd, self.qdd, graph)
        chosen = cast(Sequence[Output], outputs)
        self.values: list[Number] = [reading(self.moving, output, graph) for output in chosen]

    def by_configuration(self) -> list[list[Number]]:
        if self.tree.base != "free":
            return forward(self.graph, self.values, self.q)
        turned = []
        for axis in IDENTITY:
            rates = product(self.moving.R, skew(axis))  # dR = R dθ~
            seeds = [(self.moving.R[a][b], rates[a][b]) for a in range(3) for b in range(3)]
            turned.append(seeded(self.graph, self.values, seeds))
        joints: list[Expression] = self.q[7:]
        return [
            *forward(self.graph, self.values, self.q[:3]),
            *turned,
            *forward(self.graph, self.values, joints),
        ]
