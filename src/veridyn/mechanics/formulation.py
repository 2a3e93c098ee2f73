"""The formulations of a machine: each makes its inner form of the description once, and keeps it with the machine."""

from __future__ import annotations

from veridyn.mechanics.single_track.of_machine import check_car_machine
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.machine import Machine


def check_formulation(machine: Machine) -> None:
    """Refuse by name what the machine's own formulation cannot carry."""
    if machine.formulation == "tree":
        tree_of(machine)
    elif machine.formulation == "single_track":
        check_car_machine(machine)
    else:
        from veridyn.mechanics.natural.of_machine import mechanism_of  # here: most machines are used as trees only

        mechanism_of(machine)
