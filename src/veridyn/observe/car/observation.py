"""A car of a few numbers observed: its lateral motion with bands, along a drive or beside a running program, and what nobody measures.

Speed, steering and longitudinal acceleration act, and what acts from one sample to the next is the mean of both. Beside a program that is
known when the next sample comes, which is when the filter goes there: so samples that come one by one give what the whole log gives.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.arrays import Array
from veridyn.errors import CapabilityError, DataError, Limit, ModelError
from veridyn.inference.finding import FoundCause
from veridyn.lazy import import_module
from veridyn.mechanics.single_track import READINGS
from veridyn.model.car import TABLE
from veridyn.model.machine import Machine
from veridyn.model.sensor import Sensor, chosen_sensors
from veridyn.model.single_track import CarNoise, uncertain
from veridyn.observe.car.system import (
    SLOWEST_M_S,
    CarQuantities,
    Inflation,
    car_start,
    car_system,
    first_yaw_rate,
    frozen_parameters,
    lateral_measurements,
    state_units,
    virtual_sensors,
)
from veridyn.observe.consistency.nis import Consistency
from veridyn.observe.consistency.observability import ExtraSensor
from veridyn.observe.filters.filter import Filter
from veridyn.observe.filters.methods import EKF, UKF, Smoother
from veridyn.observe.filters.run import Smoothed, in_order, run
from veridyn.observe.measurements import Measurements
from veridyn.observe.observation import Observation, Reading, Virtual, smoothed
from veridyn.observe.observer_setup import ObserverSetup, determined
from veridyn.observe.process_noise import DriftingStates, ProcessNoise, followed_drifts
from veridyn.observe.result import Belief, Estimates
from veridyn.observe.settings import ObserveSettings, ParameterBounds
from veridyn.observe.streaming.stream import as_vector
from veridyn.observe.system import Continuous
from veridyn.progress import Progress, silent
from veridyn.signals.drive import DriveLog

T = TypeVar("T", bound=Estimates | Smoothed)
FEWEST_FITTED = 50  # samples
LITTLE_EFFECT = ("slip_time", "bank_time", "yaw_inertia", "mass", "front", "rear", "track", "shape", "drag")
METHODS: tuple[type[Filter], ...] = (EKF, UKF, Smoother)
OF_BODIES = ("start", "rates", "independents", "unknown", "inputs", "step", "input_hold", "friction_speed")
NO_ERROR_MODEL = Limit(
    "it has no accelerations of joints that the error model of this filter is made of",
    "Use 'ekf', 'ukf' or 'smoother'.",
)


NO_STATES_OF_JOINTS = Limit(
    "its states are its lateral motion, the errors of its tyres and the bank of the road",
    "state(name) and virtual(name) have what is known of it: sideslip, front_force, load_fl, ….",
)


@dataclass(frozen=True, eq=False)
class SensorTable:
    """The sensors that a filter reads: each has one output."""

    sensors: tuple[Sensor, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(s.name for s in self.sensors)

    @property
    def units(self) -> tuple[str, ...]:
        return tuple(s.unit(False) for s in self.sensors)

    @property
    def owner(self) -> tuple[int, ...]:
        return tuple(range(len(self.sensors)))


@dataclass(frozen=True, eq=False, kw_only=True)
class ObservedCar(Continuous):
    """A car under a filter: its equations, where they start, and which parameters are estimated with the state.

    `drifts`: those that are because the model marks them; `frozen`: those of them that no reading corrects.
    """

    machine: Machine
    process_noise: CarNoise
    start: Belief
    estimate: tuple[str, ...] = ()
    drifts: DriftingStates | None = None
    frozen: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.machine.name

    def reduced(self, x: Array) -> Array:
        """The states as they are reported: as they are."""
        return x

    def reported(self, x: Array, P: Array) -> Array:
        """Their covariance."""
        return P

    @property
    def table(self) -> SensorTable:
        own = {s.name: s for s in self.machine.sensors}
        return SensorTable(tuple(own[n] for n in self.outputs))

    @cached_property
    def considered(self) -> NDArray[np.bool_] | None:
        """Which states are considered: their uncertainty widens the others'; None for none."""
        names = (*self.consider, *self.frozen)
        return np.isin(self.states, names) if names else None

    @cached_property
    def bounds(self) -> ParameterBounds | None:
        """Of the estimated parameters."""
        free = {name: limits for name, limits in (self.limits or {}).items() if name not in self.frozen}
        return super().bounds if not self.frozen else replace(self, limits=free or None, frozen=()).bounds


