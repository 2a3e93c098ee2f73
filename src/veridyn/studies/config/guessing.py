"""What the columns of a log are, guessed by their names and numbers: the clock, and positions, speeds and forces of which joint; and which
joints have the rotor of a motor.

A clock is called so (t, time, timestamp, "Time (Seconds)", MocapTime, header.stamp), or increases by even steps. A counter of frames is
none. Its unit is that of the header; else that in which its numbers are dates of this century; else the one in which its step is that of
a recorder of 2 Hz to 2 kHz.

Of a joint, its own name stands in that of the column, or a word and its number do: q1, qd_2, tau3, positions.0, actual_q_0, field.effort2.
Of several columns that fit, the measured one is taken before the commanded one (actual before target, tau_meas before tau_con), and the
others are listed as rivals. Where a machine has a transmission, columns with a word such as motor are those of its motors.

The rotor of a motor turns r times as fast as its joint and adds r² times its inertia there, often more than the bodies behind it. A
model without it is fitted all the same, and its other parameters are wrong. What is known of motors stands in the machine's transmission,
and in ``<transmission>`` of a URDF; the armature of an MJCF file is an element of the machine already.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError
from veridyn.files.log.load import Survey
from veridyn.files.machine.urdf_xml import bytes_of, parse_xml
from veridyn.files.units import to_si
from veridyn.model.load import Transmission
from veridyn.model.machine import Machine
from veridyn.signals.naming import AXES, BASE_UNITS, motor_channels
from veridyn.studies.config.text import flow

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
# Words that say what a column measures; longer ones first, so that "qdd" is not taken for "q".
WORDS: Mapping[str, tuple[str, ...]] = {
    "qdd": ("acceleration", "accelerations", "accel", "acc", "qdd", "ddq"),
    "qd": ("velocity", "velocities", "speed", "speeds", "vel", "dq", "qd", "v"),
    "force": (
        *("torque", "torques", "effort", "efforts", "force", "forces"),
        *("moment", "moments", "tau", "gamma", "trq", "tor"),
    ),
    "signal": ("current", "currents", "cur", "i"),
    "q": ("position", "positions", "angle", "angles", "pos", "q", "theta"),
}
MEASURED = ("actual", "act", "measured", "meas")
COMMANDED = ("target", "desired", "des", "d", "cmd", "command", "ref", "reference", "con", "control", "goal", "set")
ELSEWHERE = ("tcp", "ext", "hat", "filtered", "cartesian", "tool")  # not of a joint, or not as measured
MOTORS = ("motor", "motors", "mot", "rotor", "drive", "m")
NUMBERED = re.compile(r"(.*?[a-zA-Z])[ _.\[(]*(\d+)[\])]?")
DEGREES_FROM = 7.0  # a turning joint that goes further than this is more likely in degrees
UNITS = {
    "q": ("rad", "m"),
    "qd": ("rad/s", "m/s"),
    "qdd": ("rad/s^2", "m/s^2"),
    "force": ("N*m", "N"),
    "signal": ("A", "A"),
}
WRENCH = re.compile(r"(.*?)([FM])([xyz])(\d*)$", re.IGNORECASE)


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


def clock_of(seen: Survey, rate: float | None = None) -> str:
    """The column of times of a log; "" where its channels have clocks of their own, or it has a rate instead."""
    return "" if seen.clocks or rate is not None else time_column(seen.columns)


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


@dataclass(frozen=True)
class Guess:
    """Channel, column and unit, and why."""

    channel: str
    column: str
    unit: str
    why: str

    @classmethod
    def of(cls, channel: str, column: str, why: str, unit: tuple[str, str]) -> Guess:
        """The same of a unit with the reason for it."""
        return cls(channel, column, unit[0], "; ".join(w for w in (why, unit[1]) if w))


@dataclass(frozen=True, eq=False)
class LogTable:
    """Columns of a log without its clock: numbers, units where the file names them, and texts that a column repeats."""

    columns: Mapping[str, Array]
    units: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)


def table_of(seen: Survey, rate: float | None = None) -> LogTable:
    """The columns of a log without its clock."""
    clock = clock_of(seen, rate)
    return LogTable({n: x for n, x in seen.columns.items() if n != clock}, seen.units, seen.texts)


def unit_fits(given: str, unit: str) -> bool:
    """Whether a header's unit can be `unit`; where either is not known, it can."""
    if not given or not unit:
        return True
    try:
        return to_si(1.0, given)[1] == unit
    except DataError:
        return False


