"""The parameters of a car from a drive: by the innovations of its observer, with the priors of the study; and by straight lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault
from veridyn.model.car import TABLE
from veridyn.model.car_machine import prior_of, with_exchanged_axles
from veridyn.model.machine import Machine
from veridyn.model.uncertainty import Uncertainty
from veridyn.observe.ekf import EKF
from veridyn.observe.fitting import ParameterFit, ParameterGuess, fit_parameters
from veridyn.observe.measurements import Measurements, Status
from veridyn.observe.system import Continuous
from veridyn.observe.vehicle import VehicleNoise, vehicle_start, vehicle_system
from veridyn.progress import Progress
from veridyn.studies.config.vehicle import VehicleNoiseSettings
from veridyn.studies.run.vehicle_log import DriveLog

Array = NDArray[np.float64]
OUTPUTS = ("yaw_rate", "ay", "roll")  # that a lateral observer may take, of those that the log has and the noise names
NEEDED = ("speed", "steer")
SLOWEST_M_S = 4.0  # slower samples are not used: slip angles mean nothing there
WIDE, NARROW = (
    1.0,
    0.5,
)  # deviation of the logarithm of a tuned noise: of sensors, and of errors that the data hardly show
SWAP_EVIDENCE = 8.0  # of the logarithm of the likelihood
KNOWN_TYRES = 0.25  # relative deviation of tyre stiffness up to which exchanged axles show


@dataclass(frozen=True, eq=False)
class VehicleFit:
    """A car with identified values and deviations, its noise, and the fit they come from."""

    car: Machine
    noise: VehicleNoise
    fit: ParameterFit

    @property
    def names(self) -> tuple[str, ...]:
        """Parameters of the car that were fitted."""
        return tuple(n for n in self.fit.values if n in TABLE)


def noise_of(s: VehicleNoiseSettings) -> VehicleNoise:
    return VehicleNoise(
        slip_error=s.slip_error, bank=s.bank, lateral=s.lateral, yaw=s.yaw, sensors=dict(s.sensors), walk=dict(s.walk)
    )


def lateral_measurements(drive: DriveLog, noise: VehicleNoise) -> Measurements:
    """The readings of a drive for the lateral observer; slow samples have none. Each row has six inputs."""
    missing = [n for n in NEEDED if n not in drive.channels]
    outputs = tuple(n for n in OUTPUTS if n in drive.channels and n in noise.sensors)
    if missing or not outputs:
        wanted = f"{' and '.join(NEEDED)}, and one of {', '.join(OUTPUTS[:2])}"
        raise DataError(
            Fault(
                "the log has too few channels for a lateral observer.",
                "log, columns",
                wanted,
                ", ".join(drive.channels),
            )
        )
    c = drive.channels
    inputs = np.column_stack([c["speed"], c["steer"], c["ax"] if "ax" in c else np.zeros(len(drive.t))])
    holes = ~np.isfinite(inputs).all(axis=1)
    if holes.all():
        raise DataError(Fault("the inputs speed, steer and ax are never there together.", "log"))
    for j in range(inputs.shape[1]):
        good = np.isfinite(inputs[:, j])
        inputs[:, j] = np.interp(drive.t, drive.t[good], inputs[good, j])
    # What acts from one sample to the next is the mean of both; it is used when the next one is there.
    inputs = np.column_stack([inputs, 0.5 * (inputs + np.concatenate([inputs[1:], inputs[-1:]]))])
    values = np.column_stack([c[n] for n in outputs])
    flags = np.where(np.isfinite(values), Status.USED, Status.MISSING)
    flags[(inputs[:, 0] < SLOWEST_M_S) | holes] = Status.MISSING
    return Measurements(drive.t, values, outputs, flags.astype(np.int8), inputs)


def fit_vehicle(car: Machine, s: VehicleNoiseSettings, drive: DriveLog, progress: Progress) -> VehicleFit:
    """The uncertain parameters of the car, and the noises of `tuned`, under which this drive and the priors are most likely."""
    noise = noise_of(s)
    log = lateral_measurements(drive, noise)
    estimated = [n for n, state in zip(TABLE, car.parameters.states, strict=True) if state == "estimated"]
    guesses = {
        n: ParameterGuess(value=b.value, sigma=b.sigma, lower=b.lower, upper=b.upper, positive=b.positive)
        for n, b in ((n, prior_of(car, n)) for n in estimated)
    }
    for n in s.tuned:
        if n in log.names or hasattr(noise, n):
            value = noise.sensors[n] if n in log.names else float(getattr(noise, n))
            spread = NARROW if n in ("slip_error", "bank") else WIDE
            guesses[f"noise.{n}"] = ParameterGuess(value=value, sigma=spread * value, positive=True)

    def build(values: Mapping[str, float]) -> Continuous:
        return vehicle_system(*_with(car, noise, values), log.names)

    start = vehicle_start(car, noise, first_yaw_rate(log))
    fit = fit_parameters(EKF(), build, guesses, [(log, start)], progress=progress)
    found, tuned = _with(car, noise, fit.values)
    at = [list(fit.values).index(n) for n in estimated]
    known = Uncertainty(tuple(estimated), fit.covariance[np.ix_(at, at)])
    return VehicleFit(found.with_uncertainty(known), tuned, fit)


def first_yaw_rate(log: Measurements) -> float:
    """The first reading of the gyroscope, zero where there is none."""
    if "yaw_rate" not in log.names:
        return 0.0
    column = log.values[:, log.names.index("yaw_rate")]
    good = column[np.isfinite(column)]
    return float(good[0]) if len(good) else 0.0


def swapped_axles_fault(
    found: VehicleFit, car: Machine, s: VehicleNoiseSettings, drive: DriveLog, progress: Progress
) -> Fault | None:
    """Distances of the axles that are exchanged: the drive is far more likely the other way round, tyres and priors considered."""
    other = exchanged_axles(car)
    if other is None:
        return None
    swapped = fit_vehicle(other, s, drive, progress)
    gain = _evidence(swapped.fit) - _evidence(found.fit)
    if gain < SWAP_EVIDENCE:
        return None
    a, b = car.parameters["front"], car.parameters["rear"]
    return Fault(
        "the distances of the front and the rear axle seem to be exchanged.",
        "vehicle, front and rear",
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


def _with(car: Machine, noise: VehicleNoise, values: Mapping[str, float]) -> tuple[Machine, VehicleNoise]:
    """Car and noise with these values; "noise.NAME" is of the noise."""
    own = {n: v for n, v in values.items() if n in TABLE}
    tuned = {n.removeprefix("noise."): v for n, v in values.items() if n not in TABLE}
    sensors = {n: tuned.pop(n, v) for n, v in noise.sensors.items()}
    return car.with_parameters(own), replace(noise, sensors=sensors, **tuned)
