"""Which columns of a table become channels, under which names and in which units.

Every column used needs a unit, from `units` or from a header of the form ``name [unit]``, the time included, because a clock in
milliseconds looks like any other. A clock in two columns, as ROS 2 writes its stamps, is read as one:

    header.stamp.sec, header.stamp.nanosec  →  header.stamp [s] = sec + 1e-9 nanosec        (both can still be asked for)
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault, Faults, FileError, did_you_mean, part_at
from veridyn.files.units import dimension, to_si
from veridyn.model.experiment import Channel, Experiment

Array = NDArray[np.float64]

DEFAULT_CLOCK = "t"
USUAL_CLOCKS = ("t", "time", "timestamp", "seconds", "clock")
Pairs = Mapping[str, tuple[str, str]]  # header of the sum → headers of seconds and of nanoseconds
REST = ("nanosec", "nanosecs", "nsec", "nsecs")  # what the second column is called


@dataclass(frozen=True)
class Column:
    """A column to be read: its name in the file, the channel's name and unit."""

    header: str
    name: str
    unit: str


def split_header(header: str) -> tuple[str, str]:
    """("speed", "km/h") from "speed [km/h]"; no unit where there are no brackets, or where they number a column: "position[1]"."""
    match = re.fullmatch(r"(.*?)(\s*)\[([^\[\]]*)\]", header)
    if match is None or (match[3].isdigit() and not match[2]):
        return header, ""
    return match[1], match[3].strip()


def choose(
    headers: Sequence[str],
    columns: Sequence[str] | Mapping[str, str] | None,
    units: Mapping[str, str],
    time: str | None,
    structure: Faults,
    meaning: Faults,
) -> tuple[list[Column], Column | None]:
    """Which columns become channels, and which is the clock; what is missing goes into the collections. `time` None: there is no clock."""
    bare, there = {}, set(headers)
    kept: set[str] = set()  # the headers of `bare`
    for header in headers:
        name = split_header(header)[0]
        if header and (header in kept or name in bare):
            structure.add("two columns have one name.", where=part_at("column", header), hint="Rename one of them.")
        kept.add(bare.setdefault(name, header))
    picked = dict(columns) if isinstance(columns, Mapping) else {n: h for n, h in bare.items() if n}
    said = time  # what the caller calls the clock, which may be called otherwise in the file
    if time is not None:
        if time not in picked and split_header(time)[0] in picked:
            time = split_header(time)[0]
        time = usual_clock(time, [*picked, *(n for n in bare if n and n not in picked)])
    allowed = {*picked, *picked.values(), *headers, *bare, said}
    for key in units:
        if key not in allowed:
            meaning.add(f"`units` names '{key}', which is no column.", hint=did_you_mean(key, list(picked)))
    wanted, clock = [], None
    if time is not None and time not in picked:
        picked[time] = time
    for channel, asked in picked.items():
        header = asked if asked in there else bare.get(asked)
        if header is None:
            if channel == time:
                structure.found.append(_no_clock(asked, headers, meaning))
            else:
                structure.add(f"there is no column '{asked}'.", hint=_nearest(asked, headers))
            continue
        names = [channel, header, split_header(header)[0], *([said] if channel == time else [])]
        known = [units[key] for key in names if key in units]
        unit = known_unit(channel, known[0] if known else split_header(header)[1], channel == time, meaning)
        column = Column(header, channel, unit)
        if channel == time:
            clock = column
        else:
            wanted.append(column)
    return wanted, clock


def raise_faults(structure: Faults, meaning: Faults, source: str) -> None:
    """A FileError where the file is not as asked for, else a DataError where its columns are not understood; each with all faults."""
    if structure:
        raise FileError([*structure.found, *meaning.found], source)
    meaning.raise_if_any(DataError, source)


def experiment_of(
    table: Mapping[str, Array],
    wanted: Sequence[Column],
    clock: Column | None,
    rate: float | None,
    source: str,
    name: str,
    notes: Mapping[str, str] | None = None,
) -> Experiment:
    """Columns by header as channels in SI on one clock: that of a column, or of a rate in Hz."""
    if clock is not None:
        t, _ = to_si(table[clock.header], clock.unit)
    else:
        t = clock_of_rate(rate or 0.0, max((len(x) for x in table.values()), default=0), source)
    made = [Channel(c.name, t, *to_si(table[c.header], c.unit)) for c in wanted]
    return Experiment({c.name: c for c in made}, name, notes or {})


