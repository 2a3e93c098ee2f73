"""What one step of a filter leaves behind: the prediction, the correction and the belief after it.

A compiled step hands over all its numbers in one row, in the order of :class:`PassageLayout`; they are read out when they are used.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from veridyn.arrays import Array
from veridyn.observe.filters.update import Correction
from veridyn.observe.measurements import Codes
from veridyn.observe.result import Belief


@dataclass(frozen=True, eq=False)
class Prediction:
    """State, covariance and transition F, the derivative of the state at `t` with respect to the one before."""

    x: Array
    P: Array
    F: Array
    t: float


@dataclass(frozen=True, eq=False)
class Stepped:
    """A passage of the Python filter."""

    prediction: Prediction
    belief: Belief
    correction: Correction
    H: Array

    @property
    def status(self) -> Codes:
        return self.correction.status

    @property
    def used(self) -> int:
        return self.correction.dof


class PassageLayout(NamedTuple):
    """The order of the numbers of a compiled step: a state of N numbers, its change of n, m readings.

    x, P after; x, P, F before; dx, K, innovations, variances, H, status; NIS, number of readings used, log likelihood.
    """

    N: int
    n: int
    m: int

    @property
    def size(self) -> int:
        N, n, m = self
        return 2 * N + 3 * n * n + n + 2 * n * m + 3 * m + 3


class CompiledPassage:
    """A passage of a compiled step: `row` (size,) as the :class:`PassageLayout` orders it, not shared with anybody."""

    def __init__(self, layout: PassageLayout, row: Array, t: float) -> None:
        self._layout, self._row = layout, row
        N, n, m = layout
        self.belief = Belief(row[:N], row[N : N + n * n].reshape(n, n), t)
        self.status: Codes = row[-3 - m : -3].astype(np.int8)

    @property
    def used(self) -> int:
        return int(self._row[-2])

    @cached_property
    def prediction(self) -> Prediction:
        N, n, _ = self._layout
        at = N + n * n
        matrices = self._row[at + N : at + N + 2 * n * n].reshape(2, n, n)
        assert self.belief.t is not None
        return Prediction(self._row[at : at + N], matrices[0], matrices[1], self.belief.t)

    @cached_property
    def correction(self) -> Correction:
        N, n, m = self._layout
        row = self._row[2 * N + 3 * n * n :]
        nis, dof, log_likelihood = row[-3:].tolist()
        at = n + n * m
        return Correction(
            row[:n],
            self.belief.P,
            row[at : at + m],
            row[at + m : at + 2 * m],
            self.status,
            nis,
            int(dof),
            log_likelihood,
            row[n:at].reshape(n, m),
        )

    @cached_property
    def H(self) -> Array:
        _, n, m = self._layout
        return self._row[-3 - m - n * m : -3 - m].reshape(m, n)


# What one step leaves behind: the `belief` after it, the `prediction` before its readings, the `correction` by them and the H that was
# used; `status` (m,) says what became of each reading, `used` how many were taken in.
Passage = Stepped | CompiledPassage
