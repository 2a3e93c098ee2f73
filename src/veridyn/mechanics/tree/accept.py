"""The door of verbs on machines: logs are accepted for motions, and a changed tree is a machine again.

The first argument may be given by position or as `machine`. A log is accepted wherever a motion is meant: it is prepared by
:func:`veridyn.motion` with default settings. Arguments of other kinds are refused by name (:mod:`veridyn.arguments`). The laws of motion
in this room take the tree of a machine as well, which is how they call each other.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, Union, get_args, get_origin, overload

from veridyn.arguments import ArgumentChecks, classes_in
from veridyn.lazy import above
from veridyn.mechanics.tree.of_machine import machine_of_tree
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion

P = ParamSpec("P")
R = TypeVar("R")
M = TypeVar("M", bound=Machine | Tree)
Given = tuple[Any, ...]
LOG = {"Experiment"}
NOWHERE = 1 << 30  # the place of an argument that is given by name only


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


class MachineChecks(ArgumentChecks):
    """What a verb takes whose first argument is a machine: logs for motions as well."""

    def __init__(self, verb: Callable[..., Any]) -> None:
        super().__init__(verb)
        self.split = first_argument(verb)

    def annotations(self) -> dict[str, Any]:
        found = super().annotations()
        return {name: hint if "Experiment" in classes_in(hint) else _with_logs(hint) for name, hint in found.items()}

    @functools.cached_property
    def motions(self) -> dict[str, int]:
        """Arguments that are motions, for which the verb itself takes no log, with their places behind the first argument."""
        own = super().annotations()
        found = [name for name, hint in self.hints.items() if classes_in(hint) - classes_in(own[name]) == LOG]
        return {name: self.names.index(name) - 1 if name in self.names else NOWHERE for name in found}

    def taken(self, args: Given, kwargs: dict[str, Any]) -> tuple[Any, Given, dict[str, Any]]:
        """The machine, and the other arguments with motions made of logs."""
        machine, rest, named = self.split(args, kwargs)
        self.check((machine, *rest), named)
        for name, place in self.motions.items():
            if place < len(rest) and not isinstance(rest[place], Motion):
                rest = (*rest[:place], with_motions(machine, rest[place]), *rest[place + 1 :])
            if name in named:
                named = named | {name: with_motions(machine, named[name])}
        return machine, rest, named


def _with_logs(hint: Any) -> Any:
    """An annotation with Experiment beside every Motion that stands in it alone, in a sequence or under a name."""
    if hint is Motion:
        return Motion | Experiment
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return Union[tuple(_with_logs(part) for part in args)]  # noqa: UP007
    if isinstance(origin, type) and issubclass(origin, Sequence | Mapping):
        kind: Any = origin
        return kind[tuple(_with_logs(part) for part in args)]
    return hint


def with_motions(machine: Tree | Machine, given: Any) -> Any:
    """`given` with every log in it, alone, in a list or under a name, made a motion by :func:`veridyn.motion` with default settings."""
    if isinstance(given, Motion):
        return given
    if isinstance(given, Experiment):
        return above("veridyn.identify.logged", "motion")(machine, given)
    if isinstance(given, list | tuple) and any(isinstance(part, Experiment) for part in given):
        return [with_motions(machine, part) for part in given]
    if isinstance(given, Mapping):
        return {name: with_motions(machine, part) for name, part in given.items()}
    return given


def takes_machine(verb: Callable[Concatenate[M, P], R]) -> Callable[Concatenate[M, P], R]:
    """`verb`, whose first argument is a machine, with logs accepted for motions, and every argument checked by its annotation."""
    door = MachineChecks(verb)

    @functools.wraps(verb)
    def taken(*args: Any, **kwargs: Any) -> R:
        machine, rest, named = door.taken(args, kwargs)
        return verb(machine, *rest, **named)

    taken.door = door  # pyright: ignore[reportAttributeAccessIssue]
    return taken


class Change(Protocol[P]):
    """A change of a machine, and in the same way of its tree."""

    @overload
    def __call__(self, machine: Machine, /, *args: P.args, **kwargs: P.kwargs) -> Machine: ...
    @overload
    def __call__(self, machine: Tree, /, *args: P.args, **kwargs: P.kwargs) -> Tree: ...


def changes_machine(verb: Callable[Concatenate[Machine | Tree, P], Tree]) -> Change[P]:
    """`verb`, which makes another tree, makes a machine of a machine."""

    @functools.wraps(verb)
    def changed(machine: Machine | Tree, /, *args: P.args, **kwargs: P.kwargs) -> Machine | Tree:
        made = verb(machine, *args, **kwargs)
        if not isinstance(machine, Machine):
            return made
        changed = machine_of_tree(made)
        return changed.with_controllers(c for c in machine.controllers if c.on in changed.actuated_coordinates)

    return takes_machine(changed)  # pyright: ignore[reportReturnType]
