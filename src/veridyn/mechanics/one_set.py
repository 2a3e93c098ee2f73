"""What models with one set of independent coordinates share: trees, and natural coordinates over the freedoms of a tree."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.formulation import Instant

Array = NDArray[np.float64]


class OneSet(ABC):
    """The part of :class:`~veridyn.mechanics.formulation.MachineModel` that is about sets, where there is only the first."""

    @property
    @abstractmethod
    def f(self) -> int:
        """The number of degrees of freedom."""

    @property
    def left_out(self) -> tuple[str, ...]:
        """Constraints that follow from others: all are kept."""
        return ()

    def keeping(self) -> Self:
        """The same model, which has no other set."""
        return self

    def change(self, at: Instant, to: int) -> Array:
        """d(z, ż)/d(z, ż)."""
        return np.eye(2 * self.f)
