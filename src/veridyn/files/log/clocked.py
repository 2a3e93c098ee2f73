"""Logs whose channels have names, units and clocks of their own, as in MDF files and bags: which are taken, and in which units.

    load_log("run.bag", {"q": "/joint_states.position"}, {"q": "rad"})        # q.shoulder, q.elbow, …

A name that others begin with, up to a dot, means all of them: a topic, an array, the joints of a message. It does so in `columns` and in
`units`. A unit that the file has need not be given; one that is given goes before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault, Faults, did_you_mean, part_at
from veridyn.files.log.columns import Column, known_unit, raise_faults
from veridyn.files.units import to_si
from veridyn.model.experiment import Channel, Experiment

Array = NDArray[np.float64]
Columns = Sequence[str] | Mapping[str, str] | None
Samples = tuple[Array, Array]  # times in s, values in the unit of the file
DEFAULT = "t"  # the name of the clock where nobody names one


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
        fault = Fault(what, "", "columns={channel: name in the file}", f"{columns!r}"[:60])
        raise DataError(fault, where)
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
    said = {"left out": ", ".join(left)} if columns is None and left else {}
    return Experiment({c.name: c for c in made}, name, {**source.notes, **said})


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