def _no_clock(asked: str, headers: Sequence[str], meaning: Faults) -> Fault:
    """That there is no column for the time. The only column without a unit is likely to be it: that is one fault and not two."""
    without = [fault.at[1] for fault in meaning.found if fault.at[2:] == ("unit",)]
    hint = "Name it with time=, or give the rate of a log without a clock with rate=. "
    if len(without) == 1:
        meaning.found[:] = [fault for fault in meaning.found if fault.at[2:] != ("unit",)]
        hint += f"Column '{without[0]}' has no unit: if it is the clock, write time='{without[0]}'. "
    return Fault(f"there is no column '{asked}' for the time.", hint=hint + _nearest(asked, headers))


def _nearest(asked: str, headers: Sequence[str]) -> str:
    """What columns there are, and which of them is nearest: by its header, or by its name without the unit."""
    known = did_you_mean(asked, [h for h in headers if h])
    _, mean, near = did_you_mean(asked, [split_header(h)[0] for h in headers if h]).partition(" Did you mean")
    return known if " Did you mean" in known else known + mean + near


def usual_clock(time: str, names: Collection[str]) -> str:
    """The column of the clock: as it is named; by default "t", or the one column with another usual name, or the one …stamp."""
    if time != DEFAULT_CLOCK or time in names:
        return time
    usual = [name for name in names if name.lower() in USUAL_CLOCKS]
    usual = usual or [name for name in names if re.fullmatch(r"(.*[./_])?stamp", name.lower())]
    return usual[0] if len(usual) == 1 else time


def clock_of_rate(rate: float, samples: int, where: str = "rate") -> Array:
    """Times (N,) from 0 on of a log without a clock that was recorded at `rate` Hz; a rate that is none is refused."""
    if not (np.isfinite(rate) and rate > 0.0):
        raise DataError("this is no rate.", where=where, expected="samples a second, above 0", found=f"{rate:g}")
    return np.arange(samples) / rate


def known_unit(channel: str, unit: str, is_time: bool, meaning: Faults) -> str:
    """`unit`, once it is known to be one; what is wrong with it goes to `meaning`."""
    where = part_at("column", channel)
    if not unit:
        expected = f"units={{'{channel}': '…'}} or a header '{channel} [unit]'"
        hint = "Write '1' for a pure number."
        meaning.add("it has no unit.", where=where, expected=expected, hint=hint, at=("column", channel, "unit"))
        return "1"
    try:
        found = dimension(unit, where)
        if is_time and found != dimension("s"):
            meaning.add(
                "it is the time.", where=where, expected="a unit of time, such as 's' or 'ms'", found=f"'{unit}'"
            )
    except DataError as error:
        meaning.extend(error.faults)
    return unit


def merged_headers(headers: Sequence[str], asked: Collection[str] = ()) -> tuple[tuple[str, ...], Pairs]:
    """Headers with one for each stamp in place of its two columns, unless one of these is asked for by name."""
    bare = {split_header(h)[0]: h for h in headers}
    pairs: dict[str, tuple[str, str]] = {}
    for name, header in bare.items():
        match = re.fullmatch(r"(.+)[./_](secs?)", name, re.IGNORECASE)
        if match is None or match[1] in bare:
            continue
        for rest in REST:
            other = name[: match.start(2)] + rest
            both = (header, bare.get(other, ""))
            if both[1] and not {*both, name, other} & set(asked) and _units_fit(both):
                pairs[f"{match[1]} [s]"] = both
    if not pairs:
        return tuple(headers), {}
    place = {seconds: header for header, (seconds, _) in pairs.items()}
    dropped = {rest for _, rest in pairs.values()}
    return tuple(place.get(h, h) for h in headers if h not in dropped), pairs


def _units_fit(both: tuple[str, str]) -> bool:
    """Whether the headers have no other units than seconds and nanoseconds."""
    return split_header(both[0])[1] in ("", "s") and split_header(both[1])[1] in ("", "ns")


def asked_names(columns: Sequence[str] | Mapping[str, str] | None, units: Mapping[str, str], time: str) -> set[str]:
    """Every name by which a caller of a reader asks for a column."""
    given = () if columns is None else (*columns, *columns.values()) if isinstance(columns, Mapping) else columns
    return {time, *units, *given}


def columns_of(used: Sequence[str], pairs: Pairs) -> list[str]:
    """The columns of a file that hold these headers."""
    return list(dict.fromkeys(column for header in used for column in pairs.get(header, (header,))))


def merged(table: Mapping[str, Array], pairs: Pairs) -> dict[str, Array]:
    """Columns of a file with stamps in place of their seconds and nanoseconds."""
    out = dict(table)
    for header, (seconds, rest) in pairs.items():
        if seconds in out and rest in out:
            out[header] = out.pop(seconds) + 1e-9 * out.pop(rest)
    return out
