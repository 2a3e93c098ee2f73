"""Columns of numbers of tables, by header: delimited text, Parquet files, data frames in memory; and logs written as tables.

Text is read fast by pyarrow or, where that finds a fault, cell by cell with every fault. Cells hold a number, or nothing (also "nan", "NA",
"null"), which is NaN. Lines are counted from 1, as an editor does. Text is UTF-8, with or without a byte-order mark; empty lines are
skipped. How a file is laid out is found in :mod:`veridyn.files.log.layout`. Of a data frame of pandas, polars or pyarrow, none of which is
imported here, a named index is a column like the others; dates are times in seconds since 1970, durations in seconds.
"""

from __future__ import annotations

import contextlib
import csv
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from veridyn.arguments import checked
from veridyn.errors import DataError, Faults, FileError, part_at
from veridyn.files.access import PARQUET, too_large, write_atomic
from veridyn.files.log.layout import BLANKS, MISSING, CsvLayout, is_number
from veridyn.files.units import dimension
from veridyn.model.experiment import Experiment

Array = NDArray[np.float64]

BLOCK_BYTES = 1 << 20  # of text that is parsed at a time
MOST_FAULTS = 20  # of one kind; a file of the wrong format would otherwise report every line
VALUE_BYTES = 8
NANOSECONDS = 1e9  # in a second


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
                    what = "the row has another length than the first."
                    hint = "A last row that is cut off means that the recording stopped while writing; delete it."
                    faults.add(what, expected=f"{len(layout.headers)} cells", found=f"{len(row)}", hint=hint, line=line)
                continue
            for header, place in places:
                number = _number(row[place].strip(), layout.decimal)
                if number is not None:
                    values[header].append(number)
                    continue
                textual += 1
                if textual <= MOST_FAULTS:
                    what, found = "the cell is not a number.", f"'{row[place].strip()[:40]}'"
                    hint = "Choose the columns that hold numbers with columns={channel: header}."
                    faults.add(what, where=part_at("column", header), found=found, hint=hint, line=line)
    if max(ragged, textual) > MOST_FAULTS:
        faults.add(
            f"{ragged} rows of another length and {textual} cells that are no numbers in all; the first are listed."
        )
    return {header: np.array(column) for header, column in values.items()}


def _number(cell: str, decimal: str) -> float | None:
    if cell in MISSING:
        return float("nan")
    return float(cell.replace(decimal, ".")) if is_number(cell, decimal) else None


def read_parquet(file: Path, used: list[str] | None, faults: Faults) -> dict[str, Array]:
    """The columns `used`, or all, by name; what is no column of numbers goes to `faults`."""
    held = pq.read_metadata(file)
    # A column that stands still takes next to nothing on disk and eight bytes a row in memory.
    width = held.num_columns if used is None else len(used)
    bomb = too_large(VALUE_BYTES * held.num_rows * width, file.stat().st_size, "Read fewer columns, or in blocks.")
    if bomb is not None:
        raise FileError(bomb, str(file))
    table = pq.read_table(file, columns=used)
    out = {}
    for header in table.column_names if used is None else used:
        kind = table.schema.field(header).type
        if not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
            faults.add("the column does not hold numbers.", where=part_at("column", header), found=f"{kind}")
        else:
            out[header] = np.array(table[header].cast(pa.float64()).to_numpy(), dtype=np.float64)
    if table.num_rows == 0:
        faults.add("it holds no samples.", expected="rows of numbers", found="none")
    return out


class Frame(Protocol):
    """A table with names of columns: pandas.DataFrame, polars.DataFrame, pyarrow.Table."""

    @property
    def columns(self) -> Any: ...

    @property
    def shape(self) -> tuple[int, int]: ...


class FrameTable:
    """The columns of a frame: their `headers`, those of dates with the unit s, and numbers on request."""

    def __init__(self, frame: Any) -> None:
        self._columns = _columns_of(frame)
        self.headers = tuple(f"{name} [s]" if _is_time(x) else name for name, x in self._columns)

    def read(self, used: Sequence[str], faults: Faults) -> dict[str, Array]:
        """The columns `used`, by header; what is no column of numbers goes to `faults`."""
        out = {}
        for header in used:
            x = self._columns[self.headers.index(header)][1]
            try:
                out[header] = _seconds(x) if _is_time(x) else x.astype(np.float64)
            except (TypeError, ValueError):
                kind = type(next((v for v in x if v is not None), None)).__name__ if x.dtype == object else f"{x.dtype}"
                hint = "Choose the columns that hold numbers with columns={channel: header}."
                faults.add("the column does not hold numbers.", where=part_at("column", header), found=kind, hint=hint)
        if self._columns and not len(self._columns[0][1]):
            faults.add("it holds no samples.", expected="rows of numbers", found="none")
        return out


def _is_time(x: NDArray[Any]) -> bool:
    return x.dtype.kind in "mM"


def _seconds(x: NDArray[Any]) -> Array:
    """Dates since 1970, or durations, in s; NaN where there is none."""
    whole = x.astype("datetime64[ns]" if x.dtype.kind == "M" else "timedelta64[ns]")
    return np.where(np.isnat(whole), np.nan, whole.astype(np.int64) / NANOSECONDS)


def _columns_of(frame: Any) -> list[tuple[str, NDArray[Any]]]:
    """Names and values of every column, a named index before them."""
    if hasattr(frame, "column_names"):  # pyarrow
        return [(name, np.asarray(frame.column(k).to_numpy())) for k, name in enumerate(frame.column_names)]
    if hasattr(frame, "iloc"):  # pandas
        made = [(f"{name}", np.asarray(frame.iloc[:, k].to_numpy())) for k, name in enumerate(frame.columns)]
        named = frame.index.names == [None]
        return made if named or len(frame.index.names) > 1 else [(f"{frame.index.name}", frame.index.to_numpy()), *made]
    return [(name, np.asarray(frame[name].to_numpy())) for name in frame.columns]


@checked
def save_log(experiment: Experiment, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
    """Write channels that share a clock as CSV or Parquet (by suffix), headers ``name [unit]``, first ``t [s]``.

    The file appears whole or not at all; an existing one is kept unless `overwrite`. Notes are not part of a table.
    """
    file = Path(path)
    faults = Faults()
    channels = list(experiment.channels.values())
    for channel in channels:
        if not np.array_equal(channel.t, channels[0].t):
            what = f"channel '{channel.name}' has another clock than '{channels[0].name}'."
            hint = "Bring them to one clock with veridyn.signals.resample.resample first."
            faults.add(what, where=experiment.name, expected="one clock for all columns of a table", hint=hint)
        if "[" in channel.name or channel.name == "t":
            faults.add(
                "its name cannot head a column.", where=part_at("channel", channel.name), expected="not 't', and no '['"
            )
        try:
            dimension(channel.unit, part_at("channel", channel.name))
        except DataError as error:
            faults.extend(error.faults)
    if not channels:
        faults.add("it has no channels to save.", where=experiment.name)
    faults.raise_if_any(DataError)
    table = pa.table({"t [s]": channels[0].t} | {f"{c.name} [{c.unit}]": c.values for c in channels})
    buffer = pa.BufferOutputStream()
    if file.suffix.lower() in PARQUET:
        pq.write_table(table, buffer)
    else:
        pacsv.write_csv(table, buffer)
    return write_atomic(file, buffer.getvalue().to_pybytes(), overwrite)
