"""From a motion's arrays to the scalars of the recursion, block by block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import ModelError
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.newton_euler import State, Wrench
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.spatial.linalg import IDENTITY, ZERO, Vec, rotation_matrix

Array = NDArray[np.float64]

BLOCK = 2048  # samples whose temporaries stay in cache


def blocks(samples: int, size: int = BLOCK) -> Iterator[slice]:
    """Consecutive slices that cover all samples."""
    for start in range(0, samples, size):
        yield slice(start, min(start + size, samples))


def state_of(machine: Machine | Tree, motion: Motion) -> State:
    """The scalars of the recursion as arrays over the samples of a motion."""
    tree = tree_of(machine)
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


def minus_gravity(tree: Tree) -> Vec:
    """V̇₀ = −g: an upward acceleration of the ground stands for gravity on all bodies."""
    g = tree.gravity
    return (-float(g[0]), -float(g[1]), -float(g[2]))


def components(values: Array) -> Vec:
    x, y, z = np.ascontiguousarray(values.T)
    return (x, y, z)


def loaded_bodies(machine: Machine | Tree, wrenches: Iterable[str]) -> tuple[int, ...]:
    """The numbers of the bodies that wrenches act on, in the order of the tree."""
    tree = tree_of(machine)
    return tuple(sorted(tree.index(name) for name in wrenches))


def acting_of(machine: Machine | Tree, motion: Motion) -> dict[int, Wrench]:
    """Wrenches acting on bodies, by number of the body."""
    tree = tree_of(machine)
    return {tree.index(name): (components(w[:, :3]), components(w[:, 3:])) for name, w in motion.wrenches.items()}


def split(tree: Tree, values: Array) -> tuple[dict[int, tuple[float, ...]], list[float]]:
    """Parameter values as constants that fold: ten for each real body, and one for each element."""
    inertial = len(values) - len(tree.elements)
    real = [j for j, b in enumerate(tree.bodies) if b.real]
    X = {j: tuple(float(v) for v in values[10 * k : 10 * k + 10]) for k, j in enumerate(real)}
    return X, [float(v) for v in values[inertial:]]


def complete_values(machine: Machine | Tree, values: Array | None = None) -> Array:
    """The parameter values to compute with: those given or the priors, ties applied; refused where some are unknown."""
    tree = tree_of(machine)
    p = tree.parameters if values is None else tree.parameters.replacing(values)
    new = p.values.copy()
    for name, tie in p.ties.items():
        new[p.index(name)] = tie.factor * p.values[p.index(tie.to)]
    missing = np.flatnonzero(~np.isfinite(new))
    if len(missing):
        unknown = [p.names[k] for k in missing]
        listed = ", ".join(unknown[:8]) + (f" and {len(unknown) - 8} more" if len(unknown) > 8 else "")
        raise ModelError(
            f"these parameters have no value: {listed}.",
            where=tree.name,
            hint="Identify them first, give them in the model file, or pass parameters=.",
        )
    return new
