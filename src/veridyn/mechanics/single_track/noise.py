"""What the equations of a car leave out, as noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from veridyn.model.car import TABLE
from veridyn.model.machine import Machine

NOISES = ("slip_error", "bank", "lateral", "yaw")  # that may be tuned


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
