"""Tables 5 to 8 of paper 003 as ``docs/papers/vehicle-observer.md`` has them, written from the figures of one run of the demonstration.

``python -m docs.buggy_tables [RESULT.json]`` prints them, from ``docs/papers/buggy.json`` where no result is given; a test holds that the
page has what this prints. That file holds errors from the result.json of ``veridyn demo buggy --seed 7100``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from veridyn.papers.buggy.observers import UNITS
from veridyn.papers.buggy.page_sections import REAL_DRIVE, Pair, both
from veridyn.papers.buggy.study import LARGEST, TABLES

FIGURES = Path(__file__).resolve().parent / "papers" / "buggy.json"
OBSERVERS = {
    "model alone": "_plain",
    "errorEKF": "_error_ekf",
    "forces alone": "_force_alone",
    "with forces": "_force",
    "EKF": "",
}
EXACT = {"EKF, equations exact": "_ekf_exact"}
VARIANTS = {"rows as printed": "_error_ekf_printed", "28 states": "_error_ekf_28"}
CASES = {  # heading → how its figures are called, the thesis' errors by quantity, and further columns
    "Table 5, straight": ("straight", {q: (TABLES["straight"][q], LARGEST["straight"][q]) for q in UNITS}, EXACT),
    "Table 6, circle": ("circular", {q: (TABLES["circular"][q], LARGEST["circular"][q]) for q in UNITS}, EXACT),
    "Table 7, uneven ground": ("ground", {q: pairs[0] for q, pairs in REAL_DRIVE.items()}, VARIANTS),
    "Table 8, receiver of 1 m": ("ground_coarse_gps", {q: pairs[1] for q, pairs in REAL_DRIVE.items()}, VARIANTS),
}


def table(heading: str, figures: Mapping[str, float]) -> list[str]:
    """One table of Markdown: rms, and the largest error in brackets, of the worst wheel."""
    case, thesis, more = CASES[heading]
    columns = {**OBSERVERS, **more}

    def found(q: str, end: str) -> Pair:
        return figures[f"rms_{case}_{q}{end}"], figures[f"max_{case}_{q}{end}"]

    lines = [f"| {heading} | thesis | " + " | ".join(columns) + " |", "|---" * (2 + len(columns)) + "|"]
    for q, unit in UNITS.items():
        cells = [both(thesis.get(q)), *(both(found(q, end)) for end in columns.values())]
        lines.append(f"| {q.replace('_', ' ')} ({unit}) | " + " | ".join(cells) + " |")
    return lines


def figures_of(file: Path = FIGURES) -> dict[str, float]:
    """The figures of a result."""
    return dict(json.loads(file.read_text(encoding="utf-8"))["figures"])


def main(arguments: Sequence[str]) -> int:
    """Print all four tables."""
    figures = figures_of(Path(arguments[0]) if arguments else FIGURES)
    for heading in CASES:
        sys.stdout.write("\n".join(table(heading, figures)) + "\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
