"""How a periodic motion is entered: along its own path, from rest, at full pace after `lead` seconds, or on a line from elsewhere.

    x(t) = p(τ(t)),   τ' = s(t/lead) with s = 10u³ − 15u⁴ + 6u⁵ from 0 to 1,   τ(lead) = offset

The path is that of the periodic motion, so whatever holds of its positions (ranges, workspace, distances) holds from the first moment; the
machine stands at p(offset − lead/2) before. Derivatives are exact: ẋ = ṗ τ', ẍ = p̈ τ'² + ṗ τ''.

The approach of a reference r that begins at rest:   x(t) = x₀ + (r(0) − x₀) s(t/T),   then r(t − T)

Speeds are at most 15/8 |r(0) − x₀|/T, accelerations 10/√3 |r(0) − x₀|/T².
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arrays import Array


class Periodic(Protocol):
    """A motion that repeats itself."""

    @property
    def period(self) -> float: ...

    def at(self, t: ArrayLike) -> tuple[Array, Array, Array]: ...


@dataclass(frozen=True, eq=False)
class RunUp:
    """`motion` entered from rest along its path; at `lead` seconds its own time is `offset`."""

    motion: Periodic
    lead: float
    offset: float = 0.0

    @property
    def period(self) -> float:
        return self.motion.period

    def at(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """x, ẋ and ẍ at the times `t` of any shape, each of shape (…, n)."""
        times = np.asarray(t, dtype=np.float64)
        if self.lead == 0.0:
            return self.motion.at(times + self.offset)
        u = np.clip(times / self.lead, 0.0, 1.0)
        pace = u**3 * (10.0 - 15.0 * u + 6.0 * u**2)
        change = 30.0 * (u * (1.0 - u)) ** 2 / self.lead
        own = np.where(times >= self.lead, times - self.lead, self.lead * (u**4 * (2.5 - 3.0 * u + u**2) - 0.5))
        p, pd, pdd = self.motion.at(own + self.offset)
        pace, change = pace[..., None], change[..., None]
        return p, pd * pace, pdd * pace**2 + pd * change


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
