"""Which columns of a table become channels, under which names and in which units.

Every column used needs a unit, from `units` or from a header of the form ``name [unit]``, the time included, because a clock in
milliseconds looks like any other.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault, Faults, did_you_mean, part_at
from veridyn.files.units import dimension

Array = NDArray[np.float64]

DEFAULT_CLOCK = "t"
USUAL_CLOCKS = ("t", "time", "timestamp", "seconds", "clock")


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
    if time is not None:
        if time not in picked and split_header(time)[0] in picked:
            time = split_header(time)[0]
        time = usual_clock(time, picked)
    allowed = {*picked, *picked.values(), *headers, *bare}
    for key in units:
        if key not in allowed:
            meaning.add(f"`units` names '{key}', which is no column.", hint=did_you_mean(key, list(picked)))
    wanted, clock = [], None
    if time is not None and time not in picked:
        picked[time] = time
    for channel, asked in picked.items():
        header = asked if asked in there else bare.get(asked)
        if header is None:
            what = " for the time" if channel == time else ""
            hint = (
                "Name it with time=, or give the rate of a log without a clock with rate=. " if channel == time else ""
            )
            structure.add(
                f"there is no column '{asked}'{what}.", hint=hint + did_you_mean(asked, [h for h in headers if h])
            )
            continue
        known = [units[key] for key in (channel, header, split_header(header)[0]) if key in units]
        unit = known_unit(channel, known[0] if known else split_header(header)[1], channel == time, meaning)
        column = Column(header, channel, unit)
        if channel == time:
            clock = column
        else:
            wanted.append(column)
    return wanted, clock


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
        raise DataError(Fault("this is no rate.", where, "samples a second, above 0", f"{rate:g}"))
    return np.arange(samples) / rate


def known_unit(channel: str, unit: str, is_time: bool, meaning: Faults) -> str:
    """`unit`, once it is known to be one; what is wrong with it goes to `meaning`."""
    where = part_at("column", channel)
    if not unit:
        meaning.add(
            "it has no unit.",
            where=where,
            at=("column", channel, "unit"),
            expected=f"units={{'{channel}': '…'}} or a header '{channel} [unit]'",
            hint="Write '1' for a pure number.",
        )
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
