"""Logs in tables: one column of times, one column per channel, SI from the door on.

    load_log(save_log(experiment, path)) == experiment        for channels in SI that share a clock, to the last bit

A CSV file has a header row, or none and its names in `columns`; Parquet, MAT, NPZ and MDF files and bags (by their suffix) have
names of their own.
Every column used needs a unit, from `units` or from a header of the form ``name [unit]``, the time included, because a
clock in milliseconds looks like any other. Empty cells and "nan" become NaN, which
:func:`veridyn.signals.quality.inspect` finds. All that is wrong with a file is reported at once, by line and column.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault, Faults, FileError, did_you_mean
from veridyn.files.atomic import write_atomic
from veridyn.files.csv_table import find_layout, read_columns
from veridyn.files.units import dimension, to_si
from veridyn.model.experiment import Channel, Experiment

Array = NDArray[np.float64]

PARQUET = (".parquet", ".pq")
MDF = (".mf4", ".mdf")
UNFINISHED = b"UnFinMF "
MDF_WORDS = (b"MDF     ", UNFINISHED)  # how such a file begins
BAGS = (".bag", ".db3", ".mcap")


@dataclass(frozen=True)
class Column:
    """A column to be read: its name in the file, the channel's name and unit."""

    header: str
    name: str
    unit: str


def load_log(
    path: str | os.PathLike[str],
    columns: Sequence[str] | Mapping[str, str] | None = None,
    units: Mapping[str, str] | None = None,
    time: str = "t",
    name: str | None = None,
    delimiter: str | None = None,
    decimal: str = ".",
) -> Experiment:
    """Read a log as an Experiment, all channels in SI units.

    Parameters
    ----------
    path : str or path
        A CSV, Parquet, MAT, NPZ or MDF file, or a bag. Channels of a table share the clock of the column `time`; those of MDF files and
        bags have a clock each.
    columns : sequence of str, or mapping, optional
        A list names the columns of a CSV file without header row, in order ("" skips one); a mapping {channel: header} picks and renames
        columns. Every column that has a header by default.
    units : mapping, optional
        {channel or header: unit}, where the header does not give it.
    time : str
        The column of the clock, "t" by default.
    name : str, optional
        The name of the log in messages; that of the file by default.
    delimiter : str, optional
        Between the columns of a CSV file; found from its first line by default.
    decimal : str
        The decimal mark of a CSV file, "." by default.

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
    file = existing_log(path)
    reader = _reader_by_format(file)
    if reader is not None:
        return reader(file, columns, units, time, name)
    if isinstance(columns, str):
        raise DataError(Fault("`columns` is one word.", expected="a list of names or a mapping", found=f"'{columns}'"))
    try:
        return _load(file, columns, units or {}, time, name or file.name, delimiter, decimal)
    except UnicodeDecodeError as error:
        raise FileError(replace(unreadable(error), line=_line_that_is_no_text(file)), str(file)) from error
    except (OSError, csv.Error, pa.ArrowInvalid) as error:
        raise FileError(unreadable(error), str(file)) from error


def _reader_by_format(file: Path) -> Callable[..., Experiment] | None:
    """The reader of a format that names its channels; imported here, because those readers choose columns as tables do."""
    suffix = file.suffix.lower()
    if suffix == ".mat":
        from veridyn.files.mat import load_mat

        return load_mat
    if suffix == ".npz":
        from veridyn.files.npz import load_npz

        return load_npz
    kind = clocked_format(file)
    if kind == "mdf":
        from veridyn.files.mdf import load_mdf

        return load_mdf
    if kind == "bag":
        from veridyn.files.bag import load_bag

        return load_bag
    return None


def clocked_format(file: Path) -> str:
    """ "mdf" or "bag" where the channels of a log have clocks of their own; "" for tables and arrays, which have one for all.

    A .dat file is MDF by its first bytes, because tables of text are called so too.
    """
    suffix = file.suffix.lower()
    if suffix in BAGS or file.is_dir():
        return "bag"
    if suffix == ".dat" and file.is_file():
        with file.open("rb") as stream:
            return "mdf" if stream.read(8) in MDF_WORDS else ""
    return "mdf" if suffix in MDF else ""


def _load(
    file: Path,
    columns: Sequence[str] | Mapping[str, str] | None,
    units: Mapping[str, str],
    time: str,
    name: str,
    delimiter: str | None,
    decimal: str,
) -> Experiment:
    layout = None
    if file.suffix.lower() in PARQUET:
        headers = tuple(pq.read_schema(file).names)
    else:
        names = None if columns is None or isinstance(columns, Mapping) else columns
        layout = find_layout(file, names, delimiter, decimal)
        headers = layout.headers
    structure, meaning = Faults(), Faults()
    wanted, clock = choose(headers, columns, units, time, structure, meaning)
    used = [c.header for c in (clock, *wanted) if c is not None]
    if layout is None:
        table = read_parquet(file, used, structure)
    else:
        table = read_columns(file, layout, used, structure)
    if structure or clock is None:
        raise FileError([*structure.found, *meaning.found], str(file))
    meaning.raise_if_any(DataError, str(file))
    t, _ = to_si(table[clock.header], clock.unit)
    made = [Channel(c.name, t, *to_si(table[c.header], c.unit)) for c in wanted]
    return Experiment({c.name: c for c in made}, name)


def save_log(experiment: Experiment, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
    """Write channels that share a clock as CSV or Parquet (by suffix), headers ``name [unit]``, first ``t [s]``.

    The file appears whole or not at all; an existing one is kept unless `overwrite`. Notes are not part of a table.
    """
    file = Path(path)
    faults = Faults()
    channels = list(experiment.channels.values())
    for channel in channels:
        if not np.array_equal(channel.t, channels[0].t):
            faults.add(
                f"channel '{channel.name}' has another clock than '{channels[0].name}'.",
                where=experiment.name,
                expected="one clock for all columns of a table",
                hint="Bring them to one clock with veridyn.signals.resample.resample first.",
            )
        if "[" in channel.name or channel.name == "t":
            faults.add(
                "its name cannot head a column.", where=f"channel '{channel.name}'", expected="not 't', and no '['"
            )
        try:
            dimension(channel.unit, f"channel '{channel.name}'")
        except DataError as error:
            faults.extend(error.faults)
    if not channels:
        faults.add("it has no channels to save.", where=experiment.name)
    faults.raise_if_any(DataError)
    table = pa.table({"t [s]": channels[0].t} | {f"{c.name} [{c.unit}]": c.values for c in channels})
    buffer = pa.BufferOutputStream()
    if file.suffix.lower() in PARQUET:
        pq.write_table(table, buffer)
    else:
        pacsv.write_csv(table, buffer)
    return write_atomic(file, buffer.getvalue().to_pybytes(), overwrite)


def existing_file(path: str | os.PathLike[str]) -> Path:
    """The path of a file that is there; otherwise a FileError that names its neighbours."""
    file = Path(path)
    if not file.is_file():
        raise FileError(Fault("it does not exist or is not a file.", hint=_near(file)), str(file))
    return file


def existing_log(path: str | os.PathLike[str]) -> Path:
    """The path of a log that is there: a file, or the folder of a ROS 2 bag."""
    return Path(path) if (Path(path) / "metadata.yaml").is_file() else existing_file(path)


def _near(file: Path) -> str:
    """Names beside a file that does not exist."""
    if not file.parent.is_dir():
        return f"There is no folder '{file.parent}'."
    return did_you_mean(file.name, sorted(p.name for p in file.parent.iterdir() if p.is_file()))


def unreadable(error: Exception) -> Fault:
    """What a reader's own error means to a user."""
    if isinstance(error, UnicodeDecodeError):
        return Fault(
            "it is not text in UTF-8.", expected="a CSV file", hint="Save it as UTF-8, or load it by its own format."
        )
    return Fault("it cannot be read.", found=str(error).splitlines()[0] if str(error) else type(error).__name__)


