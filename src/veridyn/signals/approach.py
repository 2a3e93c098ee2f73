"""From where a machine stands to where its motion begins: a straight line in its coordinates, from rest to rest.

    x(t) = x₀ + (r(0) − x₀) s(t/T),   s = 10u³ − 15u⁴ + 6u⁵,   then r(t − T)

with a reference r that begins at rest. Speeds are at most 15/8 |r(0) − x₀|/T, accelerations 10/√3 |r(0) − x₀|/T².
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.signals.run_up import RunUp

Array = NDArray[np.float64]
FASTEST, HARDEST = 1.875, 10.0 / np.sqrt(3.0)  # of s', and of s''


@dataclass(frozen=True, eq=False)
class Approach:
    """`start` (n,) is left at rest, and `reference` begins after `seconds`."""

    reference: RunUp
    start: Array
    seconds: float

    @property
    def lead(self) -> float:
        """Seconds until the periodic motion is at full pace."""
        return self.seconds + self.reference.lead

    @property
    def period(self) -> float:
        return self.reference.period

    def at(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """x, ẋ and ẍ at the times `t` of any shape, each of shape (…, n)."""
        times = np.asarray(t, dtype=np.float64)
        x, xd, xdd = self.reference.at(np.maximum(times - self.seconds, 0.0))
        if self.seconds == 0.0:
            return x, xd, xdd
        u = np.clip(times / self.seconds, 0.0, 1.0)[..., None]
        way = self.reference.at(0.0)[0] - self.start
        before = (times < self.seconds)[..., None]
        s = u**3 * (10.0 - 15.0 * u + 6.0 * u**2)
        rate = 30.0 * (u * (1.0 - u)) ** 2 / self.seconds
        change = 60.0 * u * (1.0 - u) * (1.0 - 2.0 * u) / self.seconds**2
        return (
            np.where(before, self.start + s * way, x),
            np.where(before, rate * way, xd),
            np.where(before, change * way, xdd),
        )
