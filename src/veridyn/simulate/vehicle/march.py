"""Step by step through time: the car's equations by Runge and Kutta's method of fourth order, compiled and kept on disk.

:func:`march` is the one door to the compiled equations; :func:`instant` is a march of no steps.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.compiled import kept
from veridyn.simulate.vehicle.equations import rates
from veridyn.simulate.vehicle.state import OUTPUTS, STATES, CarNumbers, VehicleWork

Array = NDArray[np.float64]


@kept
def march(
    x: Array,
    u: Array,
    step: float,
    every: int,
    P: CarNumbers,
    road: Array,
    states: Array,
    outputs: Array,
    work: VehicleWork,
) -> int:
    """Steps from x, with inputs u at whole and half steps; the number of samples that were kept.

    Samples are kept `every` so many steps, with the outputs of the same instant. Stops where the state is no longer finite. x becomes the
    last state. A march of no steps leaves ẋ in work.rate and all outputs in work.out.
    """
    n, samples = len(x), 0
    y, k, total = work.state, work.rate, work.total
    steps = (len(u) - 1) // 2
    for s in range(steps + 1):
        for stage in range(4):
            share = 0.0 if stage == 0 else (1.0 if stage == 3 else 0.5)
            for j in range(n):
                y[j] = x[j] + share * step * k[j] if stage > 0 else x[j]
            rates(y, u[2 * s + (stage + 1) // 2], P, road, k, work.out, work)
            if stage == 0 and s % every == 0:
                size = 0.0
                for j in range(n):
                    size += abs(x[j])
                if not np.isfinite(size):
                    return samples
                for j in range(n):
                    states[samples, j] = x[j]
                for j in range(len(work.out)):
                    outputs[samples, j] = work.out[j]
                samples += 1
            if s == steps:
                return samples
            weight = 1.0 if stage == 0 or stage == 3 else 2.0
            for j in range(n):
                total[j] = weight * k[j] if stage == 0 else total[j] + weight * k[j]
        for j in range(n):
            x[j] += step / 6.0 * total[j]
        length = 1.0 / np.sqrt(x[3] ** 2 + x[4] ** 2 + x[5] ** 2 + x[6] ** 2)
        for j in range(3, 7):
            x[j] *= length
    return samples


def instant(x: Array, u: Array, P: CarNumbers, road: Array, work: VehicleWork) -> tuple[Array, Array]:
    """ẋ and the outputs at one state and input; both are work's own memory, overwritten by the next call."""
    march(x, u.reshape(1, -1), 0.0, 1, P, road, np.empty((1, STATES)), np.empty((1, OUTPUTS)), work)
    return work.rate, work.out
