"""The third argument of a verb is its method: an object, or a word that stands for one with default settings.

    identify(tree, motion, Robust(loss="tukey"), rows="joints")     identify(tree, motion, "robust")

What is given instead of a method is refused by name: a class in place of an object, the rows, or the arguments in an older order.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any, ParamSpec, TypeVar

from veridyn.errors import Fault, VeridynError, did_you_mean
from veridyn.settings import Settings, required

M = TypeVar("M", bound=Settings)
P = ParamSpec("P")
R = TypeVar("R")
COUNTS = {3: "three", 4: "four"}


def method_of(given: Any, base: type[M], aliases: Mapping[str, type[M]], verb: str, rows: Collection[str] = ()) -> M:
    """The method object that the argument of a verb means; `rows`: words that name rows, which are not methods."""
    if isinstance(given, base):
        return given
    if isinstance(given, str) and given in aliases:
        kind, needed = aliases[given], _needed(aliases[given])
        if needed:
            what = f"the method '{given}' has no default settings."
            raise kind.error(Fault(what, verb, f"{kind.__name__}({needed})", f"'{given}'"))
        return kind()
    if isinstance(given, type) and issubclass(given, base):
        what = f"the class {given.__name__} is given, not an object of it."
        raise base.error(Fault(what, verb, f"{given.__name__}({_needed(given)})", given.__name__))
    if isinstance(given, list | tuple) or (isinstance(given, str) and given in rows):
        shown = repr(list(given) if isinstance(given, tuple) else given)
        hint = f"Rows are given by keyword: {verb}(…, rows={shown})."
        raise base.error(Fault(f"{shown} names rows, not a method.", verb, "a method as third argument", shown, hint))
    if isinstance(given, str):
        raise base.error(Fault(f"there is no method '{given}'.", verb, hint=did_you_mean(given, list(aliases))))
    classes = ", ".join(kind.__name__ for kind in aliases.values())
    expected = f"one of {classes}, or one of the words {', '.join(aliases)}"
    raise base.error(Fault("the third argument is not a method of this verb.", verb, expected, type(given).__name__))


def _needed(kind: type) -> str:
    """The settings without a default, as a call shows them."""
    return ", ".join(f"{name}=…" for name in required(kind))


def verb_with_method(error: type[VeridynError], gone: Mapping[str, str]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator for verbs whose third argument is the method. `gone`: keyword that belongs elsewhere → what to write instead."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        verb = function.__name__
        kinds = [p.kind for p in inspect.signature(function).parameters.values()]
        places = sum(kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for kind in kinds)

        @functools.wraps(function)
        def door(*args: P.args, **kwargs: P.kwargs) -> R:
            if len(args) > places:
                hint = f"Rows are given by keyword: {verb}(…, {args[3]!r}, rows={args[2]!r})."
                what = f"only the first {COUNTS[places]} arguments are positional, and the third is the method."
                expected = f"{places} positional arguments"
                raise error(Fault(what, verb, expected, f"{len(args)}", hint if _words(args) else ""))
            for word in gone.keys() & kwargs.keys():
                raise error(Fault(f"there is no argument '{word}'.", verb, hint=gone[word]))
            return function(*args, **kwargs)

        return door

    return decorate


def _words(args: tuple[Any, ...]) -> bool:
    """Whether the third and fourth argument look like rows and a method."""
    return isinstance(args[2], str | list | tuple) and isinstance(args[3], str | Settings)
