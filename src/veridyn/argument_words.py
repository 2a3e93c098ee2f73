"""What is said about an argument of another kind than its verb takes: what was expected, what was found, and what to try.

Types are known by their names, so that the lowest floor can speak of those above it.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from pathlib import PurePath
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import numpy as np
from numpy.typing import ArrayLike

LONGEST_TEXT = 60  # characters of a value that are shown in a message
LISTED = 4  # names that are shown of a table or mapping
LARGEST_WHOLE = 2**63 - 1  # that a machine's word holds
# What numpy.typing.ArrayLike is made of: a union up to NumPy 2.4, a name for one from 2.5 on.
ARRAY_PARTS = (ArrayLike, *get_args(ArrayLike), complex, bytes, str)
MACHINES = {"Machine"}
LOGS = {"Motion", "Experiment"}
INNER_FORMS = ("a Tree", "a Formulated")
FRAMES = ("DataFrame", "LazyFrame", "Table")  # of pandas, polars and pyarrow
TABULAR = ("pandas", "polars", "pyarrow")
WORDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "True or False",
    "NoneType": "None",
    "Generator": "a numpy.random.Generator",
    "PathLike": "a path",
    "Path": "a path",
    "Frame": "a data frame",
    "Experiment": "an Experiment (a log)",
    "Progress": "a function of (task, done, total)",
    "Manoeuvre": "a manoeuvre (Tracking, Driven or Prescribed)",
}
LOG_SUFFIXES = (".csv", ".txt", ".dat", ".parquet", ".pq", ".npz", ".mat", ".mf4", ".mdf", ".bag", ".db3", ".mcap")
MODEL_SUFFIXES = (".yaml", ".yml", ".urdf", ".xml", ".mjcf")
NOUNS = {"Fit": "fit", "Motion": "motion", "Experiment": "log", "Machine": "machine"}


def is_no(kinds: set[str]) -> str:
    """The sentence that says what an argument is not."""
    noun = next((noun for kind, noun in NOUNS.items() if kind in kinds), "")
    return f"it is no {noun}." if noun else "it is of another kind than this argument."


def expected_of(hint: Any) -> str:
    """An annotation in words: "a Machine", "a Motion, or a sequence of them"."""
    words = list(dict.fromkeys(_words(hint)))
    if "a Machine" in words:  # its inner forms, which only rooms of veridyn hand over
        words = [word for word in words if word not in INNER_FORMS]
    if "text" in words and "a path" in words:
        words.remove("text")
    if len(words) == 1:
        return words[0]
    return f"{', '.join(words[:-1])} or {words[-1]}"


def is_array(hint: Any) -> bool:
    """Whether an annotation is that of an array, or one of the names that numpy.typing.ArrayLike is made of."""
    origin = get_origin(hint)
    named = getattr(origin, "__module__", "").startswith("numpy._typing")
    return origin is np.ndarray or named or (hint in ARRAY_PARTS and hint is not str)


def _words(hint: Any) -> list[str]:
    if hint is ArrayLike or (is_array(hint) and get_origin(hint) is not None):
        return ["an array of numbers"]
    hint = getattr(hint, "__value__", hint)
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _words(args[0])
    if origin in (Union, types.UnionType):
        if any(part is ArrayLike or "_SupportsArray" in f"{part}" for part in args):  # ArrayLike is a union of its own
            args = (np.ndarray, *(part for part in args if part not in ARRAY_PARTS))
        return [word for part in args for word in _words(part)]
    if origin is Literal:
        return [repr(word) for word in args]
    if hint is np.ndarray or origin is np.ndarray:
        return ["an array of numbers"]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return [f"a mapping of names to {expected_of(args[1])}"]
    if isinstance(hint, TypeVar):
        return _words(hint.__bound__ or Union[hint.__constraints__ or (Any,)])  # noqa: UP007
    if origin is tuple and Ellipsis not in args:
        return [f"a pair of {' and '.join(expected_of(part) for part in args)}"]
    if origin is not None and args and origin is not type(None):
        name = getattr(origin, "__name__", "")
        if name in ("Sequence", "Iterable", "Collection", "list", "tuple", "set"):
            return [f"a list of {_plural(args[0])}"]
        return [WORDS.get(name, "a function")]
    name = getattr(hint, "__name__", f"{hint}")
    return [WORDS.get(name, _with_article(name))]


def _plural(hint: Any) -> str:
    plain = {"str": "names", "int": "whole numbers", "float": "numbers"}
    parts = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    return " or ".join(
        plain.get(getattr(part, "__name__", ""), f"{getattr(part, '__name__', 'entries')}") for part in parts
    )


def _with_article(name: str) -> str:
    return f"{'an' if name[:1] in 'AEIOUaeiou' else 'a'} {name}"


def found_in(value: Any) -> str:
    """A value in words: "the text 'arm.yaml'", "an array of shape (100, 3)", "a DataFrame with the columns t, q1"."""
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, str):
        return f"the text {_short(value)}"
    if isinstance(value, PurePath):
        return f"the path {_short(str(value))}"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    if is_frame(value):
        return f"a {type(value).__name__} with the columns {_names(getattr(value, 'columns', ()))}"
    if isinstance(value, list | tuple):
        kinds = list(dict.fromkeys(type(entry).__name__ for entry in value))
        return f"a list of {len(value)} ({', '.join(kinds[:LISTED])})" if value else "an empty list"
    if isinstance(value, Mapping):
        return f"a mapping of {_names(value)}" if value else "an empty mapping"
    if callable(value) and hasattr(value, "__name__"):
        return f"the function {value.__name__}"
    if isinstance(value, int) and abs(value) > LARGEST_WHOLE:
        return "a whole number of more than 64 bits"
    shown = repr(value)
    plain = isinstance(value, bool | int | float | complex | bytes | np.generic) and len(shown) <= LONGEST_TEXT
    return shown if plain else _with_article(type(value).__name__)


def _short(text: str) -> str:
    return repr(text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…")


def _names(names: Any) -> str:
    listed = [f"{name}" for name in names]
    return ", ".join(listed[:LISTED]) + (", …" if len(listed) > LISTED else "")


def is_frame(value: Any) -> bool:
    """Whether a value is a table of pandas, polars or pyarrow, none of which is imported for it."""
    kind = type(value)
    return kind.__name__ in FRAMES and kind.__module__.partition(".")[0] in TABULAR


def hint_for(kinds: set[str], value: Any, call: str) -> str:
    """What to try: `kinds` are the classes that were expected, `call` is the verb with the arguments it needs."""
    if isinstance(value, type):
        return f"Give an object of it: {value.__name__}(…)."
    for expected, hint in ((MACHINES, _for_machine), (LOGS, _for_log), ({"Fit"}, _for_fit)):
        if kinds & expected:
            return hint(kinds, value, call)
    if "Signals" in kinds and isinstance(value, int | float):
        return f"Write veridyn.Signals(lowpass={value!r}) for a low-pass filter of {value:g} Hz."
    if "Generator" in kinds:
        seed = value if isinstance(value, int) else 0
        return f"Write numpy.random.default_rng({seed})."
    if "Frame" in kinds and isinstance(value, np.ndarray | Mapping | list | tuple):
        return "veridyn.Experiment.from_arrays(t, values, units) makes a log of arrays."
    if "Manoeuvre" in kinds:
        return "One is made with veridyn.manoeuvres.Driven(duration, rate, q, qd), Tracking(…) or Prescribed(…)."
    settings = next((kind for kind in sorted(kinds) if kind.endswith("Settings")), "")
    if settings:
        return f"Settings are given as one object: {settings}(…)."
    return f"The call is {call}."


def _for_machine(kinds: set[str], value: Any, call: str) -> str:
    if isinstance(value, str | PurePath):
        if "Fit" in kinds and _suffix(value) == ".json":
            return f"Read the fit first: veridyn.load({_short(str(value))})."
        if _suffix(value) in LOG_SUFFIXES:
            return f"veridyn.load_log({_short(str(value))}) reads a log, and the order is {call}."
        return f"Read the model first: veridyn.load_model({_short(str(value))})."
    if _kind(value) == "Fit":
        return "fit.machine() is the identified machine."
    if _kind(value) or is_frame(value) or isinstance(value, np.ndarray | list | tuple | Mapping):
        return f"The {'fit' if 'Fit' in kinds else 'machine'} comes first: {call}."
    return "veridyn.load_model reads a machine from a file."


def _for_log(kinds: set[str], value: Any, call: str) -> str:
    parts = list(value) if isinstance(value, list | tuple) else [value]
    first = parts[0] if parts else None
    if isinstance(first, str | PurePath):
        if _suffix(first) in MODEL_SUFFIXES:
            return f"veridyn.load_model({_short(str(first))}) reads a machine, and the order is {call}."
        read = f"Read the log first: veridyn.load_log({_short(str(first))})."
        return read if len(parts) == 1 else f"{read[:-1]}, and so each of the {len(parts)}."
    if is_frame(first):
        return "veridyn.load_log(frame, units={…}) makes a log of it."
    if _kind(first) in ("Machine", "Fit"):
        return f"The order is {call}."
    if _kind(first) == "Motion" and "Motion" not in kinds:
        return "It is a motion already; a log has channels, and veridyn.load_log or veridyn.simulate make one."
    if _kind(first) == "Experiment" and "Experiment" not in kinds:
        return "veridyn.motion(machine, log) makes a motion of a log."
    if isinstance(value, Mapping):
        return "veridyn.Experiment.from_arrays(t, values, units) makes a log of arrays by name."
    if "Motion" in kinds:
        return "Of arrays veridyn.Motion(t, q, qd, qdd, forces=…) makes a motion, veridyn.Experiment.from_arrays a log."
    return "veridyn.load_log reads a log, and veridyn.Experiment.from_arrays(t, values, units) makes one of arrays."


def _for_fit(kinds: set[str], value: Any, call: str) -> str:
    if _kind(value) == "Machine":
        return "A machine is saved with veridyn.save_model(machine, path)."
    if _kind(value) == "Experiment":
        return "A log is saved with veridyn.files.save_log(log, path)."
    if isinstance(value, str | PurePath):
        return f"Read the fit first: veridyn.load({_short(str(value))}). The order is {call}."
    return "veridyn.identify makes a fit, and veridyn.load reads one."


def _suffix(path: str | PurePath) -> str:
    return PurePath(path).suffix.lower()


def _kind(value: Any) -> str:
    """The name of a type of veridyn's own; "" of others."""
    kind = type(value)
    return kind.__name__ if kind.__module__.partition(".")[0] == "veridyn" else ""
