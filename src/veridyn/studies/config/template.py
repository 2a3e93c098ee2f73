"""A first study file from a model and a log: what can be guessed is guessed, and every guess is marked as one.

The clock is found and columns are matched to joints and motors in :mod:`veridyn.studies.config.guessing`; a unit is that of the header or,
failing that, guessed by kind and size. Nothing is guessed that the checks of a study could not find out to be wrong.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import FileError, VeridynError
from veridyn.files.access import shipped_name
from veridyn.files.log.load import Survey, survey
from veridyn.mechanics.tree.weld import welded
from veridyn.model.machine import Machine
from veridyn.signals.mending import QualityLimits
from veridyn.signals.naming import AXES, motor_channels
from veridyn.signals.outliers import runs
from veridyn.studies.config.guessing import (
    Guess,
    LogTable,
    guesses,
    guesses_by_file,
    kind_of,
    named_by_file,
    rotor_lines,
    time_column,
    time_lines,
    time_unit,
    wrench_columns,
)
from veridyn.studies.config.several_logs import are_recordings, nothing_found, refuse_other_columns, refuse_parts
from veridyn.studies.config.text import flow

LISTED = 6  # columns that a message names
SECOND_MOMENTS = ("XX", "XY", "XZ", "YY", "YZ", "ZZ")


def template(
    model: Path,
    machine: Machine,
    files: Sequence[Path | Survey],
    study: Path,
    strict: bool = False,
    rate: float | None = None,
) -> str:
    """The text of a study file beside which model and logs are found; comments say what was guessed and what may be changed.

    `files`: the logs, or what was read of them before. `rate` (Hz): that of a log without a clock.
    """
    seen = [named_by_file(file if isinstance(file, Survey) else survey(file)) for file in files]
    apart = are_recordings(machine, seen, rate)
    parts = {s.file.stem: s for s in seen} if len(seen) > 1 and not apart else {}
    refuse_parts(parts)
    spread = _spread(parts, rate) if parts else None
    columns = seen[0].columns if spread is None else spread.columns
    units = seen[0].units if spread is None else spread.units
    texts = seen[0].texts if spread is None else {}
    clocks = {time_column(columns)} if spread is None else set(spread.clocks)
    if rate is not None or seen[0].clocks:
        clocks = set()
    time = next(iter(clocks), "") if spread is None else ""
    table = LogTable({n: x for n, x in columns.items() if n not in clocks}, units, texts)
    found = guesses(machine, table)
    if not found and spread is None:
        found = guesses_by_file(machine, seen[0].file.stem, table)
    if not found and seen[0].has_header:
        raise nothing_found(machine, columns, [s.file.name for s in seen])
    if apart:
        refuse_other_columns(seen, [g.column for g in found] + ([time] if time else []))
    held = _without_column(machine, {g.channel for g in found})
    found = [g for g in found if g.channel.partition(".")[2] not in held]
    used = {g.column: columns[g.column] for g in found}
    whole = [{n: s.columns[n] for n in used} for s in seen] if apart else [used]
    cells = [check_missing(x, s.file.name) for x, s in zip(whole, seen, strict=False)] if apart else []
    missing_cells = (
        "; ".join(filter(None, cells)) if apart else check_missing(used, ", ".join(s.file.name for s in seen))
    )
    taken = {g.column for g in found}
    left = [n for n in columns if n not in taken and n not in clocks]
    lines = [
        *head_lines(f"A study of '{machine.name}'", "identify", study_name(machine), study),
        "",
        "model:",
        f"  file: {flow(beside(model, study))}",
        *urdf_lines(model, machine, strict),
        *lock_lines(held, [c for c in machine.coordinates if c not in held]),
        *_elements(model, welded(machine, dict.fromkeys(held, 0.0), unknown="keep") if held else machine),
        "",
        "log:",
        *_log_lines(time, columns, units, spread, seen[0], rate),
        "  columns: # channel: column [unit]" if found else "  columns: {} # channel: column [unit]",
        *column_lines(found),
    ]
    own = [c for c in (machine.coordinates[k] for k in machine.independent) if c not in held]
    missing = _missing(machine, own, {g.channel for g in found})
    if missing:
        lines += wrapped("    # not found, and needed: ", missing)
    for six in wrench_columns(left):
        lines += wrapped(
            "    # a force plate or sensor; write the body it acts on: wrench.BODY.fx … mz: ", list(six.values())
        )
    if machine.closed:
        rest = [c for c in machine.coordinates if c not in own]
        lines += wrapped(
            "    # follow through closed loops, and need no column (any that is measured is compared): ", rest
        )
    if left:
        lines += wrapped("    # columns not used: ", left)
    lines += ["", *_halves(seen, spread, study, apart), ""]
    if missing_cells:
        lines += ["values:", f"  missing: cut # guessed: {missing_cells}; the log is cut there, refuse: stop"]
    lines += [
        "signals:",
        "  lowpass: auto # Hz; auto tries some on the training logs and proposes one",
        *(["rows: actuated # a passive joint of a loop has no equation of its own"] if machine.closed else []),
        *(
            ["rows: all # of base and joints; where feet touch the ground the log needs its forces: wrench.BODY.fx …"]
            if machine.base == "free"
            else []
        ),
        "sampling:",
        "  dead_zone: auto # rad/s or m/s; slower samples are left out where there is dry friction: it is not sign(speed) there",
        "estimator:",
        f"  name: wls # {_for_export(machine)}",
        "accept: # exit code 1 where a limit is missed",
        "  suspicions: 0",
    ]
    return "\n".join(lines) + "\n"


def _halves(seen: Sequence[Survey], spread: _Spread | None, study: Path, apart: bool) -> list[str]:
    """What is learnt from and what is judged by: the last of several recordings, or the end of the one that there is."""
    training, validation = "training: # logs to learn from", "validation: # logs to be judged by"
    if apart:
        names = [f"  - {flow(beside(s.file, study))}" for s in seen]
        return [training, *names[:-1], f"{validation}; guessed: the last of the recordings", names[-1]]
    harder = f"{validation}; another motion is a harder test than the rest of the same one"
    first, last = (_recordings(seen, spread, study, share) for share in ("[0, 0.7]", "[0.7, 1]"))
    return [training, *first, harder, *last]


def _for_export(machine: Machine) -> str:
    """How physically consistent parameters are identified; where all bodies have values, they decide what the log leaves open."""
    p = machine.parameters
    bodies = {p.names[k] for k, (body, _) in enumerate(machine.columns) if body}
    if bodies & set(p.missing()):
        return "name: consistent gives physically consistent parameters, needed for export"
    return (
        "for a machine to export write name: consistent and settings: {prior: {}}: physically consistent, and near the model's values "
        "where the log leaves them open"
    )


def study_name(machine: Machine, otherwise: str = "study") -> str:
    """The machine's name as that of a run folder; `otherwise` where nothing of it can be kept."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", machine.name).strip("-.") or otherwise


