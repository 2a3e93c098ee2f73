"""The same linear case as each filter takes it, and a pendulum that is not linear."""

from __future__ import annotations

import numpy as np

from observe.linear import Kalman, Linear
from observe.textbook import LinearCase
from veridyn.observe.filters.filter import Filter
from veridyn.observe.filters.methods import EKF, UKF
from veridyn.observe.measurements import Measurements
from veridyn.observe.result import Belief
from veridyn.observe.system import Continuous, Discrete, System

FILTERS = (Kalman, EKF, UKF)


def system_of(filter_type: type[Filter], case: LinearCase, **changes) -> System:
    given = {"states": case.states, "outputs": case.outputs, "Q": case.Q, "R": case.R} | changes
    if filter_type is Kalman:
        return Linear(F=case.F, H=case.H, step=case.step, **given)
    derivatives = {"F": lambda x, u, t, dt: case.F, "H": lambda x, u, t: case.H} if filter_type is EKF else {}
    return Discrete(f=lambda x, u, t, dt: case.F @ x, h=lambda x, u, t: case.H @ x, **derivatives, **given)


def log_of(case: LinearCase, y: np.ndarray, **more) -> Measurements:
    return Measurements(case.step * np.arange(len(y)), y, case.outputs, **more)


def start_of(case: LinearCase) -> Belief:
    return Belief(case.x0, case.P0)


G = 9.806


def pendulum(derivatives: bool = True, density: float = 0.02, sigma: float = 0.05, **more) -> Continuous:
    """θ̈ = −g sin θ − 0.2 θ̇ + white acceleration; sensors: horizontal position of the bob, and rate."""

    def f(x, u, t):
        return np.stack([x[..., 1], -G * np.sin(x[..., 0]) - 0.2 * x[..., 1]], axis=-1)

    def h(x, u, t):
        return np.stack([np.sin(x[..., 0]), x[..., 1]], axis=-1)

    jacobians = {
        "F": lambda x, u, t: np.array([[0.0, 1.0], [-G * np.cos(x[0]), -0.2]]),
        "H": lambda x, u, t: np.array([[np.cos(x[0]), 0.0], [0.0, 1.0]]),
    }
    return Continuous(
        ("theta", "theta_dot"),
        ("bob", "rate"),
        f,
        h,
        Q=[0.0, density],
        R=[sigma**2, (4 * sigma) ** 2],
        batched=True,
        **(jacobians if derivatives else {}),
        **more,
    )


def pendulum_log(count: int, step: float, rng: np.random.Generator, x0=(0.6, 0.0), P0=(0.01, 0.04)):
    """Truth by small Euler-Maruyama steps, twenty per sample, which the filters do not use; and readings."""
    x = rng.multivariate_normal(x0, np.diag(P0))
    fine, truth = 20, np.empty((count, 2))
    h = step / fine
    for k in range(count):
        for _ in range(fine if k else 0):
            half = x + h / 2 * np.array([x[1], -G * np.sin(x[0]) - 0.2 * x[1]])
            x = x + h * np.array([half[1], -G * np.sin(half[0]) - 0.2 * half[1]])
            x[1] += np.sqrt(0.02 * h) * rng.standard_normal()
        truth[k] = x
    y = np.column_stack([np.sin(truth[:, 0]), truth[:, 1]]) + rng.standard_normal((count, 2)) * [0.05, 0.2]
    return truth, Measurements(step * np.arange(count), y, ("bob", "rate")), Belief(np.array(x0), np.array(P0))
