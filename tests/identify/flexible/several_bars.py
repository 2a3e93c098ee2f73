"""Bars beside each other, each on a flexible joint of its own, by an integrator of this file: Runge and Kutta's, of all bars at once.

J θ̈ = Γ − f_c tanh(θ̇/v) − f_v θ̇ − l,    m q̈ = l − m_g cos q,    l = K (θ − q) + D (θ̇ − q̇)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

import veridyn as vd

Array = NDArray[np.float64]
RATE, SUBSTEPS = 250.0, 6
SLIDES = 0.005  # rad/s, over which dry friction turns with the speed
NAMES = ("a", "b", "c")
ROTOR, ZZ, MOMENT = np.array([1.6, 1.0, 0.7]), np.array([2.6, 1.5, 1.0]), np.array([4.8, 3.0, 2.0])
STIFFNESS, DAMPING = np.array([6000.0, 3500.0, 9000.0]), np.array([3.0, 1.5, 2.5])
COULOMB, VISCOUS = np.array([8.0, 4.0, 6.0]), np.array([2.0, 1.0, 3.0])
PACE = np.array([1.0, 1.13, 0.87])  # of the motion, so that bars reverse at different times


@dataclass(frozen=True, eq=False)
class Run:
    """Time (N,), motor angles, link angles and torques (N, 3)."""

    t: Array
    theta: Array
    q: Array
    torque: Array


def _command(t: float, theta: Array, speed: Array) -> Array:
    """Three sines that begin gently, followed by a controller of position and speed."""
    wave = 0.5 * np.sin(2.1 * PACE * t) + 0.2 * np.sin(5.3 * PACE * t) + 0.05 * np.sin(13.0 * PACE * t)
    rate = PACE * (1.05 * np.cos(2.1 * PACE * t) + 1.06 * np.cos(5.3 * PACE * t) + 0.65 * np.cos(13.0 * PACE * t))
    begun, slope = 1.0 - np.exp(-(t**2)), 2.0 * t * np.exp(-(t**2))
    return 800.0 * (-np.pi / 2 + begun * wave - theta) + 90.0 * (begun * rate + slope * wave - speed)


def simulated(seconds: float) -> Run:
    """Bars that hang at first."""

    def slopes(x: Array, torque: Array) -> Array:
        theta, q, speed, qd = x
        load = STIFFNESS * (theta - q) + DAMPING * (speed - qd)
        friction = COULOMB * np.tanh(speed / SLIDES) + VISCOUS * speed
        return np.stack([speed, qd, (torque - friction - load) / ROTOR, (load - 9.81 * MOMENT * np.cos(q)) / ZZ])

    h, count = 1.0 / (RATE * SUBSTEPS), round(seconds * RATE)
    x = np.stack([np.full(3, -np.pi / 2), np.full(3, -np.pi / 2), np.zeros(3), np.zeros(3)])
    out = np.empty((count, 3, 3))
    for k in range(count):
        for part in range(SUBSTEPS):
            when = (k * SUBSTEPS + part) * h
            first, middle, last = (_command(when + share * h, x[0], x[2]) for share in (0.0, 0.5, 1.0))
            if part == 0:
                out[k] = x[0], x[1], first
            a = slopes(x, first)
            b = slopes(x + 0.5 * h * a, middle)
            c = slopes(x + 0.5 * h * b, middle)
            x = x + h / 6.0 * (a + 2.0 * b + 2.0 * c + slopes(x + h * c, last))
    return Run(np.arange(count) / RATE, *out.transpose(1, 0, 2))


def log(run: Run, delay: float, noise: float, names: tuple[str, ...] = NAMES) -> vd.Experiment:
    """Both encoders of each bar, those of all links late by one `delay` s."""
    rng, values, units = np.random.default_rng(12), dict[str, Array](), dict[str, str]()
    late = np.maximum(run.t - delay, 0.0)
    for name in names:
        k = NAMES.index(name)
        values[f"q.{name}"] = CubicSpline(run.t, run.q[:, k])(late) + noise * rng.normal(size=len(run.t))
        values[f"q.{name}_motor"] = run.theta[:, k] + noise * rng.normal(size=len(run.t))
        values[f"force.{name}_motor"] = run.torque[:, k]
        units |= {f"q.{name}": "rad", f"q.{name}_motor": "rad", f"force.{name}_motor": "N*m"}
    return vd.Experiment.from_arrays(run.t, values, units, "bars")


def machine(names: tuple[str, ...] = NAMES) -> vd.Machine:
    """The model of the bars, with stiffnesses that are a third too low."""
    numbers = {name: NAMES.index(name) for name in names}
    links = [
        vd.Link(name=f"bar_{name}", inertia=[0.1, 0, 0, ZZ[k], 0, ZZ[k], MOMENT[k], 0, 0, 12.0])
        for name, k in numbers.items()
    ]
    joints = [vd.Joint(name=name, a="ground", b=f"bar_{name}", actuated=True) for name in names]
    rigid = vd.Machine.build(links, joints, gravity=(0.0, -9.81, 0.0), name="bars")
    own = {c: vd.model.Flexible(stiffness=STIFFNESS[k] / 1.5, inertia=ROTOR[k]) for c, k in numbers.items()}
    return vd.model.with_flexible_joints(rigid, own)
