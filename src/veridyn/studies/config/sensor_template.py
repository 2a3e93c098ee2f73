"""First study files from a log of sensors: an observer of a machine by points, and a car in formulation single_track.

What can be guessed is guessed, and marked as a guess. Columns are matched to a sensor's outputs by name (the sensor's, or that of the
coordinate it is on), by what they measure, and where one of each is left, by that. A unit is the header's, or the one in which the column
scatters as the sensor's noise says it does.

Columns of a drive are matched by name. A unit is the header's, or the usual one of the channel in whose range the numbers lie. Signs are
not guessed: the checks of the study find a steering or sides that are the wrong way round.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import FileError, VeridynError
from veridyn.files.log.load import Survey, survey
from veridyn.files.units import to_si
from veridyn.mechanics.natural.channels import Readout, readout
from veridyn.mechanics.natural.description.of_machine import mechanism_of
from veridyn.mechanics.natural.equations.position import independent, position
from veridyn.mechanics.natural.equations.system import NaturalSystem, natural_system
from veridyn.model.load import Drive
from veridyn.model.machine import Machine
from veridyn.model.sensor import Sensor
from veridyn.model.single_track import uncertain
from veridyn.observe.car.system import NEEDED
from veridyn.signals.drive import CHANNELS
from veridyn.studies.config.guessing import Guess, clock_of, table_of, time_unit, unit_fits
from veridyn.studies.config.several_logs import refuse_other_columns
from veridyn.studies.config.study_lines import as_file, beside, head_lines, log_lines, time_lines
from veridyn.studies.config.template import check_missing
from veridyn.studies.config.text import flow

# Words that say what a column measures, by the unit of a sensor's output; the first that fits.
MEASURED_WORDS: Mapping[str, tuple[str, ...]] = {
    "rad": ("angle", "tilt", "phi", "theta", "encoder", "pos", "position", "heading", "yaw", "pitch", "roll"),
    "m": ("position", "pos", "travel", "distance", "way", "stroke", "place", "height", "encoder"),
    "rad/s": ("gyro", "gyroscope", "omega", "rate", "w", "speed", "velocity"),
    "m/s": ("speed", "velocity", "vel", "v", "rate"),
    "m/s^2": ("acc", "accel", "accelerometer", "acceleration", "a", "imu"),
}
USUAL_UNITS: Mapping[str, tuple[str, ...]] = {
    "rad": ("rad", "deg", "mrad"),
    "m": ("m", "mm", "cm"),
    "rad/s": ("rad/s", "deg/s"),
    "m/s": ("m/s", "mm/s", "km/h"),
    "m/s^2": ("m/s^2", "mm/s^2"),
}
SHOWN_POINTS = 3  # points that the file reads a position of
SETTLE_SHARE = 0.05  # of the log
Kind = Literal["identify", "observe"]
WHEELS = {
    "fl": ("fl", "front_left", "left_front", "lf"),
    "fr": ("fr", "front_right", "right_front", "rf"),
    "rl": ("rl", "rear_left", "left_rear", "lr"),
    "rr": ("rr", "rear_right", "right_rear"),
}
# What a channel may be called beside its own name, in words joined by underscores; parts of a wheel follow.
OTHER_NAMES: Mapping[str, tuple[str, ...]] = {
    "speed": ("vx", "v", "velocity", "vehicle_speed", "car_speed", "longitudinal_speed", "longitudinal_velocity"),
    "steer": ("steering", "delta", "steering_angle", "steer_angle", "steering_wheel_angle", "swa", "road_wheel_angle"),
    "ax": ("a_x", "acc_x", "accx", "longitudinal_acceleration", "long_acc"),
    "ay": ("a_y", "acc_y", "accy", "lateral_acceleration", "lat_acc"),
    "yaw_rate": ("yawrate", "gyro_z", "gyroz", "omega_z", "wz", "r", "yaw_velocity"),
    "roll": ("roll_angle", "phi"),
    "sideslip": ("beta", "slip_angle", "sideslip_angle", "side_slip", "side_slip_angle"),
    "latitude": ("lat", "gps_latitude", "gps_lat"),
    "longitude": ("lon", "long", "lng", "gps_longitude", "gps_lon"),
    "heading": ("yaw", "psi", "yaw_angle", "course"),
    "throttle": ("throttle_position", "accelerator", "gas"),
    "brake": ("brake_pressure", "brake_pedal"),
    **{f"wheel_{w}": tuple(f"{p}_{n}" for n in names for p in ("wheel_speed", "wheel")) for w, names in WHEELS.items()},
    **{
        f"travel_{w}": tuple(f"{p}_{n}" for n in names for p in ("suspension", "damper")) for w, names in WHEELS.items()
    },
}
# Units that a channel without one may have: each with the largest size that is usual in it.
USUAL_SIZES: Mapping[str, tuple[tuple[str, float], ...]] = {
    "m/s": (("m/s", 90.0), ("km/h", np.inf)),
    "rad": (("rad", 13.0), ("deg", np.inf)),  # two turns of a steering wheel
    "rad/s": (("rad/s", 4.0), ("deg/s", np.inf)),
    "m/s^2": (("m/s^2", np.inf),),
    "m": (("m", np.inf),),
    "": (("1", np.inf),),
}


@dataclass(frozen=True)
class _Output:
    """One output of a sensor, or a channel: its name, unit and deviation, the words it may be called, and its axis."""

    name: str
    unit: str
    sigma: float
    called: tuple[str, ...]
    axis: str


_Test = Callable[[str, _Output], str | None]  # of a column and an output: what speaks for them to belong together


def observe_template(file: Path, machine: Machine, log: Path, study: Path, rate: float | None = None) -> str:
    """The text of a study file beside which machine and log are found; comments say what was guessed and what may be changed."""
    seen = survey(log)
    time, left = clock_of(seen, rate), table_of(seen, rate).columns
    system = natural_system(machine)
    table = readout(system)
    guesses = _guesses(_outputs(table), left, seen.units)
    loads = _loads(machine, {n: x for n, x in left.items() if n not in {g.column for g in guesses}}, seen.units)
    found = {g.channel for g in guesses}
    missing = [i.name for i in machine.sensors if not found.issuperset(i.channels(machine.dimension))]
    whole = [g for g in guesses if _sensor(machine, g.channel).name not in missing]
    without = missing if whole else []
    lines = head_lines("An observer of '{}'", "observe", machine, study, file, otherwise="observation")
    if without:
        lines.append(f"without: {flow(without)} # guessed: sensors of the mechanism that have no column here")
    shown = [*whole, *loads]
    check_missing({g.column: left[g.column] for g in shown}, log.name, together=False)
    lines += log_lines(
        [f"  file: {flow(beside(log, study))}", *time_lines(seen, time, rate)],
        shown,
        () if whole else table.names,
        left=[n for n in left if n not in {g.column for g in shown}],
        of="output of a sensor, or a force that is known: column [unit]",
    )
    first = _first(machine, whole, left)
    names = independent(system, position(system), tuple(first))
    lines += _filter(machine, {g.channel for g in loads}, names)
    lines += _start(system, names, first)
    lines += _virtual(machine)
    clock = next(iter(seen.clocks.values()), seen.columns.get(time, np.zeros(0)))
    span = float(np.nanmax(clock) - np.nanmin(clock)) if len(clock) else 0.0
    settle = SETTLE_SHARE * to_si(span, time_unit(time, seen.columns, seen.units)[0])[0]
    if rate is not None:
        settle = SETTLE_SHARE * max(len(x) for x in seen.columns.values()) / rate
    lines += [
        "",
        f"settle: {settle:.3g} # s at the beginning that the figures leave out: guessed, {100.0 * SETTLE_SHARE:.0f} % of the log",
        "# accept: {nis: [0.8, 1.2], share_white: 1} # exit code 1 where a limit is missed",
    ]
    return as_file(lines)


def _sensor(machine: Machine, channel: str) -> Sensor:
    return next(i for i in machine.sensors if channel in i.channels(machine.dimension))


def _outputs(table: Readout) -> list[_Output]:
    out = []
    for name, unit, k in zip(table.names, table.units, table.owner, strict=True):
        i = table.sensors[k]
        axis = name.removeprefix(i.name).removeprefix(".")
        on = i.on if isinstance(i.on, str) else i.on.body
        out.append(_Output(name, unit, float(np.sqrt(i.variance)), (i.name.lower(), on.lower()), axis))
    return out


def _guesses(outputs: Sequence[_Output], columns: Mapping[str, Array], units: Mapping[str, str]) -> list[Guess]:
    """The outputs of sensors with their columns; where one of each is left, they belong together."""
    free = [c for c in columns if any(unit_fits(units.get(c, ""), o.unit) for o in outputs)]
    found = _matched(outputs, free, units, (_is_it, _has_its_name, _has_its_coordinate), _measures_it)
    open_ = [o for o in outputs if o.name not in found]
    if len(open_) == len(free) == 1 and unit_fits(units.get(free[0], ""), open_[0].unit):
        found[open_[0].name] = free[0], "guessed: the only one left"
    made = [(o, *found[o.name]) for o in outputs if o.name in found]
    return [Guess.of(o.name, column, why, _unit(o, columns[column], units.get(column, ""))) for o, column, why in made]


def _matched(
    outputs: Sequence[_Output],
    free: list[str],
    units: Mapping[str, str],
    tests: Sequence[_Test],
    last: _Test | None = None,
) -> dict[str, tuple[str, str]]:
    """Name of an output → its column of those that are `free`, and why; by the surest test first, where one column alone passes it.

    A column is given away once. By the `last` test it is none's where it could be that of another output too.
    """
    found: dict[str, tuple[str, str]] = {}
    for test in (*tests, *([last] if last is not None else [])):
        for o in (o for o in outputs if o.name not in found):
            fits = [(c, why) for c in free if unit_fits(units.get(c, ""), o.unit) and (why := test(c, o)) is not None]
            others = [p for p in outputs if test is last and p is not o and p.name not in found]
            if len(fits) == 1 and all(test(fits[0][0], p) is None for p in others):
                found[o.name] = fits[0]
                free.remove(fits[0][0])
    return found


def _words(name: str) -> list[str]:
    return [w for w in re.split(r"[^a-z0-9]+", name.lower()) if w]


def _axis_fits(column: str, o: _Output) -> bool:
    return not o.axis or o.axis in _words(column) or column.lower().endswith(o.axis)


def _is_it(column: str, o: _Output) -> str | None:
    return "" if _words(column) == _words(o.name) else None


def _has_its_name(column: str, o: _Output) -> str | None:
    return "guessed by the sensor's name" if o.called[0] in column.lower() and _axis_fits(column, o) else None


def _has_its_coordinate(column: str, o: _Output) -> str | None:
    fits = o.called[1] in _words(column) and _axis_fits(column, o)
    return "guessed by what the sensor is on" if fits else None


def _measures_it(column: str, o: _Output) -> str | None:
    fits = any(w in MEASURED_WORDS[o.unit] for w in _words(column)) and _axis_fits(column, o)
    return "guessed by what it measures" if o.unit in MEASURED_WORDS and fits else None


def _unit(o: _Output, x: Array, given: str) -> tuple[str, str]:
    """The header's, or the one in which the scatter of the column from sample to sample is nearest the sensor's."""
    if given:
        return given, ""
    choices = USUAL_UNITS.get(o.unit, (o.unit,))
    finite = x[np.isfinite(x)]
    scatter = float(np.median(np.abs(np.diff(finite, 2)))) / (0.6745 * np.sqrt(6.0)) if len(finite) > 20 else 0.0
    if scatter == 0.0 or len(choices) == 1:
        return choices[0], "unit guessed"
    best = min(choices, key=lambda u: abs(np.log(to_si(scatter, u)[0] / o.sigma)))
    return best, f"unit guessed: it scatters by {scatter:.2g}, the sensor by {o.sigma:.2g} {o.unit}"


def _loads(machine: Machine, columns: Mapping[str, Array], units: Mapping[str, str]) -> list[Guess]:
    """Forces that the log knows: columns with the name of a load, or of its coordinate and a word for a force."""
    found, parts = [], mechanism_of(machine)
    for load in parts.loads:
        unit = parts.force_unit(load.name)
        for c in columns:
            if load.name.lower() in _words(c) and unit_fits(units.get(c, ""), unit):
                why = "guessed: a force that is known" + ("" if units.get(c) else "; unit guessed")
                found.append(Guess(load.name, c, units.get(c) or unit, why))
                break
    return found


def _filter(machine: Machine, known: set[str], names: Sequence[str]) -> list[str]:
    drives = [f.name for f in mechanism_of(machine).loads if isinstance(f, Drive) and f.name not in known]
    unknown = (
        f"  unknown: {flow(drives)} # guessed: motors whose force the log lacks; estimated with the state"
        if drives
        else "  # unknown: [] # loads or coordinates whose force is estimated; one on each independent coordinate if left out"
    )
    return [
        "",
        "filter:",
        "  name: ekf # smoother uses the whole log, for every instant",
        unknown,
        f"  independents: {flow(list(names))} # guessed: the coordinates that the states are made of",
        "  gate: 0.9999 # guessed: a good reading passes with this probability",
        "  # frozen_after: auto # a sensor that hangs is not used, a joint that dwells is; a number: after so many repeats",
    ]


def _first(machine: Machine, guesses: Sequence[Guess], columns: Mapping[str, Array]) -> dict[str, tuple[float, float]]:
    """Coordinate that a sensor reads → its first reading, and three deviations of it."""
    first = {}
    for g in guesses:
        i = _sensor(machine, g.channel)
        x = columns[g.column][np.isfinite(columns[g.column])]
        if i.kind == "coordinate" and isinstance(i.on, str) and len(x):
            deviation = 3.0 * float(np.sqrt(i.variance + i.bias_sigma**2))
            first[i.on] = to_si(float(x[0]), g.unit)[0] - i.bias, deviation
    return first


def _start(system: NaturalSystem, names: Sequence[str], first: Mapping[str, tuple[float, float]]) -> list[str]:
    """The pose that the first readings tell, if the mechanism has it, and how far it is trusted."""
    held = {n: float(f"{first[n][0]:.4g}") for n in names if n in first}
    try:
        position(system, held)
    except VeridynError:
        held = {}
    sizes = {n: float(f"{first[n][1]:.2g}") if n in held else 1.0 for n in names}
    lines = [
        "",
        "process_noise: # without a density here (force, acceleration, position) the log chooses one",
        f"  start: {flow(sizes)} # guessed: rad or m, how far the start may be off",
        "  start_rate: 1.0 # guessed: rad/s or m/s",
    ]
    if held:
        lines += ["start:", f"  coordinates: {flow(held)} # guessed: the first readings"]
    return lines


def _virtual(machine: Machine) -> list[str]:
    """Positions of moving points, and reactions as comments to choose from."""
    parts = mechanism_of(machine)
    moving = [p.name for p in parts.points if not p.fixed]
    lines = [
        "",
        "virtual: # unmeasured quantities; kinds: position, velocity, acceleration, gyroscope, spring, reaction, …",
    ]
    lines += [f"  {flow(f'at_{p}')}: {{kind: position, on: {flow(p)}}}" for p in moving[:SHOWN_POINTS]]
    if not moving:
        lines[-1] = "virtual: {} # unmeasured quantities"
    shared = {p: b.name for b in parts.bodies for p in b.points if sum(p in o.points for o in parts.bodies) > 1}
    lines += [
        f"  # force_{p}: {{kind: reaction, on: [{flow(b)}, {flow(p)}]}}" for p, b in list(shared.items())[:SHOWN_POINTS]
    ]
    lines += [f"  # {j.name}: {{kind: reaction, on: {flow(j.name)}}}" for j in parts.joints[:SHOWN_POINTS]]
    return lines


def car_template(file: Path, car: Machine, logs: list[Path], study: Path, kind: Kind | None = None) -> str:
    """The text of a study file beside which model and log are found; comments say what was guessed and what may be changed.

    `kind`: by default a car with uncertain parameters is identified, another is observed. Of two `logs` the second is judged by.
    """
    wanted = kind or ("identify" if uncertain(car) else "observe")
    every = [survey(log) for log in logs]
    if len(every) > (2 if wanted == "identify" else 1):
        what = (
            "a car is learnt from one drive and judged by another."
            if wanted == "identify"
            else "one drive is observed."
        )
        names, most = ", ".join(f.name for f in logs), "two files at most" if wanted == "identify" else "one file"
        hint = "Write a study of each; parts of one log stand under log.files."
        raise FileError(what, where="logs", expected=most, found=names, hint=hint, source=file.name)
    seen = every[0]
    time = clock_of(seen)
    found = _car_guesses(seen, time)
    refuse_other_columns(every, [g.column for g in found] + ([time] if time else []))
    has, left_out = {g.channel for g in found}, "all of it" if len(logs) > 1 else "its first 70 %"
    missing = [n for n in NEEDED if n not in has]
    sensors = [s.name for s in car.sensors]
    missing += [] if has & {*sensors} else [" or ".join(sensors)]
    left = [n for n in seen.columns if n != time and n not in {g.column for g in found}]
    lines = [
        *head_lines("A study of the car '{}'", wanted, car, study, file, otherwise="drive"),
        "  formulation: single_track",
        *log_lines(
            [
                f"  file: {flow(beside(logs[0], study))}",
                *time_lines(seen, time),
                "  # rate: 25 # Hz of the samples that are used; that of the log if left out",
            ],
            found,
            missing,
            left=left,
            of="channel: column [unit]; x forward, y left, z up, steering positive to the left",
        ),
        "",
        *(
            [f"validation: {flow(beside(logs[1], study))} # guessed: the second of the drives judges"]
            if len(logs) > 1
            else []
        ),
        f"# training: [0, 60] # s of the log that parameters are fitted to; {left_out} if left out"
        if wanted == "identify"
        else "# training: [0, 60] # s of the log that uncertain parameters are identified from first; not, if left out",
        "noise: # what the equations leave out; tuned: found with the parameters",
        "  tuned: [slip_error, bank, yaw]",
    ]
    if wanted == "observe":
        lines.append("virtual: [sideslip, front_force, rear_force] # unmeasured quantities")
    return as_file(lines)


def _car_guesses(seen: Survey, time: str) -> list[Guess]:
    """Channels with their columns: a name that is the channel's own first, then one that it may have."""
    outputs = [_Output(channel, unit, 0.0, OTHER_NAMES.get(channel, ()), "") for channel, unit in CHANNELS.items()]
    free = [n for n in seen.columns if n != time]
    found = _matched(outputs, free, seen.units, (_is_channel, _may_be_channel))
    made = [(o, *found[o.name]) for o in outputs if o.name in found]
    return [
        Guess.of(o.name, column, why, _car_unit(o.name, seen.columns[column], seen.units.get(column, "")))
        for o, column, why in made
    ]


def _is_channel(column: str, o: _Output) -> str | None:
    return "" if _joined_words(column) == o.name else None


def _may_be_channel(column: str, o: _Output) -> str | None:
    return "guessed by its name" if _joined_words(column) in o.called else None


def _joined_words(column: str) -> str:
    """The words of a column, in small letters, joined by underscores."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", column)
    return "_".join(w for w in re.split(r"[^a-z0-9]+", apart.lower()) if w)


def _car_unit(channel: str, x: Array, given: str) -> tuple[str, str]:
    if given:
        return given, ""
    if channel in ("latitude", "longitude"):
        return "deg", "unit guessed"
    finite = np.abs(x[np.isfinite(x)])
    most = float(np.quantile(finite, 0.99)) if len(finite) else 0.0
    unit = next(unit for unit, size in USUAL_SIZES[CHANNELS[channel]] if most <= size)
    return unit, f"unit guessed: its numbers go up to {most:.3g}"
