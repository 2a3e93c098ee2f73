"""Channels that a study derives from columns: positions from places on the Earth, wheel angles from counts of holes.

Channels beside an output keep their names: "<sensor>.available" and "<output>.available" mute readings, "<output>.sigma" is their noise.
"""

from __future__ import annotations

import numpy as np

from veridyn.errors import DataError, Fault
from veridyn.files.geodesy import GeoOrigin, local_position
from veridyn.model.experiment import Channel, Experiment
from veridyn.observe.measurements import OWN_DEVIATION
from veridyn.observe.readings import AVAILABLE
from veridyn.signals.findings import Finding
from veridyn.signals.pulses import PulseWheel, find_false_counts, readings_of_counts
from veridyn.studies.config.log import ColumnSettings
from veridyn.studies.config.observe import GeodeticSettings, ObservedLogSettings, ObserveFile
from veridyn.studies.config.study import Loaded

GEODETIC = ("latitude", "longitude", "height")
LOCAL = {"x": "east", "y": "north", "z": "up"}


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
    read = read.replacing(*(_told(read[name]) for name in names)) if s.empty == "none" else read
    found = find_false_counts(read, names) if len(names) > 1 else None
    made: dict[str, Channel] = {}
    for name, how in s.pulses.items():
        wheel = PulseWheel(holes=how.holes, signed=how.signed, phase=how.phase, hole_sigma=how.hole_sigma)
        false = None if found is None or not found.false[name].any() else found.false[name]
        made |= {c.name: c for c in readings_of_counts(read[name], wheel, name, false=false)}
        if not len(made[name]):
            raise DataError(
                "the wheel passes fewer than two edges.", where=f"'{name}'", hint="List the sensor under without."
            )
    return made, () if found is None else tuple(found.findings)


def _told(channel: Channel) -> Channel:
    """A channel without its empty cells."""
    there = np.isfinite(channel.values)
    return Channel(channel.name, channel.t[there], channel.values[there], channel.unit)
