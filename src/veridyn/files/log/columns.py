"""Which columns of a table, or channels of a recording, become channels of a log, under which names and in which units.

Every column used needs a unit, from `units` or from a header of the form ``name [unit]``, the time included, because a clock in
milliseconds looks like any other. A clock in two columns, as ROS 2 writes its stamps, is read as one:

    header.stamp.sec, header.stamp.nanosec  →  header.stamp [s] = sec + 1e-9 nanosec        (both can still be asked for)

In MDF files and bags channels have names, units and clocks of their own (:class:`Source`):

    load_log("run.bag", {"q": "/joint_states.position"}, {"q": "rad"})        # q.shoulder, q.elbow, …

There a name that others begin with, up to a dot, means all of them: a topic, an array, the joints of a message. It does so in `columns`
and in `units`. A unit that the file has need not be given; one that is given goes before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError, Fault, Faults, FileError, did_you_mean, part_at
from veridyn.files.units import dimension, to_si
from veridyn.model.experiment import Channel, Experiment

DEFAULT_CLOCK = "t"  # the name of the clock where nobody names one
USUAL_CLOCKS = ("t", "time", "timestamp", "seconds", "clock")
Pairs = Mapping[str, tuple[str, str]]  # header of the sum → headers of seconds and of nanoseconds
REST = ("nanosec", "nanosecs", "nsec", "nsecs")  # what the second column is called
Columns = Sequence[str] | Mapping[str, str] | None
Samples = tuple[Array, Array]  # times in s, values in the unit of the file


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
    given_time = time  # what the caller calls the clock, which may be called otherwise in the file
    if time is not None:
        if time not in picked and split_header(time)[0] in picked:
            time = split_header(time)[0]
        time = usual_clock(time, [*picked, *(n for n in bare if n and n not in picked)])
    allowed = {*picked, *picked.values(), *headers, *bare, given_time}
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
        names = [channel, header, split_header(header)[0], *([given_time] if channel == time else [])]
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


@dataclass(frozen=True, eq=False)
class Source:
    """What a file offers: `units` of its channels by name ("" where it has none), and how they are read.

    `refused` are names that make no channel, `ambiguous` those that several channels have, each with the reason.
    """

    file: Path
    units: Mapping[str, str]
    refused: Mapping[str, Fault]
    read: Callable[[Sequence[str]], Mapping[str, Samples | Fault]]
    notes: Mapping[str, str] = field(default_factory=dict)
    ambiguous: Mapping[str, Fault] = field(default_factory=dict)

    def why_not(self, name: str) -> Fault | None:
        """Why a name cannot be asked for."""
        return self.refused.get(name) or self.ambiguous.get(name)

    def below(self, name: str) -> list[str]:
        """Channels that a name means: itself, or all that begin with it and a dot."""
        return [name] if name in self.units else [n for n in self.units if n.startswith(f"{name}.")]

    def spelled(self, name: str) -> str:
        """The name as the file has it: the slash at the beginning of a topic may be left out."""
        known = (name, f"/{name}")
        return next((n for n in known if self.below(n) or any(self.why_not(b) for b in _beginnings(n))), name)


def experiment_of_source(
    source: Source, columns: Columns, units: Mapping[str, str], time: str, name: str
) -> Experiment:
    """The channels that are asked for, in SI. Without `columns`, all that the file offers as numbers; what is left out is noted."""
    where = str(source.file)
    if columns is not None and not isinstance(columns, Mapping):
        what = "`columns` is no mapping, and these channels have names of their own."
        raise DataError(Fault(what, "", "columns={channel: name in the file}", f"{columns!r}"[:60]), where)
    structure, meaning = Faults(), Faults()
    picked = {n: n for n in source.units} if columns is None else _picked(source, columns, time, structure)
    asked = {**{n: n for n in picked}, **(columns or {})}
    _check_units(source, units, picked, asked, time, meaning)
    read = source.read(list(dict.fromkeys(picked.values())))
    wanted: list[tuple[Column, Samples]] = []
    bare: list[str] = []
    left = list(source.refused) if columns is None else []
    for channel, header in picked.items():
        samples = read[header]
        if isinstance(samples, Fault):
            left.append(header)
            structure.extend([] if columns is None else [replace(samples, where=part_at("channel", header))])
            continue
        unit = _given(units, channel, header) or source.units[header]
        if not unit:
            bare.append(channel)
        unit = known_unit(channel, unit, False, meaning) if unit else "1"
        wanted.append((Column(header, channel, unit), samples))
    meaning.extend(_without_unit(bare))
    if not wanted and not structure:
        structure.add("it holds no channel of numbers.", hint=_listed(source.refused))
    raise_faults(structure, meaning, where)
    made = [Channel(c.name, t, *to_si(values, c.unit)) for c, (t, values) in wanted]
    left_notes = {"left out": ", ".join(left)} if columns is None and left else {}
    return Experiment({c.name: c for c in made}, name, {**source.notes, **left_notes})


def _without_unit(channels: Sequence[str]) -> list[Fault]:
    """One fault for all channels that differ in their last word only: they mostly have one unit."""
    together: dict[str, list[str]] = {}
    for channel in channels:
        together.setdefault(channel.rpartition(".")[0] or channel, []).append(channel)
    out = []
    for head, names in together.items():
        key = names[0] if len(names) == 1 else head
        where = part_at("channel", key) if len(names) == 1 else f"{len(names)} channels '{key}.…'"
        what = "it has no unit." if len(names) == 1 else "they have no unit."
        out.append(Fault(what, where, f"units={{'{key}': '…'}}", hint="Write '1' for a pure number."))
    return out


def _picked(source: Source, columns: Mapping[str, str], time: str, faults: Faults) -> dict[str, str]:
    """{channel: name in the file}; names that mean several have become those."""
    out: dict[str, str] = {}
    for channel, asked in columns.items():
        name = source.spelled(asked)
        if channel == time:
            continue  # a study names a clock for every format; here each channel has its own
        if (fault := source.why_not(name)) is not None:
            faults.extend([replace(fault, where=part_at("channel", name))])
            continue
        names = source.below(name)
        if not names:
            inside = [n for n in source.refused if n.startswith(f"{name}.") or f"{name}.".startswith(f"{n}.")]
            faults.extend([replace(source.refused[n], where=part_at("channel", n)) for n in inside])
            if not inside:
                faults.add(
                    f"there is no channel '{asked}'.", hint=did_you_mean(asked, [*source.refused, *source.units])
                )
        out |= {channel + n.removeprefix(name): n for n in names}
    return out


def _given(units: Mapping[str, str], channel: str, header: str) -> str:
    """The unit that was given for a channel: for it, for its name in the file, or for the nearest name that both begin with."""
    for key in (*_beginnings(channel), *_beginnings(header)):
        if key in units:
            return units[key]
        if header.startswith("/") and key.removeprefix("/") in units:
            return units[key.removeprefix("/")]
    return ""


def _beginnings(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:k]) for k in range(len(parts), 0, -1)]


def _check_units(
    source: Source,
    units: Mapping[str, str],
    picked: Mapping[str, str],
    asked: Mapping[str, str],
    time: str,
    faults: Faults,
) -> None:
    used = {b for pair in picked.items() for n in pair for b in _beginnings(n)} | {time, *asked}
    for key in units:
        if key not in used and source.spelled(key) not in used:
            faults.add(f"`units` names '{key}', which is no channel.", hint=did_you_mean(key, list(picked)))


def _listed(refused: Mapping[str, Fault]) -> str:
    """What a file holds instead, for a message."""
    some = [f"'{n}': {f.what}" for n, f in list(refused.items())[:3]]
    return ("Among what it holds: " + " ".join(some)) if some else ""


def survey_of_source(source: Source) -> tuple[dict[str, Array], dict[str, str], dict[str, Array]]:
    """Every channel of numbers: values in the file's units, units where it has them, times."""
    read = source.read(list(source.units))
    found = {n: samples for n, samples in read.items() if not isinstance(samples, Fault)}
    units = {n: u for n in found if (u := source.units[n])}
    return {n: x for n, (_, x) in found.items()}, units, {n: t for n, (t, _) in found.items()}
