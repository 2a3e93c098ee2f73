"""Small dense systems of equations as machine code: P A = L U by rows with pivoting.

For matrices of a few rows inside compiled loops, where a call of LAPACK costs more than the work. Everything happens in place and in
arrays of the caller, so that no memory is taken.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics.compiled import core, lean

Numbers = NDArray[np.int64]


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
