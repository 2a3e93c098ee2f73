"""The log of an observed machine as its study file names it: clock, gaps, columns and units checked before a filter sees it.

Some channels are derived from columns: positions from places on the Earth, wheel angles from counts of holes. Channels beside an output
keep their names: "<sensor>.available" and "<output>.available" mute readings, "<output>.sigma" is their noise.

Readings that a study withholds from its filter, to judge it by, are compared with their predictions and never used:

    ν = y − h(x̂),    σ² = h P hᵀ + r        x̂, P: what the filter knows without these readings

`rms_withheld_OUTPUT` is the rms of ν, and `share_inside_two_sigma_withheld_OUTPUT` the share of |ν| ≤ 2σ, 0.95 where the filter knows how
far it is off.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError, Fault, did_you_mean
from veridyn.files.geodesy import GeoOrigin, local_position
from veridyn.model.experiment import Channel, Experiment
from veridyn.observe.machine import MachineSystem
from veridyn.observe.measurements import AVAILABLE, OWN_DEVIATION, Measurements, Status, clock_faults
from veridyn.observe.result import Estimates
from veridyn.signals.clock_offset import offset_findings, sensor_clock_offsets
from veridyn.signals.findings import Finding
from veridyn.signals.pulses import find_false_counts, readings_of_counts
from veridyn.studies.config.log import ColumnSettings
from veridyn.studies.config.observe import GeodeticSettings, ObservedLogSettings, ObserveFile
from veridyn.studies.config.study import Loaded
from veridyn.studies.run.recordings import single_log

GEODETIC = ("latitude", "longitude", "height")
LOCAL = {"x": "east", "y": "north", "z": "up"}
PAUSE_STEPS = 10.0  # times the usual step: a pause of the log that is told
SHOWN_PAUSES = 3
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
    """The log from start to end, its clock and its units checked, and what was found in it; gaps are left to the filter."""
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
    log = Experiment(channels, read.name)
    free = system.model.free
    offsets = offset_findings(sensor_clock_offsets(system.table.sensors, log)) if free else ()
    return log, tuple(f.message for f in (*findings, *offsets))


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


def gaps(t: Array) -> list[str]:
    """Sentences about pauses of a clock: the model goes on alone, and its bands grow."""
    steps = np.diff(t)
    if not len(steps):
        return []
    usual = float(np.median(steps))
    found = [(float(t[k]), float(t[k + 1])) for k in np.flatnonzero(steps > PAUSE_STEPS * usual)]
    out = [
        f"the log pauses from {a:.6g} s to {b:.6g} s: the model goes on alone, and its bands grow."
        for a, b in found[:SHOWN_PAUSES]
    ]
    return out + ([f"the log has {len(found) - SHOWN_PAUSES} more such pauses."] if len(found) > SHOWN_PAUSES else [])


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
    step, steps = loaded.study.filter.step, np.diff(clock)
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


Spans = Mapping[str, Sequence[tuple[float, float]]]
TWO_SIGMA = 2.0


def withhold(
    loaded: Loaded[Any], readings: Measurements, owners: Sequence[str], delays: Sequence[float]
) -> Measurements:
    """The readings with those flagged that the study withholds. `owners` and `delays`: sensor of each output, and how late it is (s).

    A name that is no sensor, and a span without any reading, are faults of the study file.
    """
    spans: Spans = loaded.study.withheld
    off, faults = np.zeros(readings.values.shape, dtype=np.bool_), []
    for name, own in spans.items():
        columns = [j for j, owner in enumerate(owners) if owner == name]
        if not columns:
            hint = did_you_mean(name, list(dict.fromkeys(owners)))
            faults.append(loaded.fault(("withheld", name), f"'{name}' is no sensor that is observed.", hint=hint))
            continue
        for low, high in own:
            found = False
            for j in columns:
                stamps = readings.t + delays[j]
                rows = (stamps >= low) & (stamps <= high) & (readings.flags[:, j] == Status.USED)
                off[:, j] |= rows
                found |= bool(rows.any())
            if not found:
                what = f"no reading of '{name}' lies from {low:g} s to {high:g} s."
                seen = f"{readings.t[0] + delays[columns[0]]:.6g} s to {readings.t[-1] + delays[columns[0]]:.6g} s"
                faults.append(loaded.fault(("withheld", name), what, "spans [from, to] within the log", seen))
    if faults:
        raise loaded.error(faults)
    return readings.flagged(off, Status.WITHHELD) if off.any() else readings


@dataclass(frozen=True, eq=False)
class WithheldOutput:
    """Prediction errors of the withheld readings of one output, and the deviations that the filter states for them."""

    output: str
    t: Array
    errors: Array
    sigma: Array

    @property
    def rms(self) -> float:
        return float(np.sqrt(np.mean(self.errors**2)))

    @property
    def share_inside(self) -> float:
        """The share of the readings within two deviations of their prediction."""
        return float(np.mean(np.abs(self.errors) <= TWO_SIGMA * self.sigma))


def withheld_outputs(e: Estimates) -> Iterator[WithheldOutput]:
    """The outputs with withheld readings."""
    for j, name in enumerate(e.outputs):
        rows = (e.status[:, j] == Status.WITHHELD) & np.isfinite(e.innovations[:, j])
        if rows.any():
            yield WithheldOutput(name, e.t[rows], e.innovations[rows, j], np.sqrt(e.innovation_variances[rows, j]))


def withheld_figures(e: Estimates) -> dict[str, float]:
    """What withheld readings say, named as in `result.json`; nothing where none were withheld."""
    figures: dict[str, float] = {}
    for one in withheld_outputs(e):
        figures[f"rms_withheld_{one.output}"] = one.rms
        figures[f"share_inside_two_sigma_withheld_{one.output}"] = one.share_inside
    return figures
