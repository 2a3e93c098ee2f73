"""The energy that suspensions store: the integral of the forces of :mod:`veridyn.papers.car.simulator.forces`, written on its own."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from veridyn.papers.car.simulator.forces import Suspension


def spring_energy(suspension: Suspension, z: ArrayLike) -> float:
    """Energy stored at four clearances: the potential of springs, stops and bars, J."""
    x = np.asarray(z, dtype=np.float64)
    p, bar, _ = suspension.packed()
    c = x - p[:, 4]
    above, below = np.maximum(c - p[:, 5], 0.0), np.minimum(c + p[:, 6], 0.0)
    own = p[:, 0] * x + p[:, 1] * x**2 / 2 + p[:, 2] * c**3 / 3 + p[:, 3] * c**4 / 4
    own = own + p[:, 7] * (above**3 - below**3) / 3
    d = np.array([x[0] - x[1], x[2] - x[3]])
    return float(own.sum() + (bar[:, 0] * d**2 / 2 + bar[:, 1] * d**4 / 4).sum())
