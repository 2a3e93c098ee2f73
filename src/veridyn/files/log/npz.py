"""Logs in named arrays: a clock (N,), and beside it vectors (N,) and matrices (N, k) whose columns are channels.

    load_npz("run.npz", {"q.q1": "positions.0"}, {"times": "s", "positions": "rad"}, time="times")

Column i of a matrix "positions" is called "positions.i". A matrix with time along its second axis is turned where its shape
leaves no doubt. A number or a word alone is no signal: it is kept, as text and without a unit, in the experiment's notes.
A name may carry its unit, "positions [deg]". Nothing in a file is ever executed: arrays of Python objects, which only
unpickling could read, are refused by name.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault, Faults, FileError
from veridyn.files.log.columns import choose, clock_of_rate, split_header
from veridyn.files.log.opening import existing_file, unreadable
from veridyn.files.npz_arrays import read_arrays
from veridyn.files.units import to_si
from veridyn.model.experiment import Channel, Experiment

Array = NDArray[np.float64]
Columns = Sequence[str] | Mapping[str, str] | None


def load_npz(
    path: str | os.PathLike[str],
    columns: Columns = None,
    units: Mapping[str, str] | None = None,
    time: str = "t",
    name: str | None = None,
    rate: float | None = None,
) -> Experiment:
    """Read the arrays of an NPZ file as an Experiment whose channels share the clock of the array `time`, all in SI.

    `columns`: None takes every array; a mapping {channel: array} or {channel: "array.i"} picks and renames (a whole matrix
    picked as "q" becomes q.0, q.1 …). `units`: {channel, array or "array.i": unit}; every array used needs one. `rate` (Hz) is that of
    arrays without a clock.
    """
    file = existing_file(path)
    if not zipfile.is_zipfile(file):
        raise FileError(
            Fault("it is not an archive of arrays.", expected="what np.savez writes", hint="It may be cut off."),
            str(file),
        )
    return experiment_of(npz_arrays(file), file, columns, units or {}, time, name or file.name, rate)


def npz_arrays(file: Path) -> Mapping[str, object]:
    """The arrays of a file by name; a value that is a Fault says why that one cannot be read."""
    try:
        with file.open("rb") as stream:
            return read_arrays(stream, str(file))
    except OSError as error:
        raise FileError(unreadable(error), str(file)) from error


def experiment_of(
    values: Mapping[str, object],
    file: Path,
    columns: Columns,
    units: Mapping[str, str],
    time: str,
    name: str,
    rate: float | None = None,
) -> Experiment:
    """The Experiment that the arrays of a file make; a value that is a Fault says why that one cannot be read.

    All that is wrong with the arrays used is reported at once.
    """
    if columns is not None and not isinstance(columns, Mapping):
        raise DataError(
            Fault(
                "`columns` is no mapping, and these arrays have names of their own.",
                expected="columns={channel: array}",
                found=f"{columns!r}"[:60],
            ),
            str(file),
        )
    structure, meaning = Faults(), Faults()
    clock_name = None if rate is not None else (columns or {}).get(time, time)
    found = _sort(values, clock_name)
    picked = None if columns is None else found.spread(columns)
    for array, fault in found.refused.items():
        askers = [] if picked is None else [c for c, asked in picked.items() if _belongs(asked, array)]
        if picked is None or askers or (rate is None and _belongs(time, array)):  # what nobody asks for may be anything
            structure.extend([replace(fault, where=f"array '{array}'")])
        for channel in askers:
            if picked is not None and channel != time:
                del picked[channel]
    given = found.units(units, columns or {})
    wanted, clock = choose(list(found.columns), picked, given, None if rate is not None else time, structure, meaning)
    if structure or (clock is None and rate is None):
        raise FileError([*structure.found, *meaning.found], str(file))
    lengths = {c.name: len(found.columns[c.header]) for c in wanted}
    if rate is not None and len(set(lengths.values())) > 1:
        listed = ", ".join(f"{n} {N}" for n, N in lengths.items())
        meaning.add("without a clock all arrays are as long.", expected="one number of samples", found=listed)
    meaning.raise_if_any(DataError, str(file))
    if clock is not None:
        t, _ = to_si(found.columns[clock.header], clock.unit)
    else:
        t = clock_of_rate(rate or 0.0, max(lengths.values(), default=0), str(file))
    made = [Channel(c.name, t, *to_si(found.columns[c.header], c.unit)) for c in wanted]
    return Experiment({c.name: c for c in made}, name, found.notes)


@dataclass(frozen=True)
class _Sorted:
    """The arrays of a file: `columns` by header, the headers of each matrix (`members`), and what makes no channel."""

    columns: dict[str, Array]
    members: dict[str, list[str]]
    notes: dict[str, str]
    refused: dict[str, Fault]

    def spread(self, picks: Mapping[str, str]) -> dict[str, str]:
        """{channel: header}, where a matrix picked whole has become its columns."""
        out: dict[str, str] = {}
        for channel, asked in picks.items():
            headers = self.members.get(asked)
            out |= {channel: asked} if headers is None else {f"{channel}.{i}": h for i, h in enumerate(headers)}
        return out

    def units(self, units: Mapping[str, str], picks: Mapping[str, str]) -> dict[str, str]:
        """{channel or header: unit}, where that of a matrix holds for its columns unless they have one of their own."""
        wide: dict[str, str] = {}
        own: dict[str, str] = {}
        for key, unit in units.items():
            matrix = self.members.get(key) or list(self.spread({key: picks.get(key, key)}))
            if matrix == [key]:
                own[key] = unit
            else:
                wide |= dict.fromkeys(matrix, unit)
        return {**wide, **own}


def _belongs(asked: str, array: str) -> bool:
    """Whether a name means this array or one of its columns."""
    return {asked, asked.rpartition(".")[0]} & {array, split_header(array)[0]} != set()


def _sort(values: Mapping[str, object], time: str | None) -> _Sorted:
    """Tell channels from numbers alone, words and what cannot be used, by the length of the clock."""
    out = _Sorted({}, {}, {}, {})
    numbers: dict[str, Array] = {}
    for key, value in values.items():
        is_time = time in (key, split_header(key)[0])
        read = _numbers(value)
        if isinstance(read, Fault):
            out.refused[key] = read
        elif isinstance(read, str) and is_time:
            out.refused[key] = Fault("it is the time, and one value alone.", "", "an array of times (N,)", read)
        elif isinstance(read, str):
            out.notes[key] = read
        elif is_time and max(read.shape) != read.size:
            out.refused[key] = Fault("it is the time.", "", "an array of times (N,)", f"{read.shape}")
        else:
            numbers[key] = read
    clock = next((a for key, a in numbers.items() if time in (key, split_header(key)[0])), None)
    for key, array in numbers.items():
        N = len(array) if clock is None else clock.size
        signals = _signals(array, N)
        if signals is None:
            expected = f"({N},) or ({N}, k), as long as the clock"
            hint = "Pick the arrays that belong to this clock with columns={channel: array}."
            out.refused[key] = Fault("it has another shape.", "", expected, f"{array.shape}", hint)
        elif signals.shape[1] == 1:
            out.columns[key] = signals[:, 0]
        else:
            bare, unit = split_header(key)
            headers = [f"{bare}.{i}" + (f" [{unit}]" if unit else "") for i in range(signals.shape[1])]
            out.columns.update(zip(headers, signals.T, strict=True))
            out.members[key] = out.members[bare] = headers
    return out


def _signals(array: Array, N: int) -> Array | None:
    """The array as (N, k); None where it has no axis of that length, or three axes."""
    if array.ndim == 1 and len(array) == N:
        return array[:, None]
    if array.ndim == 2 and N in array.shape:
        return array if array.shape[0] == N else array.T
    return None


def _numbers(value: object) -> Array | str | Fault:
    """An array of numbers; the text of a number or a word alone; or why it is neither."""
    if isinstance(value, Fault):
        return value
    array = np.asarray(value)
    if array.dtype.kind in "biufUS" and array.size == 1:
        return str(array.reshape(-1)[0].item())
    if array.dtype.kind in "biuf":
        return array.astype(np.float64)
    kinds = {"c": "complex numbers", "M": "dates", "m": "durations", "U": "words", "S": "words", "V": "records"}
    what = kinds.get(array.dtype.kind, "things of several kinds")
    hint = "Write times as seconds since a date." if array.dtype.kind in "Mm" else ""
    return Fault(f"it holds {what}.", "", "an array of numbers", f"type {array.dtype}, shape {array.shape}", hint)
