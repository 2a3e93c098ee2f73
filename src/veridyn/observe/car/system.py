"""A car as a system for filters: its lateral motion, the errors of its tyres, the bank of the road, and parameters that are states.

    system = car_system(car, CarNoise())        inputs: speed, steering, longitudinal acceleration; outputs: the sensors of the car

Parameters of `estimate` walk with the state within their bounds; those of `consider` keep their value, and their uncertainty enters the
bands of everything else.

Readings of a drive say what acts from sample to sample, and which of them may be used. Inputs: speed, steer, ax, and the same as means from
each sample to the next. Position, heading, speed and yaw rate follow from satellite positions, wheel speeds and a gyroscope, through gaps
too:

    ẋ = V cos ψ,  ẏ = V sin ψ,  ψ̇ = r,  V̇ = a,  ȧ = w_a,  ṙ = w_r,  ḃ = w_b
    east = x,  north = y,  wheel_j = s_j (V ∓ r t/2),  yaw_rate = r + b,  heading = ψ

s_j is the scale of a wheel's speed, t the track; ψ is the direction of motion of the point whose positions are measured. Where there are
no positions, wheels and gyroscope carry on, and the bands grow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from veridyn.arguments import checked
from veridyn.arrays import Array
from veridyn.errors import DataError, Faults, ModelError, did_you_mean, part_at
from veridyn.mechanics.single_track import MOVING, READING_UNITS, READINGS, lateral_functions, packed
from veridyn.model.car import PARAMETERS, TABLE
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.parameters import Drift, ParameterFit, ParameterGuess
from veridyn.model.single_track import NOISES, CarNoise, car_described, prior_of, with_values
from veridyn.observe.car.path_noise import PathNoise
from veridyn.observe.filters.methods import EKF
from veridyn.observe.fitting import fit_parameters
from veridyn.observe.measurements import Measurements, Status, clock_faults
from veridyn.observe.observation import Reading
from veridyn.observe.result import Belief, Estimates, Track
from veridyn.observe.system import Continuous
from veridyn.progress import Progress, silent
from veridyn.signals.drive import DriveLog, common_clock

ACTING = {"speed": "m/s", "steer": "rad", "ax": "m/s^2"}
NEEDED = ("speed", "steer")
SLOWEST_M_S = 4.0  # slower samples are not used: slip angles mean nothing there


def drive_of(car: Machine, log: Experiment) -> DriveLog:
    """A log on one clock, with the speed, the steering and every sensor of the car; every fault at once, by channel."""
    faults, units = Faults(), ACTING | {s.name: s.unit(False) for s in car.sensors}
    for name, unit in units.items():
        if name not in log:
            if name != "ax":  # a log without it is one of a car that is neither driven nor braked
                hint = f"{did_you_mean(name, log.names)} Give sensors= where the log does not have all of them."
                faults.add("the log has no such channel.", where=part_at("channel", name), expected=unit, hint=hint)
        elif log[name].unit != unit:
            faults.add(
                "its unit is not that of the car.", where=part_at("channel", name), expected=unit, found=log[name].unit
            )
        else:
            faults.extend(clock_faults(log[name].t, f"channel '{name}'"))
    faults.raise_if_any(DataError, log.name)
    t, rate, channels = common_clock({n: log[n] for n in units if n in log}, None, -np.inf, np.inf)
    return DriveLog(t=t, channels=channels, rate=rate)


def lateral_measurements(drive: DriveLog, car: Machine) -> Measurements:
    """The readings of the sensors that the drive has; slow samples have none. Each row has six inputs."""
    missing = [n for n in NEEDED if n not in drive.channels]
    outputs = tuple(s.name for s in car.sensors if s.name in drive.channels)
    if missing or not outputs:
        own = ", ".join(s.name for s in car.sensors) or "of which it has none"
        wanted = f"{' and '.join(NEEDED)}, and one of the car's sensors: {own}"
        raise DataError(
            "the log has too few channels for a lateral observer.",
            where="log, columns",
            expected=wanted,
            found=", ".join(drive.channels),
        )
    c = drive.channels
    inputs = np.column_stack([c["speed"], c["steer"], c["ax"] if "ax" in c else np.zeros(len(drive.t))])
    holes = ~np.isfinite(inputs).all(axis=1)
    if holes.all():
        raise DataError("the inputs speed, steer and ax are never there together.", where="log")
    for j in range(inputs.shape[1]):
        good = np.isfinite(inputs[:, j])
        inputs[:, j] = np.interp(drive.t, drive.t[good], inputs[good, j])
    # What acts from one sample to the next is the mean of both; it is used when the next one is there.
    inputs = np.column_stack([inputs, 0.5 * (inputs + np.concatenate([inputs[1:], inputs[-1:]]))])
    values = np.column_stack([c[n] for n in outputs])
    flags = np.where(np.isfinite(values), Status.USED, Status.MISSING)
    flags[(inputs[:, 0] < SLOWEST_M_S) | holes] = Status.MISSING
    return Measurements(drive.t, values, outputs, flags.astype(np.int8), inputs)


def first_yaw_rate(log: Measurements, car: Machine) -> float:
    """The first reading of a gyroscope, zero where there is none."""
    for s in car.sensors:
        if s.on == "yaw_rate" and s.name in log.names:
            column = log.values[:, log.names.index(s.name)]
            good = column[np.isfinite(column)]
            return float(good[0]) if len(good) else 0.0
    return 0.0


STATES = ("east", "north", "heading", "speed", "acceleration", "yaw_rate", "gyro_bias")
STATE_UNITS = ("m", "m", "rad", "m/s", "m/s^2", "rad/s", "rad/s")
WHEEL_SIDES = {
    "wheel_fl": -0.5,
    "wheel_fr": 0.5,
    "wheel_rl": -0.5,
    "wheel_rr": 0.5,
}  # of the track, positive to the right


def path_system(outputs: tuple[str, ...], noise: PathNoise, track: float) -> Continuous:
    """The way of a car as a system; `outputs` of east, north, wheel_fl … wheel_rr and yaw_rate."""
    odd = [name for name in outputs if name not in ("east", "north", "yaw_rate", *WHEEL_SIDES)]
    if odd:
        raise ModelError(f"there is no sensor '{odd[0]}' of a way.", where="path of a car")
    H0 = np.zeros((len(outputs), 7))
    R = np.zeros(len(outputs))
    for i, name in enumerate(outputs):
        if name in WHEEL_SIDES:
            scale = noise.scales.get(name, 1.0)
            H0[i, 3], H0[i, 5], R[i] = scale, scale * WHEEL_SIDES[name] * track, noise.wheel**2
        elif name == "yaw_rate":
            H0[i, 5], H0[i, 6], R[i] = 1.0, 1.0, noise.gyro**2
        else:
            H0[i, STATES.index(name)], R[i] = 1.0, noise.position**2

    def f(x: Array, u: Array, t: float) -> Array:
        return np.array([x[3] * np.cos(x[2]), x[3] * np.sin(x[2]), x[5], x[4], 0.0, 0.0, 0.0])

    def F(x: Array, u: Array, t: float) -> Array:
        A, c, s = np.zeros((7, 7)), np.cos(x[2]), np.sin(x[2])
        A[0, 2], A[0, 3], A[1, 2], A[1, 3] = -x[3] * s, c, x[3] * c, s
        A[2, 5] = A[3, 4] = 1.0
        return A

    Q = [0.0, 0.0, 0.0, 0.0, noise.jerk**2, noise.yaw**2, noise.bias**2]
    return Continuous(STATES, outputs, f, lambda x, u, t: H0 @ x, Q, R, F, lambda x, u, t: H0, integrator="midpoint")


def path_start(east: float, north: float, heading: float, speed: float) -> Belief:
    """Where the way begins."""
    sigma = np.array([1.0, 1.0, 0.5, 1.0, 2.0, 0.2, 0.01])
    return Belief(np.array([east, north, heading, speed, 0.0, 0.0, 0.0]), sigma**2)


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
