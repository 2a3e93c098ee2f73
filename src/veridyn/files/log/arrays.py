"""Logs in named arrays, NPZ and MATLAB's files: a clock (N,), and beside it vectors (N,) and matrices (N, k) whose columns are channels.

    load_arrays("run.npz", {"q.q1": "positions.0"}, {"times": "s", "positions": "rad"}, time="times")

Column i of a matrix "positions" is called "positions.i". A matrix with time along its second axis is turned where its shape
leaves no doubt. A number or a word alone is no signal: it is kept, as text and without a unit, in the experiment's notes.
A name may carry its unit, "positions [deg]". Nothing in a file is ever executed: arrays of Python objects, which only
unpickling could read, are refused by name.

MAT files of version 5 to 7.2 are read here, 7.3 (which is HDF5) by pymatreader, of the extra ``logs``. The fields of a structure are
named "structure.field".
"""

from __future__ import annotations

import os
import struct
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import DataError, Fault, Faults, FileError
from veridyn.files.access import READER_ERRORS, allowed_bytes, existing_file, inflate, read_arrays, unreadable
from veridyn.files.log.columns import choose, experiment_of, raise_faults, split_header
from veridyn.model.experiment import Experiment

Columns = Sequence[str] | Mapping[str, str] | None
HDF5 = b"\x89HDF\r\n\x1a\n"
PREAMBLE = 512  # bytes that MATLAB writes before the HDF5 part of a 7.3 file
HEADER = 128  # bytes before the first element of an older file
MATRIX, COMPRESSED = 14, 15
NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
# Data type → how texts of it are coded.
TEXTS = {1: "latin-1", 2: "latin-1", 4: "utf-16", 16: "utf-8", 17: "utf-16", 18: "utf-32"}
STRUCTURE, CHARACTERS, NUMERIC = 2, 4, range(6, 16)  # classes of variables
OTHERS = {1: "cells", 3: "objects", 5: "a sparse matrix", 16: "a function handle", 17: "an object"}
COMPLEX = 0x800  # flag of a variable
DEEPEST = 32  # structures in structures


def load_arrays(
    path: str | os.PathLike[str],
    columns: Columns = None,
    units: Mapping[str, str] | None = None,
    time: str = "t",
    name: str | None = None,
    rate: float | None = None,
) -> Experiment:
    """Read the arrays of an NPZ or MAT file as an Experiment whose channels share the clock of the array `time`, all in SI.

    `columns`: None takes every array; a mapping {channel: array} or {channel: "array.i"} picks and renames (a whole matrix
    picked as "q" becomes q.0, q.1 …). `units`: {channel, array or "array.i": unit}; every array used needs one. `rate` (Hz) is that of
    arrays without a clock.
    """
    file = existing_file(path)
    if file.suffix.lower() == ".npz" and not zipfile.is_zipfile(file):
        fault = Fault("it is not an archive of arrays.", "", "what np.savez writes", hint="It may be cut off.")
        raise FileError(fault, str(file))
    return _experiment(named_arrays(file), file, columns, units or {}, time, name or file.name, rate)


def named_arrays(file: Path) -> Mapping[str, object]:
    """The arrays of a file by name, MAT by its suffix, else NPZ; a value that is a Fault says why that one cannot be read."""
    try:
        if file.suffix.lower() == ".mat":
            data = file.read_bytes()
            hdf5 = HDF5 in (data[: len(HDF5)], data[PREAMBLE : PREAMBLE + len(HDF5)])
            return dict(_flat(_read_hdf5(file) if hdf5 else _read_level_5(data), ""))
        with file.open("rb") as stream:
            return read_arrays(stream, str(file))
    except READER_ERRORS as error:
        raise FileError(unreadable(error), str(file)) from error


