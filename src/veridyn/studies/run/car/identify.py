"""``veridyn identify`` of a car: what a drive shows of the car, what it cannot show by name, and how it does on the rest of the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault, IdentificationError
from veridyn.files.archive import save
from veridyn.files.machine.write import model_text
from veridyn.identify.car.innovations import fit_car, swapped_axles_fault
from veridyn.identify.car.prediction import SETTLING, predictions, validation_of_drive
from veridyn.identify.car.result import SHOWS_NOTHING, CarFit
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
from veridyn.studies.config.car import CarIdentifyFile
from veridyn.studies.config.study import Loaded
from veridyn.studies.result import NAN, ParameterRow, Result, Run
from veridyn.studies.run.car.log import StudyDrive, study_car, study_drive, study_method
from veridyn.studies.run.machine import FIT

Array = NDArray[np.float64]
IDENTIFIED = "identified.yaml"  # the model file of a run, as of other machines
TRAINED = 0.7  # of the log, where the study names no span
COASTING_BRAKE = 0.02  # of the brake's range, and of the throttle's


@dataclass(frozen=True, eq=False, kw_only=True)
class CarIdentified:
    """What a study of a car has identified. `lines`: name → line of wheels and axles; `checked`: name → the same on the rest."""

    car: Machine
    drive: StudyDrive
    fitted: CarFit | None
    lines: Mapping[str, Line]
    checked: Mapping[str, Line]
    parameters: tuple[ParameterRow, ...]
    figures: Mapping[str, float]
    validation: Validation | None
    not_shown: Mapping[str, str]
    faults: tuple[Fault, ...]
    missed: tuple[str, ...]

    def result(self, name: str, seed: int) -> Result:
        warnings = (
            *(str(f) for f in self.faults),
            *(f"not shown by this drive: {n}: {why}" for n, why in self.not_shown.items()),
        )
        table = {} if self.validation is None else self.validation.table
        return Result(name, seed, False, self.drive.hashes, self.figures, self.parameters, table, warnings)

    def keep(self, run: Run) -> None:
        """Write what its run folder gets beside the result: the identified car, and its fit."""
        run.write_text(IDENTIFIED, model_text(self.car))
        if self.fitted is not None:
            save(self.fitted, run.folder / FIT)

    def summary(self) -> str:
        """Parameters with deviations, and what the drive cannot show."""
        lines = [
            f"  {p.name:<24}{p.value:14.6g} ± {p.sigma:<10.3g} {p.unit}"
            + ("" if p.name not in self.not_shown else "   not shown by this drive")
            for p in self.parameters
        ]
        return "\n".join([f"{self.car.name}:", *lines])


def identify_car_study(loaded: Loaded[Any], progress: Progress = silent) -> CarIdentified:
    """Run the study."""
    study: CarIdentifyFile = loaded.study
    car, method = study_car(loaded), study_method(loaded)
    drive = study_drive(loaded, car)
    low, high = study.training or (float(drive.t[0]), float(drive.t[0] + TRAINED * (drive.t[-1] - drive.t[0])))
    train = drive.between(low, high)
    rest = drive.between(high, np.inf)
    if len(train.t) < 50:
        raise loaded.error(
            loaded.fault(("training",), "fewer than fifty samples lie in this span.", found=f"{len(train.t)}")
        )
    rows, figures, validation = list[ParameterRow](), dict[str, float](), None
    faults, not_shown = list(drive.faults), dict[str, str]()
    fitted = None
    if drive.has("speed", "steer") and (drive.has("yaw_rate") or drive.has("ay")) and uncertain(car):
        try:
            fitted = fit_car(car, method, train, progress)
        except (DataError, IdentificationError) as error:
            raise loaded.error(
                [loaded.fault(("log",), f.what, f.expected, f.found, f.hint) for f in error.faults]
            ) from error
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
            rows.append(_row("front_roll_share", "1", share, sigma))
    elif {"roll_front", "roll_rear"} <= set(lines):
        not_shown["front_roll_share"] = "the distribution of the roll moment needs the axles' rates (axle_rates)."
    if not rows and not not_shown:
        wanted = "speed, steer and yaw_rate or ay; wheel_… and speed; travel_… and ay; speed, ax, throttle and brake"
        raise loaded.error(loaded.fault(("log", "columns"), "nothing can be identified from these channels.", wanted))
    if drive.offset is not None:
        figures["clock_offset"], figures["clock_offset_sigma"] = drive.offset.seconds, drive.offset.sigma
    figures |= {"samples": float(len(drive.t)), "not_shown": float(len(not_shown)), "suspicions": float(len(faults))}
    return CarIdentified(
        car=car,
        drive=drive,
        fitted=fitted,
        lines=lines,
        checked=checked,
        parameters=tuple(rows),
        figures=figures,
        validation=validation,
        not_shown=not_shown,
        faults=tuple(faults),
        missed=limits_missed(study.accept, figures),
    )


def limits_missed(accept: Mapping[str, tuple[float, float]], figures: Mapping[str, float]) -> tuple[str, ...]:
    """Sentences about figures beyond the limits of a study."""
    out = []
    for name, (low, high) in accept.items():
        value = figures.get(name, NAN)
        if not low <= value <= high:
            shown = f"{value:.6g}" if name in figures else "no such figure"
            out.append(f"{name}: {shown}, and {low:g} to {high:g} is accepted (accept.{name}).")
    return tuple(out)


def _row(name: str, unit: str, value: float, sigma: float, prior: float = NAN) -> ParameterRow:
    return ParameterRow(name, unit, value, sigma, 100.0 * sigma / abs(value) if value else NAN, prior)


def fitted_rows(found: CarFit) -> list[ParameterRow]:
    """Parameters and tuned noises with deviations and priors."""
    f = found.fit
    return [
        _row(n, TABLE[n].unit if n in TABLE else "1", v, f.sigma[n], f.guesses[n].value) for n, v in f.values.items()
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
        return [_row(name, "1", line.value["scale"], line.sigma["scale"], 1.0)]
    if name.startswith("roll_"):
        axle = name.removeprefix("roll_")
        figures[f"roll_gradient_{axle}_rms"] = line.rms
        return [_row(f"{axle}_roll_gradient", "rad/(m/s^2)", line.value["gradient"], line.sigma["gradient"])]
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
    rows.append(_row("drag", "N/(m/s)^2", value, sigma))
    rows.append(_row("rolling", "m/s^2", line.value["rolling"], line.sigma["rolling"]))
    if sigma > SHOWS_NOTHING * abs(value) or value < 0.0:
        return car, {
            "drag": f"coasting leaves {value:.2g} ± {sigma:.2g} N/(m/s)^2; coast through a wider range of speeds."
        }
    return with_estimate(car, "drag", value, sigma), {}
