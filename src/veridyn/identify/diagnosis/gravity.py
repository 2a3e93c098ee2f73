"""The gravity that a log itself speaks of: found as three more unknowns beside the parameters.

    y = (W₀ + Σ_k g_k W_k) φ        W_k = regressor under unit gravity along axis k, less that under none

For each g the best φ is a least-squares solution (variable projection), so only g is searched, from the model's own and from the six
directions of the axes. Inertia fixes the size of g beside the weights, if the motion is quick enough for inertia to act.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from veridyn.identify.diagnosis.evidence import Equations, Evidence, share

Array = NDArray[np.float64]
FIRST_GUESS = 9.81  # m/s^2, the size of the first guesses
SAMPLES = 200
LARGEST_AXIS = 20.0  # m/s^2 along an axis; no search goes beyond


@dataclass(frozen=True, eq=False)
class Gravity:
    """The `gravity` that fits best (m/s^2, in the ground's frame) and the error it leaves."""

    gravity: Array
    error: float


def best_gravity(e: Evidence) -> Gravity | None:
    """None where the base is free: its acceleration, gravity included, is measured."""
    machine = e.machine
    if machine.base != "fixed" or not e.rows:
        return None
    few = replace(e, motion=e.motion[:: max(1, len(e.motion) // SAMPLES)])
    under = [few.equations(replace(machine, gravity=g)) for g in (np.zeros(3), *np.eye(3))]
    # Equations are relative to ‖y‖; only where parameters are known does ‖y‖ itself depend on gravity.
    W = [eq.W * eq.sizes[:, None, None] for eq in under]
    y = [eq.y * eq.sizes[:, None] for eq in under]
    size, numbers = under[0].sizes, under[0].numbers

    def residual(g: Array) -> Array:
        at = W[0] + sum(gk * (Wk - W[0]) for gk, Wk in zip(g, W[1:], strict=True))
        right = y[0] + sum(gk * (yk - y[0]) for gk, yk in zip(g, y[1:], strict=True))
        return Equations(at / size[:, None, None], right / size[:, None], size, numbers).solved()[1]

    starts = [np.asarray(machine.gravity), *(FIRST_GUESS * sign * axis for axis in np.eye(3) for sign in (-1.0, 1.0))]
    first = min(starts, key=lambda g: share(residual(g)))
    found = least_squares(
        lambda g: residual(g).ravel(),
        first,
        x_scale=FIRST_GUESS,
        diff_step=1e-3,
        max_nfev=12,
        bounds=(-LARGEST_AXIS, LARGEST_AXIS),
    )
    return Gravity(np.asarray(found.x), share(residual(found.x)))
