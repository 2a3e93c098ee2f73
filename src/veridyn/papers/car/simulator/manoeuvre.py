"""What the driver does: the steering wheel's angle, the commanded speed and braking, as functions of time.

Angles are of the steering wheel in radians, positive to the left; speeds in m/s, braking in m/s² of deceleration. From where
braking begins the speed controller rests. Speeds, amplitudes and rates without a source are chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError, Faults

OfTime = Callable[[Array], Array]
KMH = 1.0 / 3.6


def _never(t: Array) -> Array:
    return np.zeros_like(t)


@dataclass(frozen=True)
class VehicleManoeuvre:
    """Functions of an array of times. `lead_in` seconds are driven before t = 0, with the commands of t = 0, and not recorded.

    Without `controlled` nobody holds the speed, and the car coasts. `pedal` is torque beside the controller's (N m at the wheels).
    """

    name: str
    speed: OfTime
    steering: OfTime = _never
    braking: OfTime = _never
    lead_in: float = 3.0
    controlled: bool = True
    pedal: OfTime = _never

    def inputs(self, t: Array) -> Array:
        """What the compiled equations take, (N, 6): steering, speed, its derivative, braking, controller on, torque beside it."""
        held = np.maximum(t, 0.0)
        h = 1e-4
        speed, braking = self.speed(held), self.braking(held)
        push = np.where(t > h, (self.speed(held + h) - self.speed(np.maximum(held - h, 0.0))) / (2.0 * h), 0.0)
        held_speed = float(self.controlled) * (np.cumsum(braking > 0.0) == 0)
        rows = np.stack([self.steering(held), speed, push, braking, held_speed, self.pedal(held)], axis=1)
        faults = Faults()
        if not np.isfinite(rows).all():
            faults.add("it asks for something that is not a number.", where=self.name)
        if (speed < 0.0).any() or (braking < 0.0).any():
            faults.add("it asks for a negative speed or braking.", where=self.name)
        faults.raise_if_any(DataError)
        return rows


def _smooth(s: Array) -> Array:
    """From 0 to 1 with level ends, for s from 0 to 1."""
    x = np.clip(s, 0.0, 1.0)
    return x * x * x * (10.0 + x * (6.0 * x - 15.0))


def _steady(speed: float) -> OfTime:
    return lambda t: np.full_like(t, speed)


def sinusoidal_steering(speed: float = 110.0 * KMH, angle: float = 0.48, frequency: float = 0.5) -> VehicleManoeuvre:
    """Steering by a sine at constant speed: the trajectories of paper 000, there at 90 to 160 km/h. It grows over half a period."""
    return VehicleManoeuvre(
        f"sinusoidal steering at {speed / KMH:.0f} km/h",
        _steady(speed),
        lambda t: angle * np.sin(2.0 * np.pi * frequency * t) * _smooth(2.0 * frequency * t),
    )


def ramp_steer(
    speed: float = 90.0 * KMH, rate: float = 0.06, start: float = 1.0, most: float = 1.6
) -> VehicleManoeuvre:
    """The wheel turned ever further at `rate` rad/s, to the left if positive: paper 001 drove left at 90 and right at 110 km/h."""

    def angle(t: Array) -> Array:
        late = np.maximum(t - start, 0.0)
        eased = np.where(late < 1.0, late**3 * (1.0 - late / 2.0), late - 0.5)  # level at the start, straight after 1 s
        return np.clip(rate * eased, -most, most)

    side = "left" if rate > 0.0 else "right"
    return VehicleManoeuvre(f"ramp steer to the {side} at {speed / KMH:.0f} km/h", _steady(speed), angle)


def straight_braking(speed: float = 100.0 * KMH, braking: float = 4.0, start: float = 1.0) -> VehicleManoeuvre:
    """Brakes applied within 0.3 s and held, the steering wheel straight."""
    return VehicleManoeuvre(
        f"braking from {speed / KMH:.0f} km/h", _steady(speed), braking=lambda t: braking * _smooth((t - start) / 0.3)
    )


def straight(speed: float = 80.0 * KMH) -> VehicleManoeuvre:
    """Straight on at constant speed: on a rough road, the road does the rest."""
    return VehicleManoeuvre(f"straight on at {speed / KMH:.0f} km/h", _steady(speed))


def speed_variation(
    speed: float = 25.0, change: float = 5.0, every: float = 10.0, angle: float = 0.48, frequency: float = 0.5
) -> VehicleManoeuvre:
    """Speed that swings by `change` within `every` seconds, while steering by a sine."""
    steered = sinusoidal_steering(speed, angle, frequency)
    return VehicleManoeuvre(
        f"speed variation about {speed / KMH:.0f} km/h",
        lambda t: speed + change * np.sin(2.0 * np.pi * t / every) * _smooth(t / 2.0),
        steered.steering,
    )


def standstill() -> VehicleManoeuvre:
    """Brakes on, no speed."""
    return VehicleManoeuvre("standstill", _steady(0.0), braking=lambda t: np.full_like(t, 3.0), lead_in=1.0)


def restless(
    made: VehicleManoeuvre, rng: np.random.Generator, torque: float = 60.0, band: tuple[float, float] = (1.0, 9.0)
) -> VehicleManoeuvre:
    """The same manoeuvre with an engine that is never quite even: torque of that rms (N m), random over a band of frequencies (Hz).

    It wakes the driveline's modes, which even driving on a smooth road leaves asleep and the logs of paper 000 show.
    """
    frequency = np.arange(band[0], band[1], 0.05)
    phase = rng.uniform(0.0, 2.0 * np.pi, len(frequency))
    size = torque * np.sqrt(2.0 / len(frequency))

    def pedal(t: Array) -> Array:
        total = np.zeros_like(t)
        for f, p in zip(frequency, phase, strict=True):
            total += np.sin(2.0 * np.pi * f * t + p)
        return size * total * _smooth(t)

    return replace(made, name=f"{made.name}, restless engine", pedal=pedal)