def words_of(name: str) -> list[str]:
    """The words of the last part of a name: ["actual", "q"] of "log/actual_q_0"."""
    return [w for w in re.split(r"[^a-z]+", name.rpartition("/")[2].lower()) if w]


def kind_of(name: str) -> str | None:
    """What a name measures, by the words in it, or by those of its file, which stand before it: "pos_read_data/J1"."""
    file, _, own = name.rpartition("/")
    for words in (words_of(own), words_of(file)):
        for kind, known in WORDS.items():
            if any(w in known for w in words):
                return kind
    return None


def named_by_file(seen: Survey) -> Survey:
    """A table without a header row whose file says what it holds: columns of pos_read_data.csv are q1, q2, …, beside the clock."""
    kind = kind_of(seen.file.stem)
    if seen.has_header or kind is None:
        return seen
    clock = time_column(seen.columns)
    numbers = iter(range(1, len(seen.columns) + 1))
    called = {name: name if name == clock else f"{kind}{next(numbers)}" for name in seen.columns}
    return replace(seen, columns={called[name]: x for name, x in seen.columns.items()})


def guesses(machine: Machine, table: LogTable) -> list[Guess]:
    """The columns that channels of a machine are made of, as far as they can be guessed."""
    found: list[Guess] = []
    columns = table.columns
    for kind in ("q", "qd", "qdd", "force"):
        free = [n for n in columns if n not in {g.column for g in found}]
        motors = _of_motors(machine, kind, free, table)
        found += motors
        numbers = joint_numbers(machine, kind, [n for n in free if not _is_motor(n)], table.texts)
        driven = machine.transmission.joints if machine.transmission is not None else ()
        for number, k in zip(numbers, machine.independent, strict=True):
            c, turns = machine.coordinates[k], machine.coordinate_kinds[k]
            if motors and c in driven:
                continue
            names = [n for n in free if n not in {g.column for g in found}]
            picked = pick(kind, number, c, len(machine.independent) == 1, names)
            if picked is None:
                continue
            column, why = picked
            if c in driven and kind in ("q", "force") and why:
                why += f"; of the joint and not of {' and '.join(motor_channels(machine, c, kind))}"
            elif kind in ("q", "force") and _is_motor(column):
                why += "; of a motor, it seems: name its gear under model: transmission"
            unit = unit_guess(kind, turns == "turning", columns[column], table.units.get(column, ""))
            found.append(Guess.of(f"{kind}.{c}", column, why, unit))
    return [*found, *_passive(machine, table), *_base(machine, table)]


def guesses_by_file(machine: Machine, file: str, table: LogTable) -> list[Guess]:
    """The same of columns that do not say what they measure, J1, J2, …, by the name of their file, pos_read_data.csv."""
    head = f"{file}/"
    columns = {head + name: x for name, x in table.columns.items()}
    units = {head + name: unit for name, unit in table.units.items()}
    texts = {head + name: text for name, text in table.texts.items()}
    found = guesses(machine, LogTable(columns, units, texts))
    return [replace(g, column=g.column.removeprefix(head), why=g.why.replace(head, "")) for g in found]


def position_guesses(machine: Machine, seen: Survey, kind: str = "q") -> list[Guess]:
    """Which columns of a log hold positions of the machine's coordinates, or their forces with `kind` "force"."""
    return [g for g in guesses(machine, table_of(seen)) if g.channel.startswith(f"{kind}.")]


def wrench_columns(names: Sequence[str]) -> list[dict[str, str]]:
    """Forces and moments of plates and sensors, fx to mz of each, where a log has all six of them."""
    groups: dict[tuple[str, str], dict[str, str]] = {}
    for name in names:
        m = WRENCH.fullmatch(name)
        if m:
            groups.setdefault((m[1], m[4]), {})[(m[2] + m[3]).lower()] = name
    return [g for g in groups.values() if len(g) == 6]


def _passive(machine: Machine, table: LogTable) -> list[Guess]:
    """Joints that follow through closed loops are taken by their full name alone."""
    out = []
    for k in (k for k in range(machine.n) if k not in machine.independent):
        for name in (n for n in table.columns if n.lower() == f"q.{machine.coordinates[k].lower()}"):
            unit = unit_guess(
                "q", machine.coordinate_kinds[k] == "turning", table.columns[name], table.units.get(name, "")
            )
            out.append(Guess(f"q.{machine.coordinates[k]}", name, *unit))
    return out


