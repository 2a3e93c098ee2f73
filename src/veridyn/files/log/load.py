"""Log files of any format: what one holds before anybody has said what it means, and the log that it becomes, SI from the door on.

    load_log(save_log(experiment, path)) == experiment        for channels in SI that share a clock, to the last bit

A CSV file has a header row, or none and its names in `header`; Parquet, MAT, NPZ and MDF files and bags (by their suffix) have
names of their own.
Every column used needs a unit, from `units` or from a header of the form ``name [unit]``, the time included, because a
clock in milliseconds looks like any other. Empty cells and "nan" become NaN, which
:func:`veridyn.signals.quality.inspect` finds. All that is wrong with a file is reported at once, by line and column.

survey("run.csv") reads the same files and gives names, units where the header has them, and numbers. Columns of a table without a
header row are called c1, c2, …; those of a matrix "positions" are positions.0, positions.1, …
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np

from veridyn.arguments import checked
from veridyn.arrays import Array
from veridyn.errors import DataError, Fault, Faults, FileError
from veridyn.files.access import ARRAYS, PARQUET, clocked_format, existing_log, resolved, unreadable
from veridyn.files.log.columns import (
    DEFAULT_CLOCK,
    asked_names,
    choose,
    columns_of,
    experiment_of,
    merged,
    merged_headers,
    raise_faults,
    split_header,
)
from veridyn.files.log.layout import CsvLayout, Unparsed, find_layout, is_number, numbered_names
from veridyn.files.log.tables import Frame, FrameTable, parquet, read_columns
from veridyn.files.units import dimension
from veridyn.model.experiment import Experiment

MOST_SKIPPED = 1_000_000_000  # lines of a file before its numbers


@checked
def load_log(
    path: str | os.PathLike[str] | Frame,
    columns: Sequence[str] | Mapping[str, str] | None = None,
    units: Mapping[str, str] | None = None,
    time: str = "t",
    name: str | None = None,
    delimiter: str | None = None,
    decimal: str = ".",
    *,
    rate: float | None = None,
    skip: int | None = None,
    header: int | Literal[False] | Sequence[str] | None = None,
) -> Experiment:
    """Read a log as an Experiment, all channels in SI units.

    Parameters
    ----------
    path : str or path, or a data frame
        A CSV, Parquet, MAT, NPZ or MDF file, or a bag. Channels of a table share the clock of the column `time`; those of MDF files and
        bags have a clock each. Or a table in memory: a DataFrame of pandas or polars, or a Table of pyarrow.
    columns : sequence of str, or mapping, optional
        A mapping {channel: header} picks and renames columns. Every column that has a header by default. A list is short for `header`.
    units : mapping, optional
        {channel or header: unit}, where the header does not give it.
    time : str
        The column of the clock; by default "t", or the one column called time, timestamp, seconds or clock, or …stamp. Stamps
        in two columns, `x.sec` and `x.nanosec`, are one column `x`.
    name : str, optional
        The name of the log in messages; that of the file by default.
    delimiter : str, optional
        Between the columns of a CSV file, " " for any number of blanks; found from its first lines by default.
    decimal : str
        The decimal mark of a CSV file, "." by default.
    rate : float, optional
        Samples a second of a table without a clock, Hz; its times then count from 0, and no column is the clock.
    skip : int, optional
        Lines of a CSV file before its header row; by default all that stand above the last row of as many cells as the numbers have.
    header : int, False, or sequence of str, optional
        Of a CSV file: the number of its header row, counted from 0, so that header=2 means the same as skip=2; False where it has none,
        and columns are called c1, c2, …; or their names in order ("" leaves one out), which says that it has none as well. Rows above
        the numbers of a file without a header row are left out with `skip`. By default there is one, and it is found.

    Returns
    -------
    Experiment
        Channels by name, in SI units, with times in s.

    Raises
    ------
    FileError
        The file is missing or cannot be read.
    DataError
        A column is missing, or has no unit or an unknown one; every fault is named.

    Examples
    --------
    >>> from pathlib import Path
    >>> import veridyn as vd
    >>> _ = Path("run.csv").write_text("t,angle\\n0.0,0\\n0.1,90\\n0.2,180\\n")
    >>> log = vd.load_log("run.csv", columns={"q.hinge": "angle"}, units={"t": "s", "angle": "deg"})
    >>> log["q.hinge"].unit, log["q.hinge"].values.round(3)
    ('rad', array([0.   , 1.571, 3.142]))
    """
    _check_marks(delimiter, decimal, skip)
    given = columns
    names, columns, skip = _header(header, columns, skip)
    if not isinstance(path, str | os.PathLike):
        _refuse_header(names)
        table = FrameTable(path)
        called = name or type(path).__name__
        return _experiment(table.headers, table.read, called, columns, units or {}, time, called, rate)
    file = existing_log(resolved(Path(path)))
    _check_rate(file, rate, time)
    reader = _reader_by_format(file)
    if reader is not None:
        _refuse_header(header)
        more = {} if rate is None else {"rate": rate}
        with _unchanged(file):
            return reader(file, given, units, time, name, **more)
    try:
        with _unchanged(file):
            if file.suffix.lower() in PARQUET:
                _refuse_header(names)
                arrow = parquet(file)
                headers, read = arrow.parquet_headers(file), partial(arrow.read_parquet, file)
            else:
                layout = find_layout(file, names, delimiter, decimal, skip)
                headers, read = layout.headers, partial(read_columns, file, layout)
            return _experiment(headers, read, str(file), columns, units or {}, time, name or file.name, rate)
    except UnicodeDecodeError as error:
        raise FileError(replace(unreadable(error), line=_line_that_is_no_text(file)), str(file)) from error
    except (OSError, csv.Error, Unparsed) as error:
        raise FileError(unreadable(error), str(file)) from error


def _check_marks(delimiter: str | None, decimal: str, skip: int | None) -> None:
    """Refuse marks that no table has, and lines that no file has."""
    faults = Faults()
    for name, mark in (("delimiter", delimiter), ("decimal", decimal)):
        if mark is not None and (len(mark) != 1 or mark in '"\r\n'):
            faults.add(
                "it is no mark between cells or digits.", where=name, expected="one character", found=f"{mark!r}"
            )
    if delimiter is not None and delimiter == decimal:
        faults.add(
            "columns and decimals have the same mark.", where="delimiter", expected="two marks", found=f"{decimal!r}"
        )
    if skip is not None and not 0 <= skip <= MOST_SKIPPED:
        faults.add("no file has so many lines.", where="skip", expected=f"0 to {MOST_SKIPPED}", found=f"{skip}")
    faults.raise_if_any(DataError)


@contextmanager
def _unchanged(file: Path) -> Iterator[None]:
    """Refuse a file that changes while it is read: its last line may end in half a number, which looks like a whole one."""
    before = file.stat()
    yield
    after = file.stat()
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        hint = "Wait until its recorder has closed it, or copy it first; veridyn live follows a log that grows."
        found = f"{before.st_size} bytes, then {after.st_size}"
        raise FileError(
            "it changed while it was read.",
            where="",
            expected="a file that nobody writes",
            found=found,
            hint=hint,
            source=str(file),
        )


def _check_rate(file: Path, rate: float | None, time: str) -> None:
    """Refuse a rate beside a clock."""
    if rate is None:
        return
    if time != DEFAULT_CLOCK:
        fault = Fault("a log has a column of times or a rate, not both.", "rate", found=f"time='{time}', rate={rate:g}")
        raise DataError(fault, str(file))
    if clocked_format(file):
        fault = Fault("its channels have clocks of their own, so it has no rate.", "rate", hint="Leave the rate out.")
        raise DataError(fault, str(file))


def _reader_by_format(file: Path) -> Callable[..., Experiment] | None:
    """The reader of a format that names its channels; imported here, because each brings a library of its own."""
    if file.suffix.lower() in ARRAYS:
        from veridyn.files.log.arrays import load_arrays

        return load_arrays
    kind = clocked_format(file)
    if kind == "mdf":
        from veridyn.files.log.mdf import load_mdf

        return load_mdf
    if kind == "bag":
        from veridyn.files.log.bag import load_bag

        return load_bag
    return None


def _header(
    header: int | Literal[False] | Sequence[str] | None,
    columns: Sequence[str] | Mapping[str, str] | None,
    skip: int | None,
) -> tuple[Sequence[str] | Literal[False] | None, Mapping[str, str] | None, int | None]:
    """Names of the columns of a file without a header row, or False where they have none; the columns that are picked; lines to skip."""
    picked = columns if isinstance(columns, Mapping) else None
    header = None if header is True else header
    if isinstance(header, int) and header is not False:
        if skip is not None and skip != header:
            raise DataError(
                "`header` and `skip` differ.", where="header", expected=f"{skip} or none", found=f"{header}"
            )
        return (None if picked is columns else columns), picked, header  # pyright: ignore[reportReturnType]
    if columns is not None and picked is None:
        if header is not None:
            what = "a list of columns names those of a file without a header row, and so does `header`."
            raise DataError(
                what, where="header", expected="columns={channel: name} beside it", found=f"{list(columns)[:3]}"
            )
        header = columns  # pyright: ignore[reportAssignmentType]
    return header, picked, skip  # pyright: ignore[reportReturnType]


def _refuse_header(header: object) -> None:
    if header is not None:
        hint = "Leave it out, and pick columns with columns={channel: name}."
        raise DataError(
            "only text files are without a header row.", where="header", found="a file with names", hint=hint
        )


def _experiment(
    headers: Sequence[str],
    read: Callable[[list[str], Faults], dict[str, Array]],
    source: str,
    columns: Mapping[str, str] | None,
    units: Mapping[str, str],
    time: str,
    name: str,
    rate: float | None,
) -> Experiment:
    """The channels that columns of a table make; `read` gives the columns with these headers."""
    headers, stamps = merged_headers(headers, asked_names(columns, units, time))
    structure, meaning = Faults(), Faults()
    wanted, clock = choose(headers, columns, units, time if rate is None else None, structure, meaning)
    used = columns_of([c.header for c in (clock, *wanted) if c is not None], stamps)
    table = merged(read(used, structure), stamps)
    raise_faults(structure, meaning, source)
    return experiment_of(table, wanted, clock, rate, source, name)


def _line_that_is_no_text(file: Path) -> int | None:
    """The first line with bytes that are not UTF-8."""
    with file.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return number
    return None


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
