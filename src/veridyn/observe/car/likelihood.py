"""The most likely parameters of a car: those under which the innovations of its filter along a drive, and the priors, are most likely."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from veridyn.mechanics.single_track.of_machine import NOISES, CarNoise, with_values
from veridyn.model.machine import Machine
from veridyn.model.parameters import ParameterFit, ParameterGuess
from veridyn.model.single_track import prior_of
from veridyn.observe.car.log import first_yaw_rate, lateral_measurements
from veridyn.observe.car.system import car_start, car_system
from veridyn.observe.filters.ekf import EKF
from veridyn.observe.fitting import fit_parameters
from veridyn.observe.system import Continuous
from veridyn.progress import Progress, silent
from veridyn.signals.drive import DriveLog

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
