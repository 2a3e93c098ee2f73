"""Columns of numbers from a Parquet file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from veridyn.errors import Faults, FileError, part_at
from veridyn.files.unpacking import too_large

Array = NDArray[np.float64]
VALUE_BYTES = 8


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
