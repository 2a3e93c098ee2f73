"""Systems of linear equations as machine code: small dense ones, and large ones of a pattern that never changes.

Dense ones, P A = L U by rows with pivoting, are matrices of a few rows inside compiled loops, where a call of LAPACK costs more than the
work. Everything happens in place and in arrays of the caller, so that no memory is taken.

P B Pᵀ = L U of a matrix whose pattern never changes is planned once, then only numbers: rows and columns are eliminated in one order, by
minimum degree among the pivots that are large enough on every sample given to the plan; the bordered matrices of
:mod:`veridyn.mechanics.natural.equations.elimination` so eliminate coordinates with mass first, then the constraints that hold them, and
last coordinates without mass. Pivots of one structure are eliminated together, as dense blocks; the plan lists each cell that a block
changes, and the numeric phase walks that list without searching and without memory of its own. There is no pivoting at run time:
:func:`solve_planned` checks what it solved by its backward error and refines, and says where that is not enough.

Reference: Duff, Erisman and Reid, 2017, Direct Methods for Sparse Matrices, chapters 7 and 10; Vanderbei, 1995, SIAM Journal on
Optimization 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.arrays import Array
from veridyn.errors import ModelError
from veridyn.mechanics.compiled import Places, core, lean

Numbers = NDArray[np.int64]
MIN_PIVOT_RATIO = 1e-3  # of a pivot, relative to the largest number in its row and column
ZERO_PIVOT = 1e-13  # of a pivot, relative to the largest number of the matrix it is left of
EXACT_BACKWARD_ERROR = 1e-14  # backward error that needs no refinement
MAX_BACKWARD_ERROR = 1e-11  # and that is refused after it
REFINEMENTS = 3
WIDE_NODE, ZEROS_IN_NODE = 8, 3  # couplings from which on a node may take in pivots with so many fewer
ROUNDING_RATIO = 1e-6  # of the largest entry of a solution


@lean
def factor(A: Array, pivot: Numbers) -> bool:
    """L and U in the place of A (n, n), the exchanged rows in `pivot` (n,); False where a pivot is zero or not finite."""
    size = len(A)
    for k in range(size):
        best, p = abs(A[k, k]), k
        for i in range(k + 1, size):
            if abs(A[i, k]) > best:
                best, p = abs(A[i, k]), i
        if not (best > 0.0 and np.isfinite(best)):
            return False
        pivot[k] = p
        if p != k:
            for j in range(size):
                A[k, j], A[p, j] = A[p, j], A[k, j]
        inverse = 1.0 / A[k, k]
        for i in range(k + 1, size):
            if A[i, k] != 0.0:
                A[i, k] *= inverse
                s = A[i, k]
                for j in range(k + 1, size):
                    A[i, j] -= s * A[k, j]
    return True


@lean
def solve(A: Array, pivot: Numbers, x: Array) -> None:
    """A x = b in the place of b, with the factors that :func:`factor` left."""
    size = len(A)
    for k in range(size):
        p = pivot[k]
        if p != k:
            x[k], x[p] = x[p], x[k]
    for i in range(size):
        s = x[i]
        for j in range(i):
            s -= A[i, j] * x[j]
        x[i] = s
    for i in range(size - 1, -1, -1):
        s = x[i]
        for j in range(i + 1, size):
            s -= A[i, j] * x[j]
        x[i] = s / A[i, i]


@lean
def solve_many(A: Array, pivot: Numbers, X: Array) -> None:
    """A X = B in the place of B (n, k), with the factors that :func:`factor` left."""
    size, many = X.shape
    for k in range(size):
        p = pivot[k]
        if p != k:
            for c in range(many):
                X[k, c], X[p, c] = X[p, c], X[k, c]
    for i in range(size):
        for j in range(i):
            s = A[i, j]
            if s != 0.0:
                for c in range(many):
                    X[i, c] -= s * X[j, c]
    for i in range(size - 1, -1, -1):
        for j in range(i + 1, size):
            s = A[i, j]
            if s != 0.0:
                for c in range(many):
                    X[i, c] -= s * X[j, c]
        inverse = 1.0 / A[i, i]
        for c in range(many):
            X[i, c] *= inverse


@lean
def solve_transposed(A: Array, pivot: Numbers, x: Array) -> None:
    """Aᵀ x = b in the place of b, with the factors that :func:`factor` left."""
    size = len(A)
    for i in range(size):
        s = x[i] / A[i, i]
        x[i] = s
        for j in range(i + 1, size):
            x[j] -= A[i, j] * s
    for i in range(size - 1, -1, -1):
        s = x[i]
        for j in range(i):
            x[j] -= A[i, j] * s
    for k in range(size - 1, -1, -1):
        p = pivot[k]
        if p != k:
            x[k], x[p] = x[p], x[k]


@lean
def solve_once(A: Array, pivot: Numbers, x: Array) -> None:
    """A x = b in the place of b; A is overwritten with its factors. NaN where A is singular."""
    if factor(A, pivot):
        solve(A, pivot, x)
        return
    for i in range(len(x)):
        x[i] = np.nan


@core
def size_of(x: Array) -> float:
    """The largest of 1 and the numbers of a vector, which tolerances are relative to."""
    size = 1.0
    for i in range(len(x)):
        size = max(size, abs(x[i]))
    return size


class SparsePlan(NamedTuple):
    """An order of elimination and the cells it touches; cells are numbered in one vector of numbers.

    Pivots of one structure form nodes that are dense: node s has the pivots from `first[s]` to `first[s + 1]`, p of them, and couples
    them to the d pivots `outer[outer_start[s] : outer_start[s + 1]]`. Its rows of U, (p, p + d), begin at cell `upper[s]`, its rows of L
    below them, (d, p), at `lower[s]`; `target` lists the cells (d, d) that the node changes, node after node.
    """

    order: Places  # (N,) the row and column of B that pivot k is
    row: Places  # (z,) of the numbers that B may have
    column: Places
    cell: Places
    diagonal: Places  # (N,) the cells of the pivots
    first: Places
    outer_start: Places
    outer: Places
    upper: Places
    lower: Places
    target: Places
    cells: int
    widest: int  # the largest d

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
    sizes = np.maximum(np.abs(A).max(axis=1, initial=0.0), np.abs(A).max(axis=2, initial=0.0))  # of each row and column
    degree = filled.sum(axis=1)
    for k in range(N):
        left = np.flatnonzero(open_)
        pivots = np.abs(A[:, left, left])
        share = np.where(pivots > 0.0, pivots / np.maximum(sizes[:, left], 1e-300), 0.0).min(axis=0)
        alive = (pivots > ZERO_PIVOT * scale[:, None]).all(axis=0)
        if not (alive.any() and np.isfinite(sizes[:, left]).all()):
            named = names[int(left[0])] if names else f"row {int(left[0])}"
            raise ModelError(
                f"the matrix is singular: no pivot is left at '{named}'.",
                where=f"elimination {k + 1} of {N}",
                expected=f"a pivot above {ZERO_PIVOT:.0e} of the matrix's largest number",
                found=f"{pivots.min(axis=0).max():.3g}",
                hint="Look for a coordinate that nothing holds and nothing moves, or for an equation that is there twice.",
            )
        good = alive & (share >= MIN_PIVOT_RATIO)
        i = np.lexsort((-share, degree[left], ~good))[0] if good.any() else int(np.argmax(np.where(alive, share, -1.0)))
        p = left[i]
        order[k], open_[p] = p, False
        near = np.flatnonzero(filled[p] & open_)  # all that this elimination changes
        lines = A[:, near]
        lines[:, :, near] -= A[:, near, p][:, :, None] * (A[:, p, near] / A[:, p, p][:, None])[:, None, :]
        lines[:, :, p] = 0.0
        A[:, near], A[:, p, :] = lines, 0.0
        sizes[:, near] = np.maximum(np.abs(lines).max(axis=2), np.abs(A[:, :, near]).max(axis=1))
        filled[near[:, None], near] = True
        degree[near] = (filled[near] & open_).sum(axis=1)
    return order


def _symbolic(order: Numbers, place: Numbers, row: Numbers, column: Numbers) -> SparsePlan:
    after = _below(place, row, column)
    order = order[_children_first(after)]
    place[order] = np.arange(len(order))
    after = _below(place, row, column)
    nodes = _nodes(after)
    N = len(order)
    cell, diagonal = np.full((N, N), -1, dtype=np.int64), np.empty(N, dtype=np.int64)
    cells, upper, lower, outers = 0, [], [], []
    for begin, end in nodes:
        own, outer = np.arange(begin, end), after[end - 1]
        p, d = end - begin, len(outer)
        upper.append(cells)
        lower.append(cells + p * (p + d))
        cell[own[:, None], np.concatenate([own, outer])] = cells + np.arange(p * (p + d)).reshape(p, p + d)
        cell[outer[:, None], own] = lower[-1] + np.arange(d * p).reshape(d, p)
        diagonal[own] = cell[own, own]
        outers.append(outer)
        cells += p * (p + d) + d * p
    numbers = (
        order,
        row,
        column,
        cell[place[row], place[column]],
        diagonal,
        [*(begin for begin, _ in nodes), N],
        np.concatenate([[0], np.cumsum([len(o) for o in outers])]),
        np.concatenate([*outers, np.zeros(0)]),
        upper,
        lower,
        np.concatenate([*(cell[o[:, None], o].ravel() for o in outers), np.zeros(0)]),
    )
    widest = max((len(o) for o in outers), default=0)
    return SparsePlan(*(np.asarray(x).astype(np.uint64) for x in numbers), cells=cells, widest=widest)


def _below(place: Numbers, row: Numbers, column: Numbers) -> list[Numbers]:
    """For each pivot the later ones that it is coupled to when its turn comes."""
    N = len(place)
    touched = np.zeros((N, N), dtype=bool)
    touched[place[row], place[column]] = True
    after = []
    for k in range(N):
        below = k + 1 + np.flatnonzero(touched[k, k + 1 :])
        touched[below[:, None], below] = True
        after.append(below)
    return after


def _children_first(after: list[Numbers]) -> Numbers:
    """An order that eliminates the same, in which pivots of one structure follow each other: each behind all that lead to it."""
    children: list[list[int]] = [[] for _ in range(len(after) + 1)]
    for k, below in enumerate(after):
        children[int(below[0]) if len(below) else len(after)].append(k)
    found: list[int] = []
    open_ = children[-1][::-1]
    while open_:
        k = open_.pop()
        if k < 0:
            found.append(-k - 1)
        else:
            open_.append(-k - 1)
            open_ += children[k][::-1]
    return np.array(found, dtype=np.int64)


def _nodes(after: list[Numbers]) -> list[tuple[int, int]]:
    """Runs of pivots of one structure; in wide ones a few cells may be zero."""
    nodes, begin = [], 0
    for k in range(1, len(after) + 1):
        if k < len(after):
            more = len(after[k]) + 1 - len(after[k - 1])
            leads = len(after[k - 1]) > 0 and after[k - 1][0] == k
            if leads and more <= (ZEROS_IN_NODE if len(after[k]) >= WIDE_NODE else 0):
                continue
        nodes.append((begin, k))
        begin = k
    return nodes


@core
def factor_planned(plan: SparsePlan, v: Array, room: Array) -> np.int64:
    """L and U in place of the cells `v`; −1, or the pivot that is zero or not finite. `room` is for `widest` numbers."""
    o = plan.first[0]  # 0
    for s in range(len(plan.upper)):
        first, _, p, d = node_of(plan, s)
        width = p + d
        U, L = v[plan.upper[s] : plan.upper[s] + p * width], v[plan.lower[s] : plan.lower[s] + d * p]
        for k in range(p):
            pivot = U[k * width + k]
            if not (abs(pivot) > 0.0 and np.isfinite(pivot)):
                return np.int64(first + k)
            inverse, own = 1.0 / pivot, U[k * width + k + 1 : (k + 1) * width]
            for i in range(k + 1, p):
                share = U[i * width + k] * inverse
                U[i * width + k] = share
                take_off(U[i * width + k + 1 : (i + 1) * width], share, own)
        changes = room[:d]
        for i in range(d):
            for j in range(d):
                changes[j] = 0.0
            for k in range(p):
                share = L[i * p + k]
                for m in range(k):
                    share -= L[i * p + m] * U[m * width + k]
                share /= U[k * width + k]
                L[i * p + k] = share
                take_off(changes, share, U[k * width + p : (k + 1) * width])
            targets = plan.target[o : o + d]
            for j in range(d):
                v[targets[j]] += changes[j]
            o += d
    return np.int64(-1)


@core
def back_planned(plan: SparsePlan, v: Array, b: Array, x: Array, z: Array) -> None:
    """Add B⁻¹ b to x; z is room for N numbers."""
    order, outer = plan.order, plan.outer
    for k in range(len(order)):
        z[k] = b[order[k]]
    nodes = len(plan.upper)
    for s in range(nodes):
        first, at, p, d = node_of(plan, s)
        width = p + d
        U, L = v[plan.upper[s] : plan.upper[s] + p * width], v[plan.lower[s] : plan.lower[s] + d * p]
        for k in range(p):
            for i in range(k + 1, p):
                z[first + i] -= U[i * width + k] * z[first + k]
        own, apart = z[first : first + p], outer[at : at + d]
        for i in range(d):
            total, line = 0.0, L[i * p : (i + 1) * p]
            for k in range(p):
                total += line[k] * own[k]
            z[apart[i]] -= total
    for back in range(nodes):
        s = nodes - 1 - back
        first, at, p, d = node_of(plan, s)
        width = p + d
        U = v[plan.upper[s] : plan.upper[s] + p * width]
        own, apart = z[first : first + p], outer[at : at + d]
        for up in range(p):
            k = p - 1 - up
            total, line = own[k], U[k * width : (k + 1) * width]
            for j in range(k + 1, p):
                total -= line[j] * own[j]
            right = line[p:]
            for j in range(d):
                total -= right[j] * z[apart[j]]
            own[k] = total / line[k]
    for k in range(len(order)):
        x[order[k]] += z[k]


@core
def node_of(plan: Any, s: Any) -> tuple[int, int, int, int]:
    """Of node s of a plan: its first pivot, where its outer ones stand in the list of all, p and d."""
    first, at = plan.first[s], plan.outer_start[s]
    return first, at, plan.first[s + 1] - first, plan.outer_start[s + 1] - at


@core
def take_off(row: Array, share: Any, other: Array) -> None:
    """row −= share · other."""
    for r in range(len(row)):
        row[r] -= share * other[r]


@core
def solve_planned(p: SparsePlan, given: Array, v: Array, b: Array, x: Array, z: Array, r: Array, size: Array) -> bool:
    """x = B⁻¹ b with `given` the numbers of B itself in the order of `p.row`; False if the backward error stays above `MAX_BACKWARD_ERROR`.

    The backward error is that of rows, |b − B x|ᵢ against (|B| |x| + |b|)ᵢ: it does not see the units of the rows. Entries of x below
    `ROUNDING_RATIO` of the largest count as that large: a solution that is rounding alone has no backward error to speak of.
    """
    row, column, N = p.row, p.column, len(b)
    for i in range(N):
        x[i], r[i] = 0.0, b[i]
    worst, before = np.inf, np.inf
    for _ in range(REFINEMENTS):
        back_planned(p, v, r, x, z)
        largest = 0.0
        for i in range(N):
            r[i], size[i] = b[i], abs(b[i])
            largest = max(largest, abs(x[i]))
        largest *= ROUNDING_RATIO
        for k in range(len(given)):
            change = given[k] * x[column[k]]
            r[row[k]] -= change
            size[row[k]] += abs(change) + abs(given[k]) * largest
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
