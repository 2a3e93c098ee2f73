"""Columns of numbers of tables, by header: delimited text, Parquet files, data frames in memory; and logs written as tables.

Text is read in blocks, by pyarrow where that is installed (:mod:`veridyn.files.log.arrow`) and by NumPy elsewhere, or, where a block has a
fault, cell by cell with every fault. Cells hold a number, or nothing (also "nan", "NA",
"null"), which is NaN. Lines are counted from 1, as an editor does. Text is UTF-8, with or without a byte-order mark; empty lines are
skipped. How a file is laid out is found in :mod:`veridyn.files.log.layout`. Of a data frame of pandas, polars or pyarrow, none of which is
imported here, a named index is a column like the others; dates are times in seconds since 1970, durations in seconds.
"""

from __future__ import annotations

import contextlib
import csv
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from veridyn.arguments import checked
from veridyn.arrays import Array
from veridyn.errors import DataError, Fault, Faults, FileError, part_at
from veridyn.files.access import PARQUET, refuse_format, write_atomic
from veridyn.files.log.layout import BLANKS, MISSING, MOST_PARTS, CsvLayout, Unparsed, first_places, is_number
from veridyn.files.units import dimension
from veridyn.model.experiment import Experiment
from veridyn.plain_text import harmless_cell

BLOCK_BYTES = 1 << 20  # of text that is parsed at a time
QUOTE = b'"'
MOST_FAULTS = 20  # of one kind; a file of the wrong format would otherwise report every line
TEXT_ENDINGS = (".csv", ".txt", ".tsv")
NANOSECONDS = 1e9  # in a second


def read_columns(file: Path, layout: CsvLayout, wanted: Sequence[str], faults: Faults) -> dict[str, Array]:
    """The columns `wanted` as float64, by header. What is wrong goes to `faults`, and then the result means nothing.

    The fast reader stops at the first fault, so a file with faults (here or found before) is read again, cell by cell.
    """
    if not faults:
        with contextlib.suppress(Unparsed):
            return _fast(file, layout, wanted)
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
    """The columns `wanted` of consecutive rows, by header, in the parser's memory: copy what is kept. Blanks are no delimiter here.

    :class:`~veridyn.files.log.layout.Unparsed` ends them at the first fault.
    """
    try:
        from veridyn.files.log.arrow import text_blocks
    except ModuleNotFoundError:
        yield from _numpy_blocks(source, layout, wanted)
    else:
        yield from text_blocks(source, layout, wanted, threads)


def _numpy_blocks(source: Path | io.BytesIO, layout: CsvLayout, wanted: Sequence[str]) -> Iterator[dict[str, Array]]:
    first = first_places(layout.headers)
    places = [first[header] for header in wanted]
    with source.open("rb") if isinstance(source, Path) else contextlib.nullcontext(source) as stream:
        if stream.read(3) != b"\xef\xbb\xbf":
            stream.seek(0)
        for _ in range(layout.before):
            stream.readline()
        while lines := stream.readlines(BLOCK_BYTES):
            text = b"".join(lines)
            while text.count(QUOTE) % 2 and (line := stream.readline()):  # a quoted cell goes on
                text += line
            values = _numpy_block(text, layout, places)
            yield dict(zip(wanted, values.T, strict=True))


def _numpy_block(text: bytes, layout: CsvLayout, places: Sequence[int]) -> Array:
    """Columns at some `places` of consecutive lines, (rows, columns); :class:`Unparsed` at the first fault."""
    if QUOTE not in text and _is_even(text, layout):
        try:
            plain = text.replace(layout.decimal.encode(), b".") if layout.decimal != "." else text
            return np.loadtxt(
                io.StringIO(plain.decode()), delimiter=layout.delimiter, usecols=places, ndmin=2, comments=None
            )
        except ValueError:
            pass  # cells without a number
    rows = [row for row in csv.reader(io.StringIO(text.decode(), newline=""), delimiter=layout.delimiter) if row]
    if any(len(row) != len(layout.headers) for row in rows):
        raise Unparsed("a row has another length than the first")
    values = [[_number(row[k].strip(), layout.decimal) for k in places] for row in rows]
    if any(v is None for row in values for v in row):
        raise Unparsed("a cell is not a number")
    return np.array(values, dtype=np.float64).reshape(len(rows), len(places))


