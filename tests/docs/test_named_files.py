"""What the pages and docstrings name is there: tests and other files by their path, and the versions of formats and peers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from veridyn.files.machine.write_parts import FORMAT

ROOT = Path(__file__).resolve().parent.parent.parent
AT_THE_TOP = (
    "README.md",
    "CONTRIBUTING.md",
    "AGENTS.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "paper/paper.md",
    "docs/llms.txt",
)
PAGES = [*(ROOT / n for n in AT_THE_TOP), *sorted((ROOT / "docs").rglob("*.md"))]
SOURCES = [*sorted((ROOT / "src").rglob("*.py")), *sorted((ROOT / "examples").rglob("*.py"))]
NAMED = re.compile(
    r"\b(?:tests|examples|benchmarks|packaging|paper|src/veridyn)/[\w./-]*\w\.(?:py|md|yaml|csv|txt|urdf|svg)\b"
)
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")
MADE = ("reference/", "study-file.md")  # pages that docs/hooks.py writes
YAML_BLOCK = re.compile(r"```yaml\n(.*?)```", re.DOTALL)


def missing(text: str) -> Iterator[str]:
    """Paths in a text that lead nowhere; and tests, tests/…py::test_…, that their file does not have."""
    for found in NAMED.finditer(text):
        file = ROOT / found[0]
        named = re.match(r"::(\w+)", text[found.end() :])
        if not file.is_file() or (named and f"def {named[1]}(" not in file.read_text(encoding="utf-8")):
            yield found[0] + (named[0] if named else "")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    assert not [*missing(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_link_to_a_file_leads_there(page: Path) -> None:
    links = LINK.findall(page.read_text(encoding="utf-8"))
    assert not [n for n in links if not n.removeprefix("../").startswith(MADE) and not (page.parent / n).exists()]


def test_every_file_that_a_docstring_names_exists() -> None:
    gone = {str(p.relative_to(ROOT)): [*missing(p.read_text(encoding="utf-8"))] for p in SOURCES}
    assert not {page: names for page, names in gone.items() if names}


def test_what_does_not_exist_is_found() -> None:
    own = "tests/docs/test_named_files.py"
    assert [*missing(f"`{own}` and {own}::test_what_does_not_exist_is_found prints")] == []
    assert [*missing(f"tests/docs/test_gone.py, {own}::test_gone")] == ["tests/docs/test_gone.py", f"{own}::test_gone"]


def models() -> Iterator[tuple[str, str]]:
    """Name and text of each model file that is shipped or printed: those with bodies of their own."""
    folders = (ROOT / "examples", ROOT / "src" / "veridyn")
    texts = {
        str(f.relative_to(ROOT)): f.read_text(encoding="utf-8") for d in folders for f in sorted(d.rglob("*.yaml"))
    }
    for page in PAGES:
        blocks = YAML_BLOCK.findall(page.read_text(encoding="utf-8"))
        texts |= {f"{page.relative_to(ROOT)}, block {k}": text for k, text in enumerate(blocks, 1)}
    for name, text in texts.items():
        if re.search(r"^bodies:", text, re.MULTILINE) and re.search(r"^veridyn:", text, re.MULTILINE):
            yield name, text


def test_models_that_are_shipped_or_printed_are_of_the_current_version() -> None:
    """Version 1 is read, and shown to nobody as what to write."""
    found = dict(models())
    assert len(found) > 15
    assert not [n for n, text in found.items() if not re.search(rf"^veridyn: {FORMAT}\b", text, re.MULTILINE)]


def test_the_peer_that_is_compared_is_the_one_that_was_measured() -> None:
    measured = re.search(r"Pinocchio (\d+)\.", (ROOT / "benchmarks" / "results.md").read_text(encoding="utf-8"))
    assert measured
    assert f"[Pinocchio](https://github.com/stack-of-tasks/pinocchio) {measured[1]} |" in (
        ROOT / "README.md"
    ).read_text(encoding="utf-8")
