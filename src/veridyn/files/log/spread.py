"""A log spread over several files: each has columns of its own, and one of them the clock.

    load_spread({"time": Part("t.txt", ("t",), time="t [s]"), "pos": Part("q.txt", ("q1", "q2"), interleaved=True)}, …)

Parts with a clock of their own, or a rate in place of one, are read as logs. The others are tables whose rows belong to the rows of the
first part that has a clock, so they must be as long. Without any clock one rate holds for all. In an interleaved file the values of a
sample stand below each other in one column.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Faults, FileError, did_you_mean, part_at
from veridyn.files.log.columns import clock_of_rate, split_header
from veridyn.files.log.layout import find_layout
from veridyn.files.log.opening import PARQUET, existing_file, unreadable
from veridyn.files.log.tables import read_columns, read_parquet
from veridyn.files.units import to_si
from veridyn.model.experiment import Channel, Experiment

Array = NDArray[np.float64]


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
    parts: Mapping[str, LogPart],
    columns: Mapping[str, tuple[str, str]],
    name: str = "log",
    rate: float | None = None,
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
            return read_parquet(file, None, faults)
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