def head_lines(what: str, kind: str, name: str, study: Path) -> list[str]:
    """How a study file begins: what it is, how it is run, its kind and its name."""
    run = f"veridyn {kind} {study.name}"
    return [
        f"# {what}. Written by veridyn new; look at every line marked 'guessed'.",
        f"# Run it with: {run}. Every setting with its default: {run} --show",
        "veridyn: 1",
        f"kind: {kind}",
        f"name: {name}",
    ]


def column_lines(found: Sequence[Guess]) -> list[str]:
    """Channels with their columns and units, and why they were guessed so."""
    return [f"    {flow(g.channel)}: {_column_text(g)}" + (f" # {g.why}" if g.why else "") for g in found]


def _column_text(g: Guess) -> str:
    plain = re.fullmatch(r"[A-Za-z_][\w.]*", g.column)
    return f"{g.column} [{g.unit}]" if plain else flow(f"{g.column} [{g.unit}]")


def _without_column(machine: Machine, found: set[str]) -> tuple[str, ...]:
    """Coordinates of which no column tells anything, where it does of others: they stand still, as far as the log says."""
    held = tuple(
        c for c in machine.coordinates if not any(_is_measured(machine, c, kind, found) for kind in ("q", "force"))
    )
    if machine.closed or not held or len(held) == machine.n:
        return ()
    try:
        welded(machine, dict.fromkeys(held, 0.0), unknown="keep")
    except VeridynError:
        return ()
    return held


