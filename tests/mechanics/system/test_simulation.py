"""Splines asked one time a call, against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline, CubicSpline

from veridyn.mechanics.system.simulation import spline_at


@pytest.mark.parametrize("shape", [(3,), (2, 4)])
def test_values_are_those_of_scipy_within_at_and_beyond_the_knots(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    t = np.cumsum(rng.uniform(0.1, 1.0, size=20))
    y, slopes = rng.normal(size=(2, 20, *shape))
    times = np.concatenate([t, rng.uniform(t[0], t[-1], size=50), [t[0] - 0.3, t[-1] + 0.3]])
    for spline in (CubicSpline(t, y), CubicHermiteSpline(t, y, slopes)):
        at = spline_at(spline)
        for time in times.tolist():
            assert at(time) == pytest.approx(spline(time), rel=1e-12, abs=1e-12)
