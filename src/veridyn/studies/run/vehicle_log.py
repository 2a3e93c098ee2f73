"""The log of a drive as its study names it: channels in SI on one clock that begins with zero, and what is wrong with them by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault, ModelError
from veridyn.files.vehicle import load_vehicle, parse_vehicle
from veridyn.identify.diagnosis.vehicle import (
    clock_fault,
    position_delay,
    position_format_fault,
    position_scale_fault,
    steering_fault,
    swapped_sides_fault,
)
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.machine import Machine
from veridyn.observe.measurements import clock_faults
from veridyn.signals.clock_offset import ClockOffset
from veridyn.studies.config.identify import TableSettings
from veridyn.studies.config.study import Loaded
from veridyn.studies.config.vehicle import CHANNELS, PriorSettings, VehicleStudy
from veridyn.studies.result import fingerprint
from veridyn.studies.run.recordings import single_log, spread_log

Array = NDArray[np.float64]
HELD = ("speed", "steer", "ax", "throttle", "brake")  # channels that are carried over empty samples
LONGEST_HOLD_S = 0.5


@dataclass(frozen=True, eq=False, kw_only=True)
class DriveLog:
    """Channels (N,) on the clock `t` (N,), NaN where one has no sample; `hashes` of the files; `offset` of the positions' clock."""

    t: Array
    channels: Mapping[str, Array]
    rate: float
    hashes: Mapping[str, str]
    faults: tuple[Fault, ...] = ()
    offset: ClockOffset | None = None

    def between(self, low: float, high: float) -> DriveLog:
        """The samples from `low` up to `high` seconds."""
        inside = (self.t >= low) & (self.t < high)
        kept = {name: values[inside] for name, values in self.channels.items()}
        return replace(self, t=self.t[inside], channels=kept)

    def has(self, *names: str) -> bool:
        return all(name in self.channels for name in names)


def study_vehicle(loaded: Loaded[Any]) -> Machine:
    """The car of a study: its own keys, or a vehicle file."""
    study: VehicleStudy = loaded.study
    if isinstance(study.vehicle, str):
        return load_vehicle(loaded.path(study.vehicle, ("vehicle",)))
    values = {key: _plain(value) for key, value in study.vehicle.items()}
    try:
        return parse_vehicle(values, study.name)
    except ModelError as error:
        raise loaded.error(
            [loaded.fault(f.at or ("vehicle",), f.what, f.expected, f.found, f.hint) for f in error.faults]
        ) from error


def _plain(value: str | PriorSettings) -> Any:
    return value if isinstance(value, str) else {k: v for k, v in value.model_dump().items() if v is not None}


def study_drive(loaded: Loaded[Any], car: Machine) -> DriveLog:
    """The log of a study on one clock, with what its checks found."""
    study: VehicleStudy = loaded.study
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
        raise loaded.error(loaded.fault(("log",), "fewer than ten samples lie between start and end."))
    channels = _local(channels)
    hashes = {files[p]: fingerprint(path) for p, path in paths.items()}
    drive = DriveLog(t=t, channels=channels, rate=rate, hashes=hashes)
    if not study.checks:
        return drive
    found, offset = checked(drive, car)
    return replace(drive, faults=tuple(found), offset=offset)


def reference_values(loaded: Loaded[Any], settings: TableSettings, file: str, drive: DriveLog) -> dict[str, Array]:
    """What was measured otherwise, on the clock of the drive: means over as long as its samples last."""
    path = loaded.path(file, ("reference", "file"))
    _existing(loaded, {"": path}, ("reference", "file"))
    read = single_log(loaded, settings, path, ("reference",), own_clocks=True)
    zero = min(float(c.t[0]) for c in read.channels.values())
    shifted = {n: Channel(n, c.t - zero, c.values, c.unit) for n, c in read.channels.items()}
    return {n: binned(c.t, c.values, drive.t, drive.rate) for n, c in shifted.items()}


