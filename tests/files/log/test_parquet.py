"""Columns of a Parquet file, and what one that would fill the memory is answered with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from veridyn.errors import Faults, FileError
from veridyn.files.log.load import load_log
from veridyn.files.log.parquet import read_parquet


def test_columns_are_those_written_and_words_are_refused_by_name(tmp_path: Path) -> None:
    path, faults = tmp_path / "a.parquet", Faults()
    pq.write_table(pa.table({"t": [0, 1], "x": [0.5, None], "word": ["a", "b"]}), path)
    found = read_parquet(path, ["t", "x"], faults)
    assert not faults and np.array_equal(found["x"], [0.5, np.nan], equal_nan=True)
    read_parquet(path, None, faults)
    assert [f.at for f in faults.found] == [("column", "word")]


def test_rows_that_take_next_to_nothing_on_disk_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"t": np.zeros(200_000, dtype=np.int8), "x": np.zeros(200_000, dtype=np.int8)}), path)
    monkeypatch.setattr("veridyn.files.unpacking.ALWAYS_ALLOWED_BYTES", 1_000_000)
    with pytest.raises(FileError, match=r"unpacks to more than(.|\n)*3200000 bytes from(.|\n)*in blocks"):
        load_log(path, units={"t": "s", "x": "m"})
