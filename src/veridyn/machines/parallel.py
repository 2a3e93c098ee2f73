"""Machines with closed loops beside the hexapod: a four-bar linkage, a delta robot and an arm with a parallelogram."""

from __future__ import annotations

from veridyn.machines.described import described
from veridyn.model.machine import Machine

PARALLEL = ("linkage", "delta", "palletizer")


def linkage() -> Machine:
    """A planar four-bar linkage, driven at the crank: one degree of freedom."""
    return described("linkage.yaml")


def delta() -> Machine:
    """A delta robot with its twelve rods' joints: three degrees of freedom of 21 coordinates."""
    return described("delta.yaml")


def palletizer() -> Machine:
    """An arm whose forearm is driven from the shoulder through a parallelogram: three degrees of freedom."""
    return described("palletizer.yaml")
