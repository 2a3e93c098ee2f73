"""Verbs on trees accept machines: the tree of a machine is taken where one is given, and a changed tree is a machine again."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from veridyn.model.machine import Machine
from veridyn.model.of_tree import machine_of_tree
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


M = TypeVar("M", Tree, Machine)


class Change(Protocol[P]):
    """A change of a tree, and in the same way of a machine."""

    def __call__(self, machine: M, /, *args: P.args, **kwargs: P.kwargs) -> M: ...


def changes_machine(verb: Callable[Concatenate[Tree, P], Tree]) -> Change[P]:
    """`verb`, which makes a tree of a tree, makes a machine of a machine as well."""

    @functools.wraps(verb)
    def changed(machine: Tree | Machine, /, *args: P.args, **kwargs: P.kwargs) -> Tree | Machine:
        made = verb(as_tree(machine), *args, **kwargs)
        return machine_of_tree(made) if isinstance(machine, Machine) else made

    return changed  # pyright: ignore[reportReturnType]
