"""Minimise f(u) where low ≤ g(u) ≤ high, without ever leaving the limits: a primal-dual interior point with quasi-Newton curvature.

Every iterate is strictly inside, so what comes out can be run whenever it is stopped. For a falling barrier μ it solves

    ∇f − Jᵀ(z_l − z_h) = 0,   z_l (g − low) = μ,   z_h (high − g) = μ

by Newton steps in which the curvature of f − zᵀg is learnt from its gradients (damped BFGS) and that of the barrier is exact; steps are
cut so that the barrier function falls. Nocedal and Wright, "Numerical Optimization", 2006, chapters 18 and 19.

Slopes J of limits are one matrix, or blocks where each limit is that of a few unknowns. Limits on positions, speeds and accelerations of a
joint are limits on the coefficients of that joint alone: J is then one block a joint, and JᵀWJ of n joints costs n times less. Where other
limits stand beside them, J is both, one above the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.blas import dsymv, dsyr  # pyright: ignore[reportAttributeAccessIssue]

from veridyn.arrays import Array

FRACTION_TO_BOUNDARY = 0.995  # of the way to a limit that one step may go
ARMIJO = 1e-4
MAX_HALVINGS = 25
ROUNDING = 1e-9  # of the goal: what a full step promises at a minimum, to what can be computed
CURVATURE_PAIRS = 20  # steps that teach the curvature
MIN_CURVATURE_COSINE = 1e-2  # least cosine between a step and the change of the gradient along it


@dataclass(frozen=True)
class Barrier:
    """`first` and `last` μ, in the units of f, and by what it falls each time; at most `iterations` steps.

    A barrier's problem counts as solved when a step lowers the barrier function by less than `tolerance` μ.
    """

    first: float = 1e-2
    last: float = 1e-5
    fall: float = 0.2
    iterations: int = 200
    tolerance: float = 1.0


@dataclass(frozen=True, eq=False, kw_only=True)
class InteriorSolution:
    """The point, its goal, the iterations and evaluations it took, and whether it met the tolerance. `history`: the goal at each step."""

    u: Array
    goal: float
    iterations: int
    evaluations: int
    converged: bool
    history: tuple[float, ...]


class Limited:
    """A goal with two-sided limits: `goal(u)` → value and gradient; `bounded(u)` → g alone; `slopes(u)` → J (m, n) or its blocks."""

    def __init__(
        self,
        goal: Callable[[Array], tuple[float, Array]],
        bounded: Callable[[Array], Array],
        slopes: Callable[[Array], Array | LimitSlopes],
        low: Array,
        high: Array,
    ) -> None:
        self.goal, self.bounded, self.slopes, self.low, self.high = goal, bounded, slopes, low, high

    def slack(self, u: Array) -> tuple[Array, Array]:
        g = self.bounded(u)
        return g - self.low, self.high - g


def minimise(
    problem: Limited, start: Array, how: Barrier | None = None, report: Callable[[float], None] | None = None
) -> InteriorSolution:
    """From a point strictly inside the limits to a minimum strictly inside them; `report` is called with the share of iterations made."""
    how = how or Barrier()
    u = np.array(start, dtype=np.float64)
    mu = how.first
    f, grad = problem.goal(u)
    below, above = problem.slack(u)
    if not (below.min(initial=np.inf) > 0.0 and above.min(initial=np.inf) > 0.0):
        raise ValueError("the start is not inside the limits")
    J = slopes_of(problem.slopes(u))
    z, y = mu / below, mu / above
    known = Curvature(len(u))
    history, evaluations, met, done = [f], 1, False, 0
    while done < how.iterations:
        if report is not None:
            report(done / how.iterations)
        done += 1
        pull = J.pulled(mu / below - mu / above)
        H = known.matrix(max(float(np.linalg.norm(grad)), 1e-3))
        step = _descent(H + J.weighed(z / below + y / above), pull - grad)
        reach = J.along(step)
        dz, dy = mu / below - z - z / below * reach, mu / above - y + y / above * reach
        now = _merit(f, below, above, mu)
        slope = float((grad - pull) @ step)
        alpha = min(1.0, _longest(below, reach), _longest(above, -reach))
        fall = 0.0
        for _ in range(MAX_HALVINGS):
            there = u + alpha * step
            b, a = problem.slack(there)
            if b.min(initial=np.inf) > 0.0 and a.min(initial=np.inf) > 0.0:
                f_new, grad_new = problem.goal(there)
                evaluations += 1
                fall = now - _merit(f_new, b, a, mu)
                if fall >= -ARMIJO * alpha * slope:
                    break
            alpha *= 0.5
        else:
            if not known.pairs:
                if mu <= how.last:
                    met = -slope < ROUNDING * max(1.0, abs(now))  # nothing left that a step could be seen to win
                    break
                mu = max(how.fall * mu, how.last)
            known = Curvature(len(u))
            continue
        dual = min(1.0, _longest(z, dz), _longest(y, dy))
        z, y = _kept(z + dual * dz, mu, b), _kept(y + dual * dy, mu, a)
        J_new = slopes_of(problem.slopes(there))
        known.learn(there - u, (grad_new - J_new.pulled(z - y)) - (grad - J.pulled(z - y)))
        u, f, grad, below, above, J = there, f_new, grad_new, b, a, J_new
        history.append(f)
        if fall < how.tolerance * mu:
            if mu <= how.last:
                met = True
                break
            mu = max(how.fall * mu, how.last)
    return InteriorSolution(
        u=u, goal=f, iterations=done, evaluations=evaluations, converged=met, history=tuple(history)
    )


def _merit(f: float, below: Array, above: Array, mu: float) -> float:
    finite = np.log(below[np.isfinite(below)]).sum() + np.log(above[np.isfinite(above)]).sum()
    return f - mu * float(finite)


def _longest(value: Array, change: Array) -> float:
    """The longest step, up to 1, that keeps value + step·change above (1 − FRACTION_TO_BOUNDARY) value."""
    falling = change < 0.0
    return float(min(1.0, (FRACTION_TO_BOUNDARY * value[falling] / -change[falling]).min(initial=1.0)))


def _kept(multiplier: Array, mu: float, slack: Array) -> Array:
    """Multipliers within a factor of 1e8 of μ/slack, so that they can neither vanish nor run away."""
    ideal = mu / slack
    return np.clip(multiplier, 1e-8 * ideal, 1e8 * ideal)


def _descent(A: Array, right: Array) -> Array:
    add, size = 0.0, float(np.trace(A)) / len(A)
    while True:
        try:
            factor = cho_factor(A + add * np.eye(len(A)), lower=True, overwrite_a=True)
            return np.asarray(cho_solve(factor, right), dtype=np.float64)
        except np.linalg.LinAlgError:
            add = max(1e-10 * size, 10.0 * add)


class Curvature:
    """BFGS from the last steps only: where the goal bends the other way a step teaches nothing, and old steps are forgotten."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.pairs: list[tuple[Array, Array]] = []

    def learn(self, s: Array, y: Array) -> None:
        if s @ y > MIN_CURVATURE_COSINE * np.linalg.norm(s) * np.linalg.norm(y):
            self.pairs = [*self.pairs[1 - CURVATURE_PAIRS :], (s, y)]

    def matrix(self, otherwise: float) -> Array:
        """H, from `otherwise` times the identity where nothing is known."""
        scale = otherwise
        if self.pairs:
            s, y = self.pairs[-1]
            scale = float(y @ y / (s @ y))
        H = np.asfortranarray(np.eye(self.size) * scale)  # its upper triangle, in which BLAS adds and multiplies
        for s, y in self.pairs:
            Hs = dsymv(1.0, H, s)
            H = dsyr(1.0 / float(s @ y), y, a=H, overwrite_a=True)
            H = dsyr(-1.0 / float(s @ Hs), Hs, a=H, overwrite_a=True)
        return np.triu(H) + np.triu(H, 1).T


