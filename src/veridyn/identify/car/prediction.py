"""How a car of a few numbers does on a drive: each sensor predicted from one sample to the next, against what it reads.

    r = y(t_k) − ŷ(t_k | readings up to t_{k−1}),        NIS = mean of r²/var(r) as the filter states it, ideal 1

A car answers to forces that nobody measures, so that it is judged by predictions of its filter and not by forces of joints.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import CapabilityError, DataError, IdentificationWarning, Limit, warn
from veridyn.identify.car.result import CarFit
from veridyn.identify.error_measures import Moments, RowReport
from veridyn.identify.validation import Validation
from veridyn.lazy import above
from veridyn.mechanics.single_track.of_machine import CarNoise
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.progress import Progress, silent
from veridyn.signals.drive import DriveLog
from veridyn.signals.drive_checks import log_faults

SETTLING = 20  # samples after a start that are not judged
NO_FORCES = Limit(
    "no force of a joint is measured or simulated that it could be compared with",
    "Leave 'by' out: sensors are predicted from one sample to the next.",
)


def validate_car(
    fit: CarFit | Machine, data: object, by: str = "fit", progress: Progress = silent, **others: object
) -> Validation:
    """What ``validate`` does with a car, or with its fit: `data` is the log of a drive that was not used for the fit."""
    car = fit if isinstance(fit, Machine) else fit.car
    noise = CarNoise() if isinstance(fit, Machine) else fit.noise
    given = [name for name, value in others.items() if value is not None]
    if given:
        what = f"'{given[0]}' belongs to equations that are linear in the parameters."
        raise DataError(what, where="validate", hint="A car is validated by validate(fit, log).", source=car.name)
    if by not in ("fit", "prediction"):
        raise CapabilityError("single_track", f"validation by {by}", *NO_FORCES, where=f"validate, {car.name}")
    given_log = one_drive(data, "validate", "a car is validated on the log of a drive.")
    for fault in log_faults(given_log, car):
        warn(IdentificationWarning, fault)
    drive = above("veridyn.observe.car.log", "drive_of")(car, given_log)
    seen, log = predictions(car, noise, drive, progress)
    return replace(validation_of_drive(seen, log), fit=None if isinstance(fit, Machine) else fit)


def predicted_sensors(fit: CarFit, data: object) -> Array:
    """Readings (N, rows of the fit) as the filter predicts them, each from the readings before it: y − r; NaN where there is none."""
    drive = one_drive(data, "predict", "a car predicts the sensors of the log of a drive.")
    seen, log = predictions(fit.car, fit.noise, above("veridyn.observe.car.log", "drive_of")(fit.car, drive))
    out = np.full((len(log.values), len(fit.rows)), np.nan)
    for k, row in enumerate(fit.rows):
        if row.row in log.names:
            j = list(log.names).index(row.row)
            out[:, k] = log.values[:, j] - seen.estimates.innovations[:, j]
    return out


def one_drive(data: object, verb: str, what: str) -> Experiment:
    """The log of a drive, alone or as the only one of a sequence; `what` is said of anything else."""
    only = data[0] if isinstance(data, list | tuple) and len(data) == 1 else data
    if isinstance(only, Experiment):
        return only
    found = f"{len(data)} of them" if isinstance(data, list | tuple) else type(data).__name__
    raise DataError(what, where=verb, expected="an Experiment", found=found)


def predictions(car: Machine, noise: CarNoise, drive: DriveLog, progress: Progress = silent) -> tuple[Any, Any]:
    """A run of the extended Kalman filter along a drive with the parameters as they are, and the readings that it was given."""
    return above("veridyn.observe.car.observation", "predicted_drive")(car, noise, drive, progress)


def validation_of_drive(seen: Any, log: Any) -> Validation:
    """The errors of a run of :func:`predictions`."""
    return Validation(drive_rows(seen, log), by="prediction")


def drive_rows(seen: Any, log: Any) -> tuple[RowReport, ...]:
    """A row for each sensor, samples of the start left out."""
    done, units = seen.estimates, dict(zip(seen.system.table.names, seen.system.table.units, strict=True))
    rows = list[RowReport]()
    for j, name in enumerate(log.names):
        e, v = done.innovations[SETTLING:, j], done.innovation_variances[SETTLING:, j]
        good = np.isfinite(e)
        y, moments = log.values[SETTLING:, j][good], Moments.of(log.values[SETTLING:, j][good], good)
        rows.append(
            RowReport(
                name,
                int(good.sum()),
                _rms(e[good]),
                _rms(y),
                float(np.sqrt(np.mean(v[good]))) if len(y) else math.nan,
                measured_std=moments.std,
                noise=moments.noise,
                unit=units[name],
                nis=float(np.mean(e[good] ** 2 / v[good])) if len(y) else math.nan,
            )
        )
    return tuple(rows)


def _rms(x: Array) -> float:
    return float(np.sqrt(np.mean(x**2))) if len(x) else math.nan
