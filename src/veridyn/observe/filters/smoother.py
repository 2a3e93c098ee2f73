"""The Rauch-Tung-Striebel smoother: every state in the light of all readings, also those after it.

    G = P_k Fᵀ P_{k+1|k}⁻¹,    x_k ← x_k + G (x_{k+1} − x_{k+1|k}),
    P_k ← (I − G F) P_k (I − G F)ᵀ + G (Q + P_{k+1}) Gᵀ,    Q = P_{k+1|k} − F P_k Fᵀ

It works on the history of any filter, because each leaves its transition F behind (the unscented one that of its fitted
line). The covariance is in a form that stays symmetric and positive. On a linear system it equals the least-squares
solution over the whole log. Smoothed errors are a chain backwards in time, cov(e_k, e_{k+1}) = G P_{k+1}, which says how
many of them are independent; the gains are kept for that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from veridyn.arguments import checked
from veridyn.arrays import Array
from veridyn.observe.process_noise import symmetric
from veridyn.observe.result import Estimates, Track
from veridyn.observe.system import System


@dataclass(frozen=True, eq=False)
class Smoothed(Track):
    """A smoothed track with its gains (N, n, n): `gains[k]` leads from k+1 back to k, and the last is zero."""

    gains: Array


@checked
def smooth(estimates: Estimates, system: System | None = None) -> Smoothed:
    """The smoothed track. `system` is needed only where the state is not a plain vector: for its `add` and `subtract`."""
    estimates.chained("a smoother")
    e = estimates
    x, P = e.x.copy(), e.P.copy()
    identity, gains = np.eye(P.shape[1]), np.zeros_like(P)
    for k in range(len(e) - 2, -1, -1):
        F, ahead = e.F[k + 1], e.P_predicted[k + 1]
        G = gains[k] = _gain(e.P[k] @ F.T, ahead)
        change = x[k + 1] - e.x_predicted[k + 1] if system is None else system.subtract(x[k + 1], e.x_predicted[k + 1])
        keep = identity - G @ F
        added = ahead - F @ e.P[k] @ F.T
        P[k] = symmetric(keep @ e.P[k] @ keep.T + G @ (added + P[k + 1]) @ G.T)
        d, bounds = G @ change, getattr(system, "bounds", None)
        if bounds is not None:
            d = bounds.project(e.x[k], d, P[k], getattr(system, "considered", None))
        x[k] = e.x[k] + d if system is None else system.add(e.x[k], d)
    return Smoothed(e.t, x, P, e.states, f"{e.filter} smoothed", gains)


def _gain(cross: Array, ahead: Array) -> Array:
    """cross · ahead⁻¹; where a state is known exactly `ahead` is singular and its pseudo-inverse gives the same answer."""
    scale = np.sqrt(np.maximum(ahead.diagonal(), 0.0))
    scale = np.where(scale > 0.0, scale, 1.0)
    C = ahead / np.outer(scale, scale)
    try:
        factor = cho_factor(C, lower=True)
        if factor[0].diagonal().min() > 1e-7:
            return cho_solve(factor, (cross / scale).T).T / scale
    except np.linalg.LinAlgError:
        pass  # semi-definite
    return (cross / scale) @ np.linalg.pinv(C, rcond=1e-12, hermitian=True) / scale
