"""Verbs that share their name with a folder: ``veridyn.identify`` is the function, also after ``import veridyn.identify.base``.

The import system binds a folder to its name in the package. The package keeps the name for the function, and modules of the folder are
attributes of the function as well, so that ``import veridyn.identify.base as base`` and ``veridyn.identify.base`` mean what they say.
"""

from __future__ import annotations

import sys
import types

from veridyn.lazy import Finder, import_module, listed


class Door(types.ModuleType):
    """A package in which the names of `_verbs` never mean folders."""

    _verbs: tuple[str, ...]

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in self._verbs and isinstance(value, types.ModuleType)):
            super().__setattr__(name, value)


class Folder(types.ModuleType):
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
    door.__class__ = Door

    def find(name: str) -> object:
        home, own = listed(package)[name]
        function = getattr(import_module(home), own, None)
        folder = import_module(f"{package}.{name}")
        if function is None:  # its module is being imported and needs the folder itself
            return folder
        if not isinstance(folder, Folder):
            vars(folder)["_function"] = function
            folder.__class__ = Folder
            for module in [m for m in vars(folder).values() if isinstance(m, types.ModuleType)]:
                if module.__name__.startswith(f"{folder.__name__}."):
                    setattr(function, module.__name__.rpartition(".")[2], module)
        vars(door)[name] = function
        return function

    return find
