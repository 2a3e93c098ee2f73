"""The results of a compiled filter step in one row, in the order of :class:`~veridyn.observe.filters.passage.PassageLayout`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.compiled import core
from veridyn.observe.filters.kernels.correction import Corrected

Array = NDArray[np.float64]


@core
def put_results(out: Array, after: Array, x: Array, P: Array, F: Array, H: Array, c: Corrected) -> None:
    """The state `after` the correction `c`, the predicted x, P and F before it, and H, into `out`."""
    at = _row(out, 0, after)
    at = _rows(out, at, c.P)
    at = _row(out, at, x)
    at = _rows(out, at, P)
    at = _rows(out, at, F)
    at = _row(out, at, c.dx)
    at = _rows(out, at, c.K)
    at = _row(out, at, c.innovations)
    at = _row(out, at, c.variances)
    at = _rows(out, at, H)
    for j in range(len(c.status)):
        out[at + j] = c.status[j]
    at += len(c.status)
    for j in range(3):
        out[at + j] = c.statistics[j]


@core
def _row(out: Array, at: int, x: Array) -> int:
    for i in range(len(x)):
        out[at + i] = x[i]
    return at + len(x)


@core
def _rows(out: Array, at: int, x: Array) -> int:
    return _row(out, at, x.reshape(x.size))
