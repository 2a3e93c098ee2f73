"""Machines with closed loops beside the hexapod: a four-bar linkage, a delta robot and an arm with a parallelogram."""

from __future__ import annotations

from importlib import resources

from veridyn.files.machine.load import parse_machine
from veridyn.model.tree import Tree

PARALLEL = ("linkage", "delta", "palletizer")


def linkage() -> Tree:
    """A planar four-bar linkage, driven at the crank: one degree of freedom."""
    return _read("linkage.yaml")


def delta() -> Tree:
    """A delta robot with its twelve rods' joints: three degrees of freedom of 21 coordinates."""
    return _read("delta.yaml")


def palletizer() -> Tree:
    """An arm whose forearm is driven from the shoulder through a parallelogram: three degrees of freedom."""
    return _read("palletizer.yaml")


def _read(file: str) -> Tree:
    return parse_machine(
        resources.files("veridyn.machines").joinpath(file).read_text(encoding="utf-8"), source=file
    ).tree
