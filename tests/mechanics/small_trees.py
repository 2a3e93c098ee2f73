"""Small trees that are integrated over time."""

from __future__ import annotations

from veridyn.mechanics.tree.tree import Tree
from veridyn.model.graph import Body

PENDULUM = [0, 0, 0, 0.3, 0, 0.3, 0.6, 0, 0, 1.2]  # a point of 1.2 kg at 0.5 m along x


def pendulum(elements: tuple = ()) -> Tree:
    return Tree.build([Body("arm")], gravity=(9.81, 0.0, 0.0), inertia={"arm": PENDULUM}, elements=elements)
