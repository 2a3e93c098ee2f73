"""Machines with closed loops beside the hexapod: a four-bar linkage, a delta robot and an arm with a parallelogram."""

from __future__ import annotations

from veridyn.machines.described import described
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.tree import Tree

PARALLEL = ("linkage", "delta", "palletizer")


def linkage() -> Tree:
    """A planar four-bar linkage, driven at the crank: one degree of freedom."""
    return tree_of(described("linkage.yaml"))


def delta() -> Tree:
    """A delta robot with its twelve rods' joints: three degrees of freedom of 21 coordinates."""
    return tree_of(described("delta.yaml"))


def palletizer() -> Tree:
    """An arm whose forearm is driven from the shoulder through a parallelogram: three degrees of freedom."""
    return tree_of(described("palletizer.yaml"))
