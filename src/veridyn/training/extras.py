"""Modules whose names need a package that is not always installed."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

from veridyn.errors import DataError
from veridyn.lazy import attach


def attach_extra(module: str, package: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """:func:`veridyn.lazy.attach` of a module that needs a package; without it, an error that names the extra."""
    find, names = attach(module)

    def found(name: str) -> object:
        try:
            return find(name)
        except ImportError:
            if find_spec(package) is not None:
                raise
        raise DataError(
            f"{module} needs {package}, which is not installed.",
            where=f"{module}.{name}",
            hint=f"Install the extra: pip install 'veridyn[{package}]'.",
        )

    return found, names
