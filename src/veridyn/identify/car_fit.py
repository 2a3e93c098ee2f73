"""The fit of a car of a few numbers, whose equations are those of its observer, and how it does on a drive.

Each sensor is predicted from one sample to the next, against what it reads:

    r = y(t_k) − ŷ(t_k | readings up to t_{k−1}),        NIS = mean of r²/var(r) as the filter states it, ideal 1

A car answers to forces that nobody measures, so that it is judged by predictions of its filter and not by forces of joints.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from veridyn.arguments import checked
from veridyn.arrays import Array
from veridyn.errors import CapabilityError, DataError, Fault, IdentificationError, IdentificationWarning, Limit, warn
from veridyn.identify.base import BaseParameters
from veridyn.identify.result import Fit
from veridyn.identify.validation import Validation
from veridyn.inference.error_measures import Moments, RowReport
from veridyn.lazy import above
from veridyn.model.car import TABLE
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.model.parameters import ParameterFit, Uncertainty
from veridyn.model.single_track import CarNoise, with_values
from veridyn.progress import Progress, silent
from veridyn.signals.drive import DriveLog, log_faults

SHOWS_NOTHING = 0.8  # of the prior's deviation: with more left, the drive does not show the parameter
MOST_DRAWS = 1000  # for one set within the bounds
SOURCE = "each estimated parameter by itself, with its prior"


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class CarFit(Fit):
    """A car with identified values and their covariance, the `noise` that goes with them, and the search (`fit`) they come from.

    A parameter is its own group; `rows` are the sensors, whose errors are those of predictions from one sample to the next.
    `largest`: the largest |ay| of the drive, m/s², where it has one; NaN otherwise.
    """

    noise: CarNoise
    fit: ParameterFit
    largest: float = float("nan")

    @cached_property
    def car(self) -> Machine:
        """The car with the identified values, their covariance and the noise of sensors that were tuned."""
        found, _ = with_values(self.described, self.noise, self.fit.values)
        return found.with_uncertainty(Uncertainty(self.names, self.covariance))

    def machine(self, *, unexcited: float | None = None) -> Machine:
        """The car with the identified values and their covariance, for every verb that takes cars.

        `unexcited` is not needed: what the drive does not show keeps its prior deviation.
        """
        return self.car

    @property
    def not_shown(self) -> dict[str, str]:
        """Parameters that the drive does not show, and why."""
        found = {}
        for n, value in self.fit.values.items():
            left = self.fit.sigma[n] / self.fit.guesses[n].spread(value)
            if n in self.fit.at_bound:
                found[n] = f"it ends at its bound {value:.4g}."
            elif left > SHOWS_NOTHING and n in TABLE:
                why = f"{100.0 * left:.0f} % of its prior deviation are left"
                if n.endswith("friction") and np.isfinite(self.largest):
                    why += f"; with at most {self.largest:.1f} m/s² the tyres are far from their grip"
                found[n] = why + "."
        return found

    @property
    def faults(self) -> tuple[Fault, ...]:
        """What makes the values doubtful: a search that did not reach the most likely ones."""
        if self.fit.converged:
            return ()
        what = (
            f"the search for the most likely parameters did not converge in {self.fit.evaluations} runs of the filter."
        )
        hint = "Start nearer to the car, or let the noise be larger: tight noise makes a wrong start hard to leave."
        return (Fault(what, where=self.described.name, hint=hint),)

    def draws(self, n: int, rng: np.random.Generator) -> Array:
        """Parameters (n, all) of cars like this one: from the Gaussian of the estimate, within the bounds of each parameter."""
        p = self.described.parameters
        low, high = (np.array([p.bounds[name][k] for name in self.names]) for k in (0, 1))
        L = np.linalg.cholesky(self.covariance)
        sets = np.tile(self.standard, (n, 1))
        for k in range(n):
            tries = self.values + rng.standard_normal((MOST_DRAWS, len(self.values))) @ L.T
            inside = np.flatnonzero(((tries >= low) & (tries <= high)).all(axis=1))
            if not len(inside):
                what = f"none of {MOST_DRAWS} sets from the Gaussian of the estimate lies within the bounds."
                raise IdentificationError(what, where=f"draws, {self.described.name}")
            sets[k, list(self.base.columns)] = tries[inside[0]]
        return sets

    @checked
    def predict(self, data: Motion | Experiment) -> Array:
        """Each sensor (N, rows) of the log of a drive, predicted from one sample to the next; NaN where it is not read."""
        return above("veridyn.identify.car_fit", "predicted_sensors")(self, data)

    def __repr__(self) -> str:
        return f"CarFit({self.described.name!r}, {len(self.values)} parameters by {self.estimator}, {len(self.rows)} sensors)"

    def plot(self, motion: Any = None, sampling: Any = None) -> Any:
        """Deviations and correlations, for a notebook; the predictions along a drive are those of ``observe(fit.machine(), log)``."""
        if motion is not None:
            hint = "observe(fit.machine(), log).plot() shows a drive."
            raise IdentificationError("a car has no forces of joints to draw.", where="plot, motion", hint=hint)
        return super().plot()

    def summary(self) -> str:
        """Each parameter with deviation and prior, and what the drive does not show."""
        lines = [f"{self.described.name}: {self.fit.summary()}"]
        lines += [f"not shown by this drive: {n}: {why}" for n, why in self.not_shown.items()]
        return "\n".join([*lines, *self.notes])


def groups_of(car: Machine, names: tuple[str, ...], covariance: Array) -> BaseParameters:
    """The estimated parameters of a car as base parameters: each is alone; singular values are those of the information."""
    p = car.parameters
    columns = [p.index(n) for n in names]
    matrix = np.zeros((len(columns), len(p)))
    matrix[range(len(columns)), columns] = 1.0
    return BaseParameters(
        parameters=p,
        columns=tuple(columns),
        matrix=matrix,
        dead=(),
        gap=np.inf,
        singular_values=information(covariance / np.outer(p.typical[columns], p.typical[columns])),
        source=SOURCE,
    )


def information(covariance: Array) -> Array:
    """Singular values, the largest first, of a weighted regressor whose estimates have this covariance: (WᵀW)⁻¹ = C."""
    return 1.0 / np.sqrt(np.maximum(np.linalg.eigvalsh(covariance), np.finfo(np.float64).tiny))


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
    drive = above("veridyn.observe.car.system", "drive_of")(car, given_log)
    seen, log = predictions(car, noise, drive, progress)
    return replace(validation_of_drive(seen, log), fit=None if isinstance(fit, Machine) else fit)


def predicted_sensors(fit: CarFit, data: object) -> Array:
    """Readings (N, rows of the fit) as the filter predicts them, each from the readings before it: y − r; NaN where there is none."""
    drive = one_drive(data, "predict", "a car predicts the sensors of the log of a drive.")
    seen, log = predictions(fit.car, fit.noise, above("veridyn.observe.car.system", "drive_of")(fit.car, drive))
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
