"""The third argument of a verb is its method: an object, or a word that stands for one with default settings.

    identify(tree, motion, Robust(loss="tukey"), rows="joints")     identify(tree, motion, "robust")

What is given instead of a method is refused by name: a class in place of an object, the rows, or the arguments in an older order.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from typing import Any, ParamSpec, TypeVar

from veridyn.errors import Fault, VeridynError, did_you_mean
from veridyn.settings import Settings, required

M = TypeVar("M", bound=Settings)
P = ParamSpec("P")
R = TypeVar("R")


def method_of(given: Any, base: type[M], aliases: Mapping[str, type[M]], verb: str, rows: Collection[str] = ()) -> M:
    """The method object that the argument of a verb means; `rows`: words that name rows, which are not methods."""
    if isinstance(given, base):
        return given
    where, classes = verb, ", ".join(kind.__name__ for kind in aliases.values())
    if isinstance(given, str) and given in aliases:
        return _default(aliases[given], given, where)
    if isinstance(given, type) and issubclass(given, base):
        raise base.error(
            Fault(
                f"the class {given.__name__} is given, not an object of it.",
                where,
                f"{given.__name__}({_needed(given)})",
                f"{given.__name__}",
            )
        )
    names_rows = isinstance(given, list | tuple) or (isinstance(given, str) and given in rows)
    if names_rows:
        shown = list(given) if isinstance(given, tuple) else given
        raise base.error(
            Fault(
                f"{shown!r} names rows, not a method.",
                where,
                "a method as third argument",
                f"{shown!r}",
                f"Rows are given by keyword: {verb}(…, rows={shown!r}).",
            )
        )
    if isinstance(given, str):
        raise base.error(Fault(f"there is no method '{given}'.", where, hint=did_you_mean(given, list(aliases))))
    raise base.error(
        Fault(
            "the third argument is not a method of this verb.",
            where,
            f"one of {classes}, or one of the words {', '.join(aliases)}",
            type(given).__name__,
        )
    )


def _default(kind: type[M], alias: str, where: str) -> M:
    needed = _needed(kind)
    if needed:
        what = f"the method '{alias}' has no default settings."
        raise kind.error(Fault(what, where, f"{kind.__name__}({needed})", f"'{alias}'"))
    return kind()


def _needed(kind: type) -> str:
    """The settings without a default, as a call shows them."""
    return ", ".join(f"{name}=…" for name in required(kind))


def verb_with_method(error: type[VeridynError], gone: Mapping[str, str]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator for verbs of three positional arguments. `gone`: keyword of an older version → what to write instead."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        verb = function.__name__
        checked = without_old_keywords(error, gone)(function)

        @functools.wraps(function)
        def door(*args: P.args, **kwargs: P.kwargs) -> R:
            if len(args) > 3:
                hint = f"Rows and all further settings are given by keyword: {verb}(…, {args[3]!r}, rows={args[2]!r})."
                what = "only the first three arguments are positional, and the third is the method."
                raise error(Fault(what, verb, "3 positional arguments", f"{len(args)}", hint if _words(args) else ""))
            return checked(*args, **kwargs)

        return door

    return decorate


def without_old_keywords(
    error: type[VeridynError], gone: Mapping[str, str], name: str = ""
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator that refuses keywords of an older version. `gone`: see above; `name`: of the function, where not its own."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def door(*args: P.args, **kwargs: P.kwargs) -> R:
            old = next((word for word in gone if word in kwargs), None)
            if old is not None:
                raise error(Fault(f"there is no argument '{old}'.", name or function.__name__, hint=gone[old]))
            return function(*args, **kwargs)

        return door

    return decorate


def _words(args: tuple[Any, ...]) -> bool:
    """Whether the third and fourth argument look like rows and a method."""
    return isinstance(args[2], str | list | tuple) and isinstance(args[3], str | Settings)
