"""Quantities of a machine as functions of arrays, with their vector–Jacobian products: both are graphs of the same expressions.

A function has arrays of states, one column a coordinate, and the machine's parameters in the order of ``machine.parameters.names``. Its
product takes one more array, the weights g of all outputs, and gives the gradient of Σ g y by every column: the graph in reverse, once for
all. Constants of laws are folded in, and so are ties: the gradient by a tied parameter is that of the one it is tied to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from veridyn.errors import DataError
from veridyn.mechanics.tree.dynamics.engine import signature
from veridyn.mechanics.tree.dynamics.formula import formula
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.inputs import Request
from veridyn.mechanics.tree.recursion.newton_euler import State, frames_in_root, outward
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.machine import Machine
from veridyn.symbolic.cache import key_of
from veridyn.symbolic.expression import Graph, Number, inserted, live, reverse

BASE = {"omega": "w", "omega_dot": "wd", "acceleration": "vd", "velocity": "v"}  # of a free base, as in BaseMotion
ARRAYS = {  # of each quantity, and what its inputs are called in formulas
    "inverse": {"q": "q", "qd": "qd", "qdd": "qdd"},
    "forward": {"q": "q", "qd": "qd", "forces": "t"},
    "mass": {"q": "q"},
    "regressor": {"q": "q", "qd": "qd", "qdd": "qdd"},
    "poses": {"q": "q"},
}
Columns = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class MachineFunction:
    """Outputs, in the order of an array `shape`, of named arrays and of parameters; `key` is what compiled code is kept under."""

    graph: Graph
    arrays: dict[str, Columns]
    parameters: Columns
    outputs: tuple[Number, ...]
    shape: tuple[int, ...]
    key: str

    @property
    def weights(self) -> Columns:
        """The names of the weights of all outputs."""
        return tuple(f"g.{k}" for k in range(len(self.outputs)))

    @property
    def inputs(self) -> list[Columns]:
        """The arrays, and the parameters behind them."""
        return [*self.arrays.values(), self.parameters]

    @property
    def widths(self) -> dict[str, int]:
        """The columns of each array, and those of "parameters"."""
        return {name: len(columns) for name, columns in self.arrays.items()} | {"parameters": len(self.parameters)}

    def product(self, wanted: Sequence[bool]) -> list[list[Number]]:
        """The gradients of Σ g y by those of the inputs that are wanted; none for the others."""
        graph, total = self.graph, 0.0
        for name, value in zip(self.weights, self.outputs, strict=True):
            total = graph.add(total, graph.mul(graph.input(name), value))
        names = [name for columns, asked in zip(self.inputs, wanted, strict=True) if asked for name in columns]
        slopes = iter(reverse(graph, total, graph.inputs_named(names)))
        return [
            [next(slopes) for _ in columns] if asked else [] for columns, asked in zip(self.inputs, wanted, strict=True)
        ]


def machine_function(
    machine: Machine | Tree, quantity: str, frames: Sequence[str] = (), friction_speed: float = 0.0
) -> MachineFunction:
    """The function of a quantity: "inverse", "forward", "mass", "regressor", or the "poses" of frames.

    `friction_speed`: where above zero, dry friction is rounded off below it.
    """
    tree = tree_of(machine)
    _check(tree)
    return _made(tree, quantity, tuple(frames), float(friction_speed))


@lru_cache(maxsize=64)
def _made(tree: Tree, quantity: str, frames: Columns, friction_speed: float) -> MachineFunction:
    rows, columns = len(tree.rows), len(tree.columns)
    if quantity == "poses":
        graph, outputs, shape = _poses(tree, frames)
    else:
        shapes = {"inverse": (rows,), "forward": (rows,), "mass": (rows, rows), "regressor": (rows, columns)}
        shape = shapes[quantity]
        asked = tuple(range(columns)) if quantity == "regressor" else ()
        f = formula(tree, Request(quantity, tuple(range(rows)), asked, friction_speed=friction_speed))
        made = dict(zip(f.labels, f.outputs, strict=True))
        graph, outputs = f.graph, [made.get(label, 0.0) for label in np.ndindex(*shape)]
    own = Graph()
    outputs = inserted(own, graph, outputs, _folded(tree, own))
    arrays = {name: tuple(f"{symbol}.{k}" for k in range(tree.n)) for name, symbol in ARRAYS[quantity].items()}
    if tree.base == "free" and quantity != "poses":
        used = set(live(own, outputs))
        for name, symbol in BASE.items():
            names = tuple(f"{symbol}.{k}" for k in range(3))
            if any(own.inputs.get(n) in used for n in names):
                arrays[name] = names
    parameters = () if quantity in ("regressor", "poses") else tuple(f"p.{k}" for k in range(columns))
    folded = repr([c.value for c in tree.constants]) + repr(sorted(tree.parameters.ties.items()))
    key = key_of("training", signature(tree), folded, quantity, repr((frames, friction_speed)))
    return MachineFunction(own, arrays, parameters, tuple(outputs), shape, key)


def _folded(tree: Tree, graph: Graph) -> dict[str, Number]:
    """What stands for inputs: the values of laws' constants, and factor times another for each tied parameter."""
    given: dict[str, Number] = {f"const.{k}": float(c.value) for k, c in enumerate(tree.constants)}
    p = tree.parameters
    for name, tie in p.ties.items():
        given[f"p.{p.index(name)}"] = graph.mul(tie.factor, graph.input(f"p.{p.index(tie.to)}"))
    return given


def _poses(tree: Tree, frames: Columns) -> tuple[Graph, list[Number], tuple[int, ...]]:
    """Of each frame [R | p], three rows of four, in the ground's frame or in that of a free base."""
    graph, still = Graph(), [0.0] * tree.n
    o = outward(tree, State([graph.input(f"q.{k}") for k in range(tree.n)], still, still), graph)
    placed = frames_in_root(tree, o)
    outputs: list[Number] = []
    for name in frames:
        R, p = placed[tree.index(name)]
        outputs += [x for row, at in zip(R, p, strict=True) for x in (*row, at)]
    return graph, outputs, (len(frames), 3, 4)


def _check(tree: Tree) -> None:
    """Refuse what has inputs that are no states, inputs or parameters."""
    tree.check_open("a node of a training graph")
    for what, named in (
        ("tyres", tree.wheels),
        ("prescribed coordinates", tree.prescribed),
        ("elements that depend on signals or have states of their own", tree.signals),
    ):
        if named:
            raise DataError(
                f"a node of a training graph has no {what}.",
                where=tree.name,
                hint="Use veridyn.dynamics or veridyn.gpu, which take whole motions.",
            )
