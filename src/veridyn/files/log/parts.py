"""Logs in parts: a table too large for the memory, read a window at a time, and a log spread over several files.

Windows of CSV and Parquet files (:func:`open_log`) are in SI, in the order of the file. They have `size` rows of their own and up to
`margin` rows more on either side, which filters need; own rows follow on one another without gap or overlap. What
:func:`~veridyn.files.log.load.load_log` checks of names and units is checked before the first window.

Of several files (:func:`load_spread`) each has columns of its own, and one of them the clock:

    load_spread({"time": LogPart("t.txt", ("t",), time="t [s]"), "pos": LogPart("q.txt", ("q1", "q2"), interleaved=True)}, …)

Parts with a clock of their own, or a rate in place of one, are read as logs. The others are tables whose rows belong to the rows of the
first part that has a clock, so they must be as long. Without any clock one rate holds for all. In an interleaved file the values of a
sample stand below each other in one column.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import Fault, Faults, FileError, did_you_mean, part_at
from veridyn.files.access import ARRAYS, PARQUET, clocked_format, existing_file, existing_log, unreadable
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
    split_header,
)
from veridyn.files.log.layout import BLANKS, CsvLayout, Unparsed, find_layout
from veridyn.files.log.tables import parquet, parsed_blocks, read_columns
from veridyn.files.units import to_si
from veridyn.model.experiment import Channel, Experiment


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
            while offset + _rows(held) < min(end + margin + 1, stop):
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
        return clock_of_rate(rate, offset + _rows(held), str(self.file))[offset:]

    def _blocks(self, first: int, stop: int) -> Iterator[dict[str, Array]]:
        """Consecutive rows from `first` up to `stop`."""
        passed = 0
        for block in self._raw():
            n = _rows(block)
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
                for block in parquet(self.file).parquet_blocks(self.file, used):
                    yield merged(block, self.stamps)
                return
            for block in parsed_blocks(self.file, self.layout, used, threads=False):
                yield merged({h: x.copy() for h, x in block.items()}, self.stamps)
        except (Unparsed, OSError) as error:
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
        arrow = parquet(file)
        headers, rows = arrow.parquet_headers(file), arrow.parquet_rows(file)
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


def _rows(block: Mapping[str, Array]) -> int:
    return len(next(iter(block.values()))) if block else 0


def _lines(file: Path, before: int) -> int:
    """Lines that hold something behind the first `before`, as the reader counts them."""
    with file.open("rb") as stream:
        return sum(1 for line in islice(stream, before, None) if line.strip())


@dataclass(frozen=True)
class LogPart:
    """One file: names of its columns where it has no header row, and its clock "name [unit]", or its rate in Hz, where it has one.

    `skip`: lines before its header row; found by themselves if left out.
    """

    file: Path
    header: Sequence[str] = ()
    interleaved: bool = False
    time: str = ""
    delimiter: str | None = None
    decimal: str = "."
    rate: float | None = None
    skip: int | None = None


def load_spread(
    parts: Mapping[str, LogPart], columns: Mapping[str, tuple[str, str]], name: str = "log", rate: float | None = None
) -> Experiment:
    """`columns`: channel → (column, unit). A column is one of one part, or is written part/column; its clock is that part's.

    `rate` (Hz): that of parts none of which has a clock.
    """
    faults = Faults()
    clocks = [p for p, part in parts.items() if part.time or part.rate is not None]
    if not clocks and rate is None:
        expected = "time: 't [s]' or rate: 100 in one of them, or one rate for all"
        raise FileError("no part has a clock.", where=name, expected=expected)
    tables: dict[str, dict[str, Array]] = {}
    for p, part in parts.items():
        wanted = {c.removeprefix(f"{p}/") for c, _ in columns.values()} | (
            {split_header(part.time)[0]} if part.time else set()
        )
        tables[p] = _table(part, wanted, faults)
    faults.raise_if_any(FileError, name)
    times = {}
    if not clocks:
        clocks = [max(tables, key=lambda p: _length(tables[p]))]
        times[clocks[0]] = clock_of_rate(rate or 0.0, _length(tables[clocks[0]]), name)
    for p in (p for p in clocks if p not in times):
        header, unit = split_header(parts[p].time)
        own = parts[p].rate
        if own is not None:
            times[p] = clock_of_rate(own, _length(tables[p]), p)
        elif header not in tables[p]:
            faults.add(f"there is no column '{header}' for the time.", where=p, hint=did_you_mean(header, [*tables[p]]))
        else:
            times[p], _ = to_si(tables[p][header], unit or "s", where=p)
    faults.raise_if_any(FileError, name)
    made: dict[str, Channel] = {}
    for channel, (column, unit) in columns.items():
        part, slash, rest = column.partition("/")
        if slash and part in tables:
            column, homes = rest, [part] if rest in tables[part] else []
        else:
            homes = [p for p, table in tables.items() if column in table]
        if len(homes) != 1:
            every = [c for table in tables.values() for c in table]
            where = part_at("channel", channel)
            if homes:
                ways = " or ".join(f"{p}/{column}" for p in homes)
                what = f"several parts have a column '{column}': {', '.join(homes)}."
                faults.add(what, where=where, expected=f"the part before the name, {ways}")
            else:
                faults.add(f"there is no column '{column}'.", where=where, hint=did_you_mean(column, every))
            continue
        home = homes[0]
        clock = home if home in times else clocks[0]
        if len(tables[home][column]) != len(times[clock]):
            what = f"part '{home}' is not as long as the clock in part '{clock}'."
            expected, found = f"{len(times[clock])} samples", f"{len(tables[home][column])}"
            hint = "A file that was cut off ends early."
            faults.add(what, where=part_at("channel", channel), expected=expected, found=found, hint=hint)
            continue
        made[channel] = Channel(channel, times[clock], *to_si(tables[home][column], unit, part_at("channel", channel)))
    faults.raise_if_any(FileError, name)
    return Experiment(made, name)


def _table(part: LogPart, wanted: set[str], faults: Faults) -> dict[str, Array]:
    """Columns of one file by name, those that are wanted."""
    file = existing_file(part.file)
    try:
        if file.suffix.lower() in PARQUET:
            return {split_header(h)[0]: x for h, x in parquet(file).read_parquet(file, None, faults).items()}
        if part.interleaved:
            return _interleaved(file, part, faults)
        layout = find_layout(file, tuple(part.header) or None, part.delimiter, part.decimal, part.skip)
        bare = {split_header(h)[0]: h for h in layout.headers if h}
        used = [h for b, h in bare.items() if b in wanted or h in wanted]
        found = read_columns(file, layout, used, faults)
        return {split_header(h)[0]: x for h, x in found.items()}
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise FileError(unreadable(error), str(file)) from error


def _length(table: Mapping[str, Array]) -> int:
    return max((len(x) for x in table.values()), default=0)


def _interleaved(file: Path, part: LogPart, faults: Faults) -> dict[str, Array]:
    k = len(part.header)
    if k == 0:
        faults.add(
            "an interleaved file needs the names of its values.", where=file.name, expected="header: [q1, q2, …]"
        )
        return {}
    single = find_layout(file, ("value",), part.delimiter or ",", part.decimal, part.skip)
    x = read_columns(file, single, ("value",), faults)["value"]
    if len(x) % k:
        hint = "It was cut off, or its header has too many or too few names."
        faults.add(f"its {len(x)} values are no whole number of samples of {k}.", where=file.name, hint=hint)
        return {}
    return dict(zip(part.header, x.reshape(-1, k).T, strict=True))
