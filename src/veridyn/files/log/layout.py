"""How a text table is laid out: what separates its columns, which lines stand before its header, and what the columns are called.

    a header in the first line, or below a preamble: the last line of as many cells as the rows of numbers below it
    a row of units below the header: "s; deg; N*m" makes "t [s]", "q1 [deg]", "tau1 [N*m]"
    the several rows of names that motion capture writes (OptiTrack's Motive)

Columns are separated by semicolons, tabs, commas or, where lines have none of these, by any number of blanks.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from veridyn.errors import DataError, Fault, FileError
from veridyn.files.units import dimension
from veridyn.plain_text import read_cell

MISSING = ("", "nan", "NaN", "NAN", "NA", "null")
MOST_PARTS = 4096  # numbers of a list that become columns: longer ones are pictures or sounds
BLANKS = " "  # as a delimiter: any number of blanks
MARKS = (";", "\t", ",")
SAMPLED_LINES = 300  # of the beginning of a file, in which its header is looked for
MOTIVE_LENGTHS = {"meters": "m", "centimeters": "cm", "millimeters": "mm", "inches": "in", "feet": "ft"}
MOTIVE_CLOCK = "time (seconds)"
MOTIVE_WORDS = ("rotation", "position", "mean marker error", "marker quality")


class Unparsed(ValueError):
    """What a fast reader says of a table with a fault: hardly more than that there is one."""


@dataclass(frozen=True)
class CsvLayout:
    """How a file is laid out: `delimiter`, `decimal` mark, the names of all columns, and whether a header row has them.

    `skip`: lines before the header row, or before the numbers where there is none. `below`: lines between the header row and the
    numbers. A delimiter of one blank stands for any number of them.
    """

    delimiter: str
    decimal: str
    headers: tuple[str, ...]
    has_header: bool
    skip: int = 0
    below: int = 0

    @property
    def before(self) -> int:
        """Lines before the first row of numbers."""
        return self.skip + int(self.has_header) + self.below

    def cells(self, line: str) -> list[str]:
        """The cells of a line."""
        return cells_of(line, self.delimiter)


def cells_of(line: str, delimiter: str) -> list[str]:
    """The cells of a line, stripped."""
    if delimiter == BLANKS:
        return line.split()
    return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter), [])]


def first_places(headers: Sequence[str]) -> dict[str, int]:
    """Where each header stands first."""
    return {header: k for k, header in reversed([*enumerate(headers)])}


def is_number(cell: str, decimal: str = ".") -> bool:
    """Whether a cell holds a number; one that is empty holds none."""
    try:
        float(cell.replace(decimal, ".") if "_" not in cell else "no number")
    except ValueError:
        return False
    return cell not in MISSING


def find_layout(
    file: Path,
    names: Sequence[str] | Literal[False] | None,
    delimiter: str | None,
    decimal: str = ".",
    skip: int | None = None,
) -> CsvLayout:
    """Read the first lines. `names` are those of a file without a header row, False where nobody has named them: c1, c2, …; None says that
    it has one.

    `skip`: lines before the header row, or before the numbers; found by themselves if left out.
    """
    with file.open(encoding="utf-8-sig", newline="") as stream:
        lines = [line.rstrip("\r\n") for line in islice(stream, (skip or 0) + SAMPLED_LINES)]
        more = len(lines) == (skip or 0) + SAMPLED_LINES
    _refuse_empty(file, lines[skip or 0 :], names, more, skip)
    mark = delimiter or _delimiter(lines[skip or 0 :], decimal)
    table = [cells_of(line.lstrip("#%") if mark == BLANKS else line, mark) for line in lines]
    width = _width(table[skip or 0 :])
    if names is None:
        if skip is None and mark == ",":
            made = motive_headers(table)
            if made is not None:
                return CsvLayout(mark, decimal, made[0], True, made[1])
        return _with_header(table, mark, decimal, width, skip)
    if names is False:
        start = skip if skip is not None else _first_row(table, width, decimal, width)
        return CsvLayout(mark, decimal, numbered_names(len(table[start])), False, start)
    start = skip if skip is not None else _first_row(table, width, decimal, len(names))
    if len(names) != len(table[start]):
        what, hint = "`columns` does not fit the file.", "Give one name for each column, '' for one to skip."
        raise FileError(Fault(what, "", f"{len(table[start])} names", f"{len(names)}", hint, start + 1), str(file))
    return CsvLayout(mark, decimal, tuple(name.strip() for name in names), False, start)


def numbered_names(count: int) -> tuple[str, ...]:
    """What columns are called that nobody has named: c1, c2, …"""
    return tuple(f"c{k}" for k in range(1, count + 1))


def _refuse_empty(
    file: Path, lines: Sequence[str], names: Sequence[str] | Literal[False] | None, more: bool, skip: int | None
) -> None:
    held = [line for line in lines if line.strip()]
    if held and (len(held) > 1 or more or names is not None):
        return
    behind = f"nothing behind the {skip} lines that are skipped" if skip else "an empty file"
    expected = "rows of numbers" + (" under a header" if names is None else "")
    hint = "Check that the recording was stopped and saved."
    raise FileError(
        "it holds no samples.",
        where="",
        expected=expected,
        found="a header alone" if held else behind,
        hint=hint,
        source=str(file),
    )


def _delimiter(lines: Sequence[str], decimal: str) -> str:
    """The mark that most lines share, by the number of cells it makes; those of the first half may be a preamble."""
    held = [line for line in lines if line.strip()]
    held = held[len(held) // 2 :]
    for mark in MARKS:
        if mark != decimal and _usual([len(cells_of(line, mark)) for line in held]) > 1:
            return mark
    return BLANKS if _usual([len(line.split()) for line in held]) > 1 else ","


def _usual(counts: Sequence[int]) -> int:
    """The number of cells that most lines have; of several the first."""
    return Counter(counts).most_common(1)[0][0] if counts else 0


def _width(table: Sequence[Sequence[str]]) -> int:
    """The number of cells of a row: that of most lines in the second half, where no preamble is left."""
    counts = [len(row) for row in table if any(row)]
    return _usual(counts[len(counts) // 2 :])


def _first_numbers(table: Sequence[Sequence[str]], width: int, decimal: str) -> int | None:
    """The first line of that width of which half the cells hold numbers, or words for missing ones; failing that, one that holds any."""
    rows = {k: row for k, row in enumerate(table) if len(row) == width}
    counts = {k: sum(is_number(c, decimal) or bool(c and c in MISSING) for c in row) for k, row in rows.items()}
    half = next((k for k, n in counts.items() if 2 * n >= width), None)
    return next((k for k, n in counts.items() if n), None) if half is None else half


def _first_row(table: Sequence[Sequence[str]], width: int, decimal: str, named: int) -> int:
    """The first line of numbers of a file without a header row: the first of all, unless that is of another width."""
    if len(table[0]) in (width, named):
        return 0
    return _first_numbers(table, width, decimal) or 0


def _with_header(table: list[list[str]], mark: str, decimal: str, width: int, skip: int | None) -> CsvLayout:
    """The last line of as many cells as the numbers below it, or the one above a row of units; the first where there are no numbers."""
    at = 0 if skip is None else skip
    above = [k for k in range(_first_numbers(table, width, decimal) or 0) if len(table[k]) == width and any(table[k])]
    if skip is None and above:
        at = above[-1]
        if len(above) > 1 and above[-2] == at - 1 and _are_units(table[at]):
            at -= 1
    marked = [table[at][0].lstrip("#% "), *table[at][1:]] if table[at] else []  # some writers mark it as a comment
    headers = [read_cell(cell) for cell in marked]
    below = table[at + 1] if at + 1 < len(table) else []
    if len(below) == len(headers) and _are_units(below) and not any("[" in h for h in headers):
        named = [f"{h} [{_unit(u)}]" if h and u else h for h, u in zip(headers, below)]
        return CsvLayout(mark, decimal, tuple(named), True, at, 1)
    return CsvLayout(mark, decimal, tuple(headers), True, at)


def _unit(cell: str) -> str:
    return cell.strip().strip("[]()").strip()


def _are_units(row: Sequence[str]) -> bool:
    """Whether every cell of a row is a unit, or empty in some."""
    cells = [_unit(cell) for cell in row]
    return any(cells) and not any(is_number(c) for c in cells) and all(not c or _is_unit(c) for c in cells)


def _is_unit(text: str) -> bool:
    try:
        dimension(text)
    except DataError:
        return False
    return True


def motive_headers(table: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], int] | None:
    """Names of the columns of a table of OptiTrack's Motive, and the line of "Frame, Time (Seconds), …", from 0; None for another table.

        Format Version,1.22,…,Length Units,Meters,…
        ,,Rigid Body,Rigid Body,…
        ,,arm,arm,…
        ,,"180B…","180B…",…
        ,,Rotation,Position,…
        Frame,Time (Seconds),X,X,…

    becomes ``Frame [1]``, ``Time (Seconds) [s]``, ``arm.Rotation.X [1]``, ``arm.Position.X [m]``.
    """
    if not table or not table[0] or table[0][0].lower() != "format version":
        return None
    rows = (
        k for k, row in enumerate(table) if len(row) > 1 and (row[0].lower(), row[1].lower()) == ("frame", MOTIVE_CLOCK)
    )
    at = next(rows, None)
    if at is None:
        return None  # a device, such as a force plate: a plain table below a preamble
    settings = dict(zip(table[0][::2], table[0][1::2]))
    length = MOTIVE_LENGTHS.get(settings.get("Length Units", "Meters").lower(), "m")
    turned = "1" if settings.get("Rotation Type", "Quaternion").lower() == "quaternion" else "deg"
    above = [row for row in table[1:at] if len(row) == len(table[at])]
    blank = [""] * len(table[at])
    what = next((row for row in reversed(above) if any(cell.lower() in MOTIVE_WORDS for cell in row[2:])), blank)
    # Below the row of kinds (Marker, Rigid Body) stands that of names; parents and identifiers follow.
    names = above[1] if len(above) > 1 else blank
    headers = ["Frame [1]", f"{table[at][1]} [s]"]
    for name, quantity, axis in list(zip(names, what, table[at]))[2:]:
        unit = turned if quantity.lower() == "rotation" else "1" if "quality" in quantity.lower() else length
        headers.append(".".join(part for part in (name, quantity, axis) if part) + f" [{unit}]")
    return tuple(headers), at
