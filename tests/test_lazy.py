"""Names that a stub lists are found when they are first used, and nothing else is."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

import veridyn
from veridyn.lazy import listed

PACKAGE = Path(veridyn.__file__).parent
STUBS = sorted(PACKAGE.rglob("*.pyi"))
MODULES = [
    ".".join(("veridyn", *p.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__") for p in STUBS
]


@pytest.mark.parametrize("module", MODULES)
def test_every_listed_name_is_there_and_is_the_one_of_its_home(module: str) -> None:
    door = importlib.import_module(module)
    assert dir(door) == sorted(listed(module)) == door.__all__
    for name, (home, own) in listed(module).items():
        value = getattr(door, name)
        assert value is not None
        if home not in ("", module):
            assert value is getattr(importlib.import_module(home), own)


@pytest.mark.parametrize("module", MODULES)
def test_what_is_not_listed_is_refused_by_name(module: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{module}' has no attribute 'nonsense'"):
        _ = importlib.import_module(module).nonsense


@pytest.mark.parametrize("stub", STUBS, ids=str)
def test_a_stub_holds_its_docstring_and_names_and_nothing_else(stub: Path) -> None:
    """A line that the module does not read would be a name for the type checker alone."""
    docstring, *lines = ast.parse(stub.read_text("utf-8")).body
    assert isinstance(docstring, ast.Expr)
    for line in lines:
        if isinstance(line, ast.ImportFrom):
            assert line.level == 0 and all(alias.asname == alias.name for alias in line.names)
        else:
            assert isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)


@pytest.mark.parametrize("module", [m for m in MODULES if m != "veridyn"])
def test_no_listed_name_is_that_of_a_file_in_the_folder(module: str) -> None:
    """It would mean the file as soon as something imports it. The verbs of the package itself are cared for: test_verbs."""
    folder = PACKAGE.joinpath(*module.split(".")[1:])
    files = {p.stem for p in folder.glob("*")} if folder.is_dir() else set()
    assert not files & set(listed(module))


def test_a_module_with_lazy_names_has_a_stub() -> None:
    users = {p for p in PACKAGE.rglob("*.py") if "= attach(__name__)" in p.read_text("utf-8")}
    assert {p.with_suffix(".pyi") for p in users} == set(STUBS)
