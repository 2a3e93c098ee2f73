"""Forces in coarse steps: values that are all multiples of one number q, as where a column was written in whole numbers.

Rounding to steps q adds q²/12 to the variance of a signal, and where its own noise σ is above q/2 that error is independent of the value
(Widrow 1956), so that it harms nothing more. Below it is not independent; and truncation takes q/2 in the mean away from every value,
towards zero against its sign, as dry friction acts, so that friction, and what holds weights, come out wrong by many deviations.

One signal (N,) of finite numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Fault
from veridyn.signals.lowpass import HARMLESS_NOISE

Array = NDArray[np.float64]
UNITS = ("N", "N*m", "A")  # of forces, torques and the currents that stand for them
ROUNDING = 1e-6  # of a step, times its number: a larger distance from a multiple is no rounding of numbers
DITHER = 0.5  # of a step: own noise above it makes the error of rounding independent of the value
FEWEST_LEVELS = 5  # fewer are those of a command that is switched, as up, off and down
REST_SAMPLES = 20  # equal ones in a row: a machine at rest, which says nothing about noise
JUMPS = 0.05  # of third differences, the largest, which dry friction makes


def step(x: Array) -> float:
    """The step of which all values are multiples; 0 where they are not, or where steps are finer than `HARMLESS_NOISE` of the signal."""
    values = np.unique(x)
    if len(values) < FEWEST_LEVELS:
        return 0.0
    q = float(np.diff(values).min())
    if 0.5 * q <= HARMLESS_NOISE * float(np.std(x)):
        return 0.0
    off = np.abs(values / q - np.round(values / q)).max()
    return q if off <= ROUNDING * max(1.0, float(np.abs(values).max()) / q) else 0.0


def coarse_step(x: Array) -> float:
    """The step of a signal where its own noise is below `DITHER` of it, and 0 elsewhere.

    The variance of third differences is 20 (σ² + q²/12), those of dry friction's jumps and of long rests left out.
    """
    q = step(x)
    if not q:
        return 0.0
    third = np.abs(np.diff(x, 3))[_moving(x)[3:]]
    if len(third) < REST_SAMPLES:
        return 0.0
    kept = third[third <= np.quantile(third, 1.0 - JUMPS)]
    return q if float(np.mean(kept**2)) / 20.0 < (DITHER**2 + 1.0 / 12.0) * q**2 else 0.0


def coarse_fault(name: str, x: Array, unit: str) -> Fault | None:
    """That a force or current has coarse steps; None where it has not, or where the channel is none."""
    q = coarse_step(x[np.isfinite(x)]) if unit in UNITS else 0.0
    if not q:
        return None
    return Fault(
        f"all its values are multiples of {q:.6g} {unit}, coarser than its noise: they were rounded or truncated.",
        f"channel '{name}'",
        f"steps below twice its noise, or below {2.0 * HARMLESS_NOISE:.2g} of its standard deviation",
        f"{len(np.unique(x))} different values in {len(x)} samples",
        "Record or export the column with more digits; truncation towards zero looks like dry friction that is not there.",
    )


def _moving(x: Array) -> NDArray[np.bool_]:
    """Samples that belong to no run of `REST_SAMPLES` equal ones."""
    starts = np.concatenate([[0], np.flatnonzero(np.diff(x) != 0.0) + 1, [len(x)]])
    lengths = np.diff(starts)
    return np.repeat(lengths < REST_SAMPLES, lengths)
