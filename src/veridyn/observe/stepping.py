"""Is the integration's step short enough? What it leaves of the motion is a bias, and the filter's own gains say how much of it stays.

    b_k = (I − K H) (F b_{k−1} + e_k),    e_k: what half the step changes over the interval, times 4/3 for a rule of order 2

No covariance knows of it. It is looked at where the mechanism moves fastest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataWarning, Fault, warn
from veridyn.observe.machine import MachineSystem
from veridyn.observe.result import Estimates

Array = NDArray[np.float64]
LOOKED_AT = 100  # intervals
TOLERATED = 0.5  # deviations


@dataclass(frozen=True)
class StepBias:
    """The largest bias that a step of `step` seconds makes, in deviations of the states (root mean square over them), and when."""

    deviations: float
    t: float
    step: float

    @property
    def better(self) -> float:
        """A step whose bias is a tenth of what is tolerated, to one digit."""
        wanted = self.step * np.sqrt(0.1 * TOLERATED / max(self.deviations, 1e-300))
        digit = 10.0 ** np.floor(np.log10(wanted))
        return float(np.floor(wanted / digit) * digit)


def step_bias(system: MachineSystem, estimates: Estimates, inputs: Array) -> StepBias:
    """The bias over the stretch of a run, one chain of steps, where the coordinates move fastest."""
    estimates.chained("the error of its steps")
    e = estimates
    speed = (np.abs(system.split(e.x)[1]) / system.coordinate_sizes).max(axis=1)
    count = min(LOOKED_AT, len(e) - 1)
    first = 1 + int(np.clip(np.argmax(speed) - count // 2, 0, len(e) - 1 - count))
    bias, worst, when = np.zeros(len(e.states)), 0.0, float(e.t[0])
    used = 0.0
    for k in range(first, first + count):
        dt = float(e.t[k] - e.t[k - 1])
        if dt > 0.0:
            used = max(used, dt / system.count(dt))
            end, finer, halves = system.move(e.x[k - 1], inputs[k - 1], 0.0, dt), e.x[k - 1], 2 * system.count(dt)
            for _ in range(halves):
                finer = system.move(finer, inputs[k - 1], 0.0, dt / halves)
            left = 4.0 / 3.0 * system.subtract(finer, end)
            bias = e.F[k] @ bias + system.between(end, e.x[k]) @ left
        bias = bias - e.K[k] @ (e.H[k] @ bias)
        size = float(np.sqrt(bias @ np.linalg.pinv(e.P[k], hermitian=True) @ bias / len(bias)))
        if size > worst:
            worst, when = size, float(e.t[k])
    return StepBias(worst, when, used)


def warn_of_long_steps(system: MachineSystem, estimates: Estimates, inputs: Array) -> None:
    """Say so where the step biases the estimates by more than `TOLERATED` deviations."""
    found = step_bias(system, estimates, inputs)
    if found.deviations > TOLERATED:
        warn(
            DataWarning,
            Fault(
                "the step of the integration is too long for this motion: it biases the estimates.",
                where=f"{system.name} near {found.t:.4g} s",
                expected=f"a bias below {TOLERATED:g} of their deviations",
                found=f"{found.deviations:.2g}, at a step of {found.step:.3g} s",
                hint=f"Try step={found.better:g}.",
            ),
        )
