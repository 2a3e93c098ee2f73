"""Which column of a log is its clock, and in which unit, by name and by numbers.

A clock is called so (t, time, timestamp, "Time (Seconds)", MocapTime, header.stamp), or increases by even steps. A counter of frames is
none. Its unit is that of the header; else that in which its numbers are dates of this century; else the one in which its step is that of
a recorder of 2 Hz to 2 kHz.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from veridyn.studies.config.text import flow

Array = NDArray[np.float64]
TIMES = ("t", "time", "times", "timestamp", "timestamps", "stamp", "sec", "seconds", "time_s", "t_s", "clock")
TIME_WORDS = ("time", "times", "timestamp", "stamp", "clock")
COUNTERS = ("frame", "index", "sample", "samples", "count", "counter", "seq", "row", "number")
EVEN_STEPS, EVEN_SPREAD = (
    0.9,
    0.5,
)  # so many of the steps of a clock differ by no more than this share from the usual one (chosen)
UNIT_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
LONGEST_STEP = 0.5  # s
DATES = (1e9, 2.5e9)  # s since 1970: the years 2001 to 2049


def name_words(name: str) -> list[str]:
    """The words of a name, in small letters: "MocapTime", "field.header.stamp", "Time (Seconds)"."""
    return [w.lower() for w in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)]


def time_column(columns: Mapping[str, Array]) -> str:
    """The column of times; "" where none is one."""
    for name in columns:
        if name.lower() in TIMES:
            return name
    for name, x in columns.items():
        if any(w in TIME_WORDS for w in name_words(name)) and len(x) > 2 and (np.diff(x) >= 0.0).all() and x[-1] > x[0]:
            return name
    for name, x in columns.items():
        if not any(w in COUNTERS for w in name_words(name)) and _steady(x):
            return name
    return ""


def _steady(x: Array) -> bool:
    """Whether numbers increase by even steps."""
    steps = np.diff(x)
    if len(steps) < 2 or not np.isfinite(x).all() or not (steps > 0.0).all():
        return False
    usual = float(np.median(steps))
    return float(np.mean(np.abs(steps - usual) <= EVEN_SPREAD * usual)) >= EVEN_STEPS


def time_unit(time: str, columns: Mapping[str, Array], units: Mapping[str, str]) -> tuple[str, str]:
    """The clock's unit, by the header or by its numbers, and a comment that says so."""
    if units.get(time):
        return units[time], ""
    x = columns.get(time)
    if x is None or len(x) < 3:
        return "s", " # unit guessed"
    step = float(np.median(np.diff(x)))
    for unit, seconds in UNIT_SECONDS.items():
        if DATES[0] < float(np.median(x)) * seconds < DATES[1] and step * seconds <= 2.0 * LONGEST_STEP:
            return unit, " # unit guessed: its numbers are then dates of this century"
    unit = next((unit for unit, seconds in UNIT_SECONDS.items() if step * seconds < LONGEST_STEP), "ns")
    return unit, f" # unit guessed: a step of {step:.4g}"


def time_lines(
    time: str,
    columns: Mapping[str, Array],
    units: Mapping[str, str],
    has_header: bool,
    decimal: str = ".",
    rate: float | None = None,
) -> list[str]:
    """How a table is read: its clock or its rate, its decimal mark, and the names of columns where the file has none."""
    if rate is not None:
        lines = [f"  rate: {rate:g} # samples a second: the log has no clock"]
    elif not time:
        lines = ["  rate: # the log has no clock: write how many samples a second were recorded"]
    else:
        unit, why = time_unit(time, columns, units)
        lines = [f"  time: {flow(f'{time} [{unit}]')}{why}"]
    if decimal != ".":
        lines.append(f'  decimal: "{decimal}"')
    if not has_header:
        lines.append(f"  header: [{', '.join(columns)}] # the file has none; call the columns what they are")
    return lines
