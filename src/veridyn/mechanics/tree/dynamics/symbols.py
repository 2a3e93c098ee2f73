"""What formulas are made from: a request for a quantity, and a tree's inputs as symbols of one graph.

Inputs are named by what they are: q.k, qd.k and qdd.k of coordinates, w, wd, vd and v of a free base, f.j and m.j of wrenches, s.name of
signals, p.c of parameters and const.k of constants in laws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from veridyn.mechanics.tree.recursion.forces import needs_velocity
from veridyn.mechanics.tree.recursion.newton_euler import Outward, State, Wrench, outward
from veridyn.mechanics.tree.recursion.samples import minus_gravity
from veridyn.mechanics.tree.tree import Tree
from veridyn.spatial.linalg import IDENTITY, ZERO, Mat, Vec, rotation_matrix
from veridyn.symbolic.expression import Graph, Number

Label = tuple[int, ...]


@dataclass(frozen=True)
class Request:
    """What to compute: a quantity, the rows and columns of it, and the bodies on which wrenches act.

    `friction_speed`: where above zero, dry friction is rounded off below it, for integrators. `columns` of "equations" are
    (column, column it counts for, factor, estimated); of "regressor" plain numbers; of "readings" outputs of sensors.
    """

    quantity: str
    rows: tuple[int, ...] = ()
    columns: tuple[object, ...] = ()
    bodies: tuple[int, ...] = ()
    friction_speed: float = 0.0


@dataclass(frozen=True, eq=False)
class Symbols:
    """A tree's inputs as symbols of one graph."""

    tree: Tree
    graph: Graph

    def vector(self, name: str) -> Vec:
        return (self.graph.input(f"{name}.0"), self.graph.input(f"{name}.1"), self.graph.input(f"{name}.2"))

    def state(self) -> State:
        q, qd, qdd = ([self.graph.input(f"{s}.{k}") for k in range(self.tree.n)] for s in ("q", "qd", "qdd"))
        if self.tree.base == "free":
            pose = self.pose()
            moving = (self.vector("w"), self.vector("wd"), self.vector("vd"), self.vector("v"))
            return State(q, qd, qdd, *moving, *pose)
        return State(q, qd, qdd, vd=minus_gravity(self.tree))

    def pose(self) -> tuple[Mat, Vec]:
        """Attitude and position of a free base in the ground's frame, where tyres need them."""
        if self.tree.base != "free" or not self.tree.wheels:
            return IDENTITY, ZERO
        e = [self.graph.input(f"e.{k}") for k in range(4)]
        return rotation_matrix((e[0], e[1], e[2], e[3])), self.vector("x")

    def acting(self, bodies: Sequence[int]) -> dict[int, Wrench]:
        return {j: (self.vector(f"f.{j}"), self.vector(f"m.{j}")) for j in bodies}

    def signals(self) -> dict[str, Number]:
        return {name: self.graph.input(f"s.{name}") for name in self.tree.signals}

    def inertias(self) -> dict[int, tuple[Number, ...]]:
        """The ten parameters of each real body by the numbers of their columns."""
        found: dict[int, list[Number]] = {}
        for c, (j, _) in enumerate(self.tree.columns):
            if j >= 0:
                found.setdefault(j, []).append(self.graph.input(f"p.{c}"))
        return {j: tuple(x) for j, x in found.items()}

    def gains(self) -> list[Number]:
        return [self.graph.input(f"p.{c}") for c, (j, _) in enumerate(self.tree.columns) if j < 0]

    def outward(self, state: State) -> Outward:
        return outward(self.tree, state, self.graph, needs_velocity(self.tree))
