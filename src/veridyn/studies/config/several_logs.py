"""What several files are to ``veridyn new``: parts of one log, or recordings of their own; and a log of which nothing is known.

Parts have different columns, and one of them the clock. A channel that is in two files makes them recordings: all but the last are learnt
from, and the last is judged by.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from veridyn.arrays import Array
from veridyn.errors import FileError
from veridyn.files.access import ARRAYS
from veridyn.files.log.load import Survey
from veridyn.model.machine import Machine
from veridyn.studies.config.guessing import guesses, kind_of, table_of

LISTED = 6  # columns that a message names
MOST_SHOWN = 40  # columns that a message lists of a log of which none is recognised


def are_recordings(machine: Machine, seen: Sequence[Survey], rate: float | None = None) -> bool:
    """Whether several files are recordings of their own, and not parts of one log: a channel of the machine is in more than one of them."""
    if len(seen) < 2:
        return False
    if any(s.clocks for s in seen):
        return True
    # A file with one column alone holds the clock, or all joints below each other.
    own = [{g.channel for g in guesses(machine, table_of(s, rate))} if len(s.columns) > 1 else set[str]() for s in seen]
    measured = [kind_of(s.file.stem) for s in seen]
    if None not in measured and len(set(measured)) == len(seen) and all(len(_kinds(x)) < 2 for x in own):
        return False  # positions.txt and torques.txt, of one kind each: their names say what columns of one name are
    return any(a & b for k, a in enumerate(own) for b in own[:k])


def _kinds(channels: Iterable[str]) -> set[str]:
    return {channel.partition(".")[0] for channel in channels}


def refuse_parts(parts: Mapping[str, Survey]) -> None:
    """Refuse files that cannot be read as parts of one log."""
    for s in parts.values():
        if s.file.suffix.lower() in ARRAYS:
            what = "it has other channels than the files beside it, and parts of one log are text or Parquet."
            hint = "Save all arrays of one log into one file; several logs have the same channels each."
            raise FileError(
                what, where="logs", found=", ".join(p.file.name for p in parts.values()), hint=hint, source=s.file.name
            )


def refuse_other_columns(seen: Sequence[Survey], used: Sequence[str]) -> None:
    """Refuse recordings that call their columns otherwise than the first: a study names each column once."""
    for s in seen[1:]:
        lacking = [n for n in used if n not in s.columns]
        units = [n for n in used if n in s.columns and s.units.get(n, "") != seen[0].units.get(n, "")]
        if lacking or units:
            what = "its columns are called otherwise than those of the first recording, or have other units."
            found = (
                ", ".join(list(s.columns)[:LISTED])
                if lacking
                else ", ".join(f"{n} [{s.units.get(n, '')}]" for n in units[:LISTED])
            )
            expected = ", ".join((lacking or units)[:LISTED]) + f", as in {seen[0].file.name}"
            hint = "Give them the same header, or write one study of each."
            raise FileError(what, where="logs", expected=expected, found=found, hint=hint, source=s.file.name)


def nothing_found(machine: Machine, columns: Mapping[str, Array], files: Sequence[str]) -> FileError:
    """The error of a log in which no column is recognised: what it has, and the names that would be."""
    own = [machine.coordinates[k] for k in machine.independent]
    wanted = [f"{kind}.{c}" for kind in ("q", "force") for c in own[:LISTED]]
    named = ", ".join(list(columns)[:MOST_SHOWN]) + (", …" if len(columns) > MOST_SHOWN else "")
    hint = "Rename columns, q1 or position_1 would do as well, or write the study by hand: log: {columns: {q.JOINT: COLUMN [unit]}}."
    return FileError(
        "no column of this log is recognised as one of the machine's.",
        where="log",
        expected=f"names such as {', '.join(wanted[: 2 * LISTED])}",
        found=named or "no column of numbers",
        hint=hint,
        source=", ".join(files),
    )
