"""From linear dependences to groups: which columns stay, which are added to them, and which say nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array

RANK_TOLERANCE = 1e-9  # of the largest singular value, columns scaled by typical sizes
ZERO_COLUMN = 1e-12  # of the largest column: rounding
ZERO_COEFFICIENT = 1e-9  # of a coefficient between columns of typical size: below it there is no telling from rounding
ROUNDING = 10.0 * float(np.finfo(np.float64).eps)  # of the columns themselves, some operations each
SNAPPED = 1e-11  # of a coefficient: what rounding misses a small integer or a half by
CLEAN_RATIO = 2.0  # of what a relation leaves, with clean coefficients to that with its own
LARGEST_SNAP = 1e-3  # however little a coefficient is known, it is not moved by more
MIN_PIVOT_SHARE = 1e-3  # a dependent column must carry at least this share of a null vector


@dataclass(frozen=True)
class Groups:
    """`kept` columns; `matrix` K (kept, p) with A φ = A[:, kept] K φ; `dead` columns; singular values that decided.

    `gap` is the ratio of the last kept to the first dropped singular value (infinite where none was dropped).
    """

    kept: tuple[int, ...]
    matrix: Array
    dead: tuple[int, ...]
    singular_values: Array
    rank: int

    @property
    def gap(self) -> float:
        s = self.singular_values
        if self.rank in (0, len(s)) or s[self.rank] == 0.0:
            return float("inf")
        return float(s[self.rank - 1] / s[self.rank])


def group(A: Array, typical: Array, tolerance: float = RANK_TOLERANCE, hidden: float = 0.0) -> Groups:
    """Group the columns of A (any matrix with the dependences of the observation matrix, such as its R factor).

    Columns are scaled by typical sizes; those that are zero to rounding are dead. Of dependent columns the earlier ones stay, so the
    parameters of a body near the root take those of the bodies it carries. Rank by singular values above `tolerance`. `hidden`: what a
    relation may leave of a column, in units of A times typical sizes, without anyone seeing it; rounding by default.
    """
    p = A.shape[1]
    scaled = A * typical
    norms = np.linalg.norm(scaled, axis=0) if len(A) else np.zeros(p)
    largest = norms.max(initial=0.0)
    counts = norms > ZERO_COLUMN * largest if largest > 0 else np.zeros(p, dtype=np.bool_)
    alive = np.flatnonzero(counts)
    dead = tuple(np.flatnonzero(~counts).tolist())
    S = scaled[:, alive]
    if S.shape[1] == 0:
        return Groups((), np.zeros((0, p)), dead, np.zeros(0), 0)
    _, s, Vt = singular(S, full=True)
    s = np.concatenate([s, np.zeros(S.shape[1] - len(s))])
    rank = int((s > tolerance * s[0]).sum())
    dependent = _latest_dependent(Vt[rank:])
    kept_local = [c for c in range(S.shape[1]) if c not in set(dependent)]
    kept = alive[kept_local]
    K = np.zeros((len(kept), p))
    K[np.arange(len(kept)), kept] = 1.0
    if dependent:
        dep = alive[dependent]
        K[:, dep] = _relation(S[:, kept_local], S[:, dependent], typical[kept][:, None] / typical[dep][None, :], hidden)
    return Groups(tuple(int(c) for c in kept), K, dead, s, rank)


def _relation(A: Array, B: Array, scale: Array, hidden: float) -> Array:
    """X · scale with A X ≈ B, zeros, small integers and halves exact where a coefficient is not known to be another number.

    Rounding of the columns, and what B leaves beside A, pass through A⁺ to the coefficients. Columns that depend on others to rounding
    leave nothing; those that only noise makes dependent leave what noise hides, up to `hidden`. Clean coefficients must leave hardly more.
    """
    U, s, Vt = singular(A)
    seen = s > np.finfo(np.float64).eps * max(A.shape) * s.max(initial=0.0)
    X = Vt[seen].T @ ((U[:, seen].T @ B) / s[seen, None])
    left = np.maximum(np.linalg.norm(B - A @ X, axis=0) + ROUNDING * float(s.max(initial=0.0)), hidden)
    rows = np.linalg.norm(Vt.T / np.maximum(s, np.finfo(np.float64).tiny), axis=1)  # of A⁺
    accuracy = np.asarray(np.outer(rows, left), dtype=np.float64)
    limit = CLEAN_RATIO * left
    clean = _cleaned(X, accuracy, scale)
    fits = np.linalg.norm(B - A @ (clean / scale), axis=0) <= limit
    out = clean if fits.all() else np.where(fits, clean, _cleaned(X, np.zeros(X.shape), scale))
    for k in np.flatnonzero(~fits):
        # The others as they fit best without those that are taken for zero.
        there = np.abs(X[:, k]) >= np.maximum(accuracy[:, k], ZERO_COEFFICIENT)
        others = np.zeros(len(X))
        others[there] = np.linalg.lstsq(A[:, there], B[:, k], rcond=None)[0]
        clean = _cleaned(others, accuracy[:, k], scale[:, k])
        if np.linalg.norm(B[:, k] - A @ (clean / scale[:, k])) <= limit[k]:
            out[:, k] = clean
    return out


def _cleaned(X: Array, accuracy: Array, scale: Array) -> Array:
    """X · scale, each coefficient of X being known to `accuracy`."""
    zero = np.abs(X) < np.maximum(accuracy, ZERO_COEFFICIENT)
    return _snapped(_snapped(np.where(zero, 0.0, X), accuracy) * scale, accuracy * scale)


def singular(S: Array, full: bool = False) -> tuple[Array, Array, Array]:
    """U, s and Vᵀ with S = U diag(s) Vᵀ; by QR iterations where divide and conquer does not converge, which is rare."""
    try:
        U, s, Vt = np.linalg.svd(S, full_matrices=full)
    except np.linalg.LinAlgError:
        from scipy.linalg import svd  # here: importing it takes longer than all that `veridyn model show` does

        U, s, Vt = svd(S, full_matrices=full, lapack_driver="gesvd")
    return U, s, Vt


def singular_values(S: Array) -> Array:
    """Those of :func:`singular`, without the vectors."""
    try:
        return np.asarray(np.linalg.svd(S, compute_uv=False), dtype=np.float64)
    except np.linalg.LinAlgError:
        return singular(S)[1]


def _latest_dependent(null: Array) -> list[int]:
    """From the rows of a null space, one dependent column for each, the latest ones that can serve."""
    rows = null.copy()
    chosen: list[int] = []
    for c in range(rows.shape[1] - 1, -1, -1):
        left = rows[len(chosen) :]
        if not len(left):
            break
        v = left[:, c].copy()
        column = math.sqrt(v @ v)
        if column < MIN_PIVOT_SHARE * max(left.max(), -left.min()):
            continue
        # Turn the remaining null vectors so that only the first of them touches this column, then set it aside.
        v[0] += math.copysign(column, v[0])
        left -= v[:, None] * ((v @ left) * (2.0 / (v @ v)))
        chosen.append(c)
    return sorted(chosen)


def _snapped(a: NDArray[np.floating], accuracy: Array) -> Array:
    """Coefficients of small integers and halves made exact where rounding, or what they are not known to, missed them."""
    nearest = np.round(2.0 * a) / 2.0
    near = np.abs(a - nearest) < np.minimum(np.maximum(SNAPPED * np.maximum(1.0, np.abs(a)), accuracy), LARGEST_SNAP)
    return np.where(near, nearest, a)
