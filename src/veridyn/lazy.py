"""Public names that are imported when they are first used; the stub file beside a module is the only list of them.

    from veridyn.signals.butterworth import Butterworth as Butterworth          a line of signals/__init__.pyi

Editors and type checkers read the stub as it is; :func:`attach` reads it when a name of the module is first needed, so that importing the
module costs nothing.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable

Finder = Callable[[str], object]


def attach(module: str) -> tuple[Finder, Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a module whose public names are those of its stub."""

    def find(name: str) -> object:
        if name == "__all__":
            return sorted(listed(module))
        if name.startswith("__") or name not in listed(module):
            raise AttributeError(f"module '{module}' has no attribute '{name}'")
        home, own = listed(module)[name]
        # A stub that imports from its own package means a module in it.
        value = (
            importlib.import_module(f"{home}.{own}") if home == module else getattr(importlib.import_module(home), own)
        )
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
