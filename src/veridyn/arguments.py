"""The door of every public verb: each argument is compared with its annotation, and one of another kind is refused by name.

    identify("arm.yaml", log)     identify, argument 'machine': it is no machine.
                                  Expected a Machine, found the text 'arm.yaml'.
                                  Read the model first: veridyn.load_model('arm.yaml').

The annotations of a verb are its only list of what it takes; they are read when it is first called. A call then costs one ``isinstance``
for each argument that is given. Types alone are looked at: values, shapes and units are checked by the verb itself.
"""

from __future__ import annotations

import functools
import inspect
import numbers
import operator
import os
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from typing import (
    Annotated,
    Any,
    Literal,
    NoReturn,
    ParamSpec,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.argument_words import LARGEST_WHOLE, expected_of, found_in, hint_for, is_array, is_no
from veridyn.errors import DataError, Fault, ModelError, VeridynError
from veridyn.settings import Settings, names

P = ParamSpec("P")
R = TypeVar("R")
K = TypeVar("K")
Test = Callable[[Any], bool]
MEASURED = ("veridyn.model.motion", "veridyn.model.experiment")  # what a machine did, and not what it is
NUMERIC_KINDS = "biuf"  # of NumPy's kinds of arrays
GENERATED = "<string>"  # the file of an __init__ that dataclasses wrote


class ArgumentChecks:
    """What a verb takes, by argument. `name`: as messages call it. `arrays`: whether arrays of numbers are looked at."""

    def __init__(self, verb: Callable[..., Any], name: str = "", *, arrays: bool = True) -> None:
        self.error: type[VeridynError] = DataError
        self.verb, self.arrays = inspect.unwrap(verb), arrays
        owner = verb.__qualname__.rpartition(".")[0] if verb.__name__ == "__init__" else ""
        self.name = name or owner or verb.__name__
        parameters = inspect.signature(self.verb).parameters
        self.names = tuple(n for n, p in parameters.items() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))
        self.keywords = tuple(n for n, p in parameters.items() if p.kind is p.KEYWORD_ONLY)
        self.open = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        self.needed = tuple(n for n in self.names if parameters[n].default is inspect.Parameter.empty and n != "self")

    def annotations(self) -> dict[str, Any]:
        """Argument → its annotation."""
        return {name: hint for name, hint in get_type_hints(self.verb).items() if name != "return"}

    @functools.cached_property
    def hints(self) -> dict[str, Any]:
        """Argument → what it takes; read once."""
        return self.annotations()

    @functools.cached_property
    def tests(self) -> dict[str, Test]:
        """Argument → what it must pass; nothing where it may be anything."""
        looked_at = {name: hint for name, hint in self.hints.items() if self.arrays or not _has_array(hint)}
        made = {name: kind_test(hint) for name, hint in looked_at.items()}
        return {name: test for name, test in made.items() if test is not None}

    @functools.cached_property
    def placed(self) -> list[Test]:
        """The same of arguments that are given by place."""
        return [self.tests.get(name, _anything) for name in self.names]

    @functools.cached_property
    def in_settings(self) -> dict[str, str]:
        """Keyword that belongs to a settings object of the verb → how it is given; words for a method are a matter of the method."""
        found: dict[str, str] = {}
        for name, hint in self.hints.items():
            parts = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
            kinds = [kind for kind in parts if isinstance(kind, type) and issubclass(kind, Settings)]
            if kinds and str not in parts:
                found |= {field: f"{name}={kind.__name__}({field}=…)" for kind in kinds for field in names(kind)}
        return {field: given for field, given in found.items() if field not in self.hints}

    def check(self, args: Iterable[Any], kwargs: Mapping[str, Any]) -> None:
        """Refuse the first argument of another kind, and keywords that belong to a settings object."""
        for place, value in enumerate(args):
            if place < len(self.placed) and not self.placed[place](value):
                self.refuse(self.names[place], value)
        for name, value in kwargs.items():
            if name in self.tests and not self.tests[name](value):
                self.refuse(name, value)
            if name not in self.hints and name in self.in_settings and not self.open:
                given = f"It is a setting: {self.name}(…, {self.in_settings[name]})."
                raise TypeError(f"{self.name}() got an unexpected keyword argument '{name}'. {given}")

    def refuse(self, name: str, value: Any) -> NoReturn:
        kinds = classes_in(self.hints[name])
        error = ModelError if "Machine" in kinds and "Motion" not in kinds else self.error
        call = f"{self.name}({', '.join(self.needed)})"
        where = f"{self.name}, argument '{name}'"
        expected = expected_of(self.hints[name])
        hint = hint_for(kinds, value, call)
        raise error(Fault(is_no(kinds), where, expected, found_in(value), hint, at=("argument", name)))