@dataclass(frozen=True, eq=False, repr=False)
class CarObservation(Observation):
    """The states of a car along a drive: an observation like any other, but for what only joints have, which is refused.

    `whole`: the run of which this is a part, from before the first sample; None of all of one. `beginning`: of the drive, by which
    exchanged axles are known; None where nobody asks.
    """

    # Bands are widened by the innovations' own size, so that they hold further from 1 than those of other machines.
    usable_nis: ClassVar[tuple[float, float]] = (0.5, 2.0)
    allows_for_colour: ClassVar[bool] = True

    system: ObservedCar  # pyright: ignore[reportIncompatibleVariableOverride]
    process_noise: CarNoise
    whole: CarObservation | None = None
    beginning: DriveLog | None = None

    @property
    def units(self) -> tuple[str, ...]:
        return state_units(self.system)

    @property
    def sigma(self) -> Array:
        return self.track.sigma

    @property
    def q(self) -> Array:
        raise self._has_no("coordinates of joints")

    @property
    def qd(self) -> Array:
        raise self._has_no("rates of joints")

    @cached_property
    def qdd(self) -> Array:
        raise self._has_no("accelerations of joints")

    def coordinate(self, name: str) -> tuple[Array, Array]:
        raise self._has_no("coordinates of joints")

    def constraint_errors(self) -> Array:
        raise self._has_no("constraints")

    def energy(self) -> Array:
        raise self._has_no("energy")

    def nees(self, q: ArrayLike, qd: ArrayLike, skip: int = 0) -> Consistency:
        raise self._has_no("coordinates of joints to compare with true ones")

    def _extra(self, sensor: Sensor) -> list[ExtraSensor]:
        raise self._has_no("places for further sensors")

    def _has_no(self, asked: str) -> CapabilityError:
        return CapabilityError("single_track", asked, *NO_STATES_OF_JOINTS, where=self.system.name)

    def virtual(self, *wanted: Virtual | str) -> dict[str, Reading]:
        """Quantities that nobody measured, by name, with deviations that allow for innovations larger than stated."""
        names = [quantity_name(one) for one in wanted]
        if self.whole is None:
            return virtual_sensors(self.estimates, self.system, self.inputs, names, self.track)
        kept = np.isin(self.whole.t, self.t)
        return {
            name: replace(v, t=v.t[kept], values=v.values[kept], sigma=v.sigma[kept])
            for name, v in self.whole.virtual(*names).items()
        }

    def frozen(self) -> dict[str, float]:
        """Estimated parameters of which the drive showed nothing, name → share of the deviation that is left."""
        run = self.whole or self
        return frozen_parameters(run.estimates, run.system.estimate, run.system.start)

    def since(self, first: float) -> CarObservation:
        """The same from a time (s) on: what a filter is asked about, after it has settled."""
        kept = self.t >= first
        found = _cut(self.estimates, kept)
        track = found if self.track is self.estimates else _cut(self.track, kept)
        return replace(self, estimates=found, track=track, readings=self.readings.rows(kept), whole=self.whole or self)

    def own_findings(self) -> tuple[FoundCause, ...]:
        """Distances of the axles that seem to be exchanged, by fits to the beginning of the drive, which are used for nothing else."""
        car, drive, noise = self.system.machine, self.beginning, self.process_noise
        if drive is None or not uncertain(car) or len(drive.t) < FEWEST_FITTED:
            return ()
        fits = import_module("veridyn.identify.estimators.innovations")
        if fits.exchanged_axles(car) is None:
            return ()
        method = fits.Innovations(noise=noise)
        fault = fits.swapped_axles_fault(fits.fit_car(car, method, drive), car, method, drive, silent)
        return () if fault is None else (FoundCause(cause="axles", place=fault.where, message=str(fault)),)


