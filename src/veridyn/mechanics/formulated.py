"""From a machine to its formulation: the one door, through which inner forms of machines pass as well, as long as they are handed in."""

from __future__ import annotations

from veridyn.mechanics.formulation import Formulated
from veridyn.mechanics.natural.formulation import natural_form
from veridyn.mechanics.tree.formulation import TreeForm
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.machine import Machine

GivenMachine = Machine | Tree | Formulated  # what verbs take for a machine


def in_joints(machine: Machine | Tree) -> TreeForm:
    """A machine in joint coordinates, in which motions are given whichever way they are computed."""
    return TreeForm(machine) if isinstance(machine, Tree) else TreeForm(tree_of(machine), machine)


def formulated(machine: GivenMachine) -> Formulated:
    """A machine in its own formulation; a tree is taken as it is."""
    if isinstance(machine, Machine):
        return in_joints(machine) if machine.formulation == "tree" else natural_form(machine)
    return in_joints(machine) if isinstance(machine, Tree) else machine
