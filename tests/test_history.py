"""The history of speed: the page is written from the kept rows, a commit stands once, and what it did not have is a dash."""

from __future__ import annotations

from benchmarks.history import END, FIELDS, PAGE, START, kept_rows, table, written


def row(commit: str, quantity: str, ms: str) -> dict[str, str]:
    return dict(zip(FIELDS, (commit, "2026-11-18", "x86", quantity, ms), strict=True))


def test_quantities_go_down_and_commits_across() -> None:
    lines = table([row("aa", "import", "100"), row("bb", "import", "90"), row("bb", "fit", "7.5")]).splitlines()
    assert lines[0] == "| ms of processor | 2026-11-18, `aa` | 2026-11-18, `bb` |"
    assert lines[2:] == ["| import | 100 | 90 |", "| fit | – | 7.5 |", "| processor | x86 | x86 |"]


def test_only_what_is_between_the_marks_is_written_anew() -> None:
    page = f"before\n{START}\nold\n{END}\nafter"
    made = written(page, [row("aa", "import", "100")])
    assert made.startswith(f"before\n{START}\n\n|") and made.endswith(f"|\n\n{END}\nafter") and "old" not in made
    assert written(made, [row("aa", "import", "100")]) == made


def test_the_page_shows_the_kept_rows() -> None:
    rows, page = kept_rows(), PAGE.read_text(encoding="utf-8")
    assert written(page, rows) == page
    assert len({(r["commit"], r["quantity"]) for r in rows}) == len(rows) > 0
    assert all(float(r["ms"]) > 0.0 for r in rows)
