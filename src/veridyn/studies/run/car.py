"""``veridyn identify`` of a car: what a drive shows of the car, what it cannot show by name, and how it does on the rest of the log.

The log of a drive has the channels that its study names, in SI on one clock that begins with zero; what is wrong with them is reported by
name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import CapabilityError, DataError, Fault, IdentificationError, did_you_mean
from veridyn.identify.car_fit import SETTLING, SHOWS_NOTHING, CarFit, predictions, validation_of_drive
from veridyn.identify.diagnosis.delays import Delays
from veridyn.identify.estimators.innovations import Innovations, fit_car, swapped_axles_fault
from veridyn.identify.validation import Validation
from veridyn.model.car import TABLE
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.machine import Machine
from veridyn.model.single_track import uncertain, with_estimate
from veridyn.observe.car.observation import METHODS, NO_ERROR_MODEL
from veridyn.observe.consistency.findings import serious_findings
from veridyn.observe.filters.filter import Filter
from veridyn.observe.measurements import clock_faults
from veridyn.progress import Progress, silent
from veridyn.signals.drive import (
    CHANNELS,
    WHEELS,
    DriveLog,
    Line,
    binned,
    coast_down,
    common_clock,
    drive_faults,
    position_format_fault,
    roll_distribution,
    roll_gradients,
    wheel_scales,
)
from veridyn.studies.config.log import TableSettings
from veridyn.studies.config.observe import CarIdentifyFile, CarNoiseSettings, CarStudyFile, FilterSettings
from veridyn.studies.config.study import Loaded
from veridyn.studies.result import ParameterRow, fingerprint, limits_missed, parameter_row
from veridyn.studies.run.estimation import IdentifiedDrive, IdentifyRun
from veridyn.studies.run.machine import model_file, named_car
from veridyn.studies.run.recordings import StudyDrive, single_log, spread_log

TRAINED = 0.7  # of the log, where the study names no span
COASTING_BRAKE = 0.02  # of the brake's range, and of the throttle's


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
    drive = StudyDrive(t=t, channels=channels, rate=rate, hashes=hashes)
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
    share = (
        TRAINED if other is None else np.inf
    )  # where nothing else is said, all of the log is learnt from beside another
    low, high = study.training or (float(drive.t[0]), float(drive.t[0] + share * (drive.t[-1] - drive.t[0])))
    train = drive.between(low, high)
    rest = drive.between(high, np.inf) if other is None else other
    if len(train.t) < 50:
        raise loaded.error_at(("training",), "fewer than fifty samples lie in this span.", found=f"{len(train.t)}")
    rows, figures, validation = list[ParameterRow](), dict[str, float](), None
    faults, not_shown = [*drive.faults, *(() if other is None else other.faults)], dict[str, str]()
    fitted = None
    if drive.has("speed", "steer") and (drive.has("yaw_rate") or drive.has("ay")) and uncertain(car):
        with loaded.placing(("log",), DataError, IdentificationError):
            fitted = fit_car(car, method, train, progress)
        faults += fitted.faults
        if study.checks:
            swapped = swapped_axles_fault(fitted, car, method, train, progress)
            faults += [swapped] if swapped is not None else []
        car = fitted.car
        rows += fitted_rows(fitted)
        not_shown |= fitted.not_shown
        figures["log_likelihood"] = fitted.fit.log_likelihood
        if len(rest.t) > 50:
            validation, inconsistent = _validated(fitted, rest)
            faults += [] if faults else inconsistent  # a cause that is named explains it
            figures |= {f"validation_nis_{n}": size for n, size in validation.nis.items()}
    lines, checked = _lines(train, car), _lines(rest, car, quiet=True)
    for name, line in lines.items():
        rows += _line_rows(name, line, checked.get(name), figures)
    if drive.has("speed", "ax", "throttle", "brake"):
        car, unseen = _with_drag(train, car, rows)
        not_shown |= unseen
    if study.axle_rates and {"roll_front", "roll_rear"} <= set(lines):
        gradients = {"front": lines["roll_front"], "rear": lines["roll_rear"]}
        if set(study.axle_rates) == {"front", "rear"}:
            share, sigma = roll_distribution(gradients, {str(k): v for k, v in study.axle_rates.items()})
            rows.append(parameter_row("front_roll_share", "1", share, sigma))
    elif {"roll_front", "roll_rear"} <= set(lines):
        not_shown["front_roll_share"] = "the distribution of the roll moment needs the axles' rates (axle_rates)."
    if not rows and not not_shown:
        wanted = "speed, steer and yaw_rate or ay; wheel_… and speed; travel_… and ay; speed, ax, throttle and brake"
        raise loaded.error_at(("log", "columns"), "nothing can be identified from these channels.", wanted)
    if drive.offset is not None:
        figures["clock_offset"], figures["clock_offset_sigma"] = drive.offset.seconds, drive.offset.sigma
    figures |= {"samples": float(len(drive.t)), "not_shown": float(len(not_shown)), "suspicions": float(len(faults))}
    found = IdentifiedDrive(
        drive=drive,
        fitted=fitted,
        lines=lines,
        checked=checked,
        parameters=tuple(rows),
        figures=figures,
        validation=validation,
        not_shown=not_shown,
        faults=tuple(faults),
    )
    missed, files = limits_missed(study.accept, figures), {**({} if other is None else other.hashes), **drive.hashes}
    return IdentifyRun(None, car, model_file(loaded), None, None, Delays(seconds={}), (), missed, files, drive=found)


def fitted_rows(found: CarFit) -> list[ParameterRow]:
    """Parameters and tuned noises with deviations and priors."""
    f = found.fit
    return [
        parameter_row(n, TABLE[n].unit if n in TABLE else "1", v, f.sigma[n], f.guesses[n].value)
        for n, v in f.values.items()
    ]


def _validated(found: CarFit, rest: DriveLog) -> tuple[Validation, list[Fault]]:
    """Predictions on samples not used for the fit, and that they are off by more, or less, than stated."""
    seen, log = predictions(found.car, found.noise, rest)
    hint = (
        "The drive may differ from the one that was learned from, or the noise of the study from that of the sensors."
    )
    faults = [Fault(text, "validation", hint=hint) for text in serious_findings(replace(seen, settled=SETTLING))]
    return replace(validation_of_drive(seen, log), fit=found), faults


def _lines(drive: DriveLog, car: Machine, quiet: bool = False) -> dict[str, Line]:
    """What straight lines show of this drive; with `quiet`, what has too few samples is left out."""
    c, out = drive.channels, dict[str, Line]()
    wheels = {w: c[f"wheel_{w}"] for w in WHEELS if f"wheel_{w}" in c}
    travel = {w: c[f"travel_{w}"] for w in WHEELS if f"travel_{w}" in c}
    try:
        if wheels and drive.has("speed"):
            out |= {f"wheel_{w}_scale": line for w, line in wheel_scales(wheels, c["speed"], drive.rate).items()}
        if travel and drive.has("ay"):
            out |= {
                f"roll_{axle}": line
                for axle, line in roll_gradients(travel, c["ay"], car.parameters["track"], drive.rate).items()
            }
    except DataError:
        if not quiet:
            raise
    return out


def _share(values: Array) -> Array:
    """Of the largest value; zero is a pedal that is released."""
    most = float(np.nanmax(np.abs(values)))
    return np.abs(values) / most if most > 0.0 else np.zeros(len(values))


def _line_rows(name: str, line: Line, other: Line | None, figures: dict[str, float]) -> list[ParameterRow]:
    if name.startswith("wheel_"):
        if other is not None:
            figures[f"{name}_error_percent"] = 100.0 * abs(line.value["scale"] / other.value["scale"] - 1.0)
        return [parameter_row(name, "1", line.value["scale"], line.sigma["scale"], 1.0)]
    if name.startswith("roll_"):
        axle = name.removeprefix("roll_")
        figures[f"roll_gradient_{axle}_rms"] = line.rms
        return [parameter_row(f"{axle}_roll_gradient", "rad/(m/s^2)", line.value["gradient"], line.sigma["gradient"])]
    return []


def _with_drag(drive: DriveLog, car: Machine, rows: list[ParameterRow]) -> tuple[Machine, dict[str, str]]:
    """The car with the drag that shows while neither throttle nor brake acts, and its rows; or why the drive does not show it."""
    c = drive.channels
    free = (_share(c["throttle"]) < COASTING_BRAKE) & (_share(c["brake"]) < COASTING_BRAKE)
    try:
        line = coast_down(c["speed"], c["ax"], free, drive.rate)
    except DataError as error:
        return car, {"drag": f"{error.faults[0].what}"}
    m = car.parameters["mass"]
    value, sigma = m * line.value["drag"], m * line.sigma["drag"]
    rows.append(parameter_row("drag", "N/(m/s)^2", value, sigma))
    rows.append(parameter_row("rolling", "m/s^2", line.value["rolling"], line.sigma["rolling"]))
    if sigma > SHOWS_NOTHING * abs(value) or value < 0.0:
        return car, {
            "drag": f"coasting leaves {value:.2g} ± {sigma:.2g} N/(m/s)^2; coast through a wider range of speeds."
        }
    return with_estimate(car, "drag", value, sigma), {}
