"""Settings of methods: declared once as types and bounds of dataclass fields, checked in one way when an object is made.

A method (an estimator, an excitation, a filter) is a frozen dataclass that derives from :class:`Settings`. The annotation of a field is its
constraint: its type, the choices of a `Literal`, and bounds in `Annotated`:

    @dataclass(frozen=True, repr=False)
    class Robust(Settings):
        loss: Literal["huber", "tukey"] = "huber"
        iterations: Annotated[int, at_least(1)] = 60

    Robust(iterations="many")   # Robust.iterations: …  Expected a whole number of at least 1, found 'many'.

:func:`build` makes such an object from the keys and values of a file by the same rules, and returns every fault with its path.

The third argument of a verb is its method: an object, or a word that stands for one with default settings:

    identify(tree, motion, Robust(loss="tukey"), rows="joints")     identify(tree, motion, "robust")

What is given instead of a method is refused by name: a class in place of an object, the rows, or the arguments in an older order.
"""

from __future__ import annotations

import functools
import inspect
import math
import numbers
import re
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from functools import cache
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    ParamSpec,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from veridyn.errors import DataError, Fault, VeridynError, did_you_mean

T = TypeVar("T")
LONGEST_REPR = 60  # characters of a value that are shown in a message


@dataclass(frozen=True)
class Interval:
    """Bounds of a number: `low` and `high`, each part of the interval unless it is `open`; `infinite` allows an infinite value."""

    low: float = -math.inf
    high: float = math.inf
    low_open: bool = False
    high_open: bool = False
    infinite: bool = False

    def contains(self, x: float) -> bool:
        if math.isnan(x) or (math.isinf(x) and not self.infinite):
            return False
        above = x > self.low if self.low_open else x >= self.low
        return above and (x < self.high if self.high_open else x <= self.high)

    def __str__(self) -> str:
        words = []
        if self.low > -math.inf:
            words.append(f"above {self.low:g}" if self.low_open else f"of at least {self.low:g}")
        if self.high < math.inf:
            words.append(f"below {self.high:g}" if self.high_open else f"of at most {self.high:g}")
        return " and ".join(words)


def above(low: float, infinite: bool = False) -> Interval:
    """x > low."""
    return Interval(low, low_open=True, infinite=infinite)


def at_least(low: float, infinite: bool = False) -> Interval:
    """x ≥ low."""
    return Interval(low, infinite=infinite)


def between(low: float, high: float) -> Interval:
    """low < x < high."""
    return Interval(low, high, True, True)


def from_to(low: float, high: float) -> Interval:
    """low ≤ x ≤ high."""
    return Interval(low, high)


@dataclass(frozen=True)
class Rule:
    """A constraint that no type states: whether a value passes, and what to print as expected."""

    passes: Callable[[Any], bool]
    expected: str


@dataclass(frozen=True)
class Invalid:
    """One setting that cannot be used: the `path` of its keys, and the parts of a :class:`~veridyn.errors.Fault`."""

    path: tuple[str, ...]
    what: str
    expected: str = ""
    found: str = ""
    hint: str = ""

    def under(self, key: str) -> Invalid:
        return Invalid((key, *self.path), self.what, self.expected, self.found, self.hint)

    def fault(self, owner: str) -> Fault:
        """As a fault of the settings object `owner`."""
        return Fault(self.what, ".".join((owner, *self.path)), self.expected, self.found, self.hint, at=self.path)


class Settings:
    """Base of frozen dataclasses whose fields are checked when an object is made.

    `error`: the class of the exception that lists all faults. The representation shows only settings that differ from their default.
    """

    error: ClassVar[type[VeridynError]] = DataError

    def __new__(cls, *_: Any, **given: Any) -> Self:
        unknown = [_unknown(cls, name) for name in given if name not in names(cls)]
        if unknown:
            raise cls.error([one.fault(cls.__name__) for one in unknown])
        return super().__new__(cls)

    def __post_init__(self) -> None:
        found = [fault for name, value in values_of(self).items() for fault in _invalid(type(self), name, value)]
        if found:
            raise self.error([one.fault(type(self).__name__) for one in found])

    def __repr__(self) -> str:
        shown = [f"{name}={getattr(self, name)!r}" for name in changed(self)]
        return f"{type(self).__name__}({', '.join(shown)})"


def values_of(settings: Settings) -> dict[str, Any]:
    """The settings of an object by name, such that ``type(settings)(**values_of(settings))`` is the same object again."""
    return {f.name: getattr(settings, f.name) for f in _fields(type(settings))}


def changed(settings: Settings) -> tuple[str, ...]:
    """The settings of an object that differ from their default."""
    return tuple(f.name for f in _fields(type(settings)) if not _same(getattr(settings, f.name), f.default))


def names(kind: type) -> tuple[str, ...]:
    """The settings of a class, in order."""
    return tuple(f.name for f in _fields(kind))


def required(kind: type) -> tuple[str, ...]:
    """The settings of a class that have no default."""
    return tuple(f.name for f in _fields(kind) if f.default is MISSING and f.default_factory is MISSING)


def descriptions(kind: type) -> dict[str, str]:
    """What each setting of a class means: the text below its name under "Parameters" in the docstring of the class, on one line."""
    _, _, below = (inspect.getdoc(kind) or "").partition("\nParameters\n----------\n")
    entries = re.findall(r"^(\w+(?:, \w+)*) : .*((?:\n +.*)+)", re.split(r"\n\w+\n-+\n", below)[0], re.MULTILINE)
    return {name: " ".join(text.split()) for listed, text in entries for name in listed.split(", ")}


