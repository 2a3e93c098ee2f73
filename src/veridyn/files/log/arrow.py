"""What pyarrow does where it is installed (the extra ``parquet``): Parquet files, and text tables several times as fast.

Without it text is read and written by :mod:`veridyn.files.log.tables`, with the same values and faults; Parquet files are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from veridyn.arrays import Array
from veridyn.errors import Faults, FileError, part_at
from veridyn.files.access import too_large
from veridyn.files.log.layout import MISSING, CsvLayout, Unparsed, first_places

BLOCK_BYTES = 1 << 20  # of text that is parsed at a time
PARQUET_ROWS = 8192  # of a Parquet file that are read at once
VALUE_BYTES = 8


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


def parquet_headers(file: Path) -> tuple[str, ...]:
    """The names of all columns."""
    with _unparsed():
        return tuple(pq.read_schema(file).names)


def parquet_rows(file: Path) -> int:
    """How many rows a file has."""
    with _unparsed():
        return pq.read_metadata(file).num_rows


def parquet_blocks(file: Path, wanted: Sequence[str]) -> Iterator[dict[str, Array]]:
    """The columns `wanted` of consecutive rows, by name."""
    with _unparsed():
        for batch in pq.ParquetFile(file).iter_batches(batch_size=PARQUET_ROWS, columns=list(wanted)):
            columns = {h: batch.column(h).cast(pa.float64()).to_numpy(zero_copy_only=False) for h in wanted}
            yield {h: np.array(x, dtype=np.float64) for h, x in columns.items()}


def read_parquet(file: Path, used: list[str] | None, faults: Faults) -> dict[str, Array]:
    """The columns `used`, or all, by name; what is no column of numbers goes to `faults`."""
    with _unparsed():
        held = pq.read_metadata(file)
    # A column that stands still takes next to nothing on disk and eight bytes a row in memory.
    width = held.num_columns if used is None else len(used)
    bomb = too_large(VALUE_BYTES * held.num_rows * width, file.stat().st_size, "Read fewer columns, or in blocks.")
    if bomb is not None:
        raise FileError(bomb, str(file))
    with _unparsed():
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
