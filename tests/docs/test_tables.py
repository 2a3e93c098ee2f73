"""Tables of README and documentation are whole: a blank line inside one makes text of the rows behind it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
RULE = re.compile(r"\|(\s*:?-+:?\s*\|)+\s*$")  # the line below the header of a table


def beginnings(text: str) -> Iterator[tuple[int, bool]]:
    """(line, whether it is a header) of each line outside code that starts with a bar and has no such line above it.

    A header has the rule below it, with as many cells, and a blank line above it.
    """
    lines, code = ["", *text.splitlines(), ""], False
    for k in range(1, len(lines) - 1):
        above, line, below = lines[k - 1 : k + 2]
        code ^= line.lstrip().startswith("```")
        if line.startswith("|") and not above.startswith("|") and not code:
            yield k, not above.strip() and bool(RULE.match(below)) and line.count("|") >= below.count("|")


def uneven(text: str) -> list[int]:
    """Lines of tables outside code that have another number of cells than the header of their table."""
    found, code, wanted = [], False, 0
    for k, line in enumerate(text.splitlines(), 1):
        code ^= line.lstrip().startswith("```")
        if code or not line.startswith("|"):
            wanted = 0
            continue
        cells = re.sub(r"`[^`]*`|\\\|", "", line.rstrip()).count("|")
        wanted = wanted or cells
        found += [k] if cells != wanted else []
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_row_of_a_table_has_as_many_cells_as_its_header(page: Path) -> None:
    """A cell too few moves what follows it under the head of its neighbour."""
    assert not uneven(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_table_begins_with_a_header(page: Path) -> None:
    cut = [f"{page.name}:{k}" for k, header in beginnings(page.read_text(encoding="utf-8")) if not header]
    assert not cut


def test_a_table_that_is_cut_is_found() -> None:
    whole = "text\n\n| a | b |\n|---|:-:|\n| 1 | 2 |\n| 3 | 4 |\n"
    assert list(beginnings(whole)) == [(3, True)]
    assert list(beginnings(whole.replace("| 3", "\n| 3"))) == [(3, True), (7, False)]
    assert list(beginnings(whole.replace("text\n\n", "text\n"))) == [(2, False)]
    assert list(beginnings(f"```\n{whole}```\n")) == []
    assert uneven(whole) == [] and uneven(whole.replace("| 3 ", "")) == [6]
    assert uneven("| a | b |\n|---|---|\n| `x|y` | \\| |\n") == []
