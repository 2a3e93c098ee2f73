"""The parameters of a car from a drive: those under which the innovations of its observer are most likely, with the priors of the machine.

fit = identify_car(car, log, Innovations(tuned=("bank",)));  fit.machine()      the car with values and covariance
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import (
    CapabilityError,
    DataError,
    Fault,
    IdentificationError,
    IdentificationWarning,
    Limit,
    VeridynError,
    did_you_mean,
    part_at,
    warn,
)
from veridyn.model.car import TABLE
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.parameters import Uncertainty
from veridyn.model.single_track import prior_of, with_exchanged_axles
from veridyn.observe.car.log import drive_of, first_yaw_rate, lateral_measurements
from veridyn.observe.car.noise import CarNoise
from veridyn.observe.car.system import car_start, car_system
from veridyn.observe.ekf import EKF
from veridyn.observe.fitting import ParameterFit, ParameterGuess, fit_parameters
from veridyn.observe.system import Continuous
from veridyn.progress import Progress, silent
from veridyn.settings import Settings
from veridyn.signals.drive import DriveLog

Array = NDArray[np.float64]
NOISES = ("slip_error", "bank", "lateral", "yaw")
WIDE, NARROW = (
    1.0,
    0.5,
)  # deviation of the logarithm of a tuned noise: of sensors, and of errors that the data hardly show
SHOWS_NOTHING = 0.8  # of the prior's deviation: with more left, the drive does not show the parameter
SWAP_EVIDENCE = 8.0  # of the logarithm of the likelihood
KNOWN_TYRES = 0.25  # relative deviation of tyre stiffness up to which exchanged axles show
NO_REGRESSOR = Limit(
    "tyres are not linear in its parameters, so that there is no regressor",
    "Use 'innovations', or leave the method out.",
)


@dataclass(frozen=True, repr=False)
class Innovations(Settings):
    """Estimates the parameters of a car by the innovations of its extended Kalman filter, together with their priors.

    `noise`: what the equations leave out. `tuned`: which of slip_error, bank, lateral, yaw and the sensors' own noises (by name) are found
    with the parameters, within a factor e or so of what is stated.
    """

    error: ClassVar[type[VeridynError]] = IdentificationError
    name: ClassVar[str] = "innovations"

    noise: CarNoise = field(default_factory=CarNoise)
    tuned: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class CarFit:
    """A car with identified values and their covariance, the noise that goes with them, and the fit they come from.

    `largest`: the largest |ay| of the drive, m/s², where it has one; NaN otherwise.
    """

    car: Machine
    noise: CarNoise
    fit: ParameterFit
    largest: float = float("nan")
    notes: tuple[str, ...] = ()

    def machine(self) -> Machine:
        """The car with the identified values and their covariance; every verb for cars takes it."""
        return self.car

    @property
    def names(self) -> tuple[str, ...]:
        """Parameters of the car that were fitted."""
        return tuple(n for n in self.fit.values if n in TABLE)

    @property
    def units(self) -> tuple[str, ...]:
        return tuple(TABLE[n].unit for n in self.names)

    @property
    def values(self) -> Array:
        return np.array([self.fit.values[n] for n in self.names])

    @property
    def sigma(self) -> Array:
        """Standard deviations, for innovations that are correlated."""
        return np.array([self.fit.sigma[n] for n in self.names])

    @property
    def relative_sigma(self) -> Array:
        """100 σ/|value|, NaN where the value is zero."""
        v = np.abs(self.values)
        return 100.0 * self.sigma / np.where(v > 0.0, v, np.nan)

    @property
    def covariance(self) -> Array:
        """Of the parameters, in the order of `names`."""
        at = [list(self.fit.values).index(n) for n in self.names]
        return self.fit.covariance[np.ix_(at, at)]

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
        return (Fault(what, where=self.car.name, hint=hint),)

    def summary(self) -> str:
        """Each parameter with deviation and prior, and what the drive does not show."""
        lines = [f"{self.car.name}: {self.fit.summary()}"]
        lines += [f"not shown by this drive: {n}: {why}" for n, why in self.not_shown.items()]
        return "\n".join([*lines, *self.notes])


def identify_car(
    machine: Machine,
    motion: Experiment,
    method: Innovations | str = "innovations",
    *,
    progress: Progress = silent,
    **others: Any,
) -> CarFit:
    """What ``identify`` does with a car of a few numbers: `motion` is the log of a drive.

    The words of other methods, and settings that belong to a regressor, are refused by name.
    """
    if others:
        name = next(iter(others))
        raise IdentificationError(
            Fault(
                f"'{name}' belongs to equations that are linear in the parameters.",
                where="identify",
                hint="A car of a few numbers is identified by identify(car, log, Innovations(…)).",
            ),
            machine.name,
        )
    if not isinstance(motion, Experiment):
        raise DataError(
            Fault("a car is identified from the log of a drive.", "identify", "an Experiment", type(motion).__name__)
        )
    chosen = Innovations() if method == Innovations.name else method
    if not isinstance(chosen, Innovations):
        asked = f"estimator '{getattr(method, 'name', method)}'"
        raise CapabilityError("single_track", asked, *NO_REGRESSOR, where=f"identify, {machine.name}")
    found = fit_car(machine, chosen, drive_of(machine, motion), progress)
    for fault in found.faults:
        warn(IdentificationWarning, fault)
    return found


def fit_car(car: Machine, method: Innovations, drive: DriveLog, progress: Progress = silent) -> CarFit:
    """The estimated parameters of the car, and the noises of `tuned`, under which this drive and the priors are most likely."""
    estimated = [n for n, state in zip(TABLE, car.parameters.states, strict=True) if state == "estimated"]
    _check(car, method, estimated)
    noise = method.noise
    log = lateral_measurements(drive, car)
    guesses = {
        n: ParameterGuess(value=b.value, sigma=b.sigma, lower=b.lower, upper=b.upper, positive=b.positive)
        for n, b in ((n, prior_of(car, n)) for n in estimated)
    }
    sensors = {s.name: s for s in car.sensors}
    for n in method.tuned:
        if n in log.names or n in NOISES:
            value = sensors[n].sigma if n in log.names else float(getattr(noise, n))
            spread = NARROW if n in ("slip_error", "bank") else WIDE
            guesses[f"noise.{n}"] = ParameterGuess(value=value, sigma=spread * value, positive=True)

    def build(values: Mapping[str, float]) -> Continuous:
        return car_system(*_with(car, noise, values), log.names)

    start = car_start(car, noise, first_yaw_rate(log, car))
    fit = fit_parameters(EKF(), build, guesses, [(log, start)], progress=progress)
    found, tuned = _with(car, noise, fit.values)
    at = [list(fit.values).index(n) for n in estimated]
    known = Uncertainty(tuple(estimated), fit.covariance[np.ix_(at, at)])
    largest = [
        float(np.nanmax(np.abs(drive.channels[s.name]))) for s in car.sensors if s.on == "ay" and s.name in log.names
    ]
    return CarFit(found.with_uncertainty(known), tuned, fit, largest[0] if largest else float("nan"))


def swapped_axles_fault(
    found: CarFit, car: Machine, method: Innovations, drive: DriveLog, progress: Progress
) -> Fault | None:
    """Distances of the axles that are exchanged: the drive is far more likely the other way round, tyres and priors considered."""
    other = exchanged_axles(car)
    if other is None:
        return None
    swapped = fit_car(other, method, drive, progress)
    gain = _evidence(swapped.fit) - _evidence(found.fit)
    if gain < SWAP_EVIDENCE:
        return None
    a, b = car.parameters["front"], car.parameters["rear"]
    return Fault(
        "the distances of the front and the rear axle seem to be exchanged.",
        "car, front and rear",
        f"front {b:g} and rear {a:g} m, by {gain:.0f} units of log-likelihood",
        f"front {a:g} and rear {b:g} m",
        "Both are measured from the centre of mass.",
    )


def exchanged_axles(car: Machine) -> Machine | None:
    """The car with its axles the other way round; None where a drive cannot tell: tyres hardly known beforehand, or equal distances."""
    a, b = car.parameters["front"], car.parameters["rear"]
    tyres = [prior_of(car, n) for n in ("front_stiffness", "rear_stiffness")]
    vague = max(t.sigma / t.value for t in tyres) > KNOWN_TYRES
    if vague or abs(a - b) < 0.02 * (a + b):
        return None
    return with_exchanged_axles(car)


def _evidence(fit: ParameterFit) -> float:
    """log p of readings and parameters together."""
    z = [
        (np.log(fit.values[n] / g.value) * g.value if g.positive else fit.values[n] - g.value) / g.sigma
        for n, g in fit.guesses.items()
    ]
    return fit.log_likelihood - 0.5 * float(np.sum(np.square(z)))


def _with(car: Machine, noise: CarNoise, values: Mapping[str, float]) -> tuple[Machine, CarNoise]:
    """Car and noise with these values; "noise.NAME" is of the noise, or of a sensor."""
    own = {n: v for n, v in values.items() if n in TABLE}
    tuned = {n.removeprefix("noise."): v for n, v in values.items() if n not in TABLE}
    if any(s.name in tuned for s in car.sensors):
        car = replace(car, sensors=tuple(replace(s, sigma=tuned.pop(s.name, s.sigma)) for s in car.sensors))
    return car.with_parameters(own), replace(noise, **tuned)


def _check(car: Machine, method: Innovations, estimated: list[str]) -> None:
    faults = []
    if not estimated:
        hint = "Give it a deviation in the model file: front_stiffness: {value: 15, sigma: 6}."
        faults.append(Fault("no parameter of this car is estimated.", where=part_at("parameters"), hint=hint))
    for n in estimated:
        if not prior_of(car, n).sigma > 0.0:
            what = f"the estimated parameter '{n}' has no prior deviation."
            hint = (
                "A drive shows most parameters of a car only together with what is known beforehand: give it a sigma."
            )
            faults.append(Fault(what, where=part_at("car", n), hint=hint))
    known = (*NOISES, *(s.name for s in car.sensors))
    faults += [
        Fault(f"there is no noise '{n}' to tune.", where="Innovations.tuned", hint=did_you_mean(n, known))
        for n in method.tuned
        if n not in known
    ]
    if faults:
        raise IdentificationError(faults, car.name)
