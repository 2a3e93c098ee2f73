"""What a log file holds, before anybody has said what it means: names, units where the header has them, and numbers.

survey("run.csv") reads text tables with or without a header row, Parquet, NPZ, MAT and MDF files and bags. Columns of a table without a
header row are called c1, c2, …; those of a matrix "positions" are positions.0, positions.1, …
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError, Fault, Faults, FileError
from veridyn.files.access import ARRAYS, PARQUET, clocked_format, existing_log, unreadable
from veridyn.files.log.columns import merged, merged_headers, split_header
from veridyn.files.log.layout import CsvLayout, find_layout, is_number, numbered_names
from veridyn.files.log.tables import parquet, read_columns
from veridyn.files.units import dimension


@dataclass(frozen=True, eq=False)
class Survey:
    """`columns`: name → numbers; `units`: name → unit, where the file names one; `has_header`: whether the names are the file's own.

    `clocks`: name → times in s, in formats whose channels have clocks of their own; there no column is the time. `decimal`: the mark in
    the numbers of a text. `texts`: column → the word in its first row, where that is no number.
    """

    file: Path
    columns: Mapping[str, Array]
    units: Mapping[str, str]
    has_header: bool = True
    clocks: Mapping[str, Array] = field(default_factory=dict)
    decimal: str = "."
    texts: Mapping[str, str] = field(default_factory=dict)


def survey(path: str | os.PathLike[str]) -> Survey:
    """All columns of numbers in a file."""
    file = existing_log(path)
    suffix = file.suffix.lower()
    if kind := clocked_format(file):
        return _of_clocked(file, kind)
    try:
        if suffix in ARRAYS:
            return _of_arrays(file)
        if suffix in PARQUET:
            return _named(file, parquet(file).read_parquet(file, None, Faults()), True)
        return _of_text(file)
    except (OSError, UnicodeDecodeError, ValueError, csv.Error) as error:
        raise FileError(unreadable(error), str(file)) from error


def _of_clocked(file: Path, kind: str) -> Survey:
    from veridyn.files.log.bag import bag_source
    from veridyn.files.log.columns import survey_of_source
    from veridyn.files.log.mdf import mdf_source

    if kind == "bag":
        columns, units, clocks = survey_of_source(bag_source(file))
    else:
        with mdf_source(file) as source:
            columns, units, clocks = survey_of_source(source)
    return Survey(file, columns, units, clocks=clocks)


def _of_text(file: Path) -> Survey:
    layout = _layout(file)
    left = [h for h in dict.fromkeys(layout.headers) if h]
    while True:  # columns of words are left out as they are found
        faults = Faults()
        found = read_columns(file, layout, left, faults)
        textual = {f.at[1] for f in faults.found if f.at[:1] == ("column",)}
        if not faults:
            break
        if not textual:
            faults.raise_if_any(FileError, str(file))
        left = [h for h in left if h not in textual]
    rows = _first_rows(file, layout)
    words = dict(zip(layout.headers, rows[0], strict=False)) if rows else {}
    texts = {split_header(h)[0]: word for h, word in words.items() if h and h not in found and word}
    return replace(_named(file, found, layout.has_header), decimal=layout.decimal, texts=texts)


def _layout(file: Path) -> CsvLayout:
    """How a text is laid out, with or without a header row, with the decimal mark that makes more of its cells numbers."""
    counts = {}
    for decimal in (".", ","):
        layout = find_layout(file, None, None, decimal)
        counts[decimal] = sum(is_number(cell, decimal) for row in _first_rows(file, layout) for cell in row)
    decimal = max(counts, key=lambda mark: counts[mark])
    layout = find_layout(file, None, None, decimal)
    if all(is_number(cell, decimal) for cell in layout.headers):  # the header row holds numbers: it is none
        return replace(layout, headers=numbered_names(len(layout.headers)), has_header=False)
    return layout


def _first_rows(file: Path, layout: CsvLayout) -> list[list[str]]:
    with file.open(encoding="utf-8-sig", newline="") as stream:
        lines = list(islice(stream, layout.skip, layout.before + 3))
    return [layout.cells(line) for line in lines[layout.has_header + layout.below :]]


def _named(file: Path, columns: Mapping[str, Array], has_header: bool) -> Survey:
    headers, stamps = merged_headers(list(columns))
    table = merged(columns, stamps)
    found = {h: table[h] for h in headers}
    named = {split_header(h)[0]: (split_header(h)[1] or _unit_in_brackets(h), x) for h, x in found.items()}
    return Survey(
        file, {n: x for n, (_, x) in named.items()}, {n: unit for n, (unit, _) in named.items() if unit}, has_header
    )


def _unit_in_brackets(header: str) -> str:
    """ "m/s" of "vx(m/s)"; nothing where round brackets hold something else."""
    match = re.fullmatch(r".*\(([^()]*)\)", header)
    words = {"seconds": "s", "milliseconds": "ms"}
    unit = words.get(match[1].lower(), match[1]).strip() if match else ""
    try:
        dimension(unit)
    except DataError:
        return ""
    return unit


def _of_arrays(file: Path) -> Survey:
    from veridyn.files.log.arrays import named_arrays

    arrays = named_arrays(file)
    if file.suffix.lower() == ".npz":
        refused = {key: value for key, value in arrays.items() if isinstance(value, Fault)}
        if refused:
            raise FileError([replace(value, where=f"array '{key}'") for key, value in refused.items()], str(file))
    out: dict[str, Array] = {}
    for key, value in arrays.items():
        array = np.asarray(value)
        if array.dtype.kind not in "biuf" or array.size < 2 or array.ndim > 2:
            continue
        table = array.reshape(len(array), -1) if array.shape[0] >= array.shape[-1] else array.T
        for k in range(table.shape[1]):
            out[key if table.shape[1] == 1 else f"{key}.{k}"] = table[:, k].astype(np.float64)
    return Survey(file, out, {})
