"""The actuated coordinates of a closed machine by themselves: what its log holds."""

from __future__ import annotations

from veridyn.mechanics.tree.accept import changes_machine
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.body import Body
from veridyn.model.machine import Machine


@changes_machine
def actuators(machine: Machine | Tree) -> Tree:
    """A tree of virtual bodies, one for each coordinate that has an equation of its own, with its name, kind and motor.

    A log of a closed machine has channels of these alone: ``motion(actuators(tree), log, signals)`` makes them a motion, from which
    :func:`~veridyn.mechanics.loops.closure.closed_motion` makes that of all joints.
    """
    tree = tree_of(machine)
    bodies = [
        Body(
            f"drive {tree.coordinates[k]}",
            joint=kind,
            actuated=tree.actuated[k],
            real=False,
            coordinate=tree.coordinates[k],
        )
        for k in tree.independent
        if (kind := tree.coordinate_kinds[k]) in ("turning", "sliding")
    ]
    return Tree.build(bodies, name=tree.name)
