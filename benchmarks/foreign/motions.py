"""Motions of machines beside sums of sines: from point to point, as robots are moved, each joint on its own clock.

A move from a to b takes T seconds; u goes from 0 to 1 meanwhile, and q = a + (b − a) s(u):

    minimum jerk    s = 10 u³ − 15 u⁴ + 6 u⁵: speed and acceleration are zero at both ends, jerk steps there
    trapezoidal     a third of the time at constant acceleration, a third at constant speed, a third at constant deceleration

T and b are drawn, so that joints reverse at different times. With dwells a joint rests after each move of minimum jerk, up to the longest
time that a move takes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
FOURIER = "fourier"
MOTIONS = (FOURIER, "minimum-jerk", "trapezoidal", "dwells")
MOVE_S = (0.7, 2.0)  # shortest and longest move, where the speed allows it
DWELL_S = (0.2, 2.0)  # between two moves, where joints dwell
PEAK = {"minimum-jerk": 1.875, "trapezoidal": 1.5}  # largest speed of a move, in ways by time


@dataclass(frozen=True, eq=False)
class Moves:
    """Of each joint when its moves begin, how long they take, and where they begin and end; `trapezoidal` or of minimum jerk."""

    begins: tuple[Array, ...]
    times: tuple[Array, ...]
    starts: tuple[Array, ...]
    ends: tuple[Array, ...]
    trapezoidal: bool = False

    @classmethod
    def drawn(cls, kind: str, rng: np.random.Generator, reach: Array, speed: float, seconds: float) -> Moves:
        """Moves over `reach` (n,) to either side of zero, no faster than `speed` times that a second, for so many seconds."""
        peak = PEAK["trapezoidal" if kind == "trapezoidal" else "minimum-jerk"]
        joints: list[tuple[list[float], ...]] = []
        for width in reach:
            begins, times, starts, ends = list[float](), list[float](), list[float](), list[float]()
            t, at = -float(rng.uniform(0.0, MOVE_S[0])), 0.0
            while t < seconds:
                to = float(width * rng.uniform(-1.0, 1.0))
                T = max(float(rng.uniform(*MOVE_S)), peak * abs(to - at) / (speed * float(width)))
                for known, x in zip((begins, times, starts, ends), (t, T, at, to), strict=True):
                    known.append(x)
                t, at = t + T + (float(rng.uniform(*DWELL_S)) if kind == "dwells" else 0.0), to
            joints.append((begins, times, starts, ends))
        parts = (tuple(np.array(x) for x in part) for part in zip(*joints, strict=True))
        return cls(*parts, trapezoidal=kind == "trapezoidal")

    def at(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """q, q̇ and q̈ (N, n)."""
        when = np.asarray(t, dtype=np.float64)
        shape = _trapezoidal if self.trapezoidal else _minimum_jerk
        columns = []
        for begins, times, starts, ends in zip(self.begins, self.times, self.starts, self.ends, strict=True):
            k = np.clip(np.searchsorted(begins, when, side="right") - 1, 0, len(begins) - 1)
            T, way = times[k], (ends - starts)[k]
            s, ds, dds = shape(np.clip((when - begins[k]) / T, 0.0, 1.0))
            columns.append((starts[k] + way * s, way * ds / T, way * dds / T**2))
        q, qd, qdd = (np.stack(x, axis=1) for x in zip(*columns, strict=True))
        return q, qd, qdd


def _minimum_jerk(u: Array) -> tuple[Array, Array, Array]:
    return u**3 * (10.0 - 15.0 * u + 6.0 * u**2), 30.0 * (u * (1.0 - u)) ** 2, 60.0 * u * (1.0 - u) * (1.0 - 2.0 * u)


def _trapezoidal(u: Array) -> tuple[Array, Array, Array]:
    """At 4.5 for the first third, and −4.5 for the last: 1.5 between them."""
    a = np.where(u < 1.0 / 3.0, 4.5, np.where(u < 2.0 / 3.0, 0.0, -4.5)) * ((u > 0.0) & (u < 1.0))
    first, last = np.minimum(u, 1.0 / 3.0), np.maximum(u - 2.0 / 3.0, 0.0)
    v = 4.5 * (first - last)
    middle = np.clip(u - 1.0 / 3.0, 0.0, 1.0 / 3.0)
    return 2.25 * first**2 + 1.5 * middle + 1.5 * last - 2.25 * last**2, v, a


def motions_named(words: str) -> tuple[str, ...]:
    """The motions of a comma-separated list; "all" is every one of them."""
    names = MOTIONS if words == "all" else tuple(words.split(","))
    unknown = [name for name in names if name not in MOTIONS]
    if unknown:
        raise ValueError(f"no such motion: {', '.join(unknown)}. Known: {', '.join(MOTIONS)}, all")
    return names
