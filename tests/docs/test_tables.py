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
