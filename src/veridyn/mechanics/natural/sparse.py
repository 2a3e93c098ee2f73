"""P B Pᵀ = L U of a matrix whose pattern never changes: planned once, then only numbers.

Rows and columns are eliminated in one order, by minimum degree among the pivots that are large enough on every sample given to the plan;
the bordered matrices of :mod:`veridyn.mechanics.natural.bordered` so eliminate coordinates with mass first, then the constraints that hold
them, and last coordinates without mass. The plan lists each cell an elimination changes, and the numeric phase walks that list without
searching and without memory of its own. There is no pivoting at run time: :func:`solve_planned` checks what it solved by its backward
error and refines, and says where that is not enough.

Reference: Duff, Erisman and Reid, 2017, Direct Methods for Sparse Matrices, chapters 7 and 10; Vanderbei, 1995, SIAM Journal on
Optimization 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.errors import Fault, ModelError, SimulationError
from veridyn.mechanics.compiled import core, kept
from veridyn.mechanics.record import Bound, Places, Vector, opened

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]
MIN_PIVOT_RATIO = 1e-3  # of a pivot, relative to the largest number in its row and column
ZERO_PIVOT = 1e-13  # of a pivot, relative to the largest number of the matrix it is left of
EXACT_BACKWARD_ERROR = 1e-14  # backward error that needs no refinement
MAX_BACKWARD_ERROR = 1e-11  # and that is refused after it
REFINEMENTS = 3


class SparsePlan(NamedTuple):
    """An order of elimination and the cells it touches; cells are numbered in one vector of numbers.

    Pivot k lies in cell k; its column of L and its row of U take the cells `lower` and `upper` from `start[k]` to `start[k + 1]`.
    """

    order: Places  # (N,) the row and column of B that pivot k is
    row: Places  # (z,) of the numbers that B may have
    column: Places
    cell: Places
    start: Places  # (N+1,)
    lower: Places
    upper: Places
    at: Places  # the pivot whose row (of L) or column (of U) the cell stands in
    target: Places  # for each pivot, for each cell of its L, for each of its U: the cell that changes
    cells: int

    @property
    def size(self) -> int:
        return len(self.order)


def plan_of(samples: ArrayLike, pattern: ArrayLike | None = None, names: Sequence[str] = ()) -> SparsePlan:
    """A plan for matrices with the pattern of `samples` (S, N, N), or a wider one; the pattern is made symmetric.

    A matrix that is singular on a sample is refused by the name of the row at which no pivot is left.
    """
    A = np.array(samples, dtype=np.float64, ndmin=3)
    N = A.shape[-1]
    filled = (A != 0.0).any(axis=0)
    if pattern is not None:
        filled = filled | np.asarray(pattern, dtype=bool)
    filled = filled | filled.T | np.eye(N, dtype=bool)
    row, column = (x.astype(np.int64) for x in np.nonzero(filled))
    order = _ordered(A, filled.copy(), names)
    place = np.empty(N, dtype=np.int64)
    place[order] = np.arange(N)
    return _symbolic(order, place, row, column)


def _ordered(A: Array, filled: NDArray[np.bool_], names: Sequence[str]) -> Numbers:
    """Minimum degree among pivots that are large enough on all samples; where none is, the one that is largest."""
    N = A.shape[-1]
    scale = np.abs(A).max(axis=(1, 2), initial=1e-300)
    open_ = np.ones(N, dtype=bool)
    order = np.empty(N, dtype=np.int64)
    for k in range(N):
        left = np.flatnonzero(open_)
        S = np.abs(A[:, left[:, None], left])
        pivots = np.einsum("sii->si", S)
        sizes = np.maximum(S.max(axis=1), S.max(axis=2))
        share = np.where(pivots > 0.0, pivots / np.maximum(sizes, 1e-300), 0.0).min(axis=0)
        alive = (pivots > ZERO_PIVOT * scale[:, None]).all(axis=0)
        if not (alive.any() and np.isfinite(S).all()):
            named = names[int(left[0])] if names else f"row {int(left[0])}"
            raise ModelError(
                Fault(
                    f"the matrix is singular: no pivot is left at '{named}'.",
                    where=f"elimination {k + 1} of {N}",
                    expected=f"a pivot above {ZERO_PIVOT:.0e} of the matrix's largest number",
                    found=f"{pivots.min(axis=0).max():.3g}",
                    hint="Look for a coordinate that nothing holds and nothing moves, or for an equation that is there twice.",
                )
            )
        good = alive & (share >= MIN_PIVOT_RATIO)
        degree = filled[left[:, None], left].sum(axis=1)
        i = np.lexsort((-share, degree, ~good))[0] if good.any() else int(np.argmax(np.where(alive, share, -1.0)))
        p = left[i]
        order[k], open_[p] = p, False
        rest = np.flatnonzero(open_)
        A[:, rest[:, None], rest] -= A[:, rest, p][:, :, None] * (A[:, p, rest] / A[:, p, p][:, None])[:, None, :]
        near = rest[filled[p, rest]]
        filled[near[:, None], near] = True
    return order


def _symbolic(order: Numbers, place: Numbers, row: Numbers, column: Numbers) -> SparsePlan:
    N = len(order)
    cell = np.full((N, N), -1, dtype=np.int64)
    touched = np.zeros((N, N), dtype=bool)
    touched[place[row], place[column]] = True
    after = []
    for k in range(N):
        below = k + 1 + np.flatnonzero(touched[k, k + 1 :])
        touched[below[:, None], below] = True
        after.append(below)
    cell[range(N), range(N)] = np.arange(N)
    cells = N
    start = np.concatenate([[0], np.cumsum([len(b) for b in after])]).astype(np.int64)
    lower, upper = np.empty(start[-1], dtype=np.int64), np.empty(start[-1], dtype=np.int64)
    at = np.concatenate([*after, np.zeros(0)]).astype(np.int64)
    for k, below in enumerate(after):
        part = slice(start[k], start[k + 1])
        lower[part] = np.arange(cells, cells + len(below))
        upper[part] = np.arange(cells + len(below), cells + 2 * len(below))
        cell[below, k], cell[k, below] = lower[part], upper[part]
        cells += 2 * len(below)
    target = np.concatenate([*(cell[b[:, None], b].ravel() for b in after), np.zeros(0)]).astype(np.int64)
    filled = cell[place[row], place[column]]
    numbers = (order, row, column, filled, start, lower, upper, at, target)
    return SparsePlan(*(x.astype(np.uint64) for x in numbers), cells=cells)


@core
def factor_planned(p: SparsePlan, v: Array) -> int:
    """L and U in place of the cells `v`; −1, or the pivot that is zero or not finite."""
    start, lower, upper, target, o = p.start, p.lower, p.upper, p.target, 0
    for k in range(len(start) - 1):
        if not (abs(v[k]) > 0.0 and np.isfinite(v[k])):
            return k
        inverse = 1.0 / v[k]
        first, last = start[k], start[k + 1]
        for i in range(first, last):
            s = v[lower[i]] * inverse
            v[lower[i]] = s
            for j in range(first, last):
                v[target[o]] -= s * v[upper[j]]
                o += 1
    return -1


@core
def back_planned(p: SparsePlan, v: Array, b: Array, x: Array, z: Array) -> None:
    """Add B⁻¹ b to x; z is room for N numbers."""
    order, start, lower, upper, at = p.order, p.start, p.lower, p.upper, p.at
    N = len(order)
    for k in range(N):
        z[k] = b[order[k]]
    for k in range(N):
        s = z[k]
        for i in range(start[k], start[k + 1]):
            z[at[i]] -= v[lower[i]] * s
    for k in range(N - 1, -1, -1):
        s = z[k]
        for i in range(start[k], start[k + 1]):
            s -= v[upper[i]] * z[at[i]]
        z[k] = s / v[k]
        x[order[k]] += z[k]


@core
def solve_planned(p: SparsePlan, given: Array, v: Array, b: Array, x: Array, z: Array, r: Array, size: Array) -> bool:
    """x = B⁻¹ b with `given` the numbers of B itself in the order of `p.row`; False if the backward error stays above `MAX_BACKWARD_ERROR`.

    The backward error is that of rows, |b − B x|ᵢ against (|B| |x| + |b|)ᵢ: it does not see the units of the rows.
    """
    row, column, N = p.row, p.column, len(b)
    for i in range(N):
        x[i], r[i] = 0.0, b[i]
    worst, before = np.inf, np.inf
    for _ in range(REFINEMENTS):
        back_planned(p, v, r, x, z)
        for i in range(N):
            r[i], size[i] = b[i], abs(b[i])
        for k in range(len(given)):
            change = given[k] * x[column[k]]
            r[row[k]] -= change
            size[row[k]] += abs(change)
        worst = 0.0
        for i in range(N):
            if not np.isfinite(r[i]):
                return False
            if abs(r[i]) > worst * size[i]:
                worst = abs(r[i]) / size[i]
        if worst <= EXACT_BACKWARD_ERROR or worst > 0.5 * before:
            break
        before = worst
    return worst <= MAX_BACKWARD_ERROR


class _Problem(NamedTuple):
    """One system of equations and room for its solution."""

    plan: SparsePlan
    given: Vector
    v: Vector
    b: Vector
    x: Vector
    z: Vector
    r: Vector
    size: Vector


@kept
def _solve(address: Numbers) -> int:
    """x from b: −1, the pivot that is zero, or −2 where the backward error stays too large."""
    s = opened(address, _Problem)
    failed = factor_planned(s.plan, s.v)
    if failed >= 0 or solve_planned(s.plan, s.given, s.v, s.b, s.x, s.z, s.r, s.size):
        return failed
    return -2


def sparse_solve(plan: SparsePlan, B: ArrayLike, b: ArrayLike, names: Sequence[str] = ()) -> Array:
    """x with B x = b for one matrix of the planned pattern; what the planned order cannot solve is refused by name."""
    matrix, right = np.asarray(B, dtype=np.float64), np.array(b, dtype=np.float64)
    N = plan.size
    outside = matrix != 0.0
    outside[plan.row, plan.column] = False
    if outside.any():
        i, j = (int(x[0]) for x in np.nonzero(outside))
        raise SimulationError(
            Fault("the matrix has a number outside the planned pattern.", where=f"row {i}, column {j}")
        )
    given = matrix[plan.row, plan.column]
    v = np.zeros(plan.cells)
    v[plan.cell] = given
    x = np.zeros(N)
    failed = _solve(Bound(_Problem(plan, given, v, right, x, np.zeros(N), np.zeros(N), np.zeros(N))).address)
    if failed == -1:
        return x
    worst = int(plan.order[failed if failed >= 0 else int(np.argmin(np.abs(v[:N])))])
    raise SimulationError(
        Fault(
            f"the matrix is singular at '{names[worst]}'." if names else f"the matrix is singular at row {worst}.",
            expected=f"a solution with a backward error below {MAX_BACKWARD_ERROR:.0e}",
            found="a pivot of zero" if failed >= 0 else "less",
            hint="Plan again with this matrix among the samples.",
        )
    )
