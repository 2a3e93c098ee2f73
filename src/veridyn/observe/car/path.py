"""A car on its way: position, heading, speed and yaw rate from satellite positions, wheel speeds and a gyroscope, also through gaps.

    ẋ = V cos ψ,  ẏ = V sin ψ,  ψ̇ = r,  V̇ = a,  ȧ = w_a,  ṙ = w_r,  ḃ = w_b
    east = x,  north = y,  wheel_j = s_j (V ∓ r t/2),  yaw_rate = r + b,  heading = ψ

s_j is the scale of a wheel's speed, t the track; ψ is the direction of motion of the point whose positions are measured. Where there are
no positions, wheels and gyroscope carry on, and the bands grow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import ModelError
from veridyn.observe.result import Belief
from veridyn.observe.system import Continuous

STATES = ("east", "north", "heading", "speed", "acceleration", "yaw_rate", "gyro_bias")
STATE_UNITS = ("m", "m", "rad", "m/s", "m/s^2", "rad/s", "rad/s")
WHEEL_SIDES = {
    "wheel_fl": -0.5,
    "wheel_fr": 0.5,
    "wheel_rl": -0.5,
    "wheel_rr": 0.5,
}  # of the track, positive to the right


@dataclass(frozen=True, kw_only=True)
class PathNoise:
    """Deviations of the sensors (m, m/s, rad/s), and densities of what drives speed (m/s³/√Hz), yaw rate (rad/s²/√Hz) and bias."""

    position: float = 0.1
    wheel: float = 0.15
    gyro: float = 0.01
    jerk: float = 2.0
    yaw: float = 0.3
    bias: float = 2e-5
    scales: Mapping[str, float] = field(default_factory=dict)


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