def _is_even(text: bytes, layout: CsvLayout) -> bool:
    """Whether every line has as many delimiters as the table has columns, less one; empty lines do not count."""
    marks = np.frombuffer(text, dtype=np.uint8)
    ends = np.flatnonzero(marks == ord("\n"))
    if b"\r" in text.replace(b"\r\n", b""):
        return False  # lines that end otherwise are left to the careful reader
    if not len(ends) or ends[-1] != len(marks) - 1:
        ends = np.append(ends, len(marks))
    count = np.cumsum(marks == ord(layout.delimiter))
    per_line = np.diff(count[np.minimum(ends, len(marks) - 1)], prepend=0)
    lengths = np.diff(ends, prepend=-1) - 1
    empty = lengths == 0
    if b"\r\n" in text:
        empty |= (lengths == 1) & (per_line == 0)
    return bool((per_line[~empty] == len(layout.headers) - 1).all())


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


def parquet(file: Path) -> ModuleType:
    """What reads Parquet files; refused where nothing here does."""
    try:
        from veridyn.files.log import arrow
    except ModuleNotFoundError as error:
        hint = "pip install 'veridyn[parquet]'. Or save the log as CSV, which needs nothing more."
        raise FileError(Fault("it is a Parquet file, and pyarrow is not installed.", hint=hint), str(file)) from error
    return arrow


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
    """Names and values of every column, a named index before them; a column of lists of n numbers is n columns, as of Parquet files."""
    return [part for name, x in _whole_columns(frame) for part in _parts(name, x)]


def _parts(name: str, x: NDArray[Any]) -> list[tuple[str, NDArray[Any]]]:
    """action.0, action.1, … of a column of lists of numbers that are equally long, NaN where a cell is empty; any other column itself."""
    rows = x if x.ndim == 2 else _stacked(x)
    return [(name, x)] if rows is None else [(f"{name}.{k}", rows[:, k]) for k in range(rows.shape[1])]


def _stacked(x: NDArray[Any]) -> Array | None:
    """Lists of n numbers as (rows, n); None of anything else."""
    there = [k for k, cell in enumerate(x) if isinstance(cell, list | tuple | np.ndarray)] if x.dtype == object else []
    if not there or any(x[k] is not None and not _is_missing(x[k]) for k in set(range(len(x))) - set(there)):
        return None
    lengths = {len(x[k]) if np.ndim(x[k]) == 1 else 0 for k in there}
    length = lengths.pop()
    if lengths or not 0 < length <= MOST_PARTS:
        return None
    found = np.stack([np.asarray(x[k]) for k in there])
    if found.dtype.kind not in "fiu":
        return None
    out = np.full((len(x), length), np.nan)
    out[there] = found
    return out


def _is_missing(cell: object) -> bool:
    return isinstance(cell, float) and np.isnan(cell)


def _whole_columns(frame: Any) -> list[tuple[str, NDArray[Any]]]:
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
    refuse_format(file, (*TEXT_ENDINGS, *PARQUET), "a log")
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
    table = {"t [s]": channels[0].t} | {f"{c.name} [{c.unit}]": c.values for c in channels}
    return write_atomic(file, _encoded(file, table), overwrite)


def _encoded(file: Path, table: Mapping[str, Array]) -> bytes:
    """A table as the suffix of its file says."""
    if file.suffix.lower() in PARQUET:
        return parquet(file).parquet_of(table)
    table = {f"{harmless_cell(name)}": x for name, x in table.items()}
    try:
        from veridyn.files.log.arrow import text_of
    except ModuleNotFoundError:
        header = ",".join(f'"{name}"' for name in table)
        rows = (",".join(map(repr, row)) for row in np.column_stack(list(table.values())).tolist())
        return "\n".join([header, *rows, ""]).encode()
    return text_of(table)