class RecordChecks(ArgumentChecks):
    """The same for a dataclass: what its fields are, those of its bases among them. What a machine is made of is a fault of the model."""

    def __init__(self, kind: type, arrays: bool, own: Collection[str] = ()) -> None:
        super().__init__(vars(kind)["__init__"], kind.__name__, arrays=arrays)
        self.kind, self.own = kind, own
        of_model = kind.__module__.startswith("veridyn.model.") and kind.__module__ not in MEASURED
        self.error = ModelError if of_model else DataError

    def annotations(self) -> dict[str, Any]:
        hints = get_type_hints(self.kind)
        if self.verb.__code__.co_filename != GENERATED:  # one of its own takes more than its fields hold
            hints |= get_type_hints(self.verb)
        looked_at = {*self.names, *self.keywords} - {*self.own}
        return {name: hint for name, hint in hints.items() if name in looked_at}


def as_array(value: Any, where: str, shape: Sequence[int | None] | None = None) -> NDArray[np.float64]:
    """`value` as an array of numbers; refused by name where none can be made of it, or where it has not the `shape`, in which None is any
    length."""
    if not _holds_numbers(value):
        raise DataError(
            "it is no array of numbers.", where=where, expected="an array of numbers", found=found_in(value)
        )
    made = np.asarray(value, dtype=np.float64)
    if shape is None or (
        made.ndim == len(shape) and all(n in (None, m) for n, m in zip(shape, made.shape, strict=True))
    ):
        return made
    letters = iter("NMKL")
    expected = ", ".join(next(letters) if n is None else f"{n}" for n in shape) + ("," if len(shape) == 1 else "")
    raise DataError("it has the wrong shape.", where=where, expected=f"({expected})", found=f"{made.shape}")


def checked(verb: Callable[P, R]) -> Callable[P, R]:
    """`verb`, with every argument checked by its annotation."""
    door = ArgumentChecks(verb)

    @functools.wraps(verb)
    def taken(*args: P.args, **kwargs: P.kwargs) -> R:
        door.check(args, kwargs)
        return verb(*args, **kwargs)

    taken.door = door  # pyright: ignore[reportAttributeAccessIssue]
    return taken


@overload
def checked_record(kind: type[K], *, arrays: bool = True) -> type[K]: ...


@overload
def checked_record(
    kind: None = None, *, arrays: bool = True, own: Collection[str] = ()
) -> Callable[[type[K]], type[K]]: ...


def checked_record(kind: type[Any] | None = None, *, arrays: bool = True, own: Collection[str] = ()) -> Any:
    """A dataclass whose fields are checked as the arguments of a verb are. Without `arrays`, those of numbers are left to the class, which
    names their places in words of its own (:func:`as_array`); so are those called `own`."""
    if kind is None:
        return functools.partial(checked_record, arrays=arrays, own=own)
    make: Any = kind.__init__
    door = RecordChecks(kind, arrays, own)

    @functools.wraps(make)
    def made(self: Any, *args: Any, **kwargs: Any) -> None:
        door.check((self, *args), kwargs)
        make(self, *args, **kwargs)

    made.door = door  # pyright: ignore[reportAttributeAccessIssue]
    kind.__init__ = made
    return kind


def classes_in(hint: Any) -> set[str]:
    """The names of all classes in an annotation."""
    hint = getattr(hint, "__value__", hint)
    if isinstance(hint, type) and get_origin(hint) is None:
        return {hint.__name__}
    origin = get_origin(hint)
    own = {os.PathLike.__name__} if origin is os.PathLike else set()
    return own.union(*(classes_in(part) for part in get_args(hint)))


def kind_test(hint: Any) -> Test | None:
    """What a value of an annotation passes; None where anything may be given, or where the verb checks it in words of its own."""
    if is_array(hint):
        of_complex = "complex" in f"{get_args(hint)}" and hint != ArrayLike
        return _holds_complex if of_complex else _holds_numbers
    hint = getattr(hint, "__value__", hint)  # of an alias
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return kind_test(args[0])
    if origin in (Union, types.UnionType):
        return _any_of(args)
    if origin is Literal:
        return lambda value: isinstance(value, type(args[0]))  # which word it is, the verb says
    if isinstance(hint, TypeVar):
        return kind_test(hint.__bound__ or Union[hint.__constraints__ or (Any,)])  # noqa: UP007
    if hint is float:
        return _is_number
    if hint is int:
        return _is_whole
    if hint is bool:
        return _is_truth
    if origin is None and isinstance(hint, type):
        return _of_class(hint)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(kind_test(args[1]))
    if origin is tuple and Ellipsis not in args:
        return _together([kind_test(part) for part in args])
    if isinstance(origin, type) and issubclass(origin, Collection | Iterable):
        return _listed(kind_test(args[0]), origin)
    if isinstance(origin, type) and issubclass(origin, Callable):
        return callable
    return (lambda value: isinstance(value, origin)) if isinstance(origin, type) else None