def _cut(found: T, kept: NDArray[np.bool_]) -> T:
    """The estimates of some samples."""
    arrays = {f.name: getattr(found, f.name) for f in fields(found)}
    return replace(
        found, **{n: a[kept] for n, a in arrays.items() if isinstance(a, np.ndarray) and len(a) == len(kept)}
    )


def observed_car(car: Machine, settings: ObserveSettings, log: Measurements | None = None) -> ObservedCar:
    """A car made ready for a filter along these readings; without any, with all its sensors and straight ahead.

    Its uncertain parameters are estimated with the state or considered; those that drift and are followed are estimated.
    """
    chosen, noise = tuple(settings.parameters), settings.process_noise or CarNoise()
    assert isinstance(noise, CarNoise)
    marked = followed_drifts(car.parameters.drifts, settings.drifts, chosen, car.name)
    varying = (*chosen, *marked)
    others = [n for n in uncertain(car) if n not in varying and n not in LITTLE_EFFECT] if settings.consider else []
    walk = {**noise.walk, **{n: float(np.sqrt(d.density)) for n, d in marked.items()}}
    system = car_system(car, replace(noise, walk=walk), None if log is None else log.names, varying, others)
    start = car_start(car, noise, 0.0 if log is None else first_yaw_rate(log, car), varying, others, marked)
    places = np.array([system.states.index(n) for n in marked], dtype=np.intp)
    density = np.array([d.density for d in marked.values()])
    return ObservedCar(
        **{f.name: getattr(system, f.name) for f in fields(system)},
        machine=car,
        process_noise=noise,
        start=start,
        estimate=chosen,
        drifts=DriftingStates(tuple(marked), places, np.diag(start.P)[places], density) if marked else None,
    )


def quantity_name(wanted: Virtual | str) -> str:
    """The name of a quantity of a car."""
    if isinstance(wanted, str):
        return wanted
    what, expected = "a quantity of a car has a name alone.", ", ".join(READINGS)
    raise ModelError(
        what, where=f"virtual sensor '{wanted.name}'", expected=expected, found=f"Virtual(kind={wanted.kind!r})"
    )


def run_car(method: Filter, car: ObservedCar, log: Measurements, progress: Progress = silent) -> CarObservation:
    """A filter along the readings of a drive, with the parameters that drift followed, but for those that the drive does not determine."""
    smooths = isinstance(method, Smoother)
    readings = in_order(method, log.select(car.outputs)) if smooths else log

    def along(one: ObservedCar) -> Estimates:
        return run(method, one, readings, one.start, progress)

    car, found = determined(car, along(car), along)
    made = CarObservation(method.word, car, found, found, readings.select(car.outputs), car.process_noise)
    return smoothed(made) if smooths else made


def predicted_drive(
    car: Machine, noise: CarNoise, drive: DriveLog, progress: Progress = silent
) -> tuple[CarObservation, Measurements]:
    """Each reading of a drive predicted from those before it, with the parameters as they are, and the readings."""
    log = lateral_measurements(drive, car)
    settings = ObserveSettings(process_noise=noise, consider=False, drifts=False)
    return run_car(EKF(), observed_car(car, settings, log), log, progress), log


