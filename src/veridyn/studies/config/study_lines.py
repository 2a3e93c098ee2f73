"""Lines of a new study file, from which all templates are made: its head and its machine, its log, and keys with their meaning.

What a key means is what its settings class says of it. What was guessed says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from veridyn.files.access import shipped_name
from veridyn.files.log.load import Survey
from veridyn.model.machine import Machine
from veridyn.studies.config.guessing import Guess, time_unit
from veridyn.studies.config.text import commented, flow

SECOND_MOMENTS = ("XX", "XY", "XZ", "YY", "YZ", "ZZ")
LISTED_NAMES = 30  # that a comment shows
WIDEST = 140  # characters of a line with its comment
DEFAULT: Any = object()  # stands for the default of a key


def as_file(lines: Iterable[str]) -> str:
    """The text of a file."""
    return "\n".join(lines) + "\n"


def head_lines(
    what: str, kind: str, machine: Machine, study: Path, model: Path, suffix: str = "", otherwise: str = "study"
) -> list[str]:
    """How a study file begins: what it is, how it is run, its kind, a name, and the machine.

    The name is that of the machine with a suffix; `otherwise` where nothing of the machine's can be kept.
    """
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", machine.name).strip("-.") or otherwise
    run = f"veridyn {kind} {study.name}"
    return [
        f"# {what.format(machine.name)}. Written by veridyn new; look at every line marked 'guessed'.",
        f"# Run it with: {run}. Every setting with its default: {run} --show",
        "veridyn: 1",
        f"kind: {kind}",
        f"name: {name}{suffix}",
        *(["seed: 1"] if kind == "simulate" else []),
        "",
        "model:",
        f"  file: {flow(beside(model, study))}",
    ]


def key_lines(section: type[BaseModel], key: str, value: Any = DEFAULT, note: str = "", depth: int = 1) -> list[str]:
    """A key with its default, or with a value, and its meaning behind it or, where that is long, above it."""
    field, indent = section.model_fields[key], "  " * depth
    line = f"{indent}{key}: {flow(field.get_default(call_default_factory=True) if value is DEFAULT else value)}"
    meaning = " ".join((field.description or "").split())
    meaning = f"{meaning.removesuffix('.')}; {note}" if note else meaning
    whole = f"{line} # {meaning}"
    return [whole] if len(whole) <= WIDEST else [*(indent + comment for comment in commented(meaning)), line]


def log_lines(
    reading: Sequence[str],
    found: Sequence[Guess],
    missing: Sequence[str] = (),
    *notes: str,
    left: Sequence[str] = (),
    of: str = "channel: column [unit]",
) -> list[str]:
    """The section of a log: how it is read, its columns, those that are `missing` and those that are `left` over."""
    return [
        "",
        "log:",
        *reading,
        f"  columns: # {of}" if found else "  columns: {} # channel: column [unit]",
        *column_lines(found),
        *wrapped("    # not found, and needed: ", missing),
        *notes,
        *wrapped("    # columns not used: ", left),
    ]


def time_lines(seen: Survey, time: str, rate: float | None = None) -> list[str]:
    """How a table is read: its clock or its rate, its decimal mark, and the names of columns where the file has none."""
    if seen.clocks:
        return []
    if rate is not None:
        lines = [f"  rate: {rate:g} # samples a second: the log has no clock"]
    elif not time:
        lines = ["  rate: # the log has no clock: write how many samples a second were recorded"]
    else:
        unit, why = time_unit(time, seen.columns, seen.units)
        lines = [f"  time: {flow(f'{time} [{unit}]')}{why}"]
    if seen.decimal != ".":
        lines.append(f'  decimal: "{seen.decimal}"')
    if not seen.has_header:
        lines.append(f"  header: [{', '.join(seen.columns)}] # the file has none; call the columns what they are")
    return lines


def column_lines(found: Sequence[Guess]) -> list[str]:
    """Channels with their columns and units, and why they were guessed so."""
    return [f"    {flow(g.channel)}: {_column_text(g)}" + (f" # {g.why}" if g.why else "") for g in found]


def _column_text(g: Guess) -> str:
    plain = re.fullmatch(r"[A-Za-z_][\w.]*", g.column)
    return f"{g.column} [{g.unit}]" if plain else flow(f"{g.column} [{g.unit}]")


def lock_lines(held: Sequence[str], free: Sequence[str], lacking: str = "column") -> list[str]:
    """Joints of which the log says nothing are locked; `free`: the others, `lacking`: what those that are locked have none of."""
    if not held:
        return []
    count = "1 joint has" if len(held) == 1 else f"{len(held)} joints have"
    return [
        f"  lock: {flow(shortened(held, free))} # guessed: {count} no {lacking}; {{name: value}} locks them elsewhere than at 0"
    ]


def shortened(names: Sequence[str], others: Sequence[str]) -> list[str]:
    """Names with patterns such as wheel_* in place of those that share their first word with no other name."""
    heads = {name: re.match(r"[A-Za-z]+[_.]", name) for name in names}
    out: list[str] = []
    for name in names:
        head = heads[name]
        same = [n for n in names if head is not None and n.startswith(head[0])]
        alone = head is not None and len(same) > 1 and not any(n.startswith(head[0]) for n in others)
        out.append(f"{head[0]}*" if head is not None and alone else name)
    return list(dict.fromkeys(out))


def urdf_lines(model: Path, machine: Machine, strict: bool) -> list[str]:
    """What a study says of a URDF, which does not say it itself: its base, and inertias that no body can have."""
    if model.suffix.lower() != ".urdf":
        return []
    other = {
        "fixed": "the root stands on the ground; free: it moves (legged, flying), and the log has base.omega.x, base.acceleration.x …",
        "free": "the root moves, and the log has base.omega.x, base.acceleration.x …; fixed: it stands on the ground",
    }
    lines = [f"  base: {machine.base} # {other[machine.base]}"]
    if strict:
        lines.append("  impossible: refuse # a file with inertias that no physical body has")
    elif any(name.startswith(SECOND_MOMENTS) for name in machine.parameters.missing()):
        lines.append(
            "  impossible: unknown # inertias that no physical body has; keep: the file's values, refuse: stop"
        )
    return lines


def beside(file: Path, study: Path) -> str:
    """The path as the study file may name it: relative to its folder where it lies in or below it, by name where it comes with veridyn."""
    if own := shipped_name(file):
        return own
    try:
        return file.resolve().relative_to(study.resolve().parent).as_posix()
    except ValueError:
        return str(file.resolve())


def wrapped(head: str, names: Sequence[str]) -> list[str]:
    """A comment with names, of which the first are shown; none without names."""
    shown = ", ".join(names[:LISTED_NAMES]) + (", …" if len(names) > LISTED_NAMES else "")
    return [head + shown] if names else []
