"""A car as a system for filters: its lateral motion, the errors of its tyres, the bank of the road, and parameters that are states.

    system = car_system(car, CarNoise())        inputs: speed, steering, longitudinal acceleration; outputs: the sensors of the car

Parameters of `estimate` walk with the state within their bounds; those of `consider` keep their value, and their uncertainty enters the
bands of everything else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from veridyn.arguments import checked
from veridyn.arrays import Array
from veridyn.errors import Faults, ModelError, did_you_mean
from veridyn.mechanics.single_track import MOVING, READING_UNITS, READINGS, lateral_functions, packed
from veridyn.model.car import PARAMETERS, TABLE
from veridyn.model.machine import Machine
from veridyn.model.parameters import Drift, ParameterFit, ParameterGuess
from veridyn.model.single_track import NOISES, CarNoise, car_described, prior_of, with_values
from veridyn.observe.car.log import first_yaw_rate, lateral_measurements
from veridyn.observe.filters.ekf import EKF
from veridyn.observe.fitting import fit_parameters
from veridyn.observe.result import Belief, Estimates, Track
from veridyn.observe.system import Continuous
from veridyn.observe.virtual import Reading
from veridyn.progress import Progress, silent
from veridyn.signals.drive import DriveLog

MOVING_UNITS = ("m/s", "rad/s", "rad", "rad", "rad")
LONGEST_STEP_S = 0.05
INFLATION_S = 20.0  # memory of the innovations' size
MOST_NIS = 25.0  # of a reading: one outlier does not widen the bands of the next twenty seconds
LEAST_READINGS = 40.0  # before the innovations' size means anything
FROZEN_SHARE = (
    0.71  # of a deviation at the start: with more left, and so half of the variance, the drive showed too little
)


@checked
def car_system(
    car: Machine,
    noise: CarNoise,
    outputs: Sequence[str] | None = None,
    estimate: Sequence[str] = (),
    consider: Sequence[str] = (),
) -> Continuous:
    """The car as a :class:`~veridyn.observe.system.Continuous` system with compiled equations.

    `outputs`: sensors of the car by name, all of them by default.
    """
    by_name = {s.name: s for s in car.sensors}
    chosen = [*by_name] if outputs is None else [*outputs]
    _check(car, chosen, (*estimate, *consider))
    extra = (*estimate, *consider)
    q = np.zeros(5 + len(extra))
    given = car.parameters
    slip, bank = given["slip_time"], given["bank_time"]
    q[:5] = (
        noise.lateral**2,
        noise.yaw**2,
        2.0 * noise.slip_error**2 / slip,
        2.0 * noise.slip_error**2 / slip,
        2.0 * noise.bank**2 / bank,
    )
    for j, name in enumerate(extra):
        q[5 + j] = noise.walk.get(name, 0.0) ** 2
    f, F, h, H = lateral_functions()
    p = packed(
        given.values,
        car_described(car).tyre,
        [PARAMETERS.index(n) for n in extra],
        [READINGS.index(str(by_name[n].on)) for n in chosen],
    )
    return Continuous(
        (*MOVING, *extra),
        tuple(chosen),
        f,
        h,
        q,
        [by_name[name].variance for name in chosen],
        F,
        H,
        parameters=p,
        limits={n: given.bounds[n] for n in estimate} or None,
        consider=tuple(consider),
        integrator="midpoint",
        step=LONGEST_STEP_S,
    )


@checked
def car_start(
    car: Machine,
    noise: CarNoise,
    yaw_rate: float,
    estimate: Sequence[str] = (),
    consider: Sequence[str] = (),
    drifts: Mapping[str, Drift] | None = None,
) -> Belief:
    """A car that goes nearly straight with this yaw rate; parameters with the covariance that the machine has of them, widened by how far
    they drift."""
    extra = (*estimate, *consider)
    x = np.array([0.0, yaw_rate, 0.0, 0.0, 0.0, *(car.parameters[n] for n in extra)])
    sensor = min(
        (float(np.hypot(s.sigma, s.quantum / 12.0**0.5)) for s in car.sensors if s.on == "yaw_rate"), default=0.05
    )
    sigma = [1.0, max(3.0 * sensor, 0.02), noise.slip_error, noise.slip_error, noise.bank]
    P = np.diag(np.array([*sigma, *([0.0] * len(extra))]) ** 2)
    known = car.uncertainty
    at = {n: known.names.index(n) for n in extra if n in known.names} if known is not None else {}
    if known is not None:
        rows = [5 + extra.index(n) for n in at]
        P[np.ix_(rows, rows)] = known.covariance[np.ix_([*at.values()], [*at.values()])]
    for name, drift in (drifts or {}).items():
        P[5 + extra.index(name), 5 + extra.index(name)] += drift.by**2
    return Belief(x, P)


class CarQuantities:
    """What sensors of `READINGS` would read of an observed car, by name: :meth:`at` one state."""

    def __init__(self, system: Continuous, names: Sequence[str]) -> None:
        odd = [name for name in names if name not in READINGS]
        if odd:
            raise ModelError(
                f"there is no quantity '{odd[0]}'.", where="virtual sensor", hint=did_you_mean(odd[0], READINGS)
            )
        _, _, self._h, self._H = lateral_functions()
        p = np.asarray(system.parameters)
        k = int(p[len(PARAMETERS) + 1])
        codes = [float(READINGS.index(name)) for name in names]
        self._own = np.concatenate([p[: len(PARAMETERS) + 2 + k], [float(len(codes))], codes])
        self.names, self.units = tuple(names), tuple(READING_UNITS[READINGS.index(name)] for name in names)

    def at(self, x: Array, P: Array, u: Array) -> tuple[Array, Array]:
        """Values (k,) at a state with covariance P and inputs u, and the deviations (k,) that P implies."""
        rows = self._H(x, u, 0.0, self._own)
        return self._h(x, u, 0.0, self._own), np.sqrt(np.maximum(((rows @ P) * rows).sum(axis=1), 0.0))


def virtual_sensors(
    found: Estimates, system: Continuous, inputs: Array, names: Sequence[str], track: Track | None = None
) -> dict[str, Reading]:
    """What sensors of `READINGS` would have read, by name, with deviations: those of the states, times :func:`inflation`.

    `track`: the states where they are not the filter's own, as a smoother's.
    """
    quantities, states = CarQuantities(system, names), found if track is None else track
    values, sigma = np.empty((len(found), len(names))), np.empty((len(found), len(names)))
    for i, (x, P, u) in enumerate(zip(states.x, states.P, inputs, strict=True)):
        values[i], sigma[i] = quantities.at(x, P, u)
    sigma *= inflation(found)[:, None]
    return {
        name: Reading(name, (name,), (unit,), found.t, values[:, j : j + 1], sigma[:, j : j + 1])
        for j, (name, unit) in enumerate(zip(names, quantities.units, strict=True))
    }


class Inflation:
    """The factor of :func:`inflation`, reading by reading."""

    def __init__(self) -> None:
        self._mean = self._weight = 0.0

    def __call__(self, nis: float, dof: int, dt: float) -> float:
        """The factor after readings with this `nis` over `dof` of them, `dt` seconds after those before."""
        kept = float(np.exp(-dt / INFLATION_S))
        self._mean, self._weight = kept * self._mean + min(nis, MOST_NIS * dof), kept * self._weight + dof
        return float(np.sqrt(max(1.0, self._mean / self._weight))) if self._weight >= LEAST_READINGS else 1.0


def inflation(found: Estimates) -> Array:
    """Factors (N,) of at least one by which innovations of the last `INFLATION_S` seconds are larger than the filter states.

    A drive may be harder than the one that the noise was found on, and a model that follows its sensors less well follows what nobody
    measures less well too. It looks backwards only.
    """
    steps, factor = np.diff(found.t, prepend=found.t[0]), Inflation()
    rows = zip(found.nis.tolist(), found.dof.tolist(), steps.tolist(), strict=True)
    return np.array([factor(nis, dof, dt) for nis, dof, dt in rows])


def frozen_parameters(found: Estimates, estimate: Sequence[str], start: Belief) -> dict[str, float]:
    """Estimated parameters of which the drive showed nothing, name → share of the deviation that is left."""
    sigma = np.sqrt(np.diag(start.P))
    shares = {n: float(found.sigma[-1, found.states.index(n)] / sigma[found.states.index(n)]) for n in estimate}
    return {n: share for n, share in shares.items() if share > FROZEN_SHARE}


def state_units(system: Continuous) -> tuple[str, ...]:
    """The unit of each state."""
    return (*MOVING_UNITS, *(TABLE[n].unit for n in system.states[5:]))


def _check(car: Machine, outputs: Sequence[str], names: Sequence[str]) -> None:
    faults, own = Faults(), [s.name for s in car.sensors]
    for name in outputs:
        if name not in own:
            faults.add(f"there is no sensor '{name}'.", where=car.name, hint=did_you_mean(name, own))
    for name in names:
        if name not in TABLE:
            faults.add(f"there is no parameter '{name}'.", where=car.name, hint=did_you_mean(name, PARAMETERS))
    faults.raise_if_any(ModelError)


# Prior deviation of the logarithm of a tuned noise: of sensors, and of errors that the data hardly show
WIDE, NARROW = 1.0, 0.5


def most_likely(
    car: Machine,
    noise: CarNoise,
    tuned: Sequence[str],
    estimated: Sequence[str],
    drive: DriveLog,
    progress: Progress = silent,
) -> ParameterFit:
    """The parameters `estimated` of a car and the noises of `tuned` ("noise.NAME"), each with its prior, most likely along a drive."""
    log = lateral_measurements(drive, car)
    guesses = {
        n: ParameterGuess(value=b.value, sigma=b.sigma, lower=b.lower, upper=b.upper, positive=b.positive)
        for n, b in ((n, prior_of(car, n)) for n in estimated)
    }
    sensors = {s.name: s for s in car.sensors}
    for n in tuned:
        if n in log.names or n in NOISES:
            value = sensors[n].sigma if n in log.names else float(getattr(noise, n))
            spread = NARROW if n in ("slip_error", "bank") else WIDE
            guesses[f"noise.{n}"] = ParameterGuess(value=value, sigma=spread * value, positive=True)

    def build(values: Mapping[str, float]) -> Continuous:
        return car_system(*with_values(car, noise, values), log.names)

    start = car_start(car, noise, first_yaw_rate(log, car))
    return fit_parameters(EKF(), build, guesses, [(log, start)], progress=progress)