def _any_of(hints: Sequence[Any]) -> Test | None:
    if any(is_array(h) for h in hints):  # ArrayLike is a union of its own
        others = [h for h in hints if h is not str and not is_array(h)]
        rest = [test for test in map(kind_test, others) if test is not None]
        return lambda value: _holds_numbers(value) or any(test(value) for test in rest)
    if any(isinstance(h, type) and issubclass(h, Settings) for h in hints) and str in hints:
        return None  # a method or a word for one: `method_of` names them all
    plain = tuple(h for h in hints if isinstance(h, type) and get_origin(h) is None and _is_plain(h))
    tests = [kind_test(h) for h in hints if h not in plain]
    if any(test is None for test in tests):
        return None
    if not tests:
        return lambda value: isinstance(value, plain)
    return lambda value: isinstance(value, plain) or any(test(value) for test in tests if test is not None)


def _is_plain(kind: type) -> bool:
    return kind not in (float, int, bool, object, Any, Executor) and not getattr(kind, "_is_protocol", False)


def _of_class(kind: type) -> Test | None:
    if kind in (object, Any):
        return None
    if kind is Executor:  # only this is used of one
        return lambda value: hasattr(value, "submit")
    if getattr(kind, "_is_protocol", False):
        return _protocol(kind)
    return lambda value: isinstance(value, kind)


def _protocol(kind: type) -> Test:
    """An object, and not a class, that has all that a protocol asks for."""
    asked = [name for base in kind.__mro__ if getattr(base, "_is_protocol", False) for name in _members(base)]
    if asked == ["__call__"]:
        return lambda value: callable(value) and not isinstance(value, type)
    return lambda value: not isinstance(value, type) and all(_has(value, name) for name in asked)


def _has(value: Any, name: str) -> bool:
    """Whether an object has an attribute; properties are found in its class and not computed for it."""
    return hasattr(type(value), name) or name in getattr(value, "__dict__", ()) or hasattr(value, name)


def _members(protocol: type) -> list[str]:
    listed = [*vars(protocol), *vars(protocol).get("__annotations__", {})]
    return [name for name in dict.fromkeys(listed) if not name.startswith("_") or name == "__call__"]


def _mapping(inner: Test | None) -> Test:
    if inner is None:
        return lambda value: isinstance(value, Mapping)
    return lambda value: isinstance(value, Mapping) and all(inner(entry) for entry in value.values())


def _together(inner: Sequence[Test | None]) -> Test:
    """Several values, each of its own kind."""

    def passes(value: Any) -> bool:
        listed = isinstance(value, tuple | list) or (isinstance(value, np.ndarray) and value.ndim > 0)
        if not listed or len(value) != len(inner):
            return False
        return all(test is None or test(part) for test, part in zip(inner, value, strict=True))

    return passes


def _listed(inner: Test | None, origin: type) -> Test:
    """A list whose entries pass. Those of other sequences are not looked at, since they may be made when they are needed."""

    def passes(value: Any) -> bool:
        if isinstance(value, list | tuple | range | set | frozenset):
            return inner is None or all(inner(entry) for entry in value)
        if isinstance(value, np.ndarray):
            entries = value.flat if value.dtype.kind == "O" else value.flat[:1] if value.size else [value.dtype.type()]
            return value.ndim > 0 and (inner is None or all(inner(entry) for entry in entries))
        named = isinstance(value, Mapping) and inner is not None and not all(inner(key) for key in value)
        return isinstance(value, origin) and not isinstance(value, str | bytes) and _lists(value) and not named

    return passes


def _lists(value: Any) -> bool:
    """Not a log, whose entries are names of channels."""
    return type(value).__name__ != "Experiment"


def _anything(value: Any) -> bool:
    return True


def _has_array(hint: Any) -> bool:
    hint = getattr(hint, "__value__", hint) if not is_array(hint) else hint
    return is_array(hint) or any(_has_array(part) for part in get_args(hint))


def _is_number(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim == 0 and value.dtype.kind in NUMERIC_KINDS
    if isinstance(value, int):
        return abs(value) <= LARGEST_WHOLE
    return isinstance(value, numbers.Real)


def _is_whole(value: Any) -> bool:
    try:
        return abs(operator.index(value)) <= LARGEST_WHOLE
    except TypeError:
        return False


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool | np.bool_) or (isinstance(value, numbers.Integral) and value in (0, 1))


def _holds_complex(value: Any) -> bool:
    """Whether an array of complex numbers can be made of it."""
    listed = isinstance(value, np.ndarray | Sequence) and not isinstance(value, str | bytes)
    return isinstance(value, numbers.Complex) or _holds_numbers(value) or (listed and _converts(value, np.complex128))


def _holds_numbers(value: Any) -> bool:
    """Whether an array of numbers can be made of it."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind in NUMERIC_KINDS or _converts(value)
    if isinstance(value, numbers.Number):
        return isinstance(value, numbers.Real) or not isinstance(value, numbers.Complex)
    if isinstance(value, str | bytes | type):
        return False
    if isinstance(value, Sequence):
        return _converts(value)
    return any(hasattr(value, name) for name in ("__array__", "__array_interface__", "__dlpack__"))


def _converts(value: Any, kind: type[np.number] = np.float64) -> bool:
    try:
        np.asarray(value, dtype=kind)
    except (TypeError, ValueError):
        return False
    return True
