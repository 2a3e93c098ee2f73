"""Verbs on trees accept machines: the tree of a machine is taken where one is given, and a changed tree is a machine again.

The first argument may be given by position, by the name the signature shows (`tree`), or as `machine`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.to_machine import machine_of_tree
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.machine import Machine

P = ParamSpec("P")
R = TypeVar("R")
Given = tuple[Any, ...]


def first_argument(verb: Callable[..., Any]) -> Callable[[Given, dict[str, Any]], tuple[Any, Given, dict[str, Any]]]:
    """For calls of `verb`: what (args, kwargs) give as its first argument, by position or by name, and the rest of them.

    A call without it is refused as Python refuses it, in the words of the verb's own signature.
    """
    own = next(iter(inspect.signature(verb).parameters))
    names = (own, "machine")

    def taken(args: Given, kwargs: dict[str, Any]) -> tuple[Any, Given, dict[str, Any]]:
        if args and not any(name in kwargs for name in names):
            return args[0], args[1:], kwargs
        named = [name for name in names if name in kwargs]
        if args or len(set(named)) != 1:
            problem = "multiple values for argument" if named else "missing 1 required positional argument:"
            raise TypeError(f"{verb.__name__}() {'got' if named else 'is'} {problem} '{own}'")
        rest = {name: value for name, value in kwargs.items() if name != named[0]}
        return kwargs[named[0]], (), rest

    return taken


def accepts_machine(verb: Callable[Concatenate[Tree, P], R]) -> Callable[Concatenate[Tree | Machine, P], R]:
    """`verb`, whose first argument is a tree, with a machine accepted in its place."""
    split = first_argument(verb)

    @functools.wraps(verb)
    def taken(*args: Any, **kwargs: Any) -> R:
        machine, rest, named = split(args, kwargs)
        return verb(tree_of(machine), *rest, **named)

    return taken


M = TypeVar("M", Tree, Machine)


class Change(Protocol[P]):
    """A change of a tree, and in the same way of a machine."""

    def __call__(self, machine: M, /, *args: P.args, **kwargs: P.kwargs) -> M: ...


def changes_machine(verb: Callable[Concatenate[Tree, P], Tree]) -> Change[P]:
    """`verb`, which makes a tree of a tree, makes a machine of a machine as well."""
    split = first_argument(verb)

    @functools.wraps(verb)
    def changed(*args: Any, **kwargs: Any) -> Tree | Machine:
        machine, rest, named = split(args, kwargs)
        made = verb(tree_of(machine), *rest, **named)
        return machine_of_tree(made) if isinstance(machine, Machine) else made

    return changed  # pyright: ignore[reportReturnType]
