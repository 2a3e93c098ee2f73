"""Whether a signal that repeats one value hangs, by what lies before: a stream knows no more, and a log that ends so neither.

Of the ideas of :func:`veridyn.signals.outliers.frozen` these ask for nothing behind the run. Noise: what lay on the signal before would let
a machine at rest repeat a reading so often once in very many runs. Speed: the signal stops dead. A way to go: it does not brake as much as
it must to stand where the run begins.

White noise σ that a sensor rounds to steps q gives the reading before again with a probability of at most

    p = erf(q / 2√2 σ)                                          the machine at rest in the middle of a step

so a run of L readings has at most p^(L−1). σ is that which the third differences before the run show beyond what rounding makes alone: of a
steady motion they are up to 2 q at the median (at half a step per reading: 0 0 1 1 2 2 …), as if noise of 0.66 q were there. That of a
machine at rest, whose readings all lie in one step, is none.
"""

from __future__ import annotations

import math

import numpy as np

from veridyn.arrays import Array
from veridyn.signals.outliers import (
    AROUND,
    LONG_FREEZE,
    SHORTEST_FREEZE,
    WHITE_CORRELATION,
    moves_on,
    stops_dead,
    white_deviation,
)

ROUNDING = float(white_deviation(np.full(1, 2.0)))  # quanta: white noise that rounding alone looks like at most
DEVIATION_ERROR = 0.15  # of a deviation: standard error of that of `AROUND` samples, by the median of third differences
SURE = 1.0 + 3.0 * DEVIATION_ERROR  # times too large, or too small, is such a deviation but once in a thousand cases
NOISE_STEP = 3.0 * math.sqrt(2.0)  # deviations: noise makes two such steps in a row once in half a million cases


def hangs(x: Array, first: int, grain: float, chance: float) -> bool:
    """Whether the run of equal samples from `first` to the end of a record is no rest. `grain`: the resolution of the signal; `chance`: of
    a machine at rest to give such a run."""
    before = x[max(0, first - AROUND) : first + 1]
    length, steps = len(x) - first, np.abs(np.diff(before))
    if len(before) < AROUND // 2 or not steps.any():
        return False
    white = noise(before)
    sigma = math.sqrt(max(white**2 - (ROUNDING * grain) ** 2, 0.0)) / SURE
    if sigma > 0.0 and math.erf(grain / (math.sqrt(8.0) * sigma)) ** (length - 1) < chance:
        return True
    speed = max(0.3 * float(np.median(steps[steps > 0.0])), 2.0 * grain, NOISE_STEP * SURE * white)
    if length >= SHORTEST_FREEZE and min(steps[-1], steps[-2]) > speed and stops_dead(steps, len(steps)):
        return True
    return length >= LONG_FREEZE and moves_on(x, first, len(x) - 1, grain)


def noise(x: Array) -> float:
    """The deviation of white noise on a signal, that of its rounding included; 0 where what shows is a motion, or noise that lasts."""
    third = np.diff(x, 3)
    return 0.0 if third[1:] @ third[:-1] > WHITE_CORRELATION * (third @ third) else float(white_deviation(third))
