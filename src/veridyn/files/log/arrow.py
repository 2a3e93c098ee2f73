"""What pyarrow does where it is installed (the extra ``parquet``): Parquet files, and text tables several times as fast.

Without it text is read and written by :mod:`veridyn.files.log.tables`, with the same values and faults; Parquet files are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from veridyn.arrays import Array
from veridyn.errors import Faults, FileError, part_at
from veridyn.files.access import too_large
from veridyn.files.log.layout import MISSING, MOST_PARTS, CsvLayout, Unparsed, first_places

BLOCK_BYTES = 1 << 20  # of text that is parsed at a time
PARQUET_ROWS = 8192  # of a Parquet file that are read at once
VALUE_BYTES = 8
DAY_S = 86400.0
PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}  # of the units of dates and durations


@contextmanager
def _unparsed() -> Iterator[None]:
    try:
        yield
    except pa.ArrowInvalid as error:
        raise Unparsed(*error.args) from error


def text_blocks(
    source: Path | BytesIO, layout: CsvLayout, wanted: Sequence[str], threads: bool
) -> Iterator[dict[str, Array]]:
    """The columns `wanted` of consecutive rows, by header, in the parser's memory; :class:`Unparsed` at the first fault."""
    numbers = [f"{i}" for i in range(len(layout.headers))]  # headers may repeat in columns that are not wanted
    first = first_places(layout.headers)
    chosen = {header: numbers[first[header]] for header in wanted}
    with (
        _unparsed(),
        pacsv.open_csv(
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
        ) as reader,
    ):
        for batch in reader:
            yield {header: _numbers(batch[number]) for header, number in chosen.items()}


def _numbers(column: pa.Array) -> Array:
    """A column with NaN where a cell is empty. Arrow's own ``to_numpy`` imports pandas, which takes longer than to read most logs."""
    whole = column.fill_null(float("nan")) if column.null_count else column
    return np.asarray(np.from_dlpack(whole), dtype=np.float64)


def text_of(columns: Mapping[str, Array]) -> bytes:
    """Columns as a table with commas, headers in quotes."""
    buffer = pa.BufferOutputStream()
    pacsv.write_csv(pa.table(dict(columns)), buffer)
    return buffer.getvalue().to_pybytes()


def parquet_of(columns: Mapping[str, Array]) -> bytes:
    """Columns as a Parquet file."""
    buffer = pa.BufferOutputStream()
    pq.write_table(pa.table(dict(columns)), buffer)
    return buffer.getvalue().to_pybytes()


@dataclass(frozen=True)
class StoredColumn:
    """Where numbers are in a Parquet file: in the column called `name`, at the place `part` of lists of `length` where it holds lists."""

    name: str
    part: int | None = None
    length: int = 0


def stored_columns(file: Path) -> dict[str, StoredColumn]:
    """Header → column. Dates and durations have the unit s; a column of lists of n numbers is n columns, action.0, action.1, …"""
    out: dict[str, StoredColumn] = {}
    with _unparsed(), pq.ParquetFile(file) as opened:
        for field in opened.schema_arrow:
            name, length = field.name, _list_length(opened, field)
            parts = {f"{name}.{k}": StoredColumn(name, k, length) for k in range(length)}
            seconds = pa.types.is_temporal(field.type)
            out |= parts or {f"{name} [s]" if seconds else name: StoredColumn(name)}
    return out


def _list_length(opened: pq.ParquetFile, field: pa.Field) -> int:
    """How many numbers each list of a column holds, by its type or its first list; 0 of other columns and of lists of anything else."""
    kind = field.type
    if not (_is_list(kind) and _is_number(kind.value_type)):
        return 0
    if pa.types.is_fixed_size_list(kind):
        length = kind.list_size
    else:
        first = opened.iter_batches(batch_size=PARQUET_ROWS, columns=[field.name])
        lengths = (np.asarray(pc.list_value_length(batch.column(0).drop_null())) for batch in first)  # pyright: ignore[reportAttributeAccessIssue]
        length = next((int(found[0]) for found in lengths if len(found)), 0)
    return length if length <= MOST_PARTS else 0


def _is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_floating(kind) or pa.types.is_integer(kind)


