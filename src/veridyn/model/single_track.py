"""The machine of a car described by a few numbers: what is known beforehand of each, what such a car cannot be, and its noise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np

from veridyn.arguments import checked
from veridyn.errors import CapabilityError, Fault, Faults, Limit, ModelError, part_at
from veridyn.model.car import SECTION, TABLE, CarDescription, car_joint, car_link, car_parameters, car_with, check_car
from veridyn.model.machine import Machine
from veridyn.model.parameters import Uncertainty
from veridyn.model.sensor import Sensor, sensor_faults
from veridyn.settings import above

# What the stability control of any car measures, with the noise of such sensors.
USUAL_SENSORS = (Sensor("yaw_rate", "reading", "yaw_rate", 0.01), Sensor("ay", "reading", "ay", 0.3))


NO_CAR = Limit(
    "a car of a few numbers is described by masses, axles and tyre curves, and none of them follows from bodies and joints",
    "Its wheels are elements of kind tyre in formulation: tree.",
)


@dataclass(frozen=True)
class PriorValue:
    """A parameter of a car: its value, its standard deviation (0: known) and its bounds."""

    value: float
    sigma: float = 0.0
    lower: float = -np.inf
    upper: float = np.inf

    @property
    def positive(self) -> bool:
        """Whether it can be moved by factors: positive, as its bounds are."""
        return self.value > 0.0 and self.lower >= 0.0


@checked
def car_machine(
    name: str,
    given: Mapping[str, float | PriorValue],
    tyre: str = "tanh",
    sensors: Iterable[Sensor] = USUAL_SENSORS,
) -> Machine:
    """A car of a few numbers as a machine, completed by the defaults of :data:`~veridyn.model.car.TABLE`; every fault at once, by name.

    Parameters
    ----------
    name : str
        Of the car, for messages and reports.
    given : mapping
        Parameter → its value, which is known, or its prior, which is estimated where its deviation is above zero. `mass`, `front` and
        `rear` must be there.
    tyre : str
        "linear", "tanh" or "magic".
    sensors : iterable of Sensor
        Of kind "reading": yaw_rate, ay, roll, sideslip, lateral_speed. A gyroscope and a lateral accelerometer by default.

    Returns
    -------
    Machine

    Examples
    --------
    >>> from veridyn.model.single_track import PriorValue, car_machine
    >>> tyres = PriorValue(15.0, 5.0)
    >>> car = car_machine("small", {"mass": 900.0, "front": 1.0, "rear": 1.4, "front_stiffness": tyres})
    >>> car.parameters["yaw_inertia"]
    1260.0
    >>> car.uncertainty.names
    ('front_stiffness',)
    """
    priors = {n: b if isinstance(b, PriorValue) else PriorValue(float(b)) for n, b in given.items()}
    faults = Faults()
    for n, b in priors.items():
        if not (np.isfinite(b.sigma) and b.sigma >= 0.0):
            faults.add(
                f"the deviation of '{n}' is not usable.",
                where=part_at(SECTION, n),
                expected="zero or more",
                found=f"{b.sigma:g}",
            )
    description = CarDescription(
        values={n: b.value for n, b in priors.items()},
        tyre=tyre,
        estimated=tuple(n for n, b in priors.items() if b.sigma > 0.0),
        bounds={n: (b.lower, b.upper) for n, b in priors.items() if np.isfinite([b.lower, b.upper]).any()},
    )
    return described_car(name, description, {n: priors[n].sigma for n in description.estimated}, sensors, faults.found)


def described_car(
    name: str,
    description: CarDescription,
    sigma: Mapping[str, float],
    sensors: Iterable[Sensor] = USUAL_SENSORS,
    faults: Iterable[Fault] = (),
) -> Machine:
    """The machine of a description, with the deviations `sigma` of its parameters; `faults`: those already found."""
    found = [*faults, *check_car(description)]
    if found:
        raise ModelError(found, name)
    car = Machine.build(
        [car_link(car_parameters(description))],
        [car_joint()],
        name=name,
        sensors=sensors,
        gravity=np.zeros(3),
        dimension=2,
        formulation="single_track",
        car=description,
    )
    return car.with_uncertainty(Uncertainty(tuple(sigma), np.diag([s**2 for s in sigma.values()])) if sigma else None)


def car_described(machine: Machine) -> CarDescription:
    """The few numbers of a car; a machine of bodies and joints is refused."""
    if machine.car is None:
        fault = Fault(
            "it is described by bodies and joints, not by the few numbers of a car.",
            where=part_at("formulation"),
            expected="a machine with the section car, in formulation: single_track",
            found=f"formulation: {machine.formulation}",
            hint=NO_CAR.instead,
        )
        raise CapabilityError("single_track", "bodies and joints", *NO_CAR, faults=[fault], source=machine.name)
    return machine.car


def prior_of(machine: Machine, name: str) -> PriorValue:
    """What is known of a parameter of a car beforehand."""
    known, p = machine.uncertainty, machine.parameters
    sigma = known.sigma[known.names.index(name)] if known is not None and name in known.names else 0.0
    return PriorValue(p[name], float(sigma), *p.bounds[name])


def uncertain(machine: Machine) -> tuple[str, ...]:
    """Names of the parameters with a deviation, in order."""
    return tuple(n for n in TABLE if prior_of(machine, n).sigma > 0.0)


def with_estimate(machine: Machine, name: str, value: float, sigma: float) -> Machine:
    """A car with a value and a deviation of one more parameter, which is independent of the others."""
    known = machine.uncertainty.without((name,)) if machine.uncertainty is not None else None
    names = (*(known.names if known else ()), name)
    C = np.zeros((len(names), len(names)))
    C[:-1, :-1] = known.covariance if known else 0.0
    C[-1, -1] = sigma**2
    new = machine.parameters.replacing({name: value}).estimated([name])
    return machine.with_parameters(new).with_uncertainty(Uncertainty(names, C))


def with_tyre(machine: Machine, law: str) -> Machine:
    """A car with another law of its tyres."""
    return replace(machine, car=replace(car_described(machine), tyre=law))


def with_exchanged_axles(machine: Machine) -> Machine:
    """A car with the distances of its axles, and all that is known of them, the other way round."""
    p, other = machine.parameters, {"front": "rear", "rear": "front"}
    made = machine.with_parameters({"front": p["rear"], "rear": p["front"]})
    car = car_described(made)
    bounds = {other.get(n, n): own for n, own in car.bounds.items()}
    known = machine.uncertainty
    return replace(
        made,
        car=replace(car, estimated=tuple(other.get(n, n) for n in car.estimated), bounds=bounds),
        uncertainty=known and Uncertainty(tuple(other.get(n, n) for n in known.names), known.covariance),
    )


PARTS = ("elements", "loads", "controllers", "transmission", "prescribed")  # that a car of a few numbers does not have
NOT_READ = ("rate", "delay", "bias", "bias_sigma", "bias_walk", "turns")  # what sensors of other machines may have
NOISES = ("slip_error", "bank", "lateral", "yaw")  # that may be tuned


def check_car_machine(machine: Machine) -> None:
    """Refuse by name what a car of a few numbers cannot carry."""
    car = car_with(car_described(machine), machine.parameters)
    faults = Faults()
    faults.extend(check_car(car))
    for part in PARTS:
        if getattr(machine, part):
            faults.add(
                f"a car of a few numbers has no {part}.",
                where=part_at(part),
                hint="Springs, motors and loads need bodies and joints: formulation: tree.",
            )
    for s in machine.sensors:
        faults.extend(sensor_faults(s, machine.dimension))
        if s.kind != "reading":
            faults.add(
                "a car of a few numbers is read by name.",
                where=part_at("sensor", s.name),
                expected="kind reading, on yaw_rate, ay, roll, sideslip or lateral_speed",
                found=f"kind {s.kind}",
            )
        for part in NOT_READ:
            if getattr(s, part):
                faults.add(
                    f"a reading of a car has no {part}.",
                    where=part_at("sensor", s.name),
                    hint="gyro_bias and ay_bias are parameters of the car; a study has the delays of channels.",
                )
    faults.raise_if_any(ModelError, machine.name)


@dataclass(frozen=True, kw_only=True)
class CarNoise:
    """What the equations leave out, as standard deviations.

    Parameters
    ----------
    slip_error : float above 0
        Errors of the tyre curves of each axle, rad of slip angle; they last slip_time seconds.
    bank : float above 0
        Bank of the road, rad; it lasts bank_time seconds.
    lateral : float above 0
        White lateral acceleration, m/s^2/sqrt(Hz).
    yaw : float above 0
        White yaw acceleration, rad/s^2/sqrt(Hz).
    walk : mapping of names to floats
        Estimated parameter → its drift in a square root of a second.
    """

    slip_error: Annotated[float, above(0.0)] = 0.006
    bank: Annotated[float, above(0.0)] = 0.02
    lateral: Annotated[float, above(0.0)] = 0.02
    yaw: Annotated[float, above(0.0)] = 0.05
    walk: Mapping[str, float] = field(default_factory=dict)


def with_values(car: Machine, noise: CarNoise, values: Mapping[str, float]) -> tuple[Machine, CarNoise]:
    """Car and noise with these values; "noise.NAME" is of the noise, or of a sensor."""
    own = {n: v for n, v in values.items() if n in TABLE}
    tuned = {n.removeprefix("noise."): v for n, v in values.items() if n not in TABLE}
    if any(s.name in tuned for s in car.sensors):
        car = replace(car, sensors=tuple(replace(s, sigma=tuned.pop(s.name, s.sigma)) for s in car.sensors))
    return car.with_parameters(own), replace(noise, **tuned)
