"""``veridyn identify`` of a car: what a drive shows of the car, what it cannot show by name, and how it does on the rest of the log.

The log of a drive has the channels that its study names, in SI on one clock that begins with zero; what is wrong with them is reported by
name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import CapabilityError, DataError, Fault, IdentificationError, did_you_mean
from veridyn.identify.car_fit import FEWEST_SAMPLES, CarFit, cut, held_out_of
from veridyn.identify.diagnosis.delays import Delays
from veridyn.identify.drive_lines import drive_lines
from veridyn.identify.estimators.innovations import Innovations, fit_car, swapped_axles_fault
from veridyn.identify.validation import Validation
from veridyn.inference.finding import FoundCause, Mistake
from veridyn.model.car import TABLE
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.machine import Machine
from veridyn.model.single_track import uncertain
from veridyn.observe.car.observation import METHODS, NO_ERROR_MODEL
from veridyn.observe.filters.filter import Filter
from veridyn.observe.measurements import clock_faults
from veridyn.progress import Progress, silent
from veridyn.signals.drive import (
    CHANNELS,
    DriveLog,
    binned,
    common_clock,
    drive_faults,
    position_format_fault,
)
from veridyn.studies.config.log import TableSettings
from veridyn.studies.config.observe import CarIdentifyFile, CarNoiseSettings, CarStudyFile, FilterSettings
from veridyn.studies.config.study import Loaded
from veridyn.studies.result import ParameterRow, fingerprint, limits_missed, parameter_row
from veridyn.studies.run.estimation import IdentifiedDrive, IdentifyRun
from veridyn.studies.run.machine import model_file, named_car
from veridyn.studies.run.recordings import StudyDrive, single_log, spread_log


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
    return Innovations(noise=s.settings(), tuned=s.tuned)


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
    method = f.method()
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
    log = cut(Experiment(shifted, read.name), float(t[0]), float(np.nextafter(t[-1], np.inf)))
    drive = StudyDrive(t=t, channels=channels, rate=rate, log=log, hashes=hashes)
    if not study.checks:
        return drive
    found, offset = drive_faults(drive, car)
    return replace(drive, faults=tuple(found), offset=offset)


def validation_drive(loaded: Loaded[CarIdentifyFile], car: Machine) -> StudyDrive:
    """The drive that the car of a study is judged by: all of another file, read as the log is."""
    file, log = loaded.study.validation, loaded.study.log
    path = loaded.path(file, ("validation",))
    if not path.exists():
        hint = "Paths are relative to the study file; ${NAME} stands for a variable."
        raise loaded.error_at(("validation",), "there is no such log.", found=str(path), hint=hint)
    other = log.model_copy(update={"file": file, "start": 0.0, "end": None})
    drive = study_drive(replace(loaded, study=loaded.study.model_copy(update={"log": other})), car)
    faults = tuple(replace(f, where=", ".join(filter(None, (file, f.where)))) for f in drive.faults)
    return replace(drive, faults=faults)


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


def identify_drive(loaded: Loaded[CarIdentifyFile], progress: Progress = silent) -> IdentifyRun:
    """What a study of kind identify finds in a drive: the parameters of the car, and lines of its wheels, axles and drag."""
    study = loaded.study
    car, method = study_car(loaded), study_method(loaded)
    drive = study_drive(loaded, car)
    other = validation_drive(loaded, car) if study.validation else None
    if study.training is not None:
        train, rest = drive.between(*study.training), drive.between(study.training[1], np.inf)
    else:  # where nothing else is said, all of the log is learnt from beside another
        train, rest = (drive, drive) if other is not None else held_out_of(drive)
    rest = rest if other is None else other
    if len(train.t) < FEWEST_SAMPLES:
        raise loaded.error_at(("training",), "fewer than fifty samples lie in this span.", found=f"{len(train.t)}")
    rows, figures, validation = list[ParameterRow](), dict[str, float](), None
    not_shown, fitted = dict[str, str](), None
    if drive.has("speed", "steer") and (drive.has("yaw_rate") or drive.has("ay")) and uncertain(car):
        with loaded.placing(("log",), DataError, IdentificationError):
            fitted = fit_car(car, method, train, progress)
            if study.checks:
                swapped = swapped_axles_fault(fitted, car, method, train, progress)
                logs = [one.log for one in (drive, other) if one is not None]
                fitted = fitted.with_findings(logs, [] if swapped is None else [swapped])
            fitted = fitted.with_validation(rest, progress)
        car = fitted.car
        rows += fitted_rows(fitted)
        not_shown |= fitted.not_shown
        figures["log_likelihood"] = fitted.fit.log_likelihood
        if fitted.unseen is not None:
            validation = Validation(fitted.unseen.rows, by="prediction", fit=fitted)
            figures |= {f"validation_nis_{n}": size for n, size in validation.nis.items()}
    straight = drive_lines(car, train, rest, {str(axle): rate for axle, rate in study.axle_rates.items()})
    car, lines, checked = straight.car, straight.lines, straight.checked
    rows += straight.rows
    figures |= straight.figures
    not_shown |= straight.not_shown
    if not rows and not not_shown:
        wanted = "speed, steer and yaw_rate or ay; wheel_… and speed; travel_… and ay; speed, ax, throttle and brake"
        raise loaded.error_at(("log", "columns"), "nothing can be identified from these channels.", wanted)
    if drive.offset is not None:
        figures["clock_offset"], figures["clock_offset_sigma"] = drive.offset.seconds, drive.offset.sigma
    findings = _findings(fitted, (*drive.faults, *(() if other is None else other.faults)))
    figures |= {"samples": float(len(drive.t)), "not_shown": float(len(not_shown))}
    found = IdentifiedDrive(
        drive=drive,
        fitted=fitted,
        lines=lines,
        checked=checked,
        parameters=tuple(rows),
        figures=figures,
        validation=validation,
        not_shown=not_shown,
        findings=findings,
    )
    figures["suspicions"] = float(len(found.faults))
    missed, files = limits_missed(study.accept, figures), {**({} if other is None else other.hashes), **drive.hashes}
    return IdentifyRun(None, car, model_file(loaded), None, None, Delays(seconds={}), (), missed, files, drive=found)


def fitted_rows(found: CarFit) -> list[ParameterRow]:
    """Parameters and tuned noises with deviations and priors."""
    f = found.fit
    return [
        parameter_row(n, TABLE[n].unit if n in TABLE else "1", v, f.sigma[n], f.guesses[n].value)
        for n, v in f.values.items()
    ]


def _findings(fitted: CarFit | None, faults: Sequence[Fault]) -> tuple[FoundCause, ...]:
    """Those of the fit, and what checks of the whole drive, and of another that judges, have found besides."""
    own = () if fitted is None else fitted.findings
    known = tuple(f"{f}" for f in own)
    other = [f for f in faults if not any(text.startswith(f"{f.where}: {f.what}") for text in known)]
    return (*own, *(Mistake("drive", f).finding(rank) for rank, f in enumerate(other, len(own) + 1)))
