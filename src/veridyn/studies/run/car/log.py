"""The log of a drive as its study names it: channels in SI on one clock that begins with zero, and what is wrong with them by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import CapabilityError, DataError, Fault, did_you_mean
from veridyn.identify.car.innovations import Innovations
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.machine import Machine
from veridyn.model.single_track import CarNoise
from veridyn.observe.car.observation import METHODS, NO_ERROR_MODEL
from veridyn.observe.filters.filter import Filter
from veridyn.observe.measurements import clock_faults
from veridyn.signals.clock_offset import ClockOffset
from veridyn.signals.drive import CHANNELS, DriveLog, binned, common_clock
from veridyn.signals.drive_checks import drive_faults, position_format_fault
from veridyn.studies.config.log import TableSettings
from veridyn.studies.config.observe import CarNoiseSettings, CarStudyFile, FilterSettings
from veridyn.studies.config.study import Loaded
from veridyn.studies.result import fingerprint
from veridyn.studies.run.observer import filter_of_study, named_car
from veridyn.studies.run.recordings import single_log, spread_log


@dataclass(frozen=True, eq=False, kw_only=True)
class StudyDrive(DriveLog):
    """The drive of a study: `hashes` of its files, what its checks have found, and the `offset` of the positions' clock."""

    hashes: Mapping[str, str]
    faults: tuple[Fault, ...] = ()
    offset: ClockOffset | None = None


def study_car(loaded: Loaded[Any]) -> Machine:
    """The car of a study with the sensors' noise that it gives; its sensors are those of its model file."""
    study: CarStudyFile = loaded.study
    car = named_car(loaded)
    own = [s.name for s in car.sensors]
    faults = [
        loaded.fault(("noise", "sensors", n), f"the car has no sensor '{n}'.", hint=did_you_mean(n, own))
        for n in study.noise.sensors
        if n not in own
    ]
    faults += [
        loaded.fault(("noise", "sensors", n), "this is no deviation.", "a positive number", f"{x:g}")
        for n, x in study.noise.sensors.items()
        if not x > 0.0
    ]
    if faults:
        raise loaded.error(faults)
    return replace(car, sensors=tuple(replace(s, sigma=study.noise.sensors.get(s.name, s.sigma)) for s in car.sensors))


def study_method(loaded: Loaded[Any]) -> Innovations:
    """How the parameters of the car are fitted, with the noise of the study."""
    s: CarNoiseSettings = loaded.study.noise
    noise = CarNoise(slip_error=s.slip_error, bank=s.bank, lateral=s.lateral, yaw=s.yaw, walk=dict(s.walk))
    return Innovations(noise=noise, tuned=s.tuned)


def study_filter(loaded: Loaded[Any]) -> Filter:
    """What observes the car; a filter that needs joints, and settings that speak of them, are refused by name."""
    f: FilterSettings = loaded.study.filter
    faults = [
        loaded.fault(("filter", key), f"'{key}' belongs to machines of bodies and joints.", hint="Drop it.")
        for key in ("unknown", "independents", "step", "input_hold", "drifts")
        if getattr(f, key) != FilterSettings.model_fields[key].default
    ]
    if faults:
        raise loaded.error(faults)
    method = filter_of_study(f)
    if type(method) not in METHODS:
        asked = f"filter '{f.name}'"
        fault = loaded.fault(
            ("filter", "name"), f"formulation single_track has no {asked}.", hint=NO_ERROR_MODEL.instead
        )
        raise CapabilityError("single_track", asked, *NO_ERROR_MODEL, faults=[fault], source=loaded.file.name)
    return method


