"""Tables on the papers' pages that say how to make each table and figure again: command, seeds, minutes.

``python -m docs.reproduce`` writes them between the marks ``<!-- reproduce -->`` and ``<!-- end -->`` of the pages, from
``docs/papers/claims.yaml`` (commands and seeds) and ``docs/papers/claims.json`` (minutes). A test holds that the commands and seeds
there are those of the rows; minutes are those of the last runs.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from docs.claims import DEMONSTRATION
from docs.claims_rules import ROOT, Claim, Runs, claims, results

FOLDER = ROOT / "docs" / "papers"
PAGES = {  # page → paper and, where a paper has two, which items
    "car.md": (("000", ""), ("001", "")),
    "hexapod.md": (("002", ""),),
    "observers.md": (("003", "chapter 3"),),
    "vehicle-observer.md": (("003", ""),),
    "humanoid.md": (("004", ""),),
}
DEMOS = {"000": "car", "001": "car", "002": "hexapod", "003": "buggy", "004": "humanoid"}
BEGIN, END = "<!-- reproduce -->", "<!-- end -->"
SHOWN = re.compile(r"Table|Fig")
FOURBAR = re.compile(r"fourbar|mechanics/natural/equations/test_(position|constraints)")
HEAD = "| what | command | seeds | minutes a seed | in the report |\n|---|---|---|---|---|\n"
FIGURES = "| Figs. 35–76, both engines | `python -m benchmarks.chapter5 --out DIR` | 0 | 7 in all | `report.html` |\n"


def lines(paper: str, part: str, runs: Runs) -> Iterator[str]:
    """A line for each result, and for each table and figure that a test or a section of a report shows; those of one command together."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for claim in claims():
        if claim.paper != paper or _elsewhere(claim, part):
            continue
        if claim.kind == "result" or SHOWN.search(claim.item):
            groups.setdefault((_command(claim), _seeds(claim), _minutes(claim, runs)), []).append(claim.item)
    sections = {claim.item: _section(claim) for claim in claims() if claim.paper == paper}
    for (command, seeds, spent), items in groups.items():
        shown = sorted({sections[item] for item in items} - {""})
        yield f"| {'; '.join(items)} | `{command}` | {seeds} | {spent} | {'; '.join(shown) or '–'} |\n"


def _elsewhere(claim: Claim, part: str) -> bool:
    """Whether a claim of paper 003 belongs to its other page."""
    own = bool(FOURBAR.search(claim.command or claim.test) or FOURBAR.search(" ".join(claim.by)))
    return claim.paper == "003" and own != bool(part)


def _command(claim: Claim) -> str:
    if claim.command:
        return claim.command.replace(" --out {out}", "").replace("{seed}", "SEED")
    return f"pytest {claim.test}"


def _seeds(claim: Claim) -> str:
    return f"{claim.seeds[0]}–{claim.seeds[-1]}" if claim.seeds else "in the test"


def _minutes(claim: Claim, runs: Runs) -> str:
    spent = [runs[run].minutes for run in map(claim.run, claim.seeds) if run in runs]
    return f"{sum(spent) / len(spent):.1f}" if spent else "–"


def _section(claim: Claim) -> str:
    found = [DEMONSTRATION.fullmatch(name) for name in claim.by]
    return "; ".join(f"{one[1]}: {one[2]}" for one in found if one)


def block(page: str, runs: Runs) -> str:
    """What stands between the marks of a page."""
    rows = [line for paper, part in PAGES[page] for line in lines(paper, part, runs)]
    if page == "vehicle-observer.md":
        rows.append(FIGURES)
    return f"{BEGIN}\n\n{HEAD}{''.join(rows)}\n{END}"


def set_in(text: str, new: str) -> str:
    """A page with the text between its marks replaced."""
    before, _, rest = text.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"a page has no {BEGIN} … {END}")
    return before + new + after


def without_minutes(text: str) -> list[list[str]]:
    """The rows of the table between the marks, without their minutes."""
    found = text.partition(BEGIN)[2].partition(END)[0]
    rows = [line.split(" | ") for line in found.splitlines() if line.startswith("| ")]
    return [[cell for k, cell in enumerate(row) if k != 3] for row in rows]


def main(arguments: Sequence[str]) -> int:
    """Write all pages, with the minutes of a result file, which is claims.json unless another is named."""
    runs = results(Path(arguments[0])) if arguments else results()
    for page in PAGES:
        file = FOLDER / page
        file.write_text(set_in(file.read_text(encoding="utf-8"), block(page, runs)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