def _experiment(
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
        what = "`columns` is no mapping, and these arrays have names of their own."
        raise DataError(
            what, where="", expected="columns={channel: array}", found=f"{columns!r}"[:60], source=str(file)
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
    lengths = {c.name: len(found.columns[c.header]) for c in wanted}
    if rate is not None and not structure and len(set(lengths.values())) > 1:
        listed = ", ".join(f"{n} {N}" for n, N in lengths.items())
        meaning.add("without a clock all arrays are as long.", expected="one number of samples", found=listed)
    raise_faults(structure, meaning, str(file))
    used = {c.header: found.columns[c.header] for c in (clock, *wanted) if c is not None}
    return experiment_of(used, wanted, clock, rate, str(file), name, found.notes)


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


def _read_hdf5(file: Path) -> dict[str, Any]:
    try:
        from pymatreader import read_mat  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        what = "it is a MAT file of version 7.3, which is HDF5, and pymatreader is not installed."
        hint = "pip install 'veridyn[logs]'. Or save the file in MATLAB with -v7, which needs nothing more."
        raise FileError(what, hint=f"Install it with: {hint}", source=str(file)) from error
    read = read_mat(str(file))
    # In the order of their names: its own order changes from run to run.
    return {key: read[key] for key in sorted(read) if not key.startswith(("__", "#"))}


def _flat(value: Any, name: str) -> list[tuple[str, object]]:
    """Variables by name, the fields of structures as "structure.field"."""
    if isinstance(value, Mapping):
        return [pair for key, part in value.items() for pair in _flat(part, f"{name}.{key}" if name else str(key))]
    if isinstance(value, list):  # what pymatreader makes of cells
        return [(name, _refusal("cells"))]
    return [(name, value)]


def _refusal(what: str) -> Fault:
    return Fault(
        f"it holds {what}.", expected="an array of numbers", hint="Save the numbers as a variable of their own."
    )


def _read_level_5(data: bytes) -> dict[str, object]:
    """The variables of a file; a ValueError says where it is not one."""
    order = {b"IM": "<", b"MI": ">"}.get(data[HEADER - 2 : HEADER])
    if order is None:
        raise ValueError("it has not the header of a MAT file of version 5 or later (MATLAB writes one with -v7)")
    found: dict[str, object] = {}
    allowed = allowed_bytes(len(data))  # of all variables together
    for kind, part in _elements(memoryview(data)[HEADER:], order):
        if kind == COMPRESSED:
            unpacked = inflate(part, allowed)
            allowed -= len(unpacked)
            inside = _elements(memoryview(unpacked), order)
            if len(inside) != 1:
                raise ValueError(f"a compressed part holds {len(inside)} variables instead of one")
            kind, part = inside[0]
        if kind != MATRIX:
            raise ValueError(f"an element of type {kind} stands where a variable is expected")
        name, value = _variable(part, order, 0)
        if name in found:
            raise ValueError(f"two variables are called '{name}'")
        if name:  # without one it is MATLAB's own
            found[name] = value
    return found


def _elements(data: memoryview, order: str) -> list[tuple[int, memoryview]]:
    """The elements, (type, data), of which `data` is made."""
    out, at = [], 0
    while at < len(data):
        if len(data) - at < 8:
            raise ValueError("an element is cut off: the file ends too early, or a size in it is wrong")
        kind, size = struct.unpack_from(order + "II", data, at)
        start, padded = at + 8, size if kind == COMPRESSED else size + -size % 8
        if kind >> 16:  # a small element keeps its data in its own tag
            kind, size, start, padded = kind & 0xFFFF, kind >> 16, at + 4, 4
        if start + size > len(data) or size > padded:
            raise ValueError(f"an element of {size} bytes is cut off after {len(data) - start}")
        out.append((kind, data[start : start + size]))
        at = start + padded
    return out


def _variable(data: memoryview, order: str, depth: int) -> tuple[str, object]:
    """The name and the value of one variable: an array, a word, a structure as a mapping, or why it is none of these."""
    parts = _elements(data, order)
    if not parts:
        return "", np.zeros(0)
    flags = _entries(parts, 0, order)
    kind = int(flags[0]) & 0xFF if len(flags) == 2 else 0
    if kind == 17:  # an object of a class: it has no dimensions
        return _word(parts, 1, order), _refusal(OTHERS[kind])
    dims = [int(d) for d in _entries(parts, 1, order)]
    name = _word(parts, 2, order)
    if kind in OTHERS:
        return name, _refusal(OTHERS[kind])
    if len(dims) < 2 or min(dims) < 0 or depth > DEEPEST or kind not in (STRUCTURE, CHARACTERS, *NUMERIC):
        raise ValueError(f"the variable '{name[:60]}' is of class {kind} and size {dims}, which no variable has")
    if kind == STRUCTURE:
        return name, _structure(parts, dims, order, depth)
    if kind == CHARACTERS:
        return name, _word(parts, 3, order) if dims[0] == 1 else _refusal("several words")
    values = _entries(parts, 3, order)
    if len(values) != prod(dims):
        raise ValueError(f"the variable '{name[:60]}' has {len(values)} numbers for the size {dims}")
    if int(flags[0]) & COMPLEX:
        return name, _refusal("complex numbers")
    return name, values.reshape(dims, order="F")


def _structure(parts: list[tuple[int, memoryview]], dims: list[int], order: str, depth: int) -> object:
    if prod(dims) != 1:
        return _refusal(f"{prod(dims)} structures")
    length = _entries(parts, 3, order)
    names = _word(parts, 4, order)
    if (
        len(length) != 1
        or length[0] < 1
        or len(names) % int(length[0])
        or len(parts) != 5 + len(names) // int(length[0])
    ):
        raise ValueError(f"a structure has {len(parts) - 5} fields that do not fit their names")
    step = int(length[0])
    out: dict[str, object] = {}
    for k, (kind, part) in enumerate(parts[5:]):
        if kind != MATRIX:
            raise ValueError(f"an element of type {kind} stands where a field is expected")
        out[names[k * step : (k + 1) * step].split("\0")[0]] = _variable(part, order, depth + 1)[1]
    return out


def _entries(parts: list[tuple[int, memoryview]], place: int, order: str) -> NDArray[Any]:
    kind, part = parts[place] if place < len(parts) else (0, memoryview(b""))
    if kind not in NUMBERS or len(part) % np.dtype(NUMBERS[kind]).itemsize:
        raise ValueError(f"an element of type {kind} and {len(part)} bytes stands where numbers are expected")
    return np.frombuffer(part, dtype=order + NUMBERS[kind])


def _word(parts: list[tuple[int, memoryview]], place: int, order: str) -> str:
    kind, part = parts[place] if place < len(parts) else (0, memoryview(b""))
    if kind not in TEXTS:
        raise ValueError(f"an element of type {kind} stands where a word is expected")
    wide = TEXTS[kind] in ("utf-16", "utf-32")
    coded = TEXTS[kind] + ({"<": "-le", ">": "-be"}[order] if wide else "")
    return bytes(part).decode(coded, errors="replace")