def _is_measured(machine: Machine, c: str, kind: str, found: set[str]) -> bool:
    motors = motor_channels(machine, c, kind)
    return f"{kind}.{c}" in found or bool(motors and set(motors) <= found)


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


def check_missing(columns: Mapping[str, Array], source: str, together: bool = True) -> str:
    """What is missing of the columns that are used, in words; refused where too little is left to be a log.

    `together`: whether a sample needs a number in every column, as an identification does; of sensors with a clock each it does not.
    """
    cells = sum(x.size for x in columns.values())
    gone = cells - sum(int(np.isfinite(x).sum()) for x in columns.values())
    if not gone:
        return ""
    lengths = {len(x) for x in columns.values()}
    least = QualityLimits().shortest
    if together and len(lengths) == 1:
        whole = np.all([np.isfinite(x) for x in columns.values()], axis=0)
        left = max((b - a + 1 for a, b in runs(whole)), default=0)
        what = "there are next to no rows with a number in every column that is used."
        found = f"{left} at most, of {len(whole)} rows"
    else:
        left = min(int(np.isfinite(x).sum()) for x in columns.values())
        what, found = "a column that is used holds next to no numbers.", f"{left}"
    share = f"{gone} of {cells} cells are missing ({100.0 * gone / cells:.4g} %)"
    if left >= least:
        return share
    empty = [name for name, x in columns.items() if int(np.isfinite(x).sum()) < least]
    named = f", in {', '.join(empty[:LISTED])}{', …' if len(empty) > LISTED else ''}" if empty else ""
    hint = (
        "Topics that were recorded on clocks of their own are files of their own, or one bag; or fill the cells first."
    )
    expected = f"at least {least} in a row"
    raise FileError(what, where="log", expected=expected, found=f"{found}; {share}{named}", hint=hint, source=source)


def _missing(machine: Machine, own: Sequence[str], found: set[str]) -> list[str]:
    """Channels that are needed and were not found: those of the motors, where there is a transmission."""
    driven = machine.actuated_coordinates if machine.closed else own
    missing: list[str] = []
    for kind, names in (("q", own), ("force", driven)):
        for c in names:
            if not _is_measured(machine, c, kind, found):
                motors = motor_channels(machine, c, kind)
                missing += [
                    *(m for m in motors if m not in found),
                    *([f"(or {kind}.{c})"] if motors else [f"{kind}.{c}"]),
                ]
    missing = list(dict.fromkeys(missing))
    if machine.base == "free":
        base = [f"base.{name}.{axis}" for name in ("omega", "acceleration") for axis in AXES]
        missing += [channel for channel in base if channel not in found]
    return missing


@dataclass(frozen=True, eq=False)
class _Spread:
    """A log in several files: `columns` and `units` of all, with their part before names that several have; `parts`: how each is read.

    `clocks` are the columns of times. `rate`: that of all of them, where none is a clock.
    """

    columns: dict[str, Array]
    units: dict[str, str]
    parts: dict[str, str]
    clocks: tuple[str, ...]
    rate: float | None = None


