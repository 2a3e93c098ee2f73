"""Machines for programs on other processors: an arm, and the 20-dof car with inertia on every body that moves by itself."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from strangers.cars import car_20
from strangers.random_trees import random_inertia, random_motion, random_tree
from veridyn.mechanics.inverse import inverse_dynamics
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.motion import Motion


@cache
def arm() -> Tree:
    """Seven turning joints in a row."""
    return random_tree(np.random.default_rng(5), 7, kinds=("turning",), branched=False)


@cache
def car() -> Tree:
    """Fifteen bodies, twenty rows."""
    plain, rng = car_20("all"), np.random.default_rng(1)
    bodies = [
        replace(b, real=b.joint != "fixed" or b.antecedent is None, label="", actuated=True) for b in plain.bodies
    ]
    inertia = {b.name: random_inertia(rng) for b in bodies if b.real}
    return Tree.build(bodies, name="20-dof car", base="free", inertia=inertia)


MACHINES = {"arm": arm, "20-dof car": car}


def states(tree: Tree, samples: int, seed: int = 6) -> Motion:
    """Unrelated states under unrelated forces."""
    rng = np.random.default_rng(seed)
    return replace(random_motion(rng, tree, samples, wrenches=False), forces=rng.normal(size=(samples, tree.n)))


def measured(tree: Tree, samples: int, seed: int = 7) -> Motion:
    """States with the forces they take, on the base as a wrench, and one percent of noise."""
    m = states(tree, samples, seed)
    gamma = inverse_dynamics(tree, m, engine="numpy")
    gamma = gamma * (1.0 + 0.01 * np.random.default_rng(seed + 1).normal(size=gamma.shape))
    if tree.base == "fixed":
        return replace(m, forces=gamma)
    return replace(m, forces=gamma[:, 6:], wrenches={tree.bodies[0].name: gamma[:, :6]})
