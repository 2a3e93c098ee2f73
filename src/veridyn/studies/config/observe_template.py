"""A first study file of kind observe from a machine by points and a log: what can be guessed is guessed, and marked as a guess.

Columns are matched to a sensor's outputs by name (the sensor's, or that of the coordinate it is on), by what they measure, and where one of
each is left, by that. A unit is the header's, or the one in which the column scatters as the sensor's noise says it does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, VeridynError
from veridyn.files.log.survey import survey
from veridyn.files.units import to_si
from veridyn.mechanics.natural.measurement import Readout, readout
from veridyn.mechanics.natural.of_machine import mechanism_of
from veridyn.mechanics.natural.position import independent, position
from veridyn.mechanics.natural.system import NaturalSystem, natural_system
from veridyn.model.load import Drive
from veridyn.model.machine import Machine
from veridyn.model.sensor import Sensor
from veridyn.studies.config.clock_guess import time_column, time_lines, time_unit
from veridyn.studies.config.guessing import Guess
from veridyn.studies.config.template import beside, check_missing, column_text, wrapped
from veridyn.studies.config.text import flow

Array = NDArray[np.float64]
# Words that say what a column measures, by the unit of a sensor's output; the first that fits.
WORDS: Mapping[str, tuple[str, ...]] = {
    "rad": ("angle", "tilt", "phi", "theta", "encoder", "pos", "position", "heading", "yaw", "pitch", "roll"),
    "m": ("position", "pos", "travel", "distance", "way", "stroke", "place", "height", "encoder"),
    "rad/s": ("gyro", "gyroscope", "omega", "rate", "w", "speed", "velocity"),
    "m/s": ("speed", "velocity", "vel", "v", "rate"),
    "m/s^2": ("acc", "accel", "accelerometer", "acceleration", "a", "imu"),
}
UNITS: Mapping[str, tuple[str, ...]] = {
    "rad": ("rad", "deg", "mrad"),
    "m": ("m", "mm", "cm"),
    "rad/s": ("rad/s", "deg/s"),
    "m/s": ("m/s", "mm/s", "km/h"),
    "m/s^2": ("m/s^2", "mm/s^2"),
}
SHOWN = 3  # points that the file reads a position of
SETTLE = 0.05  # of the log


@dataclass(frozen=True)
class _Output:
    """One output of a sensor: its name, unit and deviation, the words it may be called, and its axis."""

    name: str
    unit: str
    sigma: float
    called: tuple[str, ...]
    axis: str


def observe_template(file: Path, machine: Machine, log: Path, study: Path, rate: float | None = None) -> str:
    """The text of a study file beside which machine and log are found; comments say what was guessed and what may be changed."""
    seen = survey(log)
    time = "" if seen.clocks or rate is not None else time_column(seen.columns)
    left = {n: x for n, x in seen.columns.items() if n != time}
    system = natural_system(machine)
    table = readout(system)
    guesses = _guesses(_outputs(table), left, seen.units)
    loads = _loads(machine, {n: x for n, x in left.items() if n not in {g.column for g in guesses}}, seen.units)
    found = {g.channel for g in guesses}
    missing = [i.name for i in machine.sensors if not found.issuperset(i.channels(machine.dimension))]
    whole = [g for g in guesses if _sensor(machine, g.channel).name not in missing]
    without = missing if whole else []
    lines = [
        f"# An observer of '{machine.name}'. Written by veridyn new; look at every line marked 'guessed'.",
        f"# Run it with: veridyn observe {study.name}. Every setting with its default: veridyn observe {study.name} --show",
        "veridyn: 1",
        "kind: observe",
        f"name: {re.sub(r'[^A-Za-z0-9_.-]+', '-', machine.name).strip('-.') or 'observation'}",
        f"model: {{file: {flow(beside(file, study))}}}",
    ]
    if without:
        lines.append(f"without: {flow(without)} # guessed: sensors of the mechanism that have no column here")
    lines += [
        "",
        "log:",
        f"  file: {flow(beside(log, study))}",
        *([] if seen.clocks else time_lines(time, seen.columns, seen.units, seen.has_header, seen.decimal, rate)),
    ]
    shown = [*whole, *loads]
    check_missing({g.column: left[g.column] for g in shown}, log.name, together=False)
    lines.append(
        "  columns: # output of a sensor, or a force that is known: column [unit]" if shown else "  columns: {}"
    )
    lines += [f"    {flow(g.channel)}: {column_text(g)}" + (f" # {g.why}" if g.why else "") for g in shown]
    if not whole:
        lines += wrapped("    # not found, and needed: ", list(table.names))
    unused = [n for n in left if n not in {g.column for g in shown}]
    if unused:
        lines += wrapped("    # columns not used: ", unused)
    first = _first(machine, whole, left)
    names = independent(system, position(system), tuple(first))
    lines += _filter(machine, {g.channel for g in loads}, names)
    lines += _start(system, names, first)
    lines += _virtual(machine)
    clock = next(iter(seen.clocks.values()), seen.columns.get(time, np.zeros(0)))
    span = float(np.nanmax(clock) - np.nanmin(clock)) if len(clock) else 0.0
    settle = SETTLE * to_si(span, time_unit(time, seen.columns, seen.units)[0])[0]
    if rate is not None:
        settle = SETTLE * max(len(x) for x in seen.columns.values()) / rate
    lines += [
        "",
        f"settle: {settle:.3g} # s at the beginning that the figures leave out: guessed, {SETTLE:.0%} of the log",
        "# accept: {nis: [0.8, 1.2], share_white: 1} # exit code 1 where a limit is missed",
    ]
    return "\n".join(lines) + "\n"


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
    """The surest first: a column is given away once."""
    found: dict[str, tuple[str, str]] = {}
    free = [c for c in columns if _fits_any(units.get(c, ""), outputs)]
    for test in (_is_it, _has_its_name, _has_its_coordinate, _measures_it):
        for o in outputs:
            if o.name in found:
                continue
            fits = [(c, why) for c in free if _same_kind(units.get(c, ""), o.unit) and (why := test(c, o)) is not None]
            rivals = [p for p in outputs if p.name not in found and p is not o and test is _measures_it]
            rivals = [p for p in rivals if any(test(c, p) is not None for c, _ in fits)]
            if len(fits) == 1 and not rivals:
                found[o.name] = fits[0]
                free.remove(fits[0][0])
    open_ = [o for o in outputs if o.name not in found]
    if len(open_) == len(free) == 1 and _same_kind(units.get(free[0], ""), open_[0].unit):
        found[open_[0].name] = free[0], "guessed: the only one left"
    made = []
    for o in outputs:
        if o.name in found:
            column, why = found[o.name]
            unit, because = _unit(o, columns[column], units.get(column, ""))
            made.append(Guess(o.name, column, unit, "; ".join(w for w in (why, because) if w)))
    return made


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
    fits = any(w in WORDS[o.unit] for w in _words(column)) and _axis_fits(column, o)
    return "guessed by what it measures" if o.unit in WORDS and fits else None


def _same_kind(given: str, unit: str) -> bool:
    """Whether a header's unit can be that of an output; one without a unit may be anything."""
    if not given:
        return True
    try:
        return to_si(1.0, given)[1] == unit
    except DataError:
        return False