def _spread(parts: Mapping[str, Survey], rate: float | None) -> _Spread:
    """Several files of one log: one holds the clock or each has its own, and files of one column may hold all joints below each other."""
    single = {p: next(iter(s.columns.values())) for p, s in parts.items() if len(s.columns) == 1}
    clock = next((p for p, x in single.items() if len(x) > 2 and (np.diff(x) >= 0.0).all()), None)
    own = {p: time_column(s.columns) for p, s in parts.items() if len(s.columns) > 1} if clock is None else {}
    if rate is None and clock is None and not any(own.values()):
        raise FileError(
            "none of these files is a clock.",
            where="logs",
            expected="one file with a single column of times, or a column of times in each, beside positions and forces",
            found=", ".join(parts),
            hint="Give --rate where the log has no clock, or one file if it is a table; name further logs in the study file.",
        )
    out = _Spread({}, {}, {}, (), rate if clock is None and not any(own.values()) else None)
    clocks = []
    lengths = [len(x) for p, s in parts.items() for x in s.columns.values() if len(s.columns) > 1 or p == clock]
    samples = min(lengths, default=0)
    names = [n for s in parts.values() for n in s.columns]
    for p, s in parts.items():
        if p == clock:
            out.columns["t"] = single[p]
            clocks.append("t")
            out.parts[p] = '{header: [t], time: "t [s]"} # the clock: guessed, seconds'
        elif p in single and samples and len(single[p]) % samples == 0 and len(single[p]) // samples > 1:
            k = len(single[p]) // samples
            kind = kind_of(p) or p
            joints = [f"{kind}{j + 1}" for j in range(k)]
            out.columns.update(zip(joints, single[p].reshape(-1, k).T, strict=True))
            out.parts[p] = f"{{header: [{', '.join(joints)}], interleaved: true}} # guessed: {k} values per sample"
        else:
            known_kind = kind_of(p) is not None
            called = {
                n: f"{p}/{n}" if names.count(n) > 1 or (known_kind and kind_of(n) is None) else n for n in s.columns
            }
            out.columns.update({called[n]: x for n, x in s.columns.items()})
            out.units.update({called[n]: unit for n, unit in s.units.items()})
            keys, why = ([] if s.has_header else [f"header: [{', '.join(s.columns)}]"]), ""
            if own.get(p):
                unit, why = time_unit(own[p], s.columns, s.units)
                keys.append(f'time: "{own[p]} [{unit}]"')
                clocks.append(called[own[p]])
            out.parts[p] = f"{{{', '.join(keys)}}}{why}"
    return _Spread(out.columns, out.units, out.parts, tuple(clocks), out.rate)


def _log_lines(
    time: str,
    columns: Mapping[str, Array],
    units: Mapping[str, str],
    spread: _Spread | None,
    first: Survey,
    rate: float | None,
) -> list[str]:
    if spread is not None:
        return [
            *([f"  rate: {spread.rate:g} # samples a second: the log has no clock"] if spread.rate else []),
            "  parts: # files of one log: how each is read",
            *(f"    {flow(p)}: {how}" for p, how in spread.parts.items()),
        ]
    if first.clocks:
        return []
    return time_lines(time, columns, units, first.has_header, first.decimal, rate)


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


def _elements(model: Path, machine: Machine) -> list[str]:
    """Friction where the model has no element, rotor inertia where a motor is known of and the model has none."""
    rotors = rotor_lines(model, machine)
    if machine.elements:
        listed = ", ".join(e.parameter_name for e in machine.elements[:8]) + (
            ", …" if len(machine.elements) > 8 else ""
        )
        empty = "" if any(line.lstrip().startswith("- ") for line in rotors) else " []"
        return [f"  elements:{empty} # besides those of the model: {listed}", *rotors]
    on = "actuated" if machine.closed else "each"
    return [
        "  elements: # the model has none; most joints rub, and torque sensors have an offset",
        f"    - {{kind: damper, on: {on}}}",
        f"    - {{kind: coulomb, on: {on}}}",
        f"    - {{kind: offset, on: {on}}}",
        *rotors,
    ]


def _recordings(seen: Sequence[Survey], spread: _Spread | None, study: Path, share: str) -> list[str]:
    if spread is None:
        return [f"  - {{file: {flow(beside(seen[0].file, study))}, share: {share}}}"]
    lines = ["  - files:", *(f"      {flow(s.file.stem)}: {flow(beside(s.file, study))}" for s in seen)]
    return [*lines, f"    share: {share}"]


def beside(file: Path, study: Path) -> str:
    """The path as the study file may name it: relative to its folder where it lies in or below it, by name where it comes with veridyn."""
    if own := shipped_name(file):
        return own
    try:
        return file.resolve().relative_to(study.resolve().parent).as_posix()
    except ValueError:
        return str(file.resolve())


def wrapped(head: str, names: Sequence[str]) -> list[str]:
    """A comment with names, of which the first thirty are shown."""
    shown = ", ".join(names[:30]) + (", …" if len(names) > 30 else "")
    return [head + shown]
