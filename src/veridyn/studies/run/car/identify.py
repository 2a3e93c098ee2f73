"""``veridyn identify`` of a car: what a drive shows of the car, what it cannot show by name, and how it does on the rest of the log."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError, Fault, IdentificationError
from veridyn.identify.car.innovations import fit_car, swapped_axles_fault
from veridyn.identify.car.result import SETTLING, SHOWS_NOTHING, CarFit, predictions, validation_of_drive
from veridyn.identify.diagnosis.delays import Delays
from veridyn.identify.validation import Validation
from veridyn.model.car import TABLE
from veridyn.model.machine import Machine
from veridyn.model.single_track import uncertain, with_estimate
from veridyn.observe.consistency.findings import serious_findings
from veridyn.progress import Progress, silent
from veridyn.signals.drive import (
    WHEELS,
    DriveLog,
    Line,
    coast_down,
    roll_distribution,
    roll_gradients,
    wheel_scales,
)
from veridyn.studies.config.observe import CarIdentifyFile
from veridyn.studies.config.study import Loaded
from veridyn.studies.result import ParameterRow, limits_missed, parameter_row
from veridyn.studies.run.car.log import study_car, study_drive, study_method
from veridyn.studies.run.estimation import IdentifiedDrive, IdentifyRun
from veridyn.studies.run.observer import model_file

TRAINED = 0.7  # of the log, where the study names no span
COASTING_BRAKE = 0.02  # of the brake's range, and of the throttle's


def identify_drive(loaded: Loaded[CarIdentifyFile], progress: Progress = silent) -> IdentifyRun:
    """What a study of kind identify finds in a drive: the parameters of the car, and lines of its wheels, axles and drag."""
    study = loaded.study
    car, method = study_car(loaded), study_method(loaded)
    drive = study_drive(loaded, car)
    low, high = study.training or (float(drive.t[0]), float(drive.t[0] + TRAINED * (drive.t[-1] - drive.t[0])))
    train = drive.between(low, high)
    rest = drive.between(high, np.inf)
    if len(train.t) < 50:
        raise loaded.error_at(("training",), "fewer than fifty samples lie in this span.", found=f"{len(train.t)}")
    rows, figures, validation = list[ParameterRow](), dict[str, float](), None
    faults, not_shown = list(drive.faults), dict[str, str]()
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
    missed, files = limits_missed(study.accept, figures), drive.hashes
    return IdentifyRun(None, car, model_file(loaded), None, None, Delays({}), (), missed, files, drive=found)


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
    faults = [Fault(text, "validation", hint=hint) for text in serious_findings(seen, skip=SETTLING)]
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
