"""A first study of drives from a model and a log of commands and encoders: columns, gains and the time that is held out.

Such a log has no forces. Gains that neither the model file nor the user states are guessed from it, and armature and friction where the
model has none. A column is a command where a word of its name says so (q_des, q_cmd, target, dof_target, des_pos, command.JOINT); what is
left of the name belongs to a joint as any other column does.

Gains and friction are guessed from the model's masses: the rigid machine needs the forces y along the measured positions, and its drives
gave them,

    y = kp (r − q) − d q̇ − Ia q̈ − f sign q̇,      kp, d, Ia, f ≥ 0,

joint by joint in least squares. d is kd and viscous friction together. These are starting values to look at, without deviations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import nnls

from veridyn.arrays import Array
from veridyn.errors import FileError, VeridynError
from veridyn.files.log.load import Survey
from veridyn.files.machine.load import MJCF_ENDINGS, load_model
from veridyn.files.machine.urdf import load_urdf
from veridyn.files.units import to_si
from veridyn.identify.drives.drive_log import COMMAND, POSITION, DriveRecord, drive_records
from veridyn.identify.drives.drive_unknowns import ELEMENTS
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.weld import welded
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.signals.butterworth import Butterworth, zero_phase
from veridyn.signals.conditioning import derivative
from veridyn.studies.config.excite_drives import DriveExciteSection
from veridyn.studies.config.guessing import (
    COMMANDED,
    DEGREES_FROM,
    Guess,
    LogTable,
    clock_of,
    guesses,
    joint_numbers,
    kind_of,
    named_by_file,
    pick,
    table_of,
    time_unit,
    unit_guess,
)
from veridyn.studies.config.identify_sections import DrivesAccept, DrivesSection
from veridyn.studies.config.motion_template import drive_limit_lines
from veridyn.studies.config.several_logs import refuse_other_columns
from veridyn.studies.config.study_lines import (
    as_file,
    beside,
    head_lines,
    key_lines,
    lock_lines,
    log_lines,
    time_lines,
    urdf_lines,
)
from veridyn.studies.config.template import check_missing
from veridyn.studies.config.text import flow

FITTED = 0.7  # of a log; the rest is held out
VISCOUS = 0.1  # of kd and viscous friction together, which the log does not separate
SMALL = (
    0.05  # of the largest of the joints: a starting value that is lower is raised to it, because a prior has no zero
)
COLUMNS = {"damper": 1, "inertia": 2, "coulomb": 3}  # of DriveNumbers
WORDS = (*COMMANDED, "commanded", "commands", "targets", "setpoint", "setpoints", "goals")
IN_DEGREES = 1 / 3  # of the turning joints: with more beyond DEGREES_FROM the log is taken to be in degrees
COMMAND_POWER = 0.95  # of the power of the commands lies below the frequency that a low-pass is chosen from
PASSED = 4.0  # times that frequency: the cut-off of the low-pass
HIGHEST = 0.2  # of the rate: the highest cut-off
SLOW = 0.05  # of the rms speed: dry friction is rounded off below it
SPREAD = 2.0  # largest over smallest kp of the better half of the joints: gains further apart are not one number
EXPLAINED = 0.5  # of the forces: where more is left, what the model needs and what drives give do not belong together


@dataclass(frozen=True, kw_only=True)
class Gains:
    """What the user states of the drives: kp and kd, None where that is left open."""

    kp: float | None = None
    kd: float | None = None


def is_drive_log(machine: Machine, seen: Survey) -> bool:
    """Whether commands and positions of joints are recorded and no forces of them, of a machine whose drives can be identified."""
    if machine.closed or machine.formulation != "tree":
        return False
    table = table_of(seen)
    found = command_guesses(machine, table)
    measured = {g.channel for g in guesses(machine, table) if "commanded, it seems" not in g.why}
    return bool(found) and not any(name.startswith(("force.", "force_motor.")) for name in measured)


def drive_template(
    model: Path,
    machine: Machine,
    log: Survey | Sequence[Survey],
    study: Path,
    strict: bool = False,
    rate: float | None = None,
    gains: Gains | None = None,
) -> str:
    """The text of a study file with a section ``drives`` beside which model and logs are found.

    `log`: a recording, the end of which is held out, or several: all but the last are learnt from, and the last is judged by.
    """
    every, stated = [named_by_file(s) for s in ([log] if isinstance(log, Survey) else log)], gains or Gains()
    seen = every[0]
    table = table_of(seen, rate)
    fixed = _on_ground(model, machine, strict)
    found = command_guesses(fixed, table)
    if not found:
        raise FileError(
            "it has no commands and positions of any joint.",
            where="log",
            expected="columns such as command.JOINT and position.JOINT, or q_des_1 and q_1",
            found=", ".join(list(table.columns)[:6]),
            source=seen.file.name,
        )
    led = {g.channel for g in found}
    held = tuple(c for c in fixed.coordinates if f"{COMMAND}{c}" not in led)
    moving = welded(fixed, dict.fromkeys(held, 0.0), unknown="keep") if held else fixed
    time = clock_of(seen, rate)
    refuse_other_columns(every, [g.column for g in found] + ([time] if time else []))
    for s in every:
        missing = check_missing({g.column: s.columns[g.column] for g in found}, s.file.name)
        if missing:
            raise FileError(
                "its columns have holes, over which no simulation can be compared.",
                where="log",
                found=missing,
                hint="Fill them, or cut the log there.",
                source=s.file.name,
            )
    record = _log(seen, found, time, rate)
    numbers, why = _numbers(moving, record)
    used = {g.column for g in found}
    left = [n for n in table.columns if n not in used]
    end = _end(record) if len(every) == 1 else 0.0
    lines = [
        *head_lines("Drives of '{}' from commands and encoders", "identify", machine, study, model),
        *_base_lines(model, machine, fixed, strict),
        *lock_lines(held, moving.coordinates, "command and position"),
        *_element_lines(moving, numbers),
        *log_lines(time_lines(seen, time, rate), found, left=left),
        "",
        "training: # logs to learn from",
        *(f"  - {{file: {flow(beside(s.file, study))}}}" for s in every[: max(1, len(every) - 1)]),
        *(
            ["# validation: # other logs, whose encoders are simulated from their commands"]
            if len(every) == 1
            else [
                "validation: # guessed: the last of the recordings, whose encoders are simulated from its commands",
                f"  - {{file: {flow(beside(every[-1].file, study))}}}",
            ]
        ),
        "drives:",
        *_gain_lines(moving, stated, numbers, why),
        *(key_lines(DrivesSection, "until", end) if end else []),
        *key_lines(DrivesSection, "commands"),
    ]
    if end or len(every) > 1:
        lines += ["accept: # exit code 1 where a limit is missed", *key_lines(DrivesAccept, "worse_than_file", 0)]
    return as_file(lines)


def _on_ground(model: Path, machine: Machine, strict: bool) -> Machine:
    """The same machine held at its base, with all the inertias of its file: a simulation needs numbers."""
    suffix = model.suffix.lower()
    if suffix == ".urdf":
        return load_urdf(model, "fixed", impossible="refuse" if strict else "keep")
    if suffix in MJCF_ENDINGS and machine.base == "free":
        return load_model(model, base="fixed", strict=strict)
    return machine


def _base_lines(model: Path, machine: Machine, fixed: Machine, strict: bool) -> list[str]:
    if model.suffix.lower() == ".urdf":
        broken = any(line.strip().startswith("impossible") for line in urdf_lines(model, machine, strict))
        word = "refuse" if strict else "keep"
        note = f"  impossible: {word} # inertias that no physical body has; a simulation needs numbers"
        return ["  base: fixed # it stands or hangs while its joints move", *([note] if broken else [])]
    if machine.base == "free" and fixed.base != "free":
        return ["  base: fixed # guessed: it hangs in the air while its joints move; on the ground its feet would push"]
    return []


def _log(seen: Survey, found: Sequence[Guess], time: str, rate: float | None) -> Experiment:
    """The channels of the study, in SI units."""
    channels: dict[str, Channel] = {}
    for g in found:
        x = seen.columns[g.column]
        values, unit = np.asarray(to_si(1.0, g.unit)[0] * x), to_si(1.0, g.unit)[1]
        if seen.clocks:
            t = seen.clocks[g.column]
        elif time:
            t = to_si(1.0, time_unit(time, seen.columns, seen.units)[0])[0] * seen.columns[time]
        else:
            t = np.arange(len(x), dtype=np.float64) / (rate or 1.0)
        channels[g.channel] = Channel(g.channel, t, values, unit)
    return Experiment(channels, seen.file.name)


def _numbers(machine: Machine, log: Experiment) -> tuple[DriveNumbers | None, str]:
    """Starting values from the log; or why there are none."""
    try:
        return drive_numbers(machine, drive_records(machine, log)[0]), ""
    except VeridynError as error:
        return None, str(error.faults[0]).splitlines()[0].removesuffix(".")


def _end(log: Experiment) -> float:
    """Seconds of a log that are fitted, rounded."""
    t = log[next(n for n in log.names if n.startswith(POSITION))].t
    return float(f"{FITTED * (t[-1] - t[0]):.2g}")


def _element_lines(machine: Machine, numbers: DriveNumbers | None) -> list[str]:
    """Armature and friction of joints that have none: a number that is not in the model cannot be estimated."""
    p = machine.parameters
    have: Mapping[str, set[str]] = {
        kind: {c for e in machine.elements if e.kind == kind and p[e.parameter_name] > 0.0 for c in e.on}
        for kind in ELEMENTS
    }
    missing = {kind: [c for c in machine.coordinates if c not in own] for kind, own in have.items()}
    if numbers is None or not any(missing.values()):
        return []
    lines = ["  elements: # guessed: starting values from the log, for what the model has no value of"]
    taken = set(machine.element_names)
    for kind, joints in missing.items():
        column = numbers.values[:, COLUMNS[kind]] * (VISCOUS if kind == "damper" else 1.0)
        least = SMALL * float(column.max())
        for c in joints:
            value = max(float(column[machine.coordinates.index(c)]), least)
            if not value > 0.0:
                continue
            names = (e.parameter_name for e in machine.elements if e.kind == kind and c in e.on)
            clash = next((n for n in names if n in taken), "")
            name = f", name: {flow(clash + '_drive')}" if clash else ""
            lines.append(f"    - {{kind: {kind}, on: {flow(c)}, value: {value:.2g}{name}}}")
    return lines if len(lines) > 1 else []


def _gain_lines(machine: Machine, stated: Gains, numbers: DriveNumbers | None, why: str) -> list[str]:
    """kp and kd of joints that have no controller in the model."""
    have = {c.on for c in machine.controllers}
    if have >= set(machine.coordinates):
        return ["  # kp and kd are those of the controllers of the model"]
    guessed = None if numbers is None else numbers.gains
    lines = []
    for k, (key, unit) in enumerate((("kp", "N*m/rad"), ("kd", "N*m*s/rad"))):
        own = getattr(stated, key)
        if own is not None:
            lines.append(f"  {key}: {own:g} # {unit}")
        elif guessed is not None:
            lines.append(
                f"  {key}: {guessed[k]:.2g} # guessed from the log and the model's masses, {unit}; write that of the drives' configuration"
            )
        else:
            reason = why or "the joints do not agree on one"
            lines.append(
                f"  {key}: # {unit}: write that of the drives' configuration; the log does not show it: {reason}"
            )
    return lines


def command_template(
    model: Path,
    machine: Machine,
    study: Path,
    strict: bool = False,
    gains: Gains | None = None,
    *,
    ask: Sequence[str] = (),
    duration: float | None = None,
    complete: bool = False,
) -> str:
    """The text of a study file that designs commands from which the drives of a machine are to be identified.

    `complete`: nobody writes into it before it is run, so that gains of joints without a controller have to be given.
    """
    fixed, stated = _on_ground(model, machine, strict), gains or Gains()
    if fixed.closed or fixed.base == "free" or not fixed.n:
        what = "commands of drives are designed for an open machine that is held."
        raise FileError(what, where=model.name, hint="Hold its base: --base fixed.")
    missing = [c for c in fixed.coordinates if c not in {x.on for x in fixed.controllers}]
    if complete and missing and stated.kp is None:
        raise FileError(
            "it is not known how its drives follow commands.",
            where="--kp",
            expected="the gain of the position, N*m/rad, of joints without a controller in the model file",
            found=f"{len(missing)} of {fixed.n} joints without one",
            source=model.name,
        )
    if complete and stated.kd is None:
        stated = Gains(kp=stated.kp, kd=0.0)
    lines = [
        *head_lines("Commands for the drives of '{}'", "excite", machine, study, model, "-commands"),
        *_base_lines(model, machine, fixed, strict),
        "",
        "drives:",
        *key_lines(DriveExciteSection, "ask", list(ask)),
        *_gain_lines(fixed, stated, None, "there is none yet"),
        *key_lines(
            DriveExciteSection,
            "duration",
            *(() if duration is None else (duration,)),
            note="" if duration else "guessed",
        ),
        *key_lines(DriveExciteSection, "sampling", note="guessed"),
        "limits: # of position, speed and force; collisions are not checked",
        *drive_limit_lines(fixed, model),
    ]
    return as_file(lines)


def command_guesses(machine: Machine, table: LogTable) -> list[Guess]:
    """Channels ``command.JOINT`` and ``position.JOINT`` of the joints of which both are found."""
    names = {COMMAND: _asked(table.columns), POSITION: {n: n for n in table.columns if _without_words(n) is None}}
    numbers = {start: joint_numbers(machine, "q", list(own), table.texts) for start, own in names.items()}
    found: list[tuple[str, str, str, str]] = []
    taken: set[str] = set()
    for k, at in enumerate(machine.independent):
        c, pair = machine.coordinates[at], []
        for start, own in names.items():
            free = {n: column for n, column in own.items() if column not in taken}
            exact = next((n for n, column in free.items() if column.lower() == f"{start}{c}".lower()), None)
            picked = (exact, "") if exact else pick("q", numbers[start][k], c, machine.n == 1, list(free))
            if picked is not None:
                pair.append((f"{start}{c}", free[picked[0]], picked[1], c))
        if len(pair) == len(names):
            found += pair
            taken |= {column for _, column, _, _ in pair}
    return _with_units(machine, table, found)


def _asked(columns: Mapping[str, Array]) -> dict[str, str]:
    """Names of commands without the word that makes them commands → their column; the first of several that are alike."""
    out: dict[str, str] = {}
    for name in columns:
        left = _without_words(name)
        if left is None or kind_of(left) not in (None, "q"):
            continue
        number = re.fullmatch(r"[^\d]*?[ _.\[(]*(\d+)[\])]?", left)
        if number and kind_of(left) is None:  # dof_target_3: of a position, as no word says otherwise
            out.setdefault(f"q_{number[1]}", name)
        out.setdefault(left, name)
    return out


def _without_words(name: str) -> str | None:
    """q_0 of q_des_0, None where no word of a name says that it is a command."""
    words = "|".join(WORDS)
    left, count = re.subn(rf"(?i)(?<![a-z])(?:{words})(?![a-z])[ _.]*", "", name)
    return left.strip(" _.") if count else None


def _with_units(machine: Machine, table: LogTable, found: Sequence[tuple[str, str, str, str]]) -> list[Guess]:
    """Units of the header, else degrees for all turning joints or for none."""
    size = {c: 0.0 for _, _, _, c in found if machine.kinds[c] == "turning"}
    for _, column, _, c in found:
        if c in size and not table.units.get(column):
            size[c] = max(size[c], float(np.nanmax(np.abs(table.columns[column]), initial=0.0)))
    beyond = sum(x > DEGREES_FROM for x in size.values())
    degrees = beyond > IN_DEGREES * len(size)
    out = []
    for channel, column, why, c in found:
        unit = unit_guess("q", machine.kinds[c] == "turning", np.zeros(0), table.units.get(column, ""))
        if unit[1] and degrees and c in size:
            unit = "deg", f"unit guessed: {beyond} joints go beyond {DEGREES_FROM:g}"
        out.append(Guess.of(channel, column, why, unit))
    return out


@dataclass(frozen=True, eq=False)
class DriveNumbers:
    """Of each joint kp, kd with viscous friction, armature and dry friction (n, 4), and the share of the forces that they leave (n,)."""

    joints: tuple[str, ...]
    values: Array
    left: Array

    @property
    def gains(self) -> tuple[float, float] | None:
        """kp and kd of all drives: those of the joint in the middle of the better half; None where that half does not agree on any."""
        better = np.argsort(self.left)[: (len(self.joints) + 1) // 2]
        kp = self.values[better, 0]
        if not kp.min() > 0.0 or kp.max() > SPREAD * kp.min() or self.left[better].max() > EXPLAINED:
            return None
        return float(np.median(kp)), float(np.median(self.values[better, 1]))


def drive_numbers(machine: Machine, record: DriveRecord) -> DriveNumbers:
    """Starting values by the forces that the rigid machine needs along the measured positions."""
    rate = 1.0 / record.step
    low = Butterworth(_cutoff(record, rate), 4)
    q, r = (zero_phase(x, rate, low) for x in (record.position, record.command))
    r = r - 0.5 * record.step * derivative(
        r, rate
    )  # held until the next one, a command is half a step late in the mean
    qd, qdd = derivative(q, rate), derivative(q, rate, order=2)
    own = {e.parameter_name: 0.0 for e in machine.elements if e.kind in ELEMENTS}
    motion = Motion(record.t, q, qd, qdd)
    y = zero_phase(inverse_dynamics(machine.with_parameters(own), motion), rate, low)
    found, left = np.zeros((machine.n, 4)), np.ones(machine.n)
    tiny = np.finfo(np.float64).tiny
    for j in range(machine.n):
        slow = SLOW * max(float(np.sqrt(np.mean(qd[:, j] ** 2))), tiny)
        way = zero_phase(np.tanh(qd[:, j] / slow), rate, low)
        A = np.stack([r[:, j] - q[:, j], -qd[:, j], -qdd[:, j], -way], axis=1)
        size = np.maximum(np.abs(A).max(axis=0), tiny)
        x, rest = nnls(A / size, y[:, j])
        found[j], left[j] = x / size, rest / max(float(np.linalg.norm(y[:, j])), tiny)
    return DriveNumbers(machine.coordinates, found, left)


def _cutoff(record: DriveRecord, rate: float) -> float:
    """A few times the frequency below which most of the commanded motion lies."""
    moved = record.command - record.command.mean(axis=0)
    total = np.cumsum((np.abs(np.fft.rfft(moved, axis=0)) ** 2).sum(axis=1))
    f = np.fft.rfftfreq(len(moved), record.step)
    top = f[int(np.searchsorted(total, COMMAND_POWER * total[-1]))] if total[-1] > 0.0 else 0.0
    return float(np.clip(PASSED * top, 2.0 / record.t[-1], HIGHEST * rate))