def _line_that_is_no_text(file: Path) -> int | None:
    """The first line with bytes that are not UTF-8."""
    with file.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return number
    return None


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
    time: str,
    structure: Faults,
    meaning: Faults,
) -> tuple[list[Column], Column | None]:
    """Which columns become channels, and which is the clock; what is missing goes into the collections."""
    bare = {}
    for header in headers:
        if header and (header in bare.values() or split_header(header)[0] in bare):
            structure.add("two columns have one name.", where=f"column '{header}'", hint="Rename one of them.")
        bare.setdefault(split_header(header)[0], header)
    picked = dict(columns) if isinstance(columns, Mapping) else {n: h for n, h in bare.items() if n}
    if time not in picked and split_header(time)[0] in picked:
        time = split_header(time)[0]
    allowed = {*picked, *picked.values(), *headers, *bare}
    for key in units:
        if key not in allowed:
            meaning.add(f"`units` names '{key}', which is no column.", hint=did_you_mean(key, list(picked)))
    wanted, clock = [], None
    if time not in picked:
        picked[time] = time
    for channel, asked in picked.items():
        header = asked if asked in headers else bare.get(asked)
        if header is None:
            what = " for the time" if channel == time else ""
            hint = "Name it with time=. " if channel == time else ""
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


def known_unit(channel: str, unit: str, is_time: bool, meaning: Faults) -> str:
    """`unit`, once it is known to be one; what is wrong with it goes to `meaning`."""
    where = f"column '{channel}'"
    if not unit:
        meaning.add(
            "it has no unit.",
            where=where,
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


def read_parquet(file: Path, used: list[str] | None, faults: Faults) -> dict[str, Array]:
    """The columns `used`, or all, by name; what is no column of numbers goes to `faults`."""
    table = pq.read_table(file, columns=used)
    out = {}
    for header in table.column_names if used is None else used:
        kind = table.schema.field(header).type
        if not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
            faults.add("the column does not hold numbers.", where=f"column '{header}'", found=f"{kind}")
        else:
            out[header] = np.array(table[header].cast(pa.float64()).to_numpy(), dtype=np.float64)
    if table.num_rows == 0:
        faults.add("it holds no samples.", expected="rows of numbers", found="none")
    return out
