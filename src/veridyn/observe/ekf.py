"""The extended Kalman filter: the machine moves as it does, its errors move along the tangent.

    x ← f(x),  P ← F P Fᵀ + Q,  F = ∂f/∂x        y = h(x),  H = ∂h/∂x                    (paper 003, equations 52 and 53)

H is taken at the predicted state. A system whose `move_and_jacobian` returns F of a simpler error model makes this the
error-state filter (54, 57): the predicted error is zero because the model itself has been corrected.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.observe.filter import Filter
from veridyn.observe.noise import symmetric
from veridyn.observe.result import Belief
from veridyn.observe.system import System
from veridyn.observe.update import Expectation

Array = NDArray[np.float64]


@dataclass(frozen=True)
class EKF(Filter):
    """The extended Kalman filter; needs F and H."""

    def predict(self, system: System, belief: Belief, u: Array, t: float, dt: float) -> tuple[Array, Array, Array]:
        x, F = system.move_and_jacobian(belief.x, u, t, dt)
        return x, symmetric(F @ belief.P @ F.T) + system.noise(belief.x, u, t, dt), F

    def expect(self, system: System, x: Array, P: Array, u: Array, t: float) -> Expectation:
        y, H = system.sense_and_jacobian(x, u, t)
        return Expectation(y, H, system.sensor_noise(t))
