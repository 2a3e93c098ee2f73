"""Positions out of reach of a closed machine: which simple mistake in the log would explain that.

A log in degrees, with two columns swapped or one turned round mostly leads where the loops cannot be closed. Each such mistake is undone on
some samples, and those are named with which all of them can be reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError
from veridyn.mechanics.loops.closure import closed_motion
from veridyn.mechanics.loops.projection import projection
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion

Array = NDArray[np.float64]
SAMPLES = 60
DEGREES = np.pi / 180.0
NAMED_READINGS = 4  # readings that are named


def readings_in_reach(machine: Machine, given: Sequence[str], q: Array) -> list[str]:
    """What could be otherwise about positions q (N, given) that cannot all be reached, in words; empty where nothing simple helps."""
    few = q[np.unique(np.linspace(0, len(q) - 1, SAMPLES).astype(int))]
    return [words for words, T in _readings(machine, given) if _reached(machine, given, few @ T.T)][:NAMED_READINGS]


def _readings(machine: Machine, given: Sequence[str]) -> list[tuple[str, Array]]:
    kinds = [machine.coordinate_kinds[machine.coordinates.index(c)] for c in given]
    turning = [k for k, kind in enumerate(kinds) if kind == "turning"]
    n, out = len(given), []
    for group in ([turning] if len(turning) > 1 else []) + [[k] for k in turning]:
        T = np.eye(n)
        T[group, group] = DEGREES
        out.append((f"{', '.join(given[k] for k in group)} in degrees, not radians", T))
    for k in (k for k in range(n) if k not in turning):
        T = np.eye(n)
        T[k, k] = 1e-3
        out.append((f"{given[k]} in mm, not m", T))
    for i, j in combinations(range(n), 2):
        if kinds[i] == kinds[j]:
            T = np.eye(n)
            T[[i, j]] = T[[j, i]]
            out.append((f"{given[i]} and {given[j]} swapped", T))
    for k in range(n):
        T = np.eye(n)
        T[k, k] = -1.0
        out.append((f"{given[k]} with the other sign", T))
    return out


def _reached(machine: Machine, given: Sequence[str], q: Array) -> bool:
    still = np.zeros_like(q)
    return closed_or_none(machine, given, Motion(np.arange(float(len(q))), q, still, still)) is not None


def closed_or_none(machine: Machine, given: Sequence[str], part: Motion, near: Array | None = None) -> Motion | None:
    """The motion of all coordinates from one of those `given` alone, each sample for itself; None where some cannot be reached, or where
    they come so near to a singular position that their accelerations do not keep the loops closed.

    Newton's method starts at home, and failing that `near`, (N, n): there are many samples, so none is reached in small steps.
    """
    t, q, qd, qdd, base = part.t, part.q, part.qd, part.qdd, part.base
    for start in (None,) if near is None else (None, near):
        try:
            made = closed_motion(
                machine, t, q, qd, qdd, at=given, base=base, start=start, path=False, patient=False, engine="numpy"
            )
            projection(machine, made, "numpy")
            return made
        except DataError:
            continue
    return None
