"""A drive of a bicycle-model car, integrated by SciPy from equations written here: a stranger to judge the vehicle observer by."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
from scipy.integrate import solve_ivp

G = 9.81


@dataclass(frozen=True)
class Bicycle:
    """A car with tanh tyres, its driver and its sensors."""

    mass: float = 1200.0
    front: float = 1.1
    rear: float = 1.5
    inertia: float = 1900.0
    cf: float = 14.0
    cr: float = 16.0
    mu: float = 1.0
    ratio: float = 1.0
    offset: float = 0.0
    gyro_bias: float = 0.0
    duration: float = 60.0
    rate: float = 50.0
    amplitude: float = 0.05
    noise: dict = field(
        default_factory=lambda: {"yaw_rate": 0.003, "ay": 0.1, "steer": 0.0, "position": 0.02},
        hash=False,
        compare=False,
    )

    def steer(self, t):
        """Road wheel angle."""
        return self.amplitude * (np.sin(0.9 * t) + 0.6 * np.sin(2.3 * t + 1.0) + 0.3 * np.sin(0.31 * t))

    def speed(self, t):
        return 20.0 + 4.0 * np.sin(0.2 * t)

    def forces(self, t, v, r):
        V, L = self.speed(t), self.front + self.rear
        af = self.steer(t) - np.arctan((v + self.front * r) / V)
        ar = -np.arctan((v - self.rear * r) / V)
        out = []
        for alpha, C, arm in ((af, self.cf, self.rear), (ar, self.cr, self.front)):
            Z = self.mass * G * arm / L
            out.append(self.mu * Z * np.tanh(C * alpha / self.mu))
        return out

    def drive(self, seed: int = 0) -> dict[str, np.ndarray]:
        """Channels of a log by name, with noise, and the true sideslip, path and forces."""
        t, (v, r, psi, x, y) = way_of(replace(self, noise={}))
        Ff, Fr = self.forces(t, v, r)
        rng = np.random.default_rng(seed)

        def noisy(name, values):
            return values + self.noise[name] * rng.normal(size=len(t))

        return {
            "t": t,
            "speed": self.speed(t),
            "steer": noisy("steer", self.ratio * (self.steer(t) + self.offset)),
            "yaw_rate": noisy("yaw_rate", r + self.gyro_bias),
            "ay": noisy("ay", (Ff * np.cos(self.steer(t)) + Fr) / self.mass),
            "sideslip": np.arctan2(v, self.speed(t)),
            "front_force": Ff,
            "rear_force": Fr,
            "heading": psi,
            "east": noisy("position", x),
            "north": noisy("position", y),
        }


@cache
def way_of(car: Bicycle) -> tuple[np.ndarray, np.ndarray]:
    """The clock and the states (5, N) without noise: many tests drive the same car."""

    def rates(t, s):
        v, r, psi, _, _ = s
        Ff, Fr = car.forces(t, v, r)
        Ff = Ff * np.cos(car.steer(t))
        V = car.speed(t)
        return [
            (Ff + Fr) / car.mass - V * r,
            (car.front * Ff - car.rear * Fr) / car.inertia,
            r,
            V * np.cos(psi) - v * np.sin(psi),
            V * np.sin(psi) + v * np.cos(psi),
        ]

    t = np.arange(0.0, car.duration, 1.0 / car.rate)
    states = solve_ivp(rates, (0.0, t[-1]), np.zeros(5), "DOP853", t, rtol=1e-9, atol=1e-10).y
    t.flags.writeable = states.flags.writeable = False
    return t, states


def write_csv(path, drive: dict[str, np.ndarray]) -> None:
    """A log file with one column a channel."""
    names = list(drive)
    rows = np.column_stack([drive[n] for n in names])
    np.savetxt(path, rows, delimiter=",", header=",".join(names), comments="", fmt="%.9g")
