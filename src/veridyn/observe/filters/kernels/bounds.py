"""Bounds of estimated parameters as machine code; the reference is :meth:`veridyn.observe.bounds.ParameterBounds.project`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.compiled import core
from veridyn.observe.bounds import BOUND_PASSES
from veridyn.observe.filters.kernels.correction import Corrected

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]


@core
def project(x: Array, c: Corrected, places: Numbers, changes: Numbers, lower: Array, upper: Array) -> None:
    """Move the correction c.dx of the state x within the bounds."""
    d, P = c.dx, c.P
    for _ in range(BOUND_PASSES):
        for k in range(len(places)):
            i = changes[k]
            new, beyond = x[places[k]] + d[i], 0.0
            if new < lower[k]:
                beyond = lower[k] - new
            elif new > upper[k]:
                beyond = upper[k] - new
            if beyond != 0.0 and P[i, i] > 0.0:
                share = beyond / P[i, i]
                for a in range(len(d)):
                    if c.considered[a] == 0:
                        d[a] += P[a, i] * share
    for k in range(len(places)):
        i = changes[k]
        new = x[places[k]] + d[i]
        if new < lower[k]:
            d[i] = lower[k] - x[places[k]]
        elif new > upper[k]:
            d[i] = upper[k] - x[places[k]]