def study_drive(loaded: Loaded[Any], car: Machine) -> StudyDrive:
    """The log of a study on one clock, with what its checks found."""
    study: CarStudyFile = loaded.study
    s = study.log
    files = {"": s.file} if s.file else dict(s.files)
    paths = {p: loaded.path(text, ("log", "files", p) if p else ("log", "file")) for p, text in files.items()}
    _existing(loaded, paths)
    try:
        read = single_log(loaded, s, paths[""], own_clocks=True) if s.file else spread_log(loaded, paths, ("log",))
    except DataError as error:
        raise loaded.error([_of_column(loaded, f) for f in error.faults]) from error
    _units(loaded, read)
    zero = min(float(c.t[0]) for c in read.channels.values())
    shifted = {n: Channel(n, c.t - zero - s.delays.get(n, 0.0), c.values, c.unit) for n, c in read.channels.items()}
    faults = [
        loaded.fault(("log", "columns", n), f"{f.what}", f.expected, f.found)
        for n, c in shifted.items()
        for f in clock_faults(c.t, "")
    ]
    if faults:
        raise loaded.error(faults)
    formats = _formats(shifted) if study.checks else []
    if formats:
        raise loaded.error(
            [loaded.fault(("log", "columns", "latitude"), f.what, f.expected, f.found, f.hint) for f in formats]
        )
    t, rate, channels = common_clock(
        shifted, s.rate, -np.inf if s.start <= 0.0 else s.start, np.inf if s.end is None else s.end
    )
    if len(t) < 10:
        raise loaded.error_at(("log",), "fewer than ten samples lie between start and end.")
    channels = _local(channels)
    hashes = {files[p]: fingerprint(path) for p, path in paths.items()}
    drive = StudyDrive(t=t, channels=channels, rate=rate, hashes=hashes)
    if not study.checks:
        return drive
    found, offset = drive_faults(drive, car)
    return replace(drive, faults=tuple(found), offset=offset)


def reference_values(loaded: Loaded[Any], settings: TableSettings, file: str, drive: DriveLog) -> dict[str, Array]:
    """What was measured otherwise, on the clock of the drive: means over as long as its samples last."""
    path = loaded.path(file, ("reference", "file"))
    _existing(loaded, {"": path}, ("reference", "file"))
    read = single_log(loaded, settings, path, ("reference",), own_clocks=True)
    zero = min(float(c.t[0]) for c in read.channels.values())
    shifted = {n: Channel(n, c.t - zero, c.values, c.unit) for n, c in read.channels.items()}
    return {n: binned(c.t, c.values, drive.t, drive.rate) for n, c in shifted.items()}


def _formats(channels: Mapping[str, Channel]) -> list[Fault]:
    if "latitude" not in channels or "longitude" not in channels:
        return []
    fault = position_format_fault(*(np.degrees(channels[n].values) for n in ("latitude", "longitude")))
    return [] if fault is None else [fault]


def _local(channels: dict[str, Array]) -> dict[str, Array]:
    """Latitude and longitude as metres east and north of the first place, through the ellipsoid."""
    if "latitude" not in channels or "longitude" not in channels:
        return channels
    from veridyn.files.geodesy import GeoOrigin, enu_of

    lat, lon = channels.pop("latitude"), channels.pop("longitude")
    ok = np.flatnonzero(np.isfinite(lat) & np.isfinite(lon))
    if len(ok):
        origin = GeoOrigin(float(lat[ok[0]]), float(lon[ok[0]]))
        enu = enu_of(lat, lon, np.where(np.isfinite(lat), 0.0, np.nan), origin)
        channels |= {"east": enu[:, 0], "north": enu[:, 1]}
    return channels


def _units(loaded: Loaded[Any], read: Experiment) -> None:
    faults = [
        loaded.fault(("log", "columns", n), "its unit is not that of this channel.", CHANNELS[n], c.unit)
        for n, c in read.channels.items()
        if CHANNELS[n] and c.unit != CHANNELS[n]
    ]
    if faults:
        raise loaded.error(faults)


def _existing(loaded: Loaded[Any], paths: Mapping[str, Path], at: tuple[str, ...] = ("log",)) -> None:
    for p, path in paths.items():
        if not path.exists():
            place = at if len(at) > 1 else ("log", "files", p) if p else ("log", "file")
            hint = "Paths are relative to the study file; ${NAME} stands for a variable."
            raise loaded.error_at(place, "there is no such log.", found=str(path), hint=hint)


def _of_column(loaded: Loaded[Any], fault: Fault) -> Fault:
    column = fault.at[1] if fault.at[:1] in (("column",), ("channel",)) and len(fault.at) > 1 else None
    if column not in loaded.study.log.columns:
        return fault
    return loaded.fault(("log", "columns", str(column)), fault.what, fault.expected, fault.found, fault.hint)
