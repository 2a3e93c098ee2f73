"""What a compiled function is made of, as one digest: its instructions and constants, and those of every function that it calls.

Taken from what this process runs and not from files, so that a comment, a moved line or an edit in a function that is not called changes
nothing, and what is changed while a program runs is never taken for what was compiled. A global value counts by its value, a class of
records by its fields, a function by what it is made of in turn; those of other packages by their names, since versions stand beside this.
"""

from __future__ import annotations

import builtins
import enum
import hashlib
import types as python_types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numba.core import types

from veridyn.errors import ModelError
from veridyn.symbolic.sources import PACKAGE, source_meaning

SCALARS = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis))


class NotDescribed(Exception):
    """A value that code refers to and whose content cannot be written down."""

    def __init__(self, value: object, code: python_types.CodeType) -> None:
        super().__init__(f"{value!r}, to which {code.co_qualname} refers")


def code_digest(function: Callable[..., Any], fields_of: Callable[[type], dict[str, Any]]) -> str:
    """SHA-256 of a function and of all that it calls; a ModelError names the function that refers to what cannot be described.

    `fields_of` gives the fields of a class of records, as compiled code sees them.
    """
    try:
        text = "\n".join(_Description(fields_of).of_function(function))
    except NotDescribed as error:
        raise ModelError(
            "this function cannot be compiled: its code is kept by what it is made of, which cannot be described.",
            where=f"{function.__module__}.{function.__qualname__}",
            expected="numbers, texts, tuples, arrays, records, compiled functions, or names of other packages",
            found=f"{error}",
            hint="Hand the value over as an argument, or compile the function without keeping its code.",
        ) from None
    return hashlib.sha256(text.encode()).hexdigest()


class _Description:
    """Lines that describe functions and values; a function that was described before is named by its number."""

    def __init__(self, fields_of: Callable[[type], dict[str, Any]]) -> None:
        self._fields_of = fields_of
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []  # ids stay those of these objects

    def of_function(self, function: Any) -> Iterator[str]:
        if id(function) in self._numbers:
            yield f"function {self._numbers[id(function)]}"
            return
        self._numbers[id(function)] = len(self._numbers)
        self._kept.append(function)
        yield f"function {function.__name__}"
        yield from self._of_code(function.__code__, function.__globals__, function.__doc__)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            yield f"free {name}"
            yield from self.of_value(cell.cell_contents, function.__code__)
        for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).items()):
            yield from self.of_value(value, function.__code__)

    def _of_code(self, code: python_types.CodeType, names: dict[str, Any], docstring: str | None) -> Iterator[str]:
        yield f"{code.co_argcount} {code.co_kwonlyargcount} {code.co_varnames} {code.co_names} {code.co_code.hex()}"
        for constant in code.co_consts[docstring is not None and code.co_consts[:1] == (docstring,) :]:
            if isinstance(constant, python_types.CodeType):
                yield from self._of_code(constant, names, None)
            else:
                yield from self.of_value(constant, code)
        for name in code.co_names:
            if name in names:
                yield f"global {name}"
                yield from self.of_value(names[name], code)
            elif hasattr(builtins, name):
                yield f"builtin {name}"

    def of_value(self, value: Any, code: python_types.CodeType) -> Iterator[str]:
        """Lines for a value that `code` refers to."""
        if hasattr(value, "py_func"):
            yield f"compiled {sorted((k, _option(v)) for k, v in value.targetoptions.items())}"
            yield from self.of_function(value.py_func)
        elif isinstance(value, SCALARS):
            yield f"{type(value).__name__} {value!r}"
        elif isinstance(value, enum.Enum):
            yield f"{type(value).__qualname__} {value.value!r}"
        elif isinstance(value, tuple | frozenset):
            yield f"{type(value).__name__} {len(value)}"
            for item in sorted(value, key=repr) if isinstance(value, frozenset) else value:
                yield from self.of_value(item, code)
        elif isinstance(value, np.ndarray | np.generic):
            yield f"array {value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
        elif isinstance(value, python_types.ModuleType):
            yield from self._of_module(value, code)
        elif isinstance(value, type):
            yield from self._of_class(value, code)
        else:
            yield from self._of_object(value, code)

    def _of_module(self, module: python_types.ModuleType, code: python_types.CodeType) -> Iterator[str]:
        yield f"module {module.__name__}"
        if _is_own(module.__name__):
            for name in code.co_names:
                if name in vars(module):
                    yield f"of it {name}"
                    yield from self.of_value(vars(module)[name], code)

    def _of_class(self, kind: type, code: python_types.CodeType) -> Iterator[str]:
        yield f"class {kind.__module__}.{kind.__qualname__}"
        if hasattr(kind, "_fields"):
            yield from self._of_record(kind)
        elif _is_own(kind.__module__):
            raise NotDescribed(kind, code)

    def _of_record(self, kind: Any) -> Iterator[str]:
        try:
            fields = self._fields_of(kind)
        except ModelError:  # a named tuple whose types are those of what it is made of
            yield f"fields {kind._fields}"
            return
        for name, field in fields.items():
            yield f"field {name} {field!r}"
            if isinstance(field, type) and hasattr(field, "_fields"):
                yield from self._of_record(field)

    def _of_object(self, value: Any, code: python_types.CodeType) -> Iterator[str]:
        if isinstance(value, types.Type | np.dtype):
            yield repr(value)
            return
        function = getattr(value, "_defn", value)  # numba's intrinsics: functions that write machine code
        module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
        if not isinstance(module, str) or not isinstance(name, str):
            raise NotDescribed(value, code)
        yield f"{module}.{name}"
        if _is_own(module):
            if function is value:
                raise NotDescribed(value, code)
            yield f"written by {source_meaning(module)}"


def _option(value: object) -> str:
    return repr(sorted(value)) if isinstance(value, set | frozenset) else repr(value)


def _is_own(module: str) -> bool:
    return module.split(".")[0] == PACKAGE.name
