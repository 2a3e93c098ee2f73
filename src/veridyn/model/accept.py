"""Verbs on trees accept machines: the tree of a machine is taken where one is given."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from veridyn.model.machine import Machine
from veridyn.model.tree import Tree

P = ParamSpec("P")
R = TypeVar("R")


def as_tree(machine: Tree | Machine) -> Tree:
    """A tree as it is, or that of a machine."""
    return machine.tree if isinstance(machine, Machine) else machine


def accepts_machine(verb: Callable[Concatenate[Tree, P], R]) -> Callable[Concatenate[Tree | Machine, P], R]:
    """`verb`, whose first argument is a tree, with a machine accepted in its place."""

    @functools.wraps(verb)
    def taken(machine: Tree | Machine, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return verb(as_tree(machine), *args, **kwargs)

    return taken
