"""Whether a remedy lowers the error where it was not fitted: columns S beside a regressor W, tried on blocks of the log in turn.

Each of BLOCKS consecutive blocks is predicted by the least squares of the others, of W alone and of W with S beside it. What chance makes
of S, and what a model error makes of it in one part of a log alone, raises the sum of squares there; damage of a log lowers it throughout.
The fall of the error over all blocks is compared with its scatter from block to block
(:mod:`veridyn.identify.statistics.held_out_blocks`).
Blocks are no shorter than MEMORIES times the memory of the equations, so that a block says nothing of its neighbours' noise.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from veridyn.arrays import Array
from veridyn.identify.diagnosis.columns import ROUNDING
from veridyn.identify.statistics.held_out_blocks import FEWEST_BLOCKS, Fall, fall

BLOCKS = 10  # of a log, each predicted by the others
MEMORIES = 20  # times the memory of the noise that a block holds: ends that neighbours share are a twentieth of it
STANDARD_ERRORS = (
    2.0  # of the fall: chance makes as much in one of forty causes, beside all else that a cause must pass
)


def lowers_error(W: Array, y: Array, S: Array, memory: float = 1.0, *, alike: bool = False) -> bool:
    """Whether columns S (N, R, k) lower the held-out error of equations W φ = y, (N, R, p) and (N, R), weighed alike, beyond chance.

    `memory`: samples over which the noise of the equations is correlated. `alike`: as for :func:`held_out_fall`.
    """
    found = held_out_fall(W, y, S, memory, alike=alike)
    return found is not None and found.exceeds(STANDARD_ERRORS)


def held_out_fall(W: Array, y: Array, S: Array, memory: float = 1.0, *, alike: bool = False) -> Fall | None:
    """By how much, with the standard error of that; None where the log is too short for two blocks.

    `alike`: the mean fall of the blocks as a share of the error of each, so that what lowers a block with much motion as much as one with
    little does not scatter as their motion does.
    """
    count = int(min(BLOCKS, len(y) // max(1.0, MEMORIES * memory)))
    if count < FEWEST_BLOCKS:
        return None
    p, whole = W.shape[2], np.concatenate([W, S, y[:, :, None]], axis=2)
    ends = np.linspace(0, len(y), count + 1).astype(int)
    blocks = [whole[a:b].reshape(-1, whole.shape[2]) for a, b in pairwise(ends)]
    grams = np.array([A.T @ A for A in blocks])
    total, without, with_columns = grams.sum(axis=0), np.zeros(count), np.zeros(count)
    for b, own in enumerate(grams):
        for columns, out in ((np.arange(p), without), (np.arange(p + S.shape[2]), with_columns)):
            x = np.append(-_solved(total - own, columns), 1.0)
            at = np.append(columns, -1)
            out[b] = x @ own[np.ix_(at, at)] @ x
    return fall(np.ones(count), with_columns / without) if alike and without.all() else fall(without, with_columns)


def _solved(G: Array, columns: np.ndarray) -> Array:
    """Least squares of the last column by some others, from products; the shortest where these columns depend on each other."""
    norms = np.sqrt(np.maximum(np.diag(G)[columns], 0.0))
    scale = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0.0)
    A = G[np.ix_(columns, columns)] * scale[:, None] * scale
    return np.asarray(scale * np.linalg.lstsq(A, scale * G[columns, -1], rcond=ROUNDING)[0], dtype=np.float64)