class LimitSlopes(Protocol):
    """J (limits, unknowns)."""

    def along(self, step: Array) -> Array:
        """J step (limits,)."""
        ...

    def pulled(self, forces: Array) -> Array:
        """Jᵀ forces (unknowns,)."""
        ...

    def weighed(self, weights: Array) -> Array:
        """Jᵀ diag(weights) J (unknowns, unknowns)."""
        ...


@dataclass(frozen=True, eq=False)
class WholeSlopes:
    """J as one matrix."""

    matrix: Array

    def along(self, step: Array) -> Array:
        return self.matrix @ step

    def pulled(self, forces: Array) -> Array:
        return self.matrix.T @ forces

    def weighed(self, weights: Array) -> Array:
        return self.matrix.T @ (weights[:, None] * self.matrix)


@dataclass(frozen=True, eq=False)
class BlockSlopes:
    """J in blocks (b, m, k): block i has the limits `rows` (b, m) and the unknowns `columns` (b, k), each once."""

    blocks: Array
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]

    def along(self, step: Array) -> Array:
        out = np.empty(self.rows.size)
        out[self.rows] = (self.blocks @ step[self.columns][:, :, None])[:, :, 0]
        return out

    def pulled(self, forces: Array) -> Array:
        out = np.empty(self.columns.size)
        out[self.columns] = (forces[self.rows][:, None, :] @ self.blocks)[:, 0]
        return out

    def weighed(self, weights: Array) -> Array:
        out = np.zeros((self.columns.size, self.columns.size))
        own = np.swapaxes(self.blocks, 1, 2) @ (weights[self.rows][:, :, None] * self.blocks)
        out[self.columns[:, :, None], self.columns[:, None, :]] = own
        return out


@dataclass(frozen=True, eq=False)
class StackedSlopes:
    """J of two kinds of limits: `first` those of the limits `rows`, `second` those of the `others`; each limit is of one of them."""

    first: LimitSlopes
    second: LimitSlopes
    rows: NDArray[np.intp]
    others: NDArray[np.intp]

    def along(self, step: Array) -> Array:
        out = np.empty(len(self.rows) + len(self.others))
        out[self.rows], out[self.others] = self.first.along(step), self.second.along(step)
        return out

    def pulled(self, forces: Array) -> Array:
        return self.first.pulled(forces[self.rows]) + self.second.pulled(forces[self.others])

    def weighed(self, weights: Array) -> Array:
        return self.first.weighed(weights[self.rows]) + self.second.weighed(weights[self.others])


def slopes_of(J: Array | LimitSlopes) -> LimitSlopes:
    """A matrix as slopes; slopes as they are."""
    return WholeSlopes(J) if isinstance(J, np.ndarray) else J


def in_blocks(J: Array, columns: NDArray[np.intp]) -> LimitSlopes:
    """J in blocks of the unknowns `columns` (b, k), all of them once, where every limit has slopes in one block only; else whole.

    Blocks have equally many limits, or J stays whole.
    """
    touched = np.stack([J[:, own].any(axis=1) for own in columns])
    counts = touched.sum(axis=1)
    if (touched.sum(axis=0) != 1).any() or np.ptp(counts) or not counts[0]:
        return WholeSlopes(J)
    rows = np.stack([np.flatnonzero(one) for one in touched])
    return BlockSlopes(np.stack([J[np.ix_(r, c)] for r, c in zip(rows, columns, strict=True)]), rows, columns)