def common_clock(
    channels: Mapping[str, Channel], rate: float | None, low: float, high: float
) -> tuple[Array, float, dict[str, Array]]:
    """One clock for all: the channels' own where they share one and no rate is asked for, otherwise equal steps of means.

    A sample at t is the mean over the step that is centred on it; what has no sample there is NaN, and inputs are carried over.
    """
    first = next(iter(channels.values()))
    shared = all(np.array_equal(c.t, first.t) for c in channels.values())
    own = 1.0 / float(np.median(np.diff(first.t)))
    if shared and (rate is None or rate >= 0.99 * own):
        inside = (first.t >= low) & (first.t < high)
        return first.t[inside], own, {n: _carried(first.t[inside], c.values[inside], n) for n, c in channels.items()}
    fastest = max(1.0 / float(np.median(np.diff(c.t))) for c in channels.values())
    rate = min(fastest, 50.0) if rate is None else rate
    start = max(low, max(float(c.t[0]) for n, c in channels.items() if n in HELD or n not in ("latitude", "longitude")))
    end = min(high, min(float(c.t[-1]) for c in channels.values()))
    count = int(np.floor((end - start) * rate))
    t: Array = start + (np.arange(count, dtype=np.float64) + 0.5) / float(rate)
    return t, rate, {n: _carried(t, binned(c.t, c.values, t, rate), n) for n, c in channels.items()}


def binned(t: Array, values: Array, clock: Array, rate: float) -> Array:
    """Means of the samples within half a step of each time of the clock; NaN where there are none."""
    if len(t) == len(clock) and np.allclose(t, clock, atol=1e-6):
        return values
    at = np.floor((t - clock[0]) * rate + 0.5).astype(np.int64)
    use = (at >= 0) & (at < len(clock)) & np.isfinite(values)
    sums = np.bincount(at[use], weights=values[use], minlength=len(clock))
    counts = np.bincount(at[use], minlength=len(clock))
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _carried(t: Array, values: Array, name: str) -> Array:
    """Inputs without a hole: short ones are bridged, long ones stay, and are refused later."""
    finite = np.isfinite(values)
    if name not in HELD or finite.all() or finite.sum() < 2:
        return values
    last = np.maximum.accumulate(np.where(finite, np.arange(len(t)), -1))
    close = (last >= 0) & (t - t[np.maximum(last, 0)] <= LONGEST_HOLD_S)
    return np.where(finite, values, np.where(close, np.interp(t, t[finite], values[finite]), np.nan))


def checked(drive: DriveLog, car: Machine) -> tuple[list[Fault], ClockOffset | None]:
    """What the checks of the log have found, and the offset of the positions' clock where it can be estimated."""
    c, found = drive.channels, list[Fault | None]()
    offset = None
    if drive.has("speed", "steer", "yaw_rate"):
        rows = np.isfinite(c["speed"]) & np.isfinite(c["steer"]) & np.isfinite(c["yaw_rate"])
        L = car.parameters["front"] + car.parameters["rear"]
        given = (c["speed"][rows], c["steer"][rows], c["yaw_rate"][rows])
        found.append(steering_fault(*given, L, car.parameters["steering_ratio"], drive.rate))
    wheels = {w: c[f"wheel_{w}"] for w in ("fl", "fr", "rl", "rr") if f"wheel_{w}" in c}
    if drive.has("speed", "yaw_rate") and wheels:
        found.append(swapped_sides_fault(wheels, c["speed"], c["yaw_rate"], drive.rate))
    if drive.has("speed", "east", "north"):
        speed = np.nan_to_num(c["speed"])
        scale = position_scale_fault(drive.t, c["east"], c["north"], speed)
        found.append(scale)
        if scale is None and drive.has("yaw_rate"):
            ay = np.nan_to_num(c["ay"]) if "ay" in c else None
            offset = position_delay(
                drive.t, c["east"], c["north"], speed, np.nan_to_num(c["yaw_rate"]), ay, car.parameters["rear"]
            )
            found.append(clock_fault(offset))
    return [f for f in found if f is not None], offset


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
            raise loaded.error(loaded.fault(place, "there is no such log.", found=str(path), hint=hint))


def _of_column(loaded: Loaded[Any], fault: Fault) -> Fault:
    column = fault.at[1] if fault.at[:1] in (("column",), ("channel",)) and len(fault.at) > 1 else None
    if column not in loaded.study.log.columns:
        return fault
    return loaded.fault(("log", "columns", str(column)), fault.what, fault.expected, fault.found, fault.hint)
