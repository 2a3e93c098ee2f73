"""Numbers from delimited text, and where in the file there are none: fast by pyarrow, or cell by cell with every fault.

Cells hold a number, or nothing (also "nan", "NA", "null"), which is NaN. Lines are counted from 1, as an editor does.
Text is UTF-8, with or without a byte-order mark; empty lines are skipped. How a file is laid out is found in
:mod:`veridyn.files.log.layout`.
"""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from veridyn.errors import Faults, part_at
from veridyn.files.log.layout import BLANKS, MISSING, CsvLayout, is_number

Array = NDArray[np.float64]

BLOCK_BYTES = 1 << 20  # of text that is parsed at a time
MOST_FAULTS = 20  # of one kind; a file of the wrong format would otherwise report every line


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


def _fast(file: Path, layout: CsvLayout, wanted: Sequence[str]) -> dict[str, Array]:
    source = file
    if layout.delimiter == BLANKS:
        source = io.BytesIO(_with_tabs(file, layout))  # of the numbers alone
        layout = replace(layout, delimiter="\t", has_header=False, skip=0, below=0)
    most = _lines(source)
    out = {header: np.empty(most) for header in wanted}  # pages that are not written take no memory
    rows = 0
    for block in parsed_blocks(source, layout, wanted):
        last = rows + len(next(iter(block.values()), ()))
        for header, x in block.items():
            out[header][rows:last] = x
        rows = last
    return {header: x[:rows].copy() if rows < 0.9 * most else x[:rows] for header, x in out.items()}


def parsed_blocks(
    source: Path | io.BytesIO, layout: CsvLayout, wanted: Sequence[str], *, threads: bool = True
) -> Iterator[dict[str, Array]]:
    """The columns `wanted` of consecutive rows, by header, in the parser's memory: copy what is kept. Blanks are no delimiter here."""
    numbers = [f"{i}" for i in range(len(layout.headers))]  # headers may repeat in columns that are not wanted
    first = first_places(layout.headers)
    chosen = {header: numbers[first[header]] for header in wanted}
    with pacsv.open_csv(
        source,
        read_options=pacsv.ReadOptions(
            column_names=numbers, skip_rows=layout.before, block_size=BLOCK_BYTES, use_threads=threads
        ),
        parse_options=pacsv.ParseOptions(delimiter=layout.delimiter),
        convert_options=pacsv.ConvertOptions(
            include_columns=list(dict.fromkeys(chosen.values())),
            column_types={number: pa.float64() for number in chosen.values()},
            null_values=list(MISSING),
            decimal_point=layout.decimal,
        ),
    ) as reader:
        for batch in reader:
            yield {header: _numbers(batch[number]) for header, number in chosen.items()}


def first_places(headers: Sequence[str]) -> dict[str, int]:
    """Where each header stands first."""
    return {header: k for k, header in reversed([*enumerate(headers)])}


def _numbers(column: pa.Array) -> Array:
    """A column with NaN where a cell is empty. Arrow's own ``to_numpy`` imports pandas, which takes longer than to read most logs."""
    whole = column.fill_null(float("nan")) if column.null_count else column
    return np.asarray(np.from_dlpack(whole), dtype=np.float64)


def _lines(source: Path | io.BytesIO) -> int:
    """No fewer than the lines of a text."""
    count = 1
    with source.open("rb") if isinstance(source, Path) else contextlib.nullcontext(source) as stream:
        while part := stream.read(BLOCK_BYTES):
            count += part.count(b"\n") + part.count(b"\r")
        if isinstance(source, io.BytesIO):
            source.seek(0)
    return count


def _with_tabs(file: Path, layout: CsvLayout) -> bytes:
    """The rows of a file whose columns blanks separate, with one tab in place of them."""
    with file.open("rb") as stream:
        rows = stream.read().removeprefix(b"\xef\xbb\xbf").splitlines()[layout.before :]
    return b"\n".join(b"\t".join(row.split()) for row in rows) + b"\n"


def _rows(lines: Iterable[str], layout: CsvLayout) -> Iterator[tuple[int, list[str]]]:
    """The rows that hold something, each with the number of its line."""
    if layout.delimiter == BLANKS:
        yield from ((k, line.split()) for k, line in enumerate(lines, layout.before + 1) if line.strip())
        return
    reader = csv.reader(lines, delimiter=layout.delimiter)
    yield from ((layout.before + reader.line_num, row) for row in reader if row)


def _cell_by_cell(file: Path, layout: CsvLayout, wanted: Sequence[str], faults: Faults) -> dict[str, Array]:
    first = first_places(layout.headers)
    places = [(header, first[header]) for header in wanted]
    values: dict[str, list[float]] = {header: [] for header in wanted}
    ragged = textual = 0
    with file.open(encoding="utf-8-sig", newline="") as stream:
        for _ in range(layout.before):
            stream.readline()
        for line, row in _rows(stream, layout):
            if len(row) != len(layout.headers):
                ragged += 1
                if ragged <= MOST_FAULTS:
                    faults.add(
                        "the row has another length than the first.",
                        expected=f"{len(layout.headers)} cells",
                        found=f"{len(row)}",
                        hint="A last row that is cut off means that the recording stopped while writing; delete it.",
                        line=line,
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
                        line=line,
                    )
    if max(ragged, textual) > MOST_FAULTS:
        faults.add(
            f"{ragged} rows of another length and {textual} cells that are no numbers in all; the first are listed."
        )
    return {header: np.array(column) for header, column in values.items()}


def _number(cell: str, decimal: str) -> float | None:
    if cell in MISSING:
        return float("nan")
    return float(cell.replace(decimal, ".")) if is_number(cell, decimal) else None
