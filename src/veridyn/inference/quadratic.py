"""What a search knows near a point: a quadratic model of its cost, within bounds and linear inequalities, and the step to its minimum.

    minimise ½ dᵀ H d + gᵀ d        low ≤ x + d ≤ high,   C d + c ≥ 0

Of a sum of squares Σ r², H = JᵀJ and g = Jᵀr are halves of its derivatives; of −2 log p, H = Σ s sᵀ and g = −Σ s with the scores s of its
terms. Priors add their own. Damped by λ, H + λ diag H takes the place of H (Marquardt, 1963), so that steps do not depend on the units of
the unknowns. √(dᵀ H d) is the length of a step in posterior deviations of all unknowns together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from veridyn.arrays import Array

AT_BOUND = 1e-12  # of an unknown: nearer to its bound it is on it
# Of a cost, within which rounding hides a fall: 40 times that of one number, as of a sum of thousands
COST_ROUNDING = 1e-14
ROUNDING = 1e-13  # of what a sum of products is: less is none
RIDGE = 1e-10  # of the diagonal: far above its rounding, and far below any damping


@dataclass(frozen=True, eq=False, kw_only=True)
class Quadratic:
    """H (p, p) and g (p,) around x, with its `cost` and bounds, and (C, c) of the inequalities, None where there are none."""

    x: Array
    hessian: Array
    gradient: Array
    cost: float = 0.0
    low: Array | float = -np.inf
    high: Array | float = np.inf
    inequalities: tuple[Array, Array] | None = None

    def step(self, damping: float = 0.0) -> Array:
        """The damped step; unknowns on a bound do not pass it, others end on one that they would pass."""
        H = definite(self.hessian + damping * np.diag(np.diag(self.hessian)))
        low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64), self.x.shape) for end in (self.low, self.high))
        side = (self.x <= low + AT_BOUND).astype(np.float64) - (self.x >= high - AT_BOUND)
        bound = np.flatnonzero(side)
        C, c = np.diag(side)[bound], np.zeros(len(bound))
        if self.inequalities is not None:
            C, c = np.vstack([C, self.inequalities[0]]), np.append(c, np.maximum(self.inequalities[1], 0.0))
        d, active = inequality_step(H, -np.asarray(np.linalg.solve(H, self.gradient), dtype=np.float64), C, c)
        d[bound[active[: len(bound)]]] = 0.0
        return np.clip(self.x + d, low, high) - self.x

    def length(self, d: Array) -> float:
        """√(dᵀ H d) of a step."""
        return float(np.sqrt(max(d @ self.hessian @ d, 0.0)))

    def remaining(self) -> float:
        """The length of the undamped step."""
        return self.length(self.step())

    def shortest(self, tolerance: float) -> float:
        """The length below which a step is none: it lowers the cost by its square, which rounding must not hide."""
        return max(tolerance, float(np.sqrt(COST_ROUNDING * abs(self.cost))))


def definite(H: Array) -> Array:
    """H, with a small part of its diagonal more where nothing determines some direction, in which a step is then short."""
    size = np.diag(H)
    H = H + np.diag(size == 0.0) if not size.all() else H
    try:
        pivots = np.diag(np.linalg.cholesky(H)) ** 2
    except np.linalg.LinAlgError:
        pivots = np.zeros(len(H))
    return H if (pivots > ROUNDING * np.diag(H)).all() else H + RIDGE * np.diag(np.diag(H))


def inequality_step(H: Array, d: Array, C: Array, c: Array) -> tuple[Array, NDArray[np.bool_]]:
    """The d' with C d' + c ≥ 0 that is nearest to d, measured by H, and the inequalities that hold it.

    With H = L Lᵀ and y = Lᵀ(d' − d) it is the shortest y with G y ≥ h, which least squares without negative numbers give (Lawson and
    Hanson, Solving Least Squares Problems, 1974, chapter 23). Where these contradict each other, the step is none.
    """
    active = np.zeros(len(c), dtype=bool)
    if not (C @ d + c < 0.0).any():
        return d, active
    L = np.linalg.cholesky(H)
    G = np.linalg.solve(L, C.T).T
    h = -c - C @ d
    size = np.linalg.norm(G, axis=1)
    seen = size > 0.0
    G, h = G[seen] / size[seen, None], h[seen] / size[seen]
    farthest = h.max()
    E = np.vstack([G.T, h / farthest])
    target = np.append(np.zeros(len(d)), 1.0)
    weights = nnls(E, target)[0]
    rest = E @ weights - target
    if not rest[-1] < -ROUNDING:
        return np.zeros(len(d)), active
    active[seen] = weights > 0.0
    return np.asarray(np.linalg.solve(L.T, -farthest * rest[:-1] / rest[-1]) + d, dtype=np.float64), active
