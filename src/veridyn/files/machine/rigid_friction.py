"""Friction that yields before it slides, for formats whose dry friction does not: Coulomb friction of the same size."""

from __future__ import annotations

from dataclasses import replace

from veridyn.model.elements.element import coulomb
from veridyn.model.machine import Machine


def with_rigid_friction(machine: Machine) -> tuple[Machine, list[str]]:
    """The machine whose LuGre elements on coordinates are Coulomb friction with the same parameters, and a sentence where it has some."""
    soft = {e: coulomb(e.on, e.value, e.parameter_name) for e in machine.elements if e.kind == "lugre" and e.on}
    if not soft:
        return machine, []
    names = ", ".join(f"{e.parameter_name} ({e.constant('deflection'):.2g})" for e in soft)
    made = replace(machine, elements=tuple(soft.get(e, e) for e in machine.elements))
    return made, [f"dry friction that yields over a distance (rad or m) is written as friction that does not: {names}."]