def _base(machine: Machine, table: LogTable) -> list[Guess]:
    if machine.base != "free":
        return []
    channels = {f"base.{name}.{axis}": unit for name, unit in BASE_UNITS.items() for axis in AXES}
    return [
        Guess(n.lower(), n, table.units.get(n) or channels[n.lower()], "" if table.units.get(n) else "unit guessed")
        for n in table.columns
        if n.lower() in channels
    ]


def _is_motor(name: str) -> bool:
    return any(w in MOTORS for w in words_of(name))


def _of_motors(machine: Machine, kind: str, names: Sequence[str], table: LogTable) -> list[Guess]:
    """Columns of the motors of a transmission, where every one of them has one: by its name, or by its number among them."""
    t = machine.transmission
    if t is None or kind not in ("q", "force"):
        return []
    marked = [n for n in names if _is_motor(n)]
    numbered = [int(m[2]) for n in marked if (m := NUMBERED.fullmatch(n)) and kind_of(m[1]) == kind]
    first = min(numbered, default=1)
    own = [int(m[1]) if (m := re.search(r"(\d+)$", motor)) else None for motor in t.motors]
    counted = [n for n in own if n is not None and n in numbered]
    numbers = own if len(counted) == len(own) else [first + i for i in range(len(own))]
    out = []
    for number, motor in zip(numbers, t.motors, strict=True):
        # A motor's own name says enough; a number needs a word that speaks of motors.
        named = [n for n in names if re.search(rf"(?<![a-z\d]){re.escape(motor.lower())}(?!\d)", n.lower())]
        named = [n for n in named if not motor.isdigit() and motor not in machine.coordinates and kind_of(n) == kind]
        taken = {g.column for g in out}
        picked = pick(kind, number or 0, motor, False, [n for n in dict.fromkeys([*named, *marked]) if n not in taken])
        if picked is None:
            return []
        column, why = picked
        unit = unit_guess(kind, True, np.zeros(0), table.units.get(column, ""))
        out.append(Guess.of(f"{kind}_motor.{motor}", column, why and f"of a motor, {why}", unit))
    return out


def joint_numbers(machine: Machine, kind: str, names: Sequence[str], texts: Mapping[str, str]) -> list[int]:
    """The number by which each coordinate with an equation of its own is called: that of a column with its name as text, as in the
    messages of ROS; that of the model; or, of a machine with loops whose log counts its drives alone, that among the drives."""
    own = [machine.coordinates[k] for k in machine.independent]
    named = {text: int(m[2]) for n, text in texts.items() if (m := NUMBERED.fullmatch(n))}
    if set(own) <= set(named):
        return [named[c] for c in own]
    seen = {int(m[2]) for n in names if (m := NUMBERED.fullmatch(n)) and kind_of(m[1]) == kind}
    first = min(seen, default=1)
    by_model = [k + first for k in machine.independent]
    return by_model if seen.issuperset(by_model) else [i + first for i in range(len(by_model))]


def pick(kind: str, number: int, c: str, alone: bool, names: Sequence[str]) -> tuple[str, str] | None:
    """The column of one quantity of one coordinate, and what speaks for it and who rivals it. `alone`: there is no other coordinate."""
    own = c.lower()
    whole = re.compile(rf"(?<![a-z\d]){re.escape(own)}(?!\d)")  # q1 is no part of q10
    for name in names:
        if name.lower() in (f"{kind}.{own}", f"{kind}_{own}"):
            return name, ""
    by_name = [n for n in names if whole.search(n.lower()) and kind_of(whole.sub(" ", n.lower())) == kind]
    if kind == "q" and not by_name:  # the coordinate's name alone is its position
        by_name = [n for n in names if n.lower() == own]
    by_number = [n for n in names if (m := NUMBERED.fullmatch(n)) and kind_of(m[1]) == kind and int(m[2]) == number]
    single = [n for n in names if kind_of(n) == kind] if alone else []
    for found, why in ((by_name, "the name in it"), (by_number, "its number"), (single, "its name")):
        worst = (
            1.0 if kind in ("q", "force") else 0.5
        )  # speeds and accelerations are of use only where they are measured
        ranked = sorted((n for n in found if _rank(n) <= worst), key=_rank)
        if ranked and not (found is single and len(ranked) > 1 and _rank(ranked[0]) == _rank(ranked[1])):
            rivals = f", before {', '.join(ranked[1:4])}" if len(ranked) > 1 else ""
            commanded = "; commanded, it seems, and not measured" if _rank(ranked[0]) == 1.0 else ""
            return ranked[0], f"guessed by {why}{rivals}{commanded}"
    return None


