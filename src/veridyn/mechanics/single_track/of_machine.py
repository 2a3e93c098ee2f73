"""Cars of a few numbers: which machines are such cars, what they cannot be, and what their equations leave out, as noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from veridyn.errors import CapabilityError, Faults, Limit, ModelError, part_at
from veridyn.model.car import TABLE, car_with, check_car
from veridyn.model.machine import Machine
from veridyn.model.sensor import sensor_faults
from veridyn.model.single_track import car_described

NO_JOINTS = Limit(
    "its speed is an input, and its tyres answer to slip angles of axles, not to positions of bodies, so that there are no joints that "
    "inertias, motors and loops could be computed of",
    "Such a car can be identified and observed; for inverse dynamics describe bodies, joints and tyres.",
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


def refuse_car(machine: Machine, form: str) -> None:
    """A car of a few numbers has no `form`, and the reason."""
    refuse_of_car(machine, f"form as {form}")


def refuse_of_car(machine: Machine, asked: str) -> None:
    """What is `asked` for is made of joints, which a car of a few numbers has not."""
    if machine.car is not None:
        raise CapabilityError("single_track", asked, *NO_JOINTS, where=machine.name)


@dataclass(frozen=True, kw_only=True)
class CarNoise:
    """What the equations leave out, as standard deviations.

    `slip_error` (rad): stationary deviation of each axle's slip error; `bank` (rad): of the bank; `lateral` (m/s²/√Hz) and `yaw`
    (rad/s²/√Hz): white accelerations; `walk`: estimated parameter → drift of it in a √s.
    """

    slip_error: float = 0.006
    bank: float = 0.02
    lateral: float = 0.02
    yaw: float = 0.05
    walk: Mapping[str, float] = field(default_factory=dict)


def with_values(car: Machine, noise: CarNoise, values: Mapping[str, float]) -> tuple[Machine, CarNoise]:
    """Car and noise with these values; "noise.NAME" is of the noise, or of a sensor."""
    own = {n: v for n, v in values.items() if n in TABLE}
    tuned = {n.removeprefix("noise."): v for n, v in values.items() if n not in TABLE}
    if any(s.name in tuned for s in car.sensors):
        car = replace(car, sensors=tuple(replace(s, sigma=tuned.pop(s.name, s.sigma)) for s in car.sensors))
    return car.with_parameters(own), replace(noise, **tuned)
