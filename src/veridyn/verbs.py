"""Rooms that are also verbs: ``veridyn.identify`` is a folder, and ``veridyn.identify(tree, motion)`` identifies.

A package and a function cannot both be the attribute of one name, so the package itself is made callable.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import types
from typing import Any


class Verb(types.ModuleType):
    """A package that does what one of its functions does."""

    _spoken: tuple[str, str]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function()(*args, **kwargs)

    def _function(self) -> Any:
        home, name = self._spoken
        return getattr(importlib.import_module(home), name)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self._function())


def speak(room: str, home: str, function: str) -> None:
    """Make the package `room` callable as `function` of the module `home`, which is imported when it is first called."""
    package = sys.modules[room]
    package.__class__ = Verb
    package._spoken = (home, function)  # pyright: ignore[reportAttributeAccessIssue]