def _fits_any(given: str, outputs: Sequence[_Output]) -> bool:
    return any(_same_kind(given, o.unit) for o in outputs)


def _unit(o: _Output, x: Array, given: str) -> tuple[str, str]:
    """The header's, or the one in which the scatter of the column from sample to sample is nearest the sensor's."""
    if given:
        return given, ""
    choices = UNITS.get(o.unit, (o.unit,))
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
            if load.name.lower() in _words(c) and _same_kind(units.get(c, ""), unit):
                why = "guessed: a force that is known" + ("" if units.get(c) else "; unit guessed")
                found.append(Guess(load.name, c, units.get(c) or unit, why))
                break
    return found


def _filter(machine: Machine, known: set[str], names: Sequence[str]) -> list[str]:
    drives = [f.name for f in mechanism_of(machine).loads if isinstance(f, Drive) and f.name not in known]
    unknown = (
        f"  unknown: {flow(drives)} # guessed: motors whose force the log does not tell; estimated with the state"
        if drives
        else "  # unknown: [] # loads or coordinates whose force is estimated; one on each independent coordinate if left out"
    )
    return [
        "",
        "filter:",
        "  name: ekf # smoother uses the whole log, for every instant",
        unknown,
        f"  independents: {flow(list(names))} # guessed: the coordinates that the states are made of",
        "  gate: 0.9999 # guessed: an honest reading passes with this probability",
        "  # frozen_after: 10 # repeats of one number that mean a sensor hangs",
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
        "virtual: # what nobody measured; kinds: position, velocity, acceleration, gyroscope, spring, reaction, …",
    ]
    lines += [f"  {flow(f'at_{p}')}: {{kind: position, on: {flow(p)}}}" for p in moving[:SHOWN]]
    if not moving:
        lines[-1] = "virtual: {} # what nobody measured"
    shared = {p: b.name for b in parts.bodies for p in b.points if sum(p in o.points for o in parts.bodies) > 1}
    lines += [f"  # force_{p}: {{kind: reaction, on: [{flow(b)}, {flow(p)}]}}" for p, b in list(shared.items())[:SHOWN]]
    lines += [f"  # {j.name}: {{kind: reaction, on: {flow(j.name)}}}" for j in parts.joints[:SHOWN]]
    return lines
