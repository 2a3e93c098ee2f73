"""Where a model says that a machine goes under the forces that were measured: the ghost beside the recording.

From the recorded state at the beginning of every `horizon`, forward dynamics under the recorded forces is integrated to its end by the
classical Runge-Kutta method; then it begins again. All horizons are integrated at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import VeridynError
from veridyn.mechanics.forward import forward_dynamics
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion

Array = NDArray[np.float64]
HORIZON_S = 0.5
STEPS = 4  # of the integration from one pose to the next
FARTHEST = 50.0  # rad or m from the recording: beyond it a prediction is no longer shown


def predicted_poses(machine: Machine, t: Array, q: Array, forces: Array, horizon: float = HORIZON_S) -> Array | None:
    """Poses (N, n) on the clock `t` (N,), evenly spaced; None where the model cannot predict: loops, a free base, forces not known.

    `q` and `forces` (N, n). Forces of joints without a motor are zero.
    """
    passive = ~np.array(machine.actuated, dtype=bool)
    acting = np.where(passive, 0.0, forces)
    if (
        machine.closed
        or machine.base == "free"
        or machine.prescribed
        or machine.states
        or not np.isfinite(acting).all()
    ):
        return None
    h = float(np.median(np.diff(t)))
    size = max(2, round(horizon / h))
    starts = np.arange(0, len(t), size)
    qd = np.gradient(q, t, axis=0, edge_order=2)
    found = q.copy()
    x, v = q[starts].copy(), qd[starts].copy()
    try:
        for k in range(1, size):
            before, after = np.minimum(starts + k - 1, len(t) - 1), np.minimum(starts + k, len(t) - 1)
            x, v = _moved(machine, x, v, acting[before], acting[after], h)
            inside = starts + k < len(t)
            found[(starts + k)[inside]] = x[inside]
    except VeridynError:
        return None
    off = ~np.isfinite(found) | (np.abs(found - q) > FARTHEST)
    return np.where(off, q, found)


def _moved(machine: Machine, q: Array, qd: Array, f0: Array, f1: Array, h: float) -> tuple[Array, Array]:
    """The states (W, n) a time h later under forces that go straight from f0 to f1."""
    step = h / STEPS

    def accelerations(share: float, x: Array, v: Array) -> Array:
        m = Motion(np.arange(len(x), dtype=np.float64), x, v, np.zeros_like(x), forces=f0 + share * (f1 - f0))
        return np.asarray(forward_dynamics(machine, m).qdd)

    for k in range(STEPS):
        now, half, then = k / STEPS, (k + 0.5) / STEPS, (k + 1) / STEPS
        a1 = accelerations(now, q, qd)
        a2 = accelerations(half, q + step / 2 * qd, qd + step / 2 * a1)
        a3 = accelerations(half, q + step / 2 * qd + step**2 / 4 * a1, qd + step / 2 * a2)
        a4 = accelerations(then, q + step * qd + step**2 / 2 * a2, qd + step * a3)
        q, qd = q + step * qd + step**2 / 6 * (a1 + a2 + a3), qd + step / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
    return q, qd
