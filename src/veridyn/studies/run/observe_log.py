"""The log of an observed machine as its study file names it: clock, gaps, columns and units checked before a filter sees it.

Some channels are derived from columns: positions from places on the Earth, wheel angles from counts of holes. Channels beside an output
keep their names: "<sensor>.available" and "<output>.available" mute readings, "<output>.sigma" is their noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError, Fault
from veridyn.files.geodesy import GeoOrigin, local_position
from veridyn.model.experiment import Channel, Experiment
from veridyn.observe.filters.stepping import LONGEST_STEP_S
from veridyn.observe.machine import MachineSystem
from veridyn.observe.measurements import AVAILABLE, OWN_DEVIATION, clock_faults
from veridyn.signals.findings import Finding
from veridyn.signals.pulses import find_false_counts, readings_of_counts
from veridyn.studies.config.log import ColumnSettings
from veridyn.studies.config.observe import GeodeticSettings, ObservedLogSettings, ObserveFile
from veridyn.studies.config.study import Loaded
from veridyn.studies.run.recordings import single_log

GEODETIC = ("latitude", "longitude", "height")
LOCAL = {"x": "east", "y": "north", "z": "up"}
PAUSE_STEPS = 10.0  # times the usual step: a clock that jumps
MOST_STEPS = 1e6  # of the integration between two readings


def beside(name: str, outputs: tuple[str, ...]) -> bool:
    """Whether a column belongs to an output: its availability, that of its sensor, or its deviation."""
    if name.endswith(OWN_DEVIATION):
        return name.removesuffix(OWN_DEVIATION) in outputs
    sensors = {o.rpartition(".")[0] for o in outputs if "." in o}
    return name.endswith(AVAILABLE) and name.removesuffix(AVAILABLE) in {*outputs, *sensors}


def derived_faults(loaded: Loaded[ObserveFile], outputs: tuple[str, ...]) -> list[Fault]:
    """What is wrong with the sections pulses and geodetic of a log, by line."""
    s = loaded.study.log
    faults = [
        loaded.fault(
            ("log", "pulses", name), f"'{name}' has no column of counts.", "an output of a sensor with a column"
        )
        for name in s.pulses
        if name not in s.columns or name not in outputs
    ]
    for name in s.geodetic:
        own = [o for o in outputs if o.rpartition(".")[0] == name]
        if not own:
            what = f"'{name}' is no sensor with several outputs."
            faults.append(loaded.fault(("log", "geodetic", name), what, "a sensor of kind position"))
        faults += [
            loaded.fault(
                ("log", "columns", o), "it is given twice: the sensor has places on the Earth.", "log.geodetic alone"
            )
            for o in own
            if o in s.columns
        ]
    return faults


def with_places(s: ObservedLogSettings) -> ObservedLogSettings:
    """The settings of the log with the columns of places on the Earth among the others."""
    more: dict[str, ColumnSettings] = {}
    for name, places in s.geodetic.items():
        given = ((part, getattr(places, part)) for part in GEODETIC)
        more |= {f"{name}.{part}": column for part, column in given if column is not None}
    return s.model_copy(update={"columns": {**s.columns, **more}}) if more else s


def derived(loaded: Loaded[ObserveFile], read: Experiment) -> tuple[Experiment, tuple[Finding, ...]]:
    """The log with the outputs that its columns stand for, and false counts that were found."""
    s, channels = loaded.study.log, dict(read.channels)
    for name, how in s.geodetic.items():
        try:
            made = _positions(read, name, how)
        except DataError as error:
            at = ("log", "geodetic", name)
            raise loaded.error([loaded.fault(at, f.what, f.expected, f.found, f.hint) for f in error.faults]) from error
        channels = {n: c for n, c in channels.items() if n not in {f"{name}.{part}" for part in GEODETIC}} | made
    if not s.pulses:
        return Experiment(channels, read.name, read.notes), ()
    try:
        made, findings = _wheel_angles(read, s)
    except DataError as error:
        faults = [
            loaded.fault(("log", "pulses"), f.what, f.expected, f"{f.where} {f.found}", f.hint) for f in error.faults
        ]
        raise loaded.error(faults) from error
    return Experiment(channels | made, read.name, read.notes), findings


def _positions(read: Experiment, name: str, how: GeodeticSettings) -> dict[str, Channel]:
    """The outputs x, y and z of a sensor, in metres east, north and up."""
    origin = None if how.origin is None else GeoOrigin.in_degrees(*how.origin)
    latitude = read[f"{name}.latitude"]
    if f"{name}.height" not in read:
        level = 0.0 if origin is None else origin.height
        read = read.replacing(Channel(f"{name}.height", latitude.t, np.full(len(latitude), level), "m"))
    local = local_position(read, name, name, origin)
    return {
        f"{name}.{axis}": Channel(f"{name}.{axis}", latitude.t, local[f"{name}.{word}"].values, "m")
        for axis, word in LOCAL.items()
    }


def _wheel_angles(read: Experiment, s: ObservedLogSettings) -> tuple[dict[str, Channel], tuple[Finding, ...]]:
    """Readings at edges with their noise; counts at standstill are muted where other wheels tell."""
    names = tuple(s.pulses)
    read = read.replacing(*(_without_gaps(read[name]) for name in names)) if s.empty == "none" else read
    found = find_false_counts(read, names) if len(names) > 1 else None
    made: dict[str, Channel] = {}
    for name, how in s.pulses.items():
        wheel = how.settings()
        false = None if found is None or not found.false[name].any() else found.false[name]
        made |= {c.name: c for c in readings_of_counts(read[name], wheel, name, false=false)}
        if not len(made[name]):
            raise DataError(
                "the wheel passes fewer than two edges.", where=f"'{name}'", hint="List the sensor under without."
            )
    return made, () if found is None else tuple(found.findings)


def _without_gaps(channel: Channel) -> Channel:
    """A channel without its empty cells."""
    there = np.isfinite(channel.values)
    return Channel(channel.name, channel.t[there], channel.values[there], channel.unit)


def observed_log(loaded: Loaded[ObserveFile], system: MachineSystem, file: Path) -> tuple[Experiment, tuple[str, ...]]:
    """The log from start to end, its clock and its units checked, and false counts that were found; gaps are left to the filter."""
    s = loaded.study.log
    try:
        read = single_log(loaded, with_places(s), file)
    except DataError as error:
        raise loaded.error([_of_column(loaded, fault, file) for fault in error.faults]) from error
    read = _counted_from(read, s.clock_zero)
    clock = next(iter(read.channels.values())).t
    faults = [
        loaded.fault(("log", "time"), f"{file.name}: {f.what}", f.expected, f.found) for f in clock_faults(clock, "")
    ]
    if faults:
        raise loaded.error(faults)
    _refuse_endless(loaded, clock, file)
    read, findings = derived(loaded, read)
    units = dict(zip(system.table.names, system.table.units, strict=True))
    units |= {f"{name}{OWN_DEVIATION}": unit for name, unit in units.items()}
    units |= {name: input_unit(system, name) for name in system.inputs}
    low, high = (-np.inf if s.start is None else s.start), (np.inf if s.end is None else s.end)
    inside = (clock >= low) & (clock <= high)
    if inside.sum() < 2:
        found = f"{clock[0]:g} s to {clock[-1]:g} s in {file.name}"
        raise loaded.error(loaded.fault(("log",), "fewer than two samples lie between start and end.", found=found))
    channels, span = dict[str, Channel](), float(clock[inside][-1] - clock[inside][0])
    for name, k in zip(system.table.names, system.table.owner, strict=True):
        if (delay := system.table.sensors[k].delay) >= span:
            what = "its sensor is later than the log is long."
            faults.append(loaded.fault(("log", "columns", name), what, f"a delay below {span:.3g} s", f"{delay:g} s"))
    for name, c in read.channels.items():
        at, here = ("log", "columns", name), (c.t >= low) & (c.t <= high)
        finite = np.isfinite(read[name.removesuffix(OWN_DEVIATION)].values[here])
        if name.endswith(AVAILABLE):
            channels[name] = Channel(name, c.t[here], c.values[here], c.unit)
            continue
        if units[name] and c.unit != units[name]:
            faults.append(loaded.fault(at, "its unit is not that of the mechanism.", units[name], c.unit))
        if name in system.inputs and not finite.all():
            first = float(c.t[here][int(np.argmin(finite))])
            what = f"a known force has no gaps, and this one is not a number at {first:.6g} s."
            faults.append(loaded.fault(at, what, found=f"{int((~finite).sum())} such samples in {file.name}"))
        elif not finite.any():
            faults.append(
                loaded.fault(at, f"its column in {file.name} holds no number.", hint="List the sensor under without.")
            )
        kept = finite if s.empty == "none" and name not in system.inputs else slice(None)
        channels[name] = Channel(name, c.t[here][kept], c.values[here][kept], c.unit)
    if faults:
        raise loaded.error(faults)
    return Experiment(channels, read.name), tuple(f.message for f in findings)


def _counted_from(read: Experiment, zero: float | Literal["first"]) -> Experiment:
    """The log with times that count from `zero`, as clocks that count from 1970 need for pictures that can be read."""
    since = min(float(c.t[0]) for c in read.channels.values() if len(c)) if zero == "first" else zero
    if since == 0.0:
        return read
    return read.replacing(*(Channel(name, c.t - since, c.values, c.unit) for name, c in read.channels.items()))


def input_unit(system: MachineSystem, name: str) -> str:
    """The unit of a channel of what acts; empty for a signal, which has the unit that its gain is for."""
    model: Any = system.model
    head, _, rest = name.partition(".")
    if head in ("q", "qd", "qdd") and rest in model.prescribed:
        return model.unit_of(rest) + {"q": "", "qd": "/s", "qdd": "/s^2"}[head]
    if system.formulation != "tree":
        return model.force_unit(name)
    if any(name in load.channels for load in model.tree.loads):
        return model.varying_unit(name)
    if head == "wrench":
        return "N" if rest.rpartition(".")[2].startswith("f") else "N*m"
    return "" if head == "signal" else model.force_unit(rest)


def _of_column(loaded: Loaded[ObserveFile], fault: Fault, file: Path) -> Fault:
    """A fault of a column at the line where the study names it."""
    column = fault.at[1] if fault.at[:1] == ("column",) else None
    if column not in loaded.study.log.columns:
        return fault
    at, expected = ("log", "columns", str(column)), fault.expected
    if fault.at[2:] == ("unit",):
        expected = f"{column}: COLUMN [unit], or a unit in the header of {file.name}"
    return loaded.fault(at, fault.what, expected, fault.found, fault.hint)


def _refuse_endless(loaded: Loaded[ObserveFile], clock: Array, file: Path) -> None:
    """A pause, or a step of the integration, with which a run would not end."""
    step, steps = loaded.study.filter.step or LONGEST_STEP_S, np.diff(clock)
    longest = float(steps.max(initial=0.0))
    if longest <= MOST_STEPS * step:
        return
    usual, k = float(np.median(steps)), int(np.argmax(steps))
    if longest > PAUSE_STEPS * usual:
        expected = f"at most {MOST_STEPS * step:.3g} s between two samples, a million steps of the integration"
        found = f"{clock[k]:.6g} s then {clock[k + 1]:.6g} s at sample {k + 1}"
        hint = "Two recordings in one file, or a broken stamp? Choose one part by log.start and log.end."
        fault = loaded.fault(("log", "time"), f"{file.name}: the clock jumps.", expected, found, hint)
    else:
        what = "the integration would take more than a million steps from sample to sample."
        expected = f"a step not far below {usual:.3g} s, that of the log"
        fault = loaded.fault(("filter", "step"), what, expected, f"{step:g} s", "Is the unit of log.time right?")
    raise loaded.error(fault)


@contextmanager
def withheld_placed(loaded: Loaded[Any]) -> Iterator[None]:
    """Faults of the section withheld, raised meanwhile, at their lines."""
    try:
        yield
    except DataError as error:
        if any(f.at[:1] != ("withheld",) for f in error.faults):
            raise
        raise loaded.error([loaded.fault(f.at, f.what, f.expected, f.found, f.hint) for f in error.faults]) from error
