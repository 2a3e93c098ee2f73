"""A machine whose state has one set of freedoms, whatever its formulation: what trees and natural coordinates over a free base share.

Its model has `local`, `reporting`, `instant` and `free`. Errors of the state are changes of those freedoms; what is reported differs from
them only in the attitude of a free base.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.natural.minimal import Instant
from veridyn.observe.machine import MachineSystem

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class OneSetSystem(MachineSystem):
    """The base of :class:`~veridyn.observe.tree.TreeSystem` and :class:`~veridyn.observe.free.FreeSystem`."""

    @property
    def reports_changes(self) -> bool:
        return not self.model.free

    def reduced(self, x: Array, number: int = 0) -> Array:
        q, qd, u, b = self.split(x)
        return np.concatenate([self.model.local(q, qd), u, b], axis=-1)

    def reported(self, x: Array, P: Array) -> Array:
        change = self.model.reporting(self.split(x)[0])
        if change is None:
            return P
        T = self.whole(change)
        return T @ P @ T.T

    def named(self, x: Array) -> Array:
        return x

    def between(self, a: Array, b: Array) -> Array:
        return np.eye(len(self.states))

    def instant_of(self, x: Array, inputs: Array) -> Instant:
        q, qd, u, _ = self.split(x)
        return self.model.instant(q, qd, u, self.acting(inputs))

    def densities(self, number: int) -> tuple[Array, Array]:
        return self.density[: self.f], self.density[self.f : 2 * self.f]
