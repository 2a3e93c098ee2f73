"""Inputs of the recursion: the scalars of a motion's arrays, block by block, or symbols of one graph.

Symbols are named by what they are: q.k, qd.k and qdd.k of coordinates, w, wd, vd and v of a free base, f.j and m.j of wrenches, s.name of
signals, p.c of parameters and const.k of constants in laws.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import ModelError
from veridyn.mechanics.tree.recursion.newton_euler import Outward, State, Wrench, outward
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.check import MachineParts
from veridyn.model.motion import Motion
from veridyn.spatial.algebra import IDENTITY, ZERO, Mat, Vec, rotation_matrix
from veridyn.symbolic.expression import Graph, Number

BLOCK = 2048  # samples whose temporaries stay in cache
Label = tuple[int, ...]


def blocks(samples: int, size: int = BLOCK) -> Iterator[slice]:
    """Consecutive slices that cover all samples."""
    for start in range(0, samples, size):
        yield slice(start, min(start + size, samples))


def state_of(tree: Tree, motion: Motion) -> State:
    """The scalars of the recursion as arrays over the samples of a motion."""
    q, qd, qdd = (list(np.ascontiguousarray(x.T)) for x in (motion.q, motion.qd, motion.qdd))
    if motion.base is None:
        return State(q, qd, qdd, vd=minus_gravity(tree))
    b = motion.base
    v = ZERO if b.velocity is None else components(b.velocity)
    R, p = IDENTITY, ZERO
    if tree.wheels and b.position is not None and b.quaternion is not None:
        w, x, y, z = np.ascontiguousarray(b.quaternion.T)
        R, p = rotation_matrix((w, x, y, z)), components(b.position)
    return State(q, qd, qdd, components(b.omega), components(b.omega_dot), components(b.acceleration), v, R, p)


def needs_velocity(tree: Tree) -> bool:
    """True when some element needs the velocities of bodies."""
    return any(e.kind == "drag" or e.wheel is not None for e in tree.elements)


def minus_gravity(tree: Tree) -> Vec:
    """V̇₀ = −g: an upward acceleration of the ground stands for gravity on all bodies."""
    g = tree.gravity
    return (-float(g[0]), -float(g[1]), -float(g[2]))


def components(values: Array) -> Vec:
    x, y, z = np.ascontiguousarray(values.T)
    return (x, y, z)


def loaded_bodies(tree: Tree, wrenches: Iterable[str]) -> tuple[int, ...]:
    """The numbers of the bodies that wrenches act on, in the order of the tree."""
    return tuple(sorted(tree.index(name) for name in wrenches))


def acting_of(tree: Tree, motion: Motion) -> dict[int, Wrench]:
    """Wrenches acting on bodies, by number of the body."""
    return {tree.index(name): (components(w[:, :3]), components(w[:, 3:])) for name, w in motion.wrenches.items()}


def split(tree: Tree, values: Array) -> tuple[dict[int, tuple[float, ...]], list[float]]:
    """Parameter values as constants that fold: ten for each real body, and one for each element."""
    inertial = len(values) - len(tree.elements)
    real = [j for j, b in enumerate(tree.bodies) if b.real]
    X = {j: tuple(float(v) for v in values[10 * k : 10 * k + 10]) for k, j in enumerate(real)}
    return X, [float(v) for v in values[inertial:]]


def complete_values(machine: MachineParts, values: Array | None = None) -> Array:
    """The parameter values to compute with: those given or the priors, ties applied; refused where some are unknown."""
    p = machine.parameters if values is None else machine.parameters.replacing(values)
    new = p.values.copy()
    for name, tie in p.ties.items():
        new[p.index(name)] = tie.factor * p.values[p.index(tie.to)]
    missing = np.flatnonzero(~np.isfinite(new))
    if len(missing):
        unknown = [p.names[k] for k in missing]
        listed = ", ".join(unknown[:8]) + (f" and {len(unknown) - 8} more" if len(unknown) > 8 else "")
        raise ModelError(
            f"these parameters have no value: {listed}.",
            where=machine.name,
            hint="Identify them first, give them in the model file, or pass parameters=.",
        )
    return new


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
