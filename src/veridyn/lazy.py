"""Public names that are imported when they are first used; the stub file beside a module is the only list of them.

    from veridyn.signals.butterworth import Butterworth as Butterworth          a line of signals/__init__.pyi

Editors and type checkers read the stub as it is; :func:`attach` reads it when a name of the module is first needed, so that importing the
module costs nothing. Each stub has a source beside it, of a docstring with examples and two lines: where there is none, type checkers and
editors mark every ``from veridyn.dynamics import …`` as not found, and tools that list the modules of a package pass over it.

A verb may share its name with a folder: ``veridyn.identify`` is the function, also after ``import veridyn.identify.base``. The import
system binds a folder to its name in the package. The package keeps the name for the function, and modules of the folder are attributes of
the function as well, so that ``import veridyn.identify.base as base`` and ``veridyn.identify.base`` mean what they say.
"""

from __future__ import annotations

import functools
import importlib
import sys
import types
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any

Finder = Callable[[str], object]


def import_module(name: str) -> ModuleType:
    """:func:`importlib.import_module`, with a Ctrl-C that a library swallows while it is imported raised at the end.

    Libraries catch whatever goes wrong while they try for an optional part, and C extensions make an ImportError of it.
    Handlers other than Python's own, and threads that get no signals, are left alone.
    """
    import signal
    import threading

    ours = threading.current_thread() is threading.main_thread()
    if name in sys.modules or not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return importlib.import_module(name)
    interrupted = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        interrupted = True
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        module = importlib.import_module(name)
    except Exception as error:
        if interrupted:
            raise KeyboardInterrupt from error
        raise
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if interrupted:
        raise KeyboardInterrupt
    return module


def above(home: str, name: str) -> Callable[..., Any]:
    """A function of a room above, for verbs that a type offers of itself: ``fit.plot()`` is ``plot_fit(fit)`` of the reports.

    The room is imported when the verb is used, so that floors hold while a program is loaded, and no type needs what only pictures need.
    """
    return getattr(import_module(home), name)


def attach(module: str) -> tuple[Finder, Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a module whose public names are those of its stub."""

    def find(name: str) -> object:
        if name == "__all__":
            return sorted(listed(module))
        if name.startswith("__") or name not in listed(module):
            raise AttributeError(f"module '{module}' has no attribute '{name}'")
        home, own = listed(module)[name]
        # A stub that imports from its own package means a module in it.
        value = import_module(f"{home}.{own}") if home == module else getattr(import_module(home), own)
        vars(sys.modules[module])[name] = value
        return value

    return find, lambda: sorted(listed(module))


@functools.cache
def listed(module: str) -> dict[str, tuple[str, str]]:
    """Each public name of a module: where the stub imports it from, and what it is called there; ("", "") for a value of its own."""
    import ast
    from pathlib import Path

    source = sys.modules[module].__file__
    assert source is not None
    names: dict[str, tuple[str, str]] = {}
    for node in ast.parse(Path(source).with_suffix(".pyi").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {alias.asname: (node.module, alias.name) for alias in node.names if alias.asname}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names[node.target.id] = ("", "")
    return names


class VerbPackage(types.ModuleType):
    """A package in which the names of `_verbs` never mean folders."""

    _verbs: tuple[str, ...]

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in self._verbs and isinstance(value, types.ModuleType)):
            super().__setattr__(name, value)


class VerbFolder(types.ModuleType):
    """The folder of a verb; its modules are attributes of the function too."""

    _function: types.FunctionType

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if isinstance(value, types.ModuleType):
            setattr(self._function, name, value)


def keep_verbs(package: str, verbs: tuple[str, ...]) -> Finder:
    """Keep these names of a package for functions; returns what finds a function by its name."""
    door = sys.modules[package]
    vars(door)["_verbs"] = verbs
    door.__class__ = VerbPackage

    def find(name: str) -> object:
        home, own = listed(package)[name]
        function = getattr(import_module(home), own, None)
        folder = import_module(f"{package}.{name}")
        if function is None:  # its module is being imported and needs the folder itself
            return folder
        if not isinstance(folder, VerbFolder):
            vars(folder)["_function"] = function
            folder.__class__ = VerbFolder
            for module in [m for m in vars(folder).values() if isinstance(m, types.ModuleType)]:
                if module.__name__.startswith(f"{folder.__name__}."):
                    setattr(function, module.__name__.rpartition(".")[2], module)
        vars(door)[name] = function
        return function

    return find
