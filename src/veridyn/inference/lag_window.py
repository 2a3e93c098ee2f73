"""What scores that are correlated in time add up to: S = Σ_t Σ_s k(t − s) h_t h_sᵀ, with lag windows k and their lengths.

Sums of scores over windows of W samples give Bartlett's estimate S_W, whose weights 1 − |l|/W are too small at every lag. Of two widths

    S = 2 S_W − S_{W/2}     has the weights min(1, 2 (1 − |l|/W)): 1 up to half the width

(the trapezoid of Politis and Romano, 1995, J. Time Ser. Anal. 16(1)), at the price that S may lose its sign in some direction; it is kept
above a share of S_W there. The scores are those of residuals, from which a fit has taken what the columns explain, in each window H_w of
the whole information I (columns orthonormal): to first order S comes out (I − Q) times too small with Q = Σ_w H_w²/W, the correlated
counterpart of the leverages of Bell and McCaffrey (2002). Smooth columns are alike within a window, so Q is far more than p/N.

A covariance with S between the inverses of the information is the sandwich (Newey and West, 1987, Econometrica 55(3)).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array

LONGEST_WINDOW_SHARE = 0.1  # of the samples: windows beyond it leave too few of them to say how they scatter
MIN_SHARE_OF_BARTLETT = 0.25  # what S keeps of S_W in any direction
LARGEST_LEVERAGE = 0.8  # of Q: beyond it the log is too short to say, and the note of a capped window is given


def lags_for(scores: Sequence[Array]) -> int:
    """L by Andrews' rule for scores (N, p) of several stretches."""
    square = np.sum([(h**2).sum(axis=0) for h in scores], axis=0)
    product = np.sum([(h[1:] * h[:-1]).sum(axis=0) for h in scores], axis=0)
    return andrews(square, product, sum(len(h) for h in scores))[0]


def trapezoid(wide: Array, narrow: Array) -> Array:
    """2 S_W − S_{W/2} of S_W and S_{W/2} (p, p), kept above MIN_SHARE_OF_BARTLETT of S_W in every direction."""
    size = float(np.trace(wide))
    if size <= 0.0:
        return wide
    values, V = np.linalg.eigh(wide + 1e-14 * size * np.eye(len(wide)))
    root, back = (V * np.sqrt(values)) @ V.T, (V / np.sqrt(values)) @ V.T
    share, U = np.linalg.eigh(back @ (2.0 * wide - narrow) @ back)
    half = root @ U
    return np.asarray((half * np.maximum(share, MIN_SHARE_OF_BARTLETT)) @ half.T, dtype=np.float64)


def released(S: Array, Q: Array) -> Array:
    """(I − Q)^-½ S (I − Q)^-½: the covariance of the scores before the fit took its part of them."""
    values, V = np.linalg.eigh(Q)
    F = (V / np.sqrt(1.0 - np.clip(values, 0.0, LARGEST_LEVERAGE))) @ V.T
    return np.asarray(F @ S @ F, dtype=np.float64)


def andrews(square: Array, product: Array, samples: int) -> tuple[int, bool]:
    """L for Bartlett's weights by the plug-in rule with a first-order model of each score (Andrews, 1991, Econometrica 59(3), 6.4).

    From sums of squares and of products of neighbours of each score; and whether it had to be cut to what the samples bear.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = np.where(square > 0.0, product / square, 0.0)
    rho = np.clip(rho, -0.99, 0.99)
    power = (square * (1.0 - rho**2)) ** 2
    least = np.finfo(float).tiny
    above = (4.0 * rho**2 * power / ((1.0 - rho) ** 6 * (1.0 + rho) ** 2)).sum()
    alpha = above / max((power / (1.0 - rho) ** 4).sum(), least)
    wanted = int(np.ceil(1.1447 * (alpha * samples) ** (1.0 / 3.0)))
    most = max(int(LONGEST_WINDOW_SHARE * samples), 1)
    return min(wanted, most), wanted > most


def andrews_each(square: Array, product: Array, samples: int) -> NDArray[np.intp]:
    """L of each score by itself (k,), by the same rule: α = 4 ρ²/(1 − ρ²)² of one score, whatever its size."""
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = np.clip(np.where(square > 0.0, product / square, 0.0), -0.99, 0.99)
    wanted = np.ceil(1.1447 * (4.0 * rho**2 / (1.0 - rho**2) ** 2 * samples) ** (1.0 / 3.0))
    return np.minimum(wanted, max(int(LONGEST_WINDOW_SHARE * samples), 1)).astype(np.intp)


def bartlett(h: Array, lags: int) -> Array:
    """Σ_t Σ_s k(t − s) h_t h_sᵀ with k(l) = max(0, 1 − |l|/(L + 1)) of scores (N, p) that are held at once."""
    line = np.vstack(
        [np.zeros((lags + 1, h.shape[1])), np.cumsum(np.vstack([h, np.zeros((lags, h.shape[1]))]), axis=0)]
    )
    G = line[lags + 1 :] - line[: -(lags + 1)]
    return G.T @ G / (lags + 1.0)
