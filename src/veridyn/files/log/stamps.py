"""Clocks that a table holds in two columns, whole seconds and nanoseconds, as ROS 2 writes its stamps: read as one column of seconds.

    header.stamp.sec, header.stamp.nanosec  →  header.stamp [s] = sec + 1e-9 nanosec

The two columns themselves can still be asked for by their names.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from veridyn.files.log.columns import split_header

Array = NDArray[np.float64]
Pairs = Mapping[str, tuple[str, str]]  # header of the sum → headers of seconds and of nanoseconds
REST = ("nanosec", "nanosecs", "nsec", "nsecs")  # what the second column is called


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