def sensing_car(setup: ObserverSetup, machine: Machine, verb: str) -> Machine:
    """The car with the sensors that are used; what belongs to machines of bodies is refused by name."""
    chosen, settings = setup.method, setup.settings
    default = ObserveSettings()
    for name in OF_BODIES:
        if getattr(settings, name) not in (None, (), getattr(default, name)):
            raise ModelError(
                f"'{name}' belongs to machines of bodies and joints.",
                where=verb,
                hint="A car of a few numbers starts straight ahead, and takes speed, steer and ax as inputs.",
                source=machine.name,
            )
    if type(chosen) not in METHODS:
        raise CapabilityError(
            "single_track", f"filter '{chosen.word}'", *NO_ERROR_MODEL, where=f"{verb}, {machine.name}"
        )
    if isinstance(settings.process_noise, ProcessNoise):
        raise ModelError(
            "a car of a few numbers has no unknown forces on joints.",
            where=f"{verb}, process_noise",
            expected="CarNoise(slip_error=…, bank=…)",
            found="ProcessNoise",
            source=machine.name,
        )
    if isinstance(settings.parameters, Mapping):
        raise ModelError(
            "deviations and bounds of a car's parameters belong to the machine.",
            where=f"{verb}, parameters",
            expected=f"names of {', '.join([*TABLE][:4])}, …",
            hint="Their walk is CarNoise(walk={…}).",
            source=machine.name,
        )
    car = machine.with_sensors(chosen_sensors(machine.sensors, settings.sensors, verb))
    if not car.sensors:
        raise DataError("it has no sensor, so there is nothing to observe it by.", where=machine.name)
    return car


class DriverInputs:
    """What acts on a car, sample by sample: `last` is speed (m/s), steer (rad) and ax (m/s²) of the newest one, None before the first.

    It also keeps by how much innovations are larger than stated, which widens the bands of quantities.
    """

    def __init__(self, car: ObservedCar) -> None:
        self.last: Array | None = None
        self._car, self._inflation, self._factor = car, Inflation(), 1.0

    def acting(self, inputs: ArrayLike | None) -> Array:
        """Speed, steer and ax (3,) of a new sample; zero ax where it is left out, and those before where there are none."""
        if inputs is None and self.last is not None:
            return self.last
        given = np.zeros(0) if inputs is None else as_vector(inputs)
        acting = np.append(given, 0.0) if len(given) == 2 else given
        if acting.shape != (3,) or not np.isfinite(acting).all():
            expected = "speed (m/s), steer (rad) and ax (m/s^2)"
            raise DataError(
                "these are not what acts on a car.", where="step, inputs", expected=expected, found=f"{given}"
            )
        return acting

    @staticmethod
    def too_slow(acting: Array) -> bool:
        """Whether slip angles mean nothing at this speed."""
        return bool(acting[0] < SLOWEST_M_S)

    def start(self, measurements: ArrayLike | Mapping[str, float]) -> Belief:
        """Where the car starts: nearly straight, with the first reading of a gyroscope as its yaw rate, zero where there is none."""
        named = isinstance(measurements, Mapping)
        read = measurements if named else dict(zip(self._car.outputs, np.atleast_1d(measurements), strict=False))
        gyros = [s.name for s in self._car.machine.sensors if s.on == "yaw_rate"]
        found = next((float(read[n]) for n in gyros if n in read), 0.0)
        x = self._car.start.x.copy()
        x[self._car.states.index("yaw_rate")] = found if np.isfinite(found) else 0.0
        return replace(self._car.start, x=x)

    def taken(self, acting: Array, nis: float, dof: int, dt: float) -> None:
        """A step was made with what acts at its time, `dt` seconds after the one before, and its innovations were so large."""
        self.last = acting
        self._factor = self._inflation(nis if dof else 0.0, dof, dt)

    def quantity(self, wanted: Virtual | str, belief: Belief, inputs: Array) -> tuple[Array, Array]:
        """The value (1,) of a quantity by its name, and its deviation, which allows for innovations larger than stated."""
        if self.last is None:
            raise DataError("speed and steering are not known yet.", where="virtual", expected="a step before it")
        y, s = CarQuantities(self._car, [quantity_name(wanted)]).at(belief.x, belief.P, inputs)
        return y, self._factor * s
