"""From what a sender writes to samples in SI: the columns that a study names, with their units, whatever way they come in.

A record is one object of names and numbers, {"time": 0.01, "trolley": 120.3, "angle": 0.2}, with the names that the log of the study has.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite, nan
from typing import Any

from veridyn.errors import DataError, did_you_mean
from veridyn.files.log.columns import split_header
from veridyn.files.units import si_unit, to_si
from veridyn.live.sample import Sample, Trouble
from veridyn.studies.config.identify import ColumnSettings, TableSettings
from veridyn.studies.config.study import Loaded, quantity
from veridyn.view.admission import same_token

TOKEN = "token"
LONGEST_RECORD = 65_536  # bytes
SHOWN = 60  # characters of a record that is quoted


@dataclass(frozen=True)
class SampleColumns:
    """`time`: the column of stamps and its factor to s; `columns`: column → channel, factor and offset to SI.

    `inputs`: the channels that are not readings but act on the machine; `token`: what a record must carry, where it is not empty;
    `unitless`: columns whose unit the study leaves to the header of a file.
    """

    time: tuple[str, float]
    columns: Mapping[str, tuple[str, float, float]]
    inputs: frozenset[str] = frozenset()
    token: str = ""
    unitless: frozenset[str] = frozenset()
    _told: set[str] = field(default_factory=set)

    def with_header(self, header: Sequence[str]) -> SampleColumns:
        """The columns with the units that a header gives, "angle [deg]", to those that the study gives none."""
        found = dict(self.columns)
        for name, unit in map(split_header, header):
            if unit and name in self.unitless:
                channel, factor, _ = found[name]
                zero, one = (to_si(x, unit, f"column '{name}'")[0] for x in (0.0, 1.0))
                found[name] = channel, factor * (one - zero), factor * zero
        return replace(self, columns=found)

    def read(self, text: str | bytes, arrived: float) -> list[Sample | Trouble]:
        """What a record in JSON says."""
        if len(text) > LONGEST_RECORD:
            return [Trouble("too long", f"a packet of {len(text)} bytes is not read: at most {LONGEST_RECORD} are.")]
        try:
            record = json.loads(text)
        except (ValueError, RecursionError):
            quoted = text[:SHOWN] if isinstance(text, str) else text[:SHOWN].decode("utf-8", "replace")
            return [Trouble("not JSON", f"a packet is no JSON object and is not used: {quoted!r}")]
        if not isinstance(record, dict):
            return [Trouble("not JSON", f"a packet holds no names and numbers: {str(record)[:SHOWN]!r}")]
        return self.sample(record, arrived)

    def sample(self, record: Mapping[str, Any], arrived: float) -> list[Sample | Trouble]:
        """A record as a sample in SI, with what is wrong in it; a value that is no number counts as a reading that failed."""
        if self.token and not same_token(str(record.get(TOKEN, "")), self.token):
            return [Trouble("token", "a packet without the right token is not used.")]
        found: list[Sample | Trouble] = []
        time, scale = self.time
        stamp = _number(record.get(time))
        if not isfinite(stamp):
            shown = str(record.get(time, "none"))[:SHOWN]
            return [Trouble("no time", f"a sample has no time in '{time}' and is not used: {shown}.")]
        values, acting = dict[str, float](), dict[str, float]()
        for name, value in record.items():
            if name in (time, TOKEN):
                continue
            known = self.columns.get(name)
            if known is None:
                if name not in self._told and len(self._told) < SHOWN:
                    self._told.add(name)
                    hint = did_you_mean(name, list(self.columns))
                    found.append(Trouble(f"column {name}", f"the study has no column '{name[:SHOWN]}'. {hint}"))
                continue
            channel, factor, offset = known
            read = _number(value)
            if channel not in self.inputs:
                values[channel] = factor * read + offset
            elif isfinite(read):
                acting[channel] = factor * read + offset
            else:
                what = f"'{name}' acts on the machine and is no number at {scale * stamp:.6g} s: the last one goes on."
                found.append(Trouble(f"input {name}", what))
        return [*found, Sample(scale * stamp, values, arrived, acting)]


def columns_of(loaded: Loaded[Any], log: TableSettings, inputs: Collection[str] = (), token: str = "") -> SampleColumns:
    """The columns of a study's log, for samples that come in one by one; a unit that is left out is that of SI."""
    name, unit = split_header(log.time)
    found, faults = {}, []
    for channel, column in log.columns.items():
        try:
            found[column.column] = (channel, *_factors(column))
        except DataError as error:
            at = ("log", "columns", channel)
            faults += [loaded.fault(at, f.what, f.expected, f.found, f.hint) for f in error.faults]
    if faults:
        raise loaded.error(faults)
    unitless = frozenset(c.column for c in log.columns.values() if not c.unit)
    return SampleColumns((name, to_si(1.0, unit or "s")[0]), found, frozenset(inputs), token, unitless)


def channel_units(loaded: Loaded[Any], log: TableSettings) -> dict[str, str]:
    """Channel → its unit in SI, as :func:`columns_of` converts it."""
    found = {}
    for channel, column in log.columns.items():
        times = quantity(column.times)[1] if isinstance(column.times, str) else "1"
        unit = column.unit or "1"
        found[channel] = si_unit(
            unit if times == "1" else f"{unit}*({times})", f"{loaded.file.name}, column '{column.column}'"
        )
    return found


def _factors(column: ColumnSettings) -> tuple[float, float]:
    """Factor and offset of a column to SI."""
    times = column.times
    factor = to_si(*quantity(times))[0] if isinstance(times, str) else float(times)
    zero, one = (to_si(x, column.unit or "1")[0] for x in (0.0, 1.0))
    return factor * (one - zero), factor * zero


def _number(value: object) -> float:
    """A number, also one in text; NaN for everything else."""
    if isinstance(value, bool) or value is None:
        return nan
    if isinstance(value, int | float):
        return float(value) if abs(value) < 1e300 else nan
    try:
        return float(value) if isinstance(value, str) else nan
    except ValueError:
        return nan
