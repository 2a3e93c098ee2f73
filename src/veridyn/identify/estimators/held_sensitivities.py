"""Sensitivities of runs along which dry friction holds and lets go (:mod:`veridyn.mechanics.dry_friction`).

Over a part of a step the shares s of friction are constant: the columns of its parameters are those of s, not of the signs of speeds.
Where friction holds at the end of a part, C v = 0 whatever x is, and its force is what makes C S_v zero. Where a combination c comes to
rest at the instant t*, with accelerations a⁻ before and a⁺ after it, ∂t*/∂x = −C S_v/c̈⁻ and

    S_v⁺ = S_v⁻ + (a⁺ − a⁻) C S_v⁻/c̈⁻
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.dry_friction import DryFriction
from veridyn.mechanics.runs import StepParts

Array = NDArray[np.float64]


def dry_columns(dry: DryFriction, parts: StepParts, M: Array, spread: Array) -> Array:
    """(R, K' − 1, n, p): q̈ by base parameters through dry friction, at the start of each part plus at its end, by its shares."""
    R, K, n = parts.whole.q.shape
    shares = parts.shares.reshape(R * (K - 1), -1)
    ends = []
    for place in (slice(None, -1), slice(1, None)):
        D = dry.regressor(parts.whole.qd[:, place].reshape(-1, n), shares) @ spread[dry.columns]
        ends.append(np.linalg.solve(M[:, place], D.reshape(R, K - 1, n, -1)))
    return -(ends[0] + ends[1])


def hold(dry: DryFriction, parts: StepParts, M: Array, left: Array, steps: Array) -> None:
    """Make steps (R, K' − 1, size, ·) leave speeds along combinations that friction holds as they are, whatever changes.

    With E = ∂(end of the part)/∂f of the friction forces f: steps − E (C E)⁺ C steps. `left`: the matrix of the trapezoidal rule.
    """
    n, size = parts.whole.q.shape[2], steps.shape[2]
    held = np.abs(parts.shares) < 1.0
    for r, k in zip(*np.nonzero(held.any(axis=2)), strict=True):
        C = dry.C[held[r, k]]
        pushed = np.zeros((size, len(C)))
        pushed[n : 2 * n] = np.linalg.solve(M[r, k], C.T)
        E = np.linalg.solve(left[r, k], pushed)
        steps[r, k] -= E @ np.linalg.lstsq(C @ E[n : 2 * n], C @ steps[r, k, n : 2 * n], rcond=None)[0]


def pass_stops(dry: DryFriction, parts: StepParts, k: int, S: Array) -> None:
    """Take sensitivities S (R, size, ·) over what comes to rest at time k."""
    n = parts.whole.q.shape[2]
    for r, i in zip(*np.nonzero(parts.stopped[:, k]), strict=True):
        before, after = parts.arriving[r, k], parts.whole.qdd[r, k]
        slope = dry.C[i] @ before
        if slope != 0.0:
            S[r, n : 2 * n] += np.outer(after - before, dry.C[i] @ S[r, n : 2 * n]) / slope
