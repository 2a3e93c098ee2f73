"""Tables that do not fit the memory, read a window at a time: CSV and Parquet, in SI, in the order of the file.

Windows have `size` rows of their own and up to `margin` rows more on either side, which filters need; own rows follow on one another
without gap or overlap. What :func:`~veridyn.files.log.load.load_log` checks of names and units is checked before the first window.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from veridyn.errors import Fault, Faults, FileError
from veridyn.files.log.columns import (
    Column,
    Pairs,
    asked_names,
    choose,
    clock_of_rate,
    columns_of,
    merged,
    merged_headers,
    raise_faults,
)
from veridyn.files.log.layout import BLANKS, CsvLayout, find_layout
from veridyn.files.log.opening import ARRAYS, PARQUET, clocked_format, existing_log
from veridyn.files.log.tables import parsed_blocks
from veridyn.files.units import to_si
from veridyn.model.experiment import Channel, Experiment

Array = NDArray[np.float64]
ROWS = 8192  # of a Parquet file that are read at once


@dataclass(frozen=True, eq=False)
class Window:
    """Rows of a log: `log` holds them and their margins; `start` is the time of its first own row, `end` that of the row after its last.

    `end` is infinite in the last window.
    """

    log: Experiment
    start: float
    end: float


@dataclass(frozen=True, eq=False)
class LogFile:
    """A table on disk: which of its columns are which channels. `rows` it has; nothing of it is held.

    Without a `clock` its times count from 0 at `rate` Hz. `stamps`: columns that stand in two of the file.
    """

    file: Path
    clock: Column | None
    wanted: tuple[Column, ...]
    layout: CsvLayout | None
    rows: int
    rate: float | None = None
    stamps: Pairs = field(default_factory=dict)

    def windows(self, size: int, margin: int, first: int = 0, last: int | None = None) -> Iterator[Window]:
        """Rows `first` to `last`, `size` at a time with `margin` more on either side."""
        stop = self.rows if last is None else min(last, self.rows)
        held: dict[str, Array] = {}
        offset = first  # the number of the first row held
        begin = first
        blocks = self._blocks(first, stop)
        while begin < stop:
            end = min(begin + size, stop)
            # One row more than the margin: the time at which the next window begins.
            while offset + _length(held) < min(end + margin + 1, stop):
                block = next(blocks, None)
                if block is None:
                    break
                held = {h: np.concatenate([held[h], x]) if held else x for h, x in block.items()}
            lo, hi = max(begin - margin, offset) - offset, min(end + margin, stop) - offset
            t = self._times(held, offset)
            part = {c.name: Channel(c.name, t[lo:hi], *to_si(held[c.header][lo:hi], c.unit)) for c in self.wanted}
            after = float(t[end - offset]) if end - offset < len(t) else np.inf
            yield Window(Experiment(part, self.file.name), float(t[begin - offset]), after)
            begin = end
            drop = max(0, begin - margin - offset)
            held = {h: x[drop:] for h, x in held.items()}
            offset += drop

    def _times(self, held: Mapping[str, Array], offset: int) -> Array:
        """Times of the rows held, the first of which is row `offset` of the file."""
        if self.clock is not None:
            return to_si(held[self.clock.header], self.clock.unit)[0]
        rate = self.rate or 0.0
        return clock_of_rate(rate, offset + _length(held), str(self.file))[offset:]

    def _blocks(self, first: int, stop: int) -> Iterator[dict[str, Array]]:
        """Consecutive rows from `first` up to `stop`."""
        passed = 0
        for block in self._raw():
            n = _length(block)
            lo, hi = max(first - passed, 0), min(stop - passed, n)
            passed += n
            if lo < hi:
                yield {h: x[lo:hi] for h, x in block.items()}
            if passed >= stop:
                return

    def _raw(self) -> Iterator[dict[str, Array]]:
        used = columns_of([c.header for c in (self.clock, *self.wanted) if c is not None], self.stamps)
        try:
            if self.layout is None:
                for batch in pq.ParquetFile(self.file).iter_batches(batch_size=ROWS, columns=used):
                    yield merged({h: _numbers(batch.column(h)) for h in used}, self.stamps)
                return
            for block in parsed_blocks(self.file, self.layout, used, threads=False):
                yield merged({h: x.copy() for h, x in block.items()}, self.stamps)
        except (pa.ArrowInvalid, OSError) as error:
            hint = "load_log reads it whole and lists every fault by line."
            fault = Fault("it cannot be read to its end.", found=str(error).splitlines()[0], hint=hint)
            raise FileError(fault, str(self.file)) from error


def open_log(
    path: str | Path,
    columns: Sequence[str] | Mapping[str, str] | None,
    units: Mapping[str, str],
    time: str = "t",
    delimiter: str | None = None,
    decimal: str = ".",
    rate: float | None = None,
    skip: int | None = None,
) -> LogFile:
    """A CSV or Parquet file ready to be read in windows; arguments as of :func:`~veridyn.files.log.load.load_log`."""
    file = existing_log(path)
    layout = None
    if file.suffix.lower() in PARQUET:
        headers, rows = tuple(pq.read_schema(file).names), pq.read_metadata(file).num_rows
    elif file.suffix.lower() in ARRAYS or clocked_format(file):
        fault = Fault("it cannot be read in blocks.", expected="CSV or Parquet", hint="Leave log.block out.")
        raise FileError(fault, str(file))
    else:
        names = None if columns is None or isinstance(columns, Mapping) else columns
        layout = find_layout(file, names, delimiter, decimal, skip)
        if layout.delimiter == BLANKS:
            what = "columns separated by blanks cannot be read in blocks."
            raise FileError(what, expected="commas, semicolons or tabs", source=str(file))
        headers, rows = layout.headers, _lines(file, layout.before)
    headers, stamps = merged_headers(headers, asked_names(columns, units, time))
    structure, meaning = Faults(), Faults()
    wanted, clock = choose(headers, columns, units, time if rate is None else None, structure, meaning)
    raise_faults(structure, meaning, str(file))
    return LogFile(file, clock, tuple(wanted), layout, rows, rate, stamps)


def _numbers(column: pa.Array) -> Array:
    return np.array(column.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)


def _length(block: Mapping[str, Array]) -> int:
    return len(next(iter(block.values()))) if block else 0


def _lines(file: Path, before: int) -> int:
    """Lines that hold something behind the first `before`, as the reader counts them."""
    with file.open("rb") as stream:
        return sum(1 for line in islice(stream, before, None) if line.strip())