def _rank(name: str) -> float:
    """0 for what is measured, 0.5 for what does not say, 1 for what was commanded; 2 for what is not of a joint."""
    words = words_of(name)
    if any(w in ELSEWHERE for w in words):
        return 2.0
    measured = 0.0 if any(w in MEASURED for w in words) else 0.5
    return 1.0 if any(w in COMMANDED for w in words) else measured


def unit_guess(kind: str, turning: bool, x: Array, given: str) -> tuple[str, str]:
    if given:
        return given, ""
    unit = UNITS[kind][0 if turning else 1]
    if kind == "q" and turning and np.nanmax(np.abs(x), initial=0.0) > DEGREES_FROM:
        return "deg", f"unit guessed: it goes to {np.nanmax(np.abs(x)):.4g}"
    return unit, "unit guessed"


LISTED_JOINTS = 6  # that a comment names
ROUNDED_DECIMALS = 12  # of a ratio between two joints: what an inverse leaves of 1 and 0


def rotor_lines(model: Path, machine: Machine, value: str = "") -> list[str]:
    """Elements of a study, one a line, and a comment on the driven joints of which nothing is known.

    `value`: what is written as that of each, such as ", value: 0", where a study needs one.
    """
    there = [_direction(e.on) for e in machine.elements if e.kind == "inertia"]
    known = {tuple(sorted(on.items())): why for on, why in _known(model, machine)}
    lines = []
    for pairs, why in known.items():
        on = dict(pairs)
        if _direction(on) not in there:
            where = flow(next(iter(on))) if len(on) == 1 else _combination(on)
            lines.append(f"    - {{kind: inertia, on: {where}{value}}} # guessed: the rotor of a motor; {why}")
    with_rotor = {c for pairs in known for c, _ in pairs} | {
        c for e in machine.elements if e.kind == "inertia" for c in e.on
    }
    without = [c for c in machine.actuated_coordinates if c not in with_rotor]
    if without:
        named = ", ".join(without[:LISTED_JOINTS]) + (", …" if len(without) > LISTED_JOINTS else "")
        example = f"{{kind: inertia, on: {flow(without[0])}{value}}}"
        lines.append(
            f"    # no gear, transmission or armature is known of {named}; where a motor turns through a gear: - {example}"
        )
    return lines


def urdf_transmissions(file: Path) -> tuple[str, ...]:
    """Joints that a ``<transmission>`` of a URDF names, also one inside ``<ros2_control>``, in the order of the file."""
    root = parse_xml(bytes_of(file), file.name)
    inside = (part for node in root.walk() if node.tag == "transmission" for part in node.walk() if part.tag == "joint")
    return tuple(dict.fromkeys(name for part in inside if (name := part.attributes.get("name", "").strip())))


def motor_combinations(transmission: Transmission) -> dict[str, dict[str, float]]:
    """Motor → the joints it turns with, as multiples of the one that it turns with most: rows of T⁻¹ without their ratios."""
    out = {}
    for motor, row in zip(transmission.motors, np.linalg.inv(transmission.matrix), strict=True):
        shares = np.round(row / row[np.argmax(np.abs(row))], ROUNDED_DECIMALS)
        out[motor] = {c: float(a) for c, a in zip(transmission.joints, shares, strict=True) if a != 0.0}
    return out


def _known(model: Path, machine: Machine) -> list[tuple[dict[str, float], str]]:
    """Combinations of coordinates that a motor turns with, and where that is stated."""
    found: list[tuple[dict[str, float], str]] = []
    if machine.transmission is not None:
        found += [(on, f"'{m}' of the transmission") for m, on in motor_combinations(machine.transmission).items()]
    coupled = {c for on, _ in found for c in on}
    if model.suffix.lower() == ".urdf":
        found += [({c: 1.0}, "the file has a transmission") for c in urdf_transmissions(model) if c not in coupled]
    return [(on, why) for on, why in found if set(on) <= set(machine.coordinates)]


def _direction(on: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    """A combination without its size and sign, to compare two of them."""
    largest = max(on.values(), key=abs)
    return tuple(sorted((c, round(a / largest, ROUNDED_DECIMALS)) for c, a in on.items() if a != 0.0))


def _combination(on: Mapping[str, float]) -> str:
    return "{" + ", ".join(f"{flow(c)}: {a:.12g}" for c, a in on.items()) + "}"
