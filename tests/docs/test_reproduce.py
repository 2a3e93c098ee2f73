"""Pages say how each table and figure is made again, with the commands and seeds of the rows that rest on them."""

from __future__ import annotations

import pytest
from docs.claims_rules import claims
from docs.reproduce import BEGIN, END, FOLDER, PAGES, block, set_in, without_minutes


@pytest.mark.parametrize("page", sorted(PAGES))
def test_a_page_has_the_commands_of_its_rows(page: str) -> None:
    """Put right by ``python -m docs.reproduce``; minutes may be those of other runs."""
    text = (FOLDER / page).read_text(encoding="utf-8")
    assert without_minutes(text) == without_minutes(block(page, {}))


def test_every_result_stands_on_a_page() -> None:
    every = "".join(block(page, {}) for page in PAGES)
    assert [claim.item for claim in claims() if claim.kind == "result" and claim.item not in every] == []


def test_marks_are_needed_and_what_stands_outside_stays() -> None:
    assert set_in(f"a {BEGIN} old {END} b", "new") == "a new b"
    with pytest.raises(ValueError, match="no"):
        set_in("a page", "new")
