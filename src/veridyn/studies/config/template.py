"""A first study file from a model and a log: what can be guessed is guessed, and every guess is marked as one.

The clock is found and columns are matched to joints and motors in :mod:`veridyn.studies.config.guessing`; a unit is that of the header or,
failing that, guessed by kind and size. Nothing is guessed that the checks of a study could not find out to be wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import FileError, VeridynError
from veridyn.files.log.load import Survey, survey
from veridyn.mechanics.tree.weld import welded
from veridyn.model.machine import Machine
from veridyn.signals.mending import QualityLimits
from veridyn.signals.naming import AXES, motor_channels
from veridyn.signals.outliers import runs
from veridyn.studies.config.guessing import (
    LogTable,
    guesses,
    guesses_by_file,
    kind_of,
    named_by_file,
    rotor_lines,
    time_column,
    time_unit,
    wrench_columns,
)
from veridyn.studies.config.identify import IdentifyAccept, SamplingSettings, SignalSettings
from veridyn.studies.config.several_logs import are_recordings, nothing_found, refuse_other_columns, refuse_parts
from veridyn.studies.config.study_lines import (
    as_file,
    beside,
    head_lines,
    key_lines,
    lock_lines,
    log_lines,
    time_lines,
    urdf_lines,
    wrapped,
)
from veridyn.studies.config.text import flow

LISTED = 6  # columns that a message names


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
        *head_lines("A study of '{}'", "identify", machine, study, model),
        *urdf_lines(model, machine, strict),
        *lock_lines(held, [c for c in machine.coordinates if c not in held]),
        *_elements(model, welded(machine, dict.fromkeys(held, 0.0), unknown="keep") if held else machine),
    ]
    own = [c for c in (machine.coordinates[k] for k in machine.independent) if c not in held]
    notes: list[str] = []
    for six in wrench_columns(left):
        plate = "    # a force plate or sensor; write the body it acts on: wrench.BODY.fx … mz: "
        notes += wrapped(plate, list(six.values()))
    if machine.closed:
        rest = [c for c in machine.coordinates if c not in own]
        notes += wrapped(
            "    # follow through closed loops, and need no column (any that is measured is compared): ", rest
        )
    reading = time_lines(seen[0], time, rate) if spread is None else spread.lines
    lines += log_lines(reading, found, _missing(machine, own, {g.channel for g in found}), *notes, left=left)
    lines += ["", *_halves(seen, spread, study, apart), ""]
    if missing_cells:
        lines += ["values:", f"  missing: cut # guessed: {missing_cells}; the log is cut there, refuse: stop"]
    lines += [
        "signals:",
        *key_lines(SignalSettings, "lowpass"),
        *(["rows: actuated # a passive joint of a loop has no equation of its own"] if machine.closed else []),
        *(
            ["rows: all # of base and joints; where feet touch the ground the log needs its forces: wrench.BODY.fx …"]
            if machine.base == "free"
            else []
        ),
        "sampling:",
        *key_lines(SamplingSettings, "dead_zone"),
        "estimator:",
        f"  name: wls # {_for_export(machine)}",
        "accept: # exit code 1 where a limit is missed",
        *key_lines(IdentifyAccept, "suspicions", 0),
        *key_lines(IdentifyAccept, "verdict", "fair"),
    ]
    return as_file(lines)


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

    @property
    def lines(self) -> list[str]:
        """How the files are read."""
        return [
            *([f"  rate: {self.rate:g} # samples a second: the log has no clock"] if self.rate else []),
            "  parts: # files of one log: how each is read",
            *(f"    {flow(p)}: {how}" for p, how in self.parts.items()),
        ]


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