def _fields(kind: type) -> tuple[Field[Any], ...]:
    return fields(kind)  # pyright: ignore[reportArgumentType]


@dataclass(frozen=True)
class Built(Generic[T]):
    """What :func:`build` made: the `object`, or None with all that is `invalid`."""

    object: T | None
    invalid: tuple[Invalid, ...] = ()


def build(kind: type[T], values: Mapping[str, Any]) -> Built[T]:
    """An object of a settings class from keys and values as a file has them: settings within settings are mappings, tuples lists."""
    known = names(kind)
    missing = [name for name in required(kind) if name not in values]
    given, found = {}, [Invalid((), f"{kind.__name__} needs the setting '{name}'.") for name in missing]
    for key, value in values.items():
        if key not in known:
            found.append(_unknown(kind, key))
            continue
        inner = next((part for part in _parts(_hints(kind)[key]) if _is_settings(part)), None)
        if inner is not None and isinstance(value, Mapping):
            made = build(inner, value)
            found += [one.under(key) for one in made.invalid]
            given[key] = made.object
        else:
            given[key] = tuple(value) if isinstance(value, list) else value
            found += _invalid(kind, key, given[key])
    return Built(None, tuple(found)) if found else Built(kind(**given))


def _unknown(kind: type, name: str) -> Invalid:
    return Invalid((name,), f"{kind.__name__} has no setting '{name}'.", hint=did_you_mean(name, names(kind)))


def _invalid(kind: type, name: str, value: Any) -> list[Invalid]:
    """What is wrong with the value of one setting."""
    hint = _hints(kind)[name]
    for member in _parts(hint):
        # Entries of a mapping are named one by one.
        if get_origin(member) is not None and isinstance(value, Mapping) and _is_mapping(member):
            own = get_args(member)[1]
            wrong = {key: entry for key, entry in value.items() if not isinstance(key, str) or not _passes(own, entry)}
            return [
                Invalid((name, str(key)), "the value is not valid.", _expected(own), _shown(entry))
                for key, entry in wrong.items()
            ]
    if _passes(hint, value):
        return []
    return [Invalid((name,), "the value is not valid.", _expected(hint), _shown(value))]


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _passes(hint: Any, value: Any) -> bool:
    """Whether a value keeps to an annotation."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        rules = [rule for rule in args[1:] if isinstance(rule, Rule)]
        bounds = next((rule for rule in args[1:] if isinstance(rule, Interval)), None)
        if rules:
            return all(rule.passes(value) for rule in rules)
        return _is_number(args[0], value) and (bounds or Interval()).contains(float(value))
    if origin in (Union, types.UnionType):
        return any(_passes(arg, value) for arg in args)
    if origin is Literal:
        return isinstance(value, str) and value in args
    if origin in (tuple, Sequence):
        if not isinstance(value, tuple | list):
            return False
        kinds = [args[0]] * len(value) if origin is Sequence or args[-1] is Ellipsis else list(args)
        return len(kinds) == len(value) and all(_passes(k, v) for k, v in zip(kinds, value, strict=True))
    if _is_mapping(hint):
        return isinstance(value, Mapping) and all(isinstance(k, str) and _passes(args[1], v) for k, v in value.items())
    if origin is not None and issubclass(origin, Callable):
        return callable(value)
    if hint is None or hint is type(None):
        return value is None
    if hint in (int, float):
        return _is_number(hint, value) and Interval().contains(float(value))
    return isinstance(value, hint)


def _is_number(kind: type, value: Any) -> bool:
    return isinstance(value, numbers.Integral if kind is int else numbers.Real) and not isinstance(value, bool)


def _is_mapping(hint: Any) -> bool:
    origin = get_origin(hint)
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _is_settings(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Settings)


def _parts(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _expected(hint: Any) -> str:
    """An annotation in words."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        rule = next((rule for rule in args[1:] if isinstance(rule, Rule)), None)
        bounds = next((str(rule) for rule in args[1:] if isinstance(rule, Interval)), "")
        return rule.expected if rule is not None else f"{_expected(args[0])} {bounds}".strip()
    if origin in (Union, types.UnionType):
        return " or ".join(_expected(arg) for arg in args)
    if origin is Literal:
        return " or ".join(repr(arg) for arg in args)
    if origin in (tuple, Sequence):
        return "a list of names" if args[0] is str else f"{len(args)} numbers"
    if _is_mapping(hint):
        return f"a mapping of names, each to {_expected(args[1])},"
    if origin is not None:
        return "a function"
    words = {int: "a whole number", float: "a number", bool: "True or False", str: "text", type(None): "None"}
    return words.get(hint, f"{hint.__name__}(…)" if isinstance(hint, type) else str(hint))


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_REPR else type(value).__name__


def _same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and isinstance(a, int | float | str | tuple | Settings) and a == b)


M = TypeVar("M", bound=Settings)
P = ParamSpec("P")
R = TypeVar("R")
COUNTS = {3: "three", 4: "four"}


def method_of(given: Any, base: type[M], aliases: Mapping[str, type[M]], verb: str, rows: Collection[str] = ()) -> M:
    """The method object that the argument of a verb means; `rows`: words for rows, which are not methods, of verbs that take some."""
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
        hint = did_you_mean(given, list(aliases))
        if rows:
            hint += f" Rows are given by keyword: {verb}(…, rows={given!r})."
        raise base.error(Fault(f"there is no method '{given}'.", verb, hint=hint))
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
