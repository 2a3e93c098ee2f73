"""From a machine to its formulation: the one door."""

from __future__ import annotations

from veridyn.mechanics.formulation import Formulated
from veridyn.mechanics.natural.formulation import FreedomsForm, PointsForm
from veridyn.mechanics.tree.formulation import TreeForm
from veridyn.model.machine import Machine

GivenMachine = Machine | Formulated  # observers hand on what they have prepared of a machine


def in_joints(machine: Machine) -> TreeForm:
    """A machine in joint coordinates, in which motions are given whichever way they are computed."""
    return TreeForm(machine)


def formulated(machine: GivenMachine) -> Formulated:
    """A machine in its own formulation."""
    if not isinstance(machine, Machine):
        return machine
    if machine.formulation == "tree":
        return in_joints(machine)
    return FreedomsForm(machine) if machine.prescribed or machine.wheels else PointsForm(machine)
