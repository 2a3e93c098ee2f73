"""The R factors of all rows of an observation matrix: merged in any order, and stacked with a weight for each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault
from veridyn.identify.factor import RowFactor
from veridyn.identify.upper import triangle_of
from veridyn.model.parameters import ParameterSet

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RowFactors:
    """The factors of all rows, over the estimated parameters of one set."""

    parameters: ParameterSet
    rows: tuple[RowFactor, ...]

    def merge(self, other: RowFactors) -> RowFactors:
        """Both logs together. The rows and the parameters must be the same."""
        names = [f.row for f in self.rows], [f.row for f in other.rows]
        if self.parameters.names != other.parameters.names or names[0] != names[1]:
            raise DataError(
                Fault("observations of different models or rows cannot be merged.", found=f"{names[0]} and {names[1]}")
            )
        return RowFactors(self.parameters, tuple(a.merge(b) for a, b in zip(self.rows, other.rows, strict=True)))

    @property
    def columns(self) -> tuple[int, ...]:
        """The estimated parameters that affect some row, in order."""
        return tuple(sorted({c for f in self.rows for c in f.columns}))

    @property
    def samples(self) -> int:
        """Equations in all."""
        return sum(f.samples for f in self.rows)

    def stacked(self, weights: Sequence[float]) -> Array:
        """The R factor of all rows together, each times its weight, over :attr:`columns` and the measurement: P W, P Y of (25)."""
        place = {c: k for k, c in enumerate(self.columns)}
        size = len(place) + 1
        R = np.zeros((size, size))
        for f, weight in zip(self.rows, weights, strict=True):
            wide = np.zeros((len(f.R), size))
            wide[:, [place[c] for c in f.columns]] = weight * f.R[:, :-1]
            wide[:, -1] = weight * f.R[:, -1]
            R = triangle_of(np.vstack([R, wide]))
        return R
