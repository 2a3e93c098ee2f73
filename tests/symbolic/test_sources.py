"""What machine code is made of: imports are followed, comments and docstrings do not count, and neither does what is not imported."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

from veridyn.symbolic import cache, sources
from veridyn.symbolic.sources import FLOORS, PACKAGE, meaning_of, note_sources, source_digest, source_meaning

SOURCE = r'''"""About the module.

# no comment
"""

from veridyn.model import a, b as other  # why
import os, veridyn.spatial.c


class Kind:
    """A class."""

    word = "# no comment"

    def f(
        self,
    ) -> str:
        """A function."""

        # a comment
        from veridyn.signals.d import (
            one,  # the first
            two,
        )

        text = """
        # of the text
        """
        return text + f"{self.word}#" + r'\d"'
'''


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "objects"))


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """mechanics.a imports model.b, which imports spatial.c within a function; nothing imports the others."""
    found = tmp_path / "veridyn"
    texts = {
        "mechanics/a.py": "from veridyn.model import b\n",
        "model/b.py": "def f():\n    from veridyn.spatial.c import x\n    return x\n",
        "spatial/c.py": "x = 1\n",
        "spatial/d.py": "x = 1\n",
        "model/e.py": "x = 1\n",
        "report/f.py": "x = 1\n",
        "errors.py": "x = 1\n",
    }
    for name, text in texts.items():
        (found / name).parent.mkdir(parents=True, exist_ok=True)
        (found / name).write_text(text)
        (found / name).parent.joinpath("__init__.py").touch()
    return found


def new_process() -> None:
    """Forget what was noted and read, as a new process would."""
    for kept in ("_rooms_in_reach", "_noted", "_unchanged", "_digest", "_source", "_meanings", "source_meaning"):
        getattr(sources, kept).cache_clear()


def digest_of(module: str, package: Path) -> str:
    new_process()
    found = source_digest(module, package)
    assert found is not None and len(found) == 64
    return found


def without_docstrings(text: str) -> str:
    """The same by Python's own parser."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and ast.get_docstring(node) is not None
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.dump(tree)


def test_imports_are_read_from_the_text() -> None:
    assert meaning_of(SOURCE).imports == (
        ("veridyn.model", "a"),
        ("veridyn.model", "b"),
        ("os", ""),
        ("veridyn.spatial.c", ""),
        ("veridyn.signals.d", "one"),
        ("veridyn.signals.d", "two"),
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  # why", ""),
        ("# a comment", "# another\n\n        # of two lines"),
        ("About the module.", "Something else."),
        ("A class.", "Another\n\n    class, # with a sign."),
        ("A function.", "It's another 'one'."),
    ],
)
def test_comments_and_docstrings_do_not_count(old: str, new: str) -> None:
    changed = SOURCE.replace(old, new)
    assert changed != SOURCE and without_docstrings(changed) == without_docstrings(SOURCE)
    assert meaning_of(changed) == meaning_of(SOURCE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# of the text", "# of a text"),
        ('"# no comment"', '"# a comment"'),
        ("b as other", "c as other"),
        ("word}#", "word}"),
    ],
)
def test_everything_else_counts(old: str, new: str) -> None:
    changed = SOURCE.replace(old, new)
    assert changed != SOURCE and meaning_of(changed).digest != meaning_of(SOURCE).digest


def test_no_string_of_the_package_but_docstrings_is_left_out() -> None:
    """Of one room, against Python's own parser: a change within any other string of several lines is seen."""
    for path in sorted((PACKAGE / "symbolic").rglob("*.py")):
        text = path.read_text("utf-8")
        tree = ast.parse(text)
        docstrings = {
            node.body[0].value.lineno
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None
            for first in node.body[:1]
            if isinstance(first, ast.Expr)
        }
        lines = text.splitlines(keepends=True)
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.lineno not in docstrings:
                line = lines[node.lineno - 1]
                at = len(line.encode()[: node.col_offset].decode())
                changed = [*lines[: node.lineno - 1], line[:at] + "unlikely, " + line[at:], *lines[node.lineno :]]
                assert meaning_of("".join(changed)).digest != meaning_of(text).digest, (path, node.lineno)
                break


@pytest.mark.parametrize(
    "name", ["mechanics/a.py", "model/b.py", "spatial/c.py", "spatial/__init__.py", "model/__init__.py"]
)
def test_what_is_imported_counts(package: Path, name: str) -> None:
    before = digest_of("veridyn.mechanics.a", package)
    with (package / name).open("a") as file:
        file.write("# a comment\n")
    assert digest_of("veridyn.mechanics.a", package) == before
    with (package / name).open("a") as file:
        file.write("y = 2\n")
    assert digest_of("veridyn.mechanics.a", package) != before


@pytest.mark.parametrize("name", ["spatial/d.py", "model/e.py", "report/f.py", "errors.py"])
def test_what_is_not_imported_does_not_count(package: Path, name: str) -> None:
    before = digest_of("veridyn.mechanics.a", package)
    (package / name).write_text("x = 2\n")
    assert digest_of("veridyn.mechanics.a", package) == before


def test_all_of_a_package_counts_where_no_module_has_the_name(package: Path) -> None:
    (package / "mechanics" / "a.py").write_text("from veridyn.model import Machine\n")
    before = digest_of("veridyn.mechanics.a", package)
    (package / "model" / "e.py").write_text("x = 2\n")
    assert digest_of("veridyn.mechanics.a", package) != before


def test_the_floors_are_those_of_the_import_contract() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    layers = next(c for c in project["tool"]["importlinter"]["contracts"] if c["type"] == "layers")["layers"]
    assert tuple(tuple(layer.split(" | ")) for layer in layers) == FLOORS


@pytest.mark.parametrize("module", ["other.mechanics.a", "__main__", "veridyn", "veridyn.mechanics.missing"])
def test_what_has_no_source_in_the_package_has_no_digest(package: Path, module: str) -> None:
    new_process()
    assert source_digest(module, package) is None and source_meaning(module, package) == ""


def test_sources_edited_under_a_running_process_have_no_digest(package: Path) -> None:
    """The process runs what it imported; a digest of what lies there now would give old code a new name."""
    new_process()
    note_sources("veridyn.mechanics.a", package)
    (package / "report" / "f.py").write_text("x = 'edited'\n")
    assert source_digest("veridyn.mechanics.a", package) is not None
    new_process()
    note_sources("veridyn.mechanics.a", package)
    (package / "model" / "b.py").write_text("x = 'edited'\n")
    assert source_digest("veridyn.mechanics.a", package) is None
    assert digest_of("veridyn.mechanics.a", package)


def test_meanings_are_found_again(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest_of("veridyn.mechanics.a", package)
    monkeypatch.setattr(sources, "meaning_of", lambda text: pytest.fail(f"read again: {text}"))
    assert digest_of("veridyn.mechanics.a", package) == before
    monkeypatch.undo()


def test_kernels_of_the_package_are_made_of_their_own_sources() -> None:
    new_process()
    engine = "veridyn.mechanics.tree.dynamics.engine"
    reached = sources._reached(engine, PACKAGE)
    assert {"mechanics/tree/recursion/newton_euler.py", "symbolic/emit_llvm.py", "model/elements/kinds.py"} <= reached
    assert not [name for name in reached if name.startswith(("identify/", "observe/", "files/", "mechanics/natural/"))]
