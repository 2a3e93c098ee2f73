"""The readings of a drive for the filters of a car, and the car on its way along it.

Readings say what acts from sample to sample, and which of them may be used. Inputs: speed, steer, ax, and the same as means from each
sample to the next. Position, heading, speed and yaw rate follow from satellite positions, wheel speeds and a gyroscope, through gaps too:

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
from veridyn.errors import DataError, Faults, ModelError, did_you_mean, part_at
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.observe.measurements import Measurements, Status, clock_faults
from veridyn.observe.result import Belief
from veridyn.observe.system import Continuous
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
