"""Numbers from delimited text, and where in the file there are none: fast by pyarrow, or cell by cell with every fault.

Cells hold a number, or nothing (also "nan", "NA", "null"), which is NaN. Lines are counted from 1, as an editor does.
Text is UTF-8, with or without a byte-order mark; empty lines are skipped.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from veridyn.errors import Fault, Faults, FileError, part_at

Array = NDArray[np.float64]

MISSING = ("", "nan", "NaN", "NAN", "NA", "null")
MOST_FAULTS = 20  # of one kind; a file of the wrong format would otherwise report every line


@dataclass(frozen=True)
class CsvLayout:
    """How a file is laid out: `delimiter`, `decimal` mark, the names of all columns, and whether a header row has them."""

    delimiter: str
    decimal: str
    headers: tuple[str, ...]
    has_header: bool


def find_layout(file: Path, names: Sequence[str] | None, delimiter: str | None, decimal: str = ".") -> CsvLayout:
    """Read the first line. `names` are those of a file without a header row; None says that it has one."""
    with file.open(encoding="utf-8-sig", newline="") as stream:
        line = stream.readline()
        more = any(rest.strip() for rest in stream)
    mark = delimiter or _delimiter(line)
    first = next(csv.reader([line], delimiter=mark), [])
    if not line.strip() or not (more or names is not None):
        raise FileError(
            Fault(
                "it holds no samples.",
                expected="rows of numbers" + (" under a header" if names is None else ""),
                found="a header alone" if line.strip() else "an empty first line" if more else "an empty file",
                hint="Check that the recording was stopped and saved.",
            ),
            str(file),
        )
    if names is None:
        first[0] = first[0].lstrip("# ")  # some writers mark the header as a comment
        return CsvLayout(mark, decimal, tuple(cell.strip() for cell in first), True)
    if len(names) != len(first):
        spaced = len(first) == 1 and len(line.split()) == len(names)
        raise FileError(
            Fault(
                "`columns` does not fit the file.",
                expected=f"{len(first)} names",
                found=f"{len(names)}",
                hint="The columns seem to be separated by spaces; pass delimiter=' '."
                if spaced
                else "Give one name for each column, '' for one to skip.",
                line=1,
            ),
            str(file),
        )
    return CsvLayout(mark, decimal, tuple(name.strip() for name in names), False)


def read_columns(file: Path, layout: CsvLayout, wanted: Sequence[str], faults: Faults) -> dict[str, Array]:
    """The columns `wanted` as float64, by header. What is wrong goes to `faults`, and then the result means nothing.

    The fast reader stops at the first fault, so a file with faults (here or found before) is read again, cell by cell.
    """
    if not faults:
        try:
            return _fast(file, layout, wanted)
        except pa.ArrowInvalid:
            pass
    return _cell_by_cell(file, layout, wanted, faults)


def _delimiter(line: str) -> str:
    counts = {mark: line.count(mark) for mark in (",", ";", "\t")}
    best = max(counts, key=lambda mark: counts[mark])
    return best if counts[best] else ","


def _fast(file: Path, layout: CsvLayout, wanted: Sequence[str]) -> dict[str, Array]:
    numbers = [f"{i}" for i in range(len(layout.headers))]  # headers may repeat in columns that are not wanted
    chosen = {header: numbers[layout.headers.index(header)] for header in wanted}
    table = pacsv.read_csv(
        file,
        read_options=pacsv.ReadOptions(column_names=numbers, skip_rows=1 if layout.has_header else 0),
        parse_options=pacsv.ParseOptions(delimiter=layout.delimiter),
        convert_options=pacsv.ConvertOptions(
            include_columns=list(chosen.values()),
            column_types={number: pa.float64() for number in chosen.values()},
            null_values=list(MISSING),
            decimal_point=layout.decimal,
        ),
    )
    return {header: np.array(table[number].to_numpy(), dtype=np.float64) for header, number in chosen.items()}


def _cell_by_cell(file: Path, layout: CsvLayout, wanted: Sequence[str], faults: Faults) -> dict[str, Array]:
    places = [(header, layout.headers.index(header)) for header in wanted]
    values: dict[str, list[float]] = {header: [] for header in wanted}
    ragged = textual = 0
    with file.open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.reader(stream, delimiter=layout.delimiter)
        if layout.has_header:
            next(reader, None)
        for row in reader:
            if not row:
                continue
            if len(row) != len(layout.headers):
                ragged += 1
                if ragged <= MOST_FAULTS:
                    faults.add(
                        "the row has another length than the first.",
                        expected=f"{len(layout.headers)} cells",
                        found=f"{len(row)}",
                        hint="A last row that is cut off means that the recording stopped while writing; delete it.",
                        line=reader.line_num,
                    )
                continue
            for header, place in places:
                number = _number(row[place].strip(), layout.decimal)
                if number is not None:
                    values[header].append(number)
                    continue
                textual += 1
                if textual <= MOST_FAULTS:
                    faults.add(
                        "the cell is not a number.",
                        where=part_at("column", header),
                        found=f"'{row[place].strip()[:40]}'",
                        hint="Choose the columns that hold numbers with columns={channel: header}.",
                        line=reader.line_num,
                    )
    if max(ragged, textual) > MOST_FAULTS:
        faults.add(
            f"{ragged} rows of another length and {textual} cells that are no numbers in all; the first are listed."
        )
    return {header: np.array(column) for header, column in values.items()}


def _number(cell: str, decimal: str) -> float | None:
    if cell in MISSING:
        return float("nan")
    try:
        return float(cell.replace(decimal, ".") if "_" not in cell else "no number")
    except ValueError:
        return None
