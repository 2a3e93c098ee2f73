"""The graph of imports: no circle, hidden inside a function or not, and no module of the package imports the front door.

Every import counts, also one inside a function or for type checkers only: a circle that is hidden there is still a circle to a reader.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import veridyn

PACKAGE = Path(veridyn.__file__).parent


def modules(package: Path) -> dict[str, Path]:
    """Dotted name → file of every module below a package."""
    found = {}
    for file in package.rglob("*.py"):
        parts = (package.name, *file.relative_to(package).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements below a node; no import stands inside an expression."""
    for name in ("body", "handlers", "orelse", "finalbody", "cases"):
        for inner in getattr(node, name, ()):
            yield inner
            yield from statements(inner)


def imports(text: str, known) -> set[str]:
    """The modules, of those that are known, that a source imports anywhere in it."""
    found = set()
    for node in statements(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in known else node.module for name in inner.values()}
    return found & set(known)


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Sets of nodes that reach each other (Tarjan, 1972), each in alphabetical order."""
    number, low, stack, found = {}, {}, [], []

    def visit(a: str) -> None:
        number[a] = low[a] = len(number)
        stack.append(a)
        for b in graph[a]:
            if b not in number:
                visit(b)
            if b in stack:
                low[a] = min(low[a], low[b])
        if low[a] == number[a]:
            k = stack.index(a)
            if len(stack) > k + 1:
                found.append(sorted(stack[k:]))
            del stack[k:]

    for a in sorted(graph):
        if a not in number:
            visit(a)
    return found


@cache
def graph_of(package: Path) -> dict[str, set[str]]:
    files = modules(package)
    return {name: imports(file.read_text(encoding="utf-8"), files) - {name} for name, file in files.items()}


def test_no_modules_import_each_other():
    assert circles(graph_of(PACKAGE)) == []


def test_nothing_below_imports_the_front_door():
    assert [name for name, found in graph_of(PACKAGE).items() if "veridyn" in found] == []


def test_circles_are_found_where_they_are_hidden():
    known = ("p", "p.a", "p.b", "p.c", "p.d")
    sources = {
        "p": "",
        "p.a": "from p.b import x",
        "p.b": "def f():\n    from p import c",
        "p.c": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import p.a",
        "p.d": "from p.a import y",
    }
    assert circles({name: imports(text, known) for name, text in sources.items()}) == [["p.a", "p.b", "p.c"]]
