"""What is known of the sensors that show the way of a car, and of how it moves between their readings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from veridyn.settings import above, at_least


@dataclass(frozen=True, kw_only=True)
class PathNoise:
    """Deviations of the sensors, and densities of what drives speed, yaw rate and bias.

    Parameters
    ----------
    position : float above 0
        Deviation of positions, m.
    wheel : float above 0
        Deviation of wheel speeds, m/s.
    gyro : float above 0
        Deviation of the gyroscope, rad/s.
    jerk : float above 0
        Density of what changes the acceleration, m/s^3/sqrt(Hz).
    yaw : float above 0
        Density of what changes the yaw rate, rad/s^2/sqrt(Hz).
    bias : float of at least 0
        Walk of the gyroscope's bias, rad/s/sqrt(s).
    scales : mapping of names to floats
        Wheel → how much faster than the car its speed reads; 1 if left out.
    """

    position: Annotated[float, above(0.0)] = 0.1
    wheel: Annotated[float, above(0.0)] = 0.15
    gyro: Annotated[float, above(0.0)] = 0.01
    jerk: Annotated[float, above(0.0)] = 2.0
    yaw: Annotated[float, above(0.0)] = 0.3
    bias: Annotated[float, at_least(0.0)] = 2e-5
    scales: Mapping[str, float] = field(default_factory=dict)
