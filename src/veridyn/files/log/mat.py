"""Logs in MATLAB's files, version 5 to 7.2 read here and 7.3 (which is HDF5) by pymatreader, of the extra ``logs``.

    load_mat("run.mat", {"q.q1": "qm", "signal.v": "vir"}, {"t": "s", "qm": "m", "vir": "V"})

Variables are arrays by name, as in :mod:`veridyn.files.log.npz`; the fields of a structure are named "structure.field". Numbers
and words alone, such as the gain of a drive, are kept in the experiment's notes. Nothing in a file is ever executed: cells,
objects and function handles make no channel and are refused by name.

Why not SciPy's reader: it (1.17) trusts the tags of a damaged file, and one wrong byte can end the whole process. Here
every element must lie inside the one that holds it, and every size must agree with what it counts.
Format: The MathWorks, "MAT-File Format", Level 5.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Fault, FileError
from veridyn.files.log.npz import Columns, experiment_of
from veridyn.files.log.opening import existing_file, unreadable
from veridyn.files.unpacking import allowed_bytes, inflate
from veridyn.model.experiment import Experiment

HDF5 = b"\x89HDF\r\n\x1a\n"
PREAMBLE = 512  # bytes that MATLAB writes before the HDF5 part of a 7.3 file
HEADER = 128  # bytes before the first element of an older file
MATRIX, COMPRESSED = 14, 15
NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
TEXTS = {
    1: "latin-1",
    2: "latin-1",
    4: "utf-16",
    16: "utf-8",
    17: "utf-16",
    18: "utf-32",
}  # data type → how it is coded
STRUCTURE, CHARACTERS, NUMERIC = 2, 4, range(6, 16)  # classes of variables
OTHERS = {1: "cells", 3: "objects", 5: "a sparse matrix", 16: "a function handle", 17: "an object"}
COMPLEX = 0x800  # flag of a variable
DEEPEST = 32  # structures in structures
# What the reader of HDF5 says of a file that is cut off or overwritten.
DAMAGED = (OSError, ValueError, TypeError, KeyError, IndexError, EOFError, OverflowError, RuntimeError)


def load_mat(
    path: str | os.PathLike[str],
    columns: Columns = None,
    units: Mapping[str, str] | None = None,
    time: str = "t",
    name: str | None = None,
    rate: float | None = None,
) -> Experiment:
    """Read the variables of a MAT file as an Experiment whose channels share the clock of the variable `time`, all in SI.

    `columns`: None takes every variable; a mapping {channel: variable} or {channel: "variable.i"} picks and renames.
    `units`: {channel, variable or "variable.i": unit}; every variable used needs one. `rate` (Hz) is that of variables without a clock.
    """
    file = existing_file(path)
    return experiment_of(named_arrays(file), file, columns, units or {}, time, name or file.name, rate)


def named_arrays(file: Path) -> dict[str, object]:
    """The variables of a file by name; a value that is a Fault says why that one cannot be read."""
    try:
        data = file.read_bytes()
        hdf5 = HDF5 in (data[: len(HDF5)], data[PREAMBLE : PREAMBLE + len(HDF5)])
        read = _read_hdf5(file) if hdf5 else _read_level_5(data)
    except (*DAMAGED, zlib.error) as error:
        raise FileError(unreadable(error), str(file)) from error
    return dict(_flat(read, ""))


def _read_hdf5(file: Path) -> dict[str, Any]:
    try:
        from pymatreader import read_mat  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise FileError(
            Fault(
                "it is a MAT file of version 7.3, which is HDF5, and pymatreader is not installed.",
                hint="Install it with: pip install 'veridyn[logs]'. "
                "Or save the file in MATLAB with -v7, which needs nothing more.",
            ),
            str(file),
        ) from error
    read = read_mat(str(file))
    return {
        key: read[key] for key in sorted(read) if not key.startswith(("__", "#"))
    }  # its own order changes from run to run


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
    flags = _numbers(parts, 0, order)
    kind = int(flags[0]) & 0xFF if len(flags) == 2 else 0
    if kind == 17:  # an object of a class: it has no dimensions
        return _text(parts, 1, order), _refusal(OTHERS[kind])
    dims = [int(d) for d in _numbers(parts, 1, order)]
    name = _text(parts, 2, order)
    if kind in OTHERS:
        return name, _refusal(OTHERS[kind])
    if len(dims) < 2 or min(dims) < 0 or depth > DEEPEST or kind not in (STRUCTURE, CHARACTERS, *NUMERIC):
        raise ValueError(f"the variable '{name[:60]}' is of class {kind} and size {dims}, which no variable has")
    if kind == STRUCTURE:
        return name, _structure(parts, dims, order, depth)
    if kind == CHARACTERS:
        return name, _text(parts, 3, order) if dims[0] == 1 else _refusal("several words")
    values = _numbers(parts, 3, order)
    if len(values) != prod(dims):
        raise ValueError(f"the variable '{name[:60]}' has {len(values)} numbers for the size {dims}")
    if int(flags[0]) & COMPLEX:
        return name, _refusal("complex numbers")
    return name, values.reshape(dims, order="F")


def _structure(parts: list[tuple[int, memoryview]], dims: list[int], order: str, depth: int) -> object:
    if prod(dims) != 1:
        return _refusal(f"{prod(dims)} structures")
    length = _numbers(parts, 3, order)
    names = _text(parts, 4, order)
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


def _numbers(parts: list[tuple[int, memoryview]], place: int, order: str) -> NDArray[Any]:
    kind, part = parts[place] if place < len(parts) else (0, memoryview(b""))
    if kind not in NUMBERS or len(part) % np.dtype(NUMBERS[kind]).itemsize:
        raise ValueError(f"an element of type {kind} and {len(part)} bytes stands where numbers are expected")
    return np.frombuffer(part, dtype=order + NUMBERS[kind])


def _text(parts: list[tuple[int, memoryview]], place: int, order: str) -> str:
    kind, part = parts[place] if place < len(parts) else (0, memoryview(b""))
    if kind not in TEXTS:
        raise ValueError(f"an element of type {kind} stands where a word is expected")
    wide = TEXTS[kind] in ("utf-16", "utf-32")
    coded = TEXTS[kind] + ({"<": "-le", ">": "-be"}[order] if wide else "")
    return bytes(part).decode(coded, errors="replace")
