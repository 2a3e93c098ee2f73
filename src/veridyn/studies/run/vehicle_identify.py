"""``veridyn identify`` of a vehicle: what a drive shows of the car, what it cannot show by name, and how it does on the rest of the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault
from veridyn.identify.vehicle_regressions import (
    WHEELS,
    Line,
    coast_down,
    roll_distribution,
    roll_gradients,
    wheel_scales,
)
from veridyn.model.car import TABLE
from veridyn.model.car_machine import uncertain, with_estimate
from veridyn.model.machine import Machine
from veridyn.observe.ekf import EKF
from veridyn.observe.run import run
from veridyn.observe.vehicle import vehicle_start, vehicle_system
from veridyn.progress import Progress, silent
from veridyn.studies.config.study import Loaded
from veridyn.studies.config.vehicle import VehicleIdentifyFile
from veridyn.studies.result import NAN, ParameterRow, Result
from veridyn.studies.run.vehicle_fit import (
    VehicleFit,
    first_yaw_rate,
    fit_vehicle,
    lateral_measurements,
    swapped_axles_fault,
)
from veridyn.studies.run.vehicle_log import DriveLog, study_drive, study_vehicle

Array = NDArray[np.float64]
TRAINED = 0.7  # of the log, where the study names no span
SHOWS_NOTHING = 0.8  # of the prior's deviation: with more left, the drive does not show the parameter
COASTING_BRAKE = 0.02  # of the brake's range, and of the throttle's


@dataclass(frozen=True, eq=False, kw_only=True)
class VehicleIdentified:
    """What a study of a vehicle has identified. `lines`: name → line of wheels and axles; `checked`: name → the same on the rest."""

    car: Machine
    drive: DriveLog
    fitted: VehicleFit | None
    lines: Mapping[str, Line]
    checked: Mapping[str, Line]
    parameters: tuple[ParameterRow, ...]
    figures: Mapping[str, float]
    validation: Mapping[str, Mapping[str, float]]
    not_shown: Mapping[str, str]
    faults: tuple[Fault, ...]
    missed: tuple[str, ...]

    def result(self, name: str, seed: int) -> Result:
        warnings = (
            *(str(f) for f in self.faults),
            *(f"not shown by this drive: {n}: {why}" for n, why in self.not_shown.items()),
        )
        return Result(name, seed, False, self.drive.hashes, self.figures, self.parameters, self.validation, warnings)

    def summary(self) -> str:
        """Parameters with deviations, and what the drive cannot show."""
        lines = [
            f"  {p.name:<24}{p.value:14.6g} ± {p.sigma:<10.3g} {p.unit}"
            + ("" if p.name not in self.not_shown else "   not shown by this drive")
            for p in self.parameters
        ]
        return "\n".join([f"{self.car.name}:", *lines])


def identify_vehicle(loaded: Loaded[Any], progress: Progress = silent) -> VehicleIdentified:
    """Run the study."""
    study: VehicleIdentifyFile = loaded.study
    car = study_vehicle(loaded)
    drive = study_drive(loaded, car)
    low, high = study.training or (float(drive.t[0]), float(drive.t[0] + TRAINED * (drive.t[-1] - drive.t[0])))
    train = drive.between(low, high)
    rest = drive.between(high, np.inf)
    if len(train.t) < 50:
        raise loaded.error(
            loaded.fault(("training",), "fewer than fifty samples lie in this span.", found=f"{len(train.t)}")
        )
    rows, figures, validation = list[ParameterRow](), dict[str, float](), dict[str, dict[str, float]]()
    faults, not_shown = list(drive.faults), dict[str, str]()
    fitted = None
    if drive.has("speed", "steer") and (drive.has("yaw_rate") or drive.has("ay")) and uncertain(car):
        try:
            fitted = fit_vehicle(car, study.noise, train, progress)
        except DataError as error:
            raise loaded.error(
                [loaded.fault(("log",), f.what, f.expected, f.found, f.hint) for f in error.faults]
            ) from error
        if study.checks:
            swapped = swapped_axles_fault(fitted, car, study.noise, train, progress)
            faults += [swapped] if swapped is not None else []
        car = fitted.car
        own, shown = _fitted_rows(fitted, train)
        rows += own
        not_shown |= shown
        figures["log_likelihood"] = fitted.fit.log_likelihood
        if len(rest.t) > 50:
            validation = _validated(fitted, rest)
            figures |= {f"validation_nis_{n}": v["nis"] for n, v in validation.items()}
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
    return VehicleIdentified(
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


def _fitted_rows(found: VehicleFit, train: DriveLog) -> tuple[list[ParameterRow], dict[str, str]]:
    rows, shown = [], {}
    most = {n: float(np.nanmax(np.abs(train.channels[n]))) for n in ("ay", "yaw_rate") if n in train.channels}
    for n, value in found.fit.values.items():
        guess, sigma = found.fit.guesses[n], found.fit.sigma[n]
        unit = TABLE[n].unit if n in TABLE else "1"
        rows.append(_row(n, unit, value, sigma, guess.value))
        left = sigma / guess.spread(value)
        if n in found.fit.at_bound:
            shown[n] = f"it ends at its bound {value:.4g}."
        elif left > SHOWS_NOTHING and n in TABLE:
            why = f"{100.0 * left:.0f} % of its prior deviation are left"
            if n.endswith("friction") and "ay" in most:
                why += f"; with at most {most['ay']:.1f} m/s² the tyres are far from their grip"
            shown[n] = why + "."
    return rows, shown


def _validated(found: VehicleFit, rest: DriveLog) -> dict[str, dict[str, float]]:
    """One-step predictions on samples not used for the fit, by output."""
    log = lateral_measurements(rest, found.noise)
    system = vehicle_system(found.car, found.noise, log.names)
    done = run(EKF(), system, log, vehicle_start(found.car, found.noise, first_yaw_rate(log)))
    out = {}
    for j, name in enumerate(log.names):
        e, v = done.innovations[20:, j], done.innovation_variances[20:, j]
        good = np.isfinite(e)
        measured = log.values[20:, j][good]
        out[name] = {
            "samples": float(good.sum()),
            "rms": float(np.sqrt(np.mean(e[good] ** 2))),
            "measured_rms": float(np.sqrt(np.mean(measured**2))),
            "error_percent": float(100.0 * np.sqrt(np.sum(e[good] ** 2) / np.sum(measured**2))),
            "nis": float(np.mean(e[good] ** 2 / v[good])),
        }
    return out


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
