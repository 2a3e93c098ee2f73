"""Tables 5 to 8 of the vehicle observer's page are those that the figures of its run make."""

from __future__ import annotations

import pytest
from docs.buggy_tables import CASES, FIGURES, figures_of, main, table

from veridyn.papers.buggy.observers import UNITS

PAGE = FIGURES.with_name("vehicle-observer.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("heading", CASES)
def test_the_page_has_what_the_command_prints(heading: str) -> None:
    lines = table(heading, figures_of())
    assert len(lines) == 2 + len(UNITS)
    assert "\n".join(lines) in PAGE


def test_all_tables_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    printed = capsys.readouterr().out
    assert [printed.count(f"| {heading} |") for heading in CASES] == [1, 1, 1, 1]
