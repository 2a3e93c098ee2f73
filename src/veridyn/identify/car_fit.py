"""The fit of a car of a few numbers, whose equations are those of its observer, and how it does on a drive.

Each sensor is predicted from one sample to the next, against what it reads:

    r = y(t_k) − ŷ(t_k | readings up to t_{k−1}),        NIS = mean of r²/var(r) as the filter states it, ideal 1

A car answers to forces that nobody measures, so that it is judged by predictions of its filter and not by forces of joints.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from veridyn.arguments import checked
from veridyn.arrays import Array
from veridyn.errors import CapabilityError, DataError, Fault, IdentificationError, IdentificationWarning, Limit, warn
from veridyn.identify.base import BaseParameters
from veridyn.identify.result import Fit, HeldOutRows
from veridyn.identify.validation import Validation
from veridyn.inference.error_measures import Moments, RowReport
from veridyn.inference.finding import FoundCause, Mistake
from veridyn.inference.log_inspection import log_mistakes
from veridyn.inference.verdict import Verdict
from veridyn.lazy import above
from veridyn.model.car import TABLE
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.model.parameters import ParameterFit, Uncertainty
from veridyn.model.sensor import Sensor
from veridyn.model.single_track import CarNoise, with_values
from veridyn.progress import Progress, silent
from veridyn.signals.drive import DriveLog, log_faults

SHOWS_NOTHING = 0.8  # of the prior's deviation: with more left, the drive does not show the parameter
MOST_DRAWS = 1000  # for one set within the bounds
TRAINED = 0.7  # of a drive, where nothing is said of what judges
FEWEST_SAMPLES = 50  # of a drive, from which on it judges
INPUTS = ("speed", "steer", "ax")
ANOTHER_DRIVE = (
    "The drive may differ from the one that was learned from, or the noise of the study from that of the sensors."
)
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

    @property
    def verdict(self) -> Verdict:
        """How good it is, why it is no better, and what it may be used for."""
        return above("veridyn.identify.car_verdict", "car_verdict")(self)

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

    def with_findings(self, logs: Sequence[Experiment], more: Sequence[Fault] = ()) -> CarFit:
        """The fit with what logs show to be wrong, its own and those that judge, and what else was found: findings, and warnings."""
        car = self.described
        moved = [
            n for n in INPUTS if any(n in log and np.ptp(log[n].values) > 0.0 for log in logs)
        ]  # a constant speed is none
        called = {name: name for name in moved} | {s.name: _role(s) for s in car.sensors}
        faults = [f for log in logs for f in log_faults(log, car)]
        found = [*log_mistakes(logs, called), *(Mistake("drive", f) for f in (*faults, *more))]
        for mistake in found:
            warn(IdentificationWarning, mistake.fault)
        notes = (*self.notes, *(f"suspected: {mistake}" for mistake in found))
        return replace(self, notes=notes, findings=(*self.findings, *_ranked(self, found)))

    def with_validation(self, drive: DriveLog, progress: Progress = silent, *, checks: bool = True) -> CarFit:
        """The fit judged by a drive that it did not use. Innovations unlike those stated are a finding where there is no other."""
        if len(drive.t) <= FEWEST_SAMPLES:
            return self
        before = replace(self.described, sensors=self.car.sensors)
        seen, log = predictions(self.car, self.noise, drive, progress)
        serious = above("veridyn.observe.consistency.findings", "serious_findings")(replace(seen, settled=SETTLING))
        found = [Mistake("innovations", Fault(text, "validation", hint=ANOTHER_DRIVE)) for text in serious]
        found = [] if self.findings or not checks else found  # a cause that is named explains it
        for mistake in found:
            warn(IdentificationWarning, mistake.fault)
        return replace(
            self,
            unseen=HeldOutRows(
                rows=drive_rows(seen, log), before=drive_rows(*predictions(before, self.noise, drive, progress))
            ),
            findings=(*self.findings, *_ranked(self, found)),
        )

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
        return "\n".join([*lines, *self.notes, self.verdict.summary()])


def _ranked(fit: Fit, mistakes: Sequence[Mistake]) -> list[FoundCause]:
    """Further findings of a fit."""
    return [mistake.finding(rank) for rank, mistake in enumerate(mistakes, len(fit.findings) + 1)]


def _role(sensor: Sensor) -> str:
    """The name of a sensor's channel in a log of joints, by which inspection knows that a car rests."""
    return f"qd.{sensor.on}" if sensor.on == "yaw_rate" else sensor.name


def held_out_of(drive: DriveLog) -> tuple[DriveLog, DriveLog]:
    """What is learned from, and the rest, which judges: the last part of the drive."""
    middle = float(drive.t[0] + TRAINED * (drive.t[-1] - drive.t[0]))
    return drive.between(float(drive.t[0]), middle), drive.between(middle, np.inf)


def cut(log: Experiment, low: float, high: float) -> Experiment:
    """The samples of a log from `low` up to `high` seconds."""
    kept = {n: (c, (c.t >= low) & (c.t < high)) for n, c in log.channels.items()}
    return Experiment({n: replace(c, t=c.t[k], values=c.values[k]) for n, (c, k) in kept.items()}, log.name)


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
