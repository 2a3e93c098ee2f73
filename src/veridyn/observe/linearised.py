"""A mechanism that moves little, as the linear Kalman filter sees it: straight lines through one state.

    x_{k+1} = f(x₀) + F (x_k − x₀),    y = h(x₀) + H (x − x₀),    F, H, Q at x₀                    (paper 003, equations 45 to 50)

A filter on it is the linear Kalman filter, with gains that do not depend on what is read; the extended one falls back to it where nothing
turns far. Poses stay closed: a change of state solves the position and velocity problems as everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.observe.bounds import ParameterBounds
from veridyn.observe.filter import CompiledStep
from veridyn.observe.machine import MachineSystem

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Linearised:
    """`system` about the state `at`, as a :class:`~veridyn.observe.system.System`."""

    system: MachineSystem
    at: Array

    @property
    def states(self) -> tuple[str, ...]:
        return self.system.states

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.system.outputs

    @property
    def bounds(self) -> ParameterBounds | None:
        """Of estimated parameters, which hold for a linear filter too."""
        return self.system.bounds

    @property
    def considered(self) -> NDArray[np.bool_] | None:
        """Which states no reading corrects."""
        return self.system.considered

    def move(self, x: Array, u: Array, t: float, dt: float) -> Array:
        there, F = self.system.move_and_jacobian(self.at, u, t, dt)
        return self.system.add(there, self.system.subtract(x, self.at) @ F.T)

    def move_and_jacobian(self, x: Array, u: Array, t: float, dt: float) -> tuple[Array, Array]:
        return self.move(x, u, t, dt), self.system.move_and_jacobian(self.at, u, t, dt)[1]

    def noise(self, x: Array, u: Array, t: float, dt: float) -> Array:
        return self.system.noise(self.at, u, t, dt)

    def sense(self, x: Array, u: Array, t: float) -> Array:
        y, H = self.system.sense_and_jacobian(self.at, u, t)
        return y + self.system.subtract(x, self.at) @ H.T

    def sense_and_jacobian(self, x: Array, u: Array, t: float) -> tuple[Array, Array]:
        return self.sense(x, u, t), self.system.sense_and_jacobian(self.at, u, t)[1]

    def compiled_step(self, gate: float | None) -> CompiledStep | None:
        return self.system.compiled_step(gate, self.at)

    def sensor_noise(self, t: float) -> Array:
        return self.system.sensor_noise(t)

    def add(self, x: Array, d: Array) -> Array:
        return self.system.add(x, d)

    def subtract(self, a: Array, b: Array) -> Array:
        return self.system.subtract(a, b)

    def residual(self, y: Array, expected: Array) -> Array:
        return self.system.residual(y, expected)