def _floats(column: pa.Array | pa.ChunkedArray) -> Array:
    """Numbers, or dates and durations in s; NaN where a cell is empty. Whole numbers beyond 2^53, as of clocks in ns, are rounded."""
    kind = column.type
    if pa.types.is_temporal(kind):
        narrow = pa.types.is_date32(kind) or pa.types.is_time32(kind)
        whole = column.cast(pa.int32()).cast(pa.int64()) if narrow else column.cast(pa.int64())
        days = pa.types.is_date32(kind)
        return DAY_S * _floats(whole) if days else _floats(whole) / PER_SECOND[getattr(kind, "unit", "ms")]
    return np.array(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)


def _lists(column: pa.Array, length: int) -> Array | None:
    """A column of lists as (rows, length), NaN where a row is empty; None where a list has another length."""
    there = np.asarray(column.is_valid().to_numpy(zero_copy_only=False), dtype=bool)
    lists = column.drop_null()
    if not np.all(np.asarray(pc.list_value_length(lists)) == length):  # pyright: ignore[reportAttributeAccessIssue]
        return None
    out = np.full((len(column), length), np.nan)
    out[there] = _floats(pc.list_flatten(lists)).reshape(-1, length)  # pyright: ignore[reportAttributeAccessIssue]
    return out


def _read(table: pa.Table, used: Mapping[str, StoredColumn], faults: Faults) -> dict[str, Array]:
    """Columns by header; what is no column of numbers goes to `faults`."""
    out: dict[str, Array] = {}
    wide: dict[str, Array | None] = {}
    for header, at in used.items():
        column = table.column(at.name)
        if at.part is not None:
            if at.name not in wide:
                wide[at.name] = _lists(column.combine_chunks(), at.length)
            rows = wide[at.name]
            if rows is None:
                what, expected = "its lists are not all as long as the first.", f"{at.length} numbers in each row"
                faults.add(what, where=part_at("column", header), expected=expected)
            else:
                out[header] = np.ascontiguousarray(rows[:, at.part])
        elif _is_number(column.type) or pa.types.is_temporal(column.type):
            out[header] = _floats(column)
        else:
            faults.add("the column does not hold numbers.", where=part_at("column", header), found=f"{column.type}")
    return out


def parquet_headers(file: Path) -> tuple[str, ...]:
    """The names of all columns, those of dates and durations with the unit s."""
    return tuple(stored_columns(file))


def parquet_rows(file: Path) -> int:
    """How many rows a file has."""
    with _unparsed():
        return pq.read_metadata(file).num_rows


def parquet_blocks(file: Path, wanted: Sequence[str]) -> Iterator[dict[str, Array]]:
    """The columns `wanted` of consecutive rows, by header."""
    stored = stored_columns(file)
    used = {header: stored[header] for header in wanted}
    with _unparsed(), pq.ParquetFile(file) as opened:
        for batch in opened.iter_batches(batch_size=PARQUET_ROWS, columns=_names(used)):
            faults = Faults()
            block = _read(pa.Table.from_batches([batch]), used, faults)
            faults.raise_if_any(FileError, str(file))
            yield block


def read_parquet(file: Path, used: list[str] | None, faults: Faults) -> dict[str, Array]:
    """The columns `used`, or all, by header; what is no column of numbers goes to `faults`."""
    stored = stored_columns(file)
    wanted = stored if used is None else {header: stored[header] for header in used}
    with _unparsed():
        held = pq.read_metadata(file)
    # A column that stands still takes next to nothing on disk and eight bytes a row in memory.
    unpacked = (
        VALUE_BYTES * held.num_rows * max(len(wanted), sum({at.name: at.length for at in wanted.values()}.values()))
    )
    bomb = too_large(unpacked, file.stat().st_size, "Read fewer columns, or in blocks.")
    if bomb is not None:
        raise FileError(bomb, str(file))
    with _unparsed():
        table = pq.read_table(file, columns=_names(wanted))
        out = _read(table, wanted, faults)
    if table.num_rows == 0:
        faults.add("it holds no samples.", expected="rows of numbers", found="none")
    return out


def _names(used: Mapping[str, StoredColumn]) -> list[str]:
    return list(dict.fromkeys(at.name for at in used.values()))
