"""Weights on sample points that are exact for every polynomial the points can hold.

With offsets o_j (in samples) the weights w satisfy, for every power p below the number of points,

    derivative:  Σ w_j o_j^p = d^m/do^m o^p at 0        integral:  Σ w_j o_j^p = ∫_a^b o^p do

On a centred set of points these are the maximally flat filters: all derivatives of the gain's error vanish at zero
frequency. Solved in rational numbers, so the only rounding is the last one to float64.
Reference: B. Fornberg, "Generation of finite difference formulas on arbitrarily spaced grids", Math. Comp. 51 (1988).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@lru_cache(maxsize=64)
def derivative_weights(offsets: tuple[int, ...], order: int) -> tuple[float, ...]:
    """Weights (one per offset) of the `order`-th derivative at offset 0, for a step of one, by Fornberg's recursion."""
    # c[j][m]: the weight of offset j in the m-th derivative on the offsets seen so far
    c = [[Fraction(0)] * (order + 1) for _ in offsets]
    c[0][0], before = Fraction(1), 1
    for i in range(1, len(offsets)):
        product = 1
        for j in range(i):
            apart = offsets[i] - offsets[j]
            product *= apart
            if j == i - 1:
                ratio = Fraction(before, product)
                for m in range(order, -1, -1):
                    c[i][m] = ratio * ((m * c[j][m - 1] if m else 0) - offsets[j] * c[j][m])
            for m in range(order, -1, -1):
                c[j][m] = (offsets[i] * c[j][m] - (m * c[j][m - 1] if m else 0)) / apart
        before = product
    return tuple(float(row[order]) for row in c)


@lru_cache(maxsize=64)
def integral_weights(offsets: tuple[int, ...]) -> tuple[float, ...]:
    """Weights (one per offset) of the integral from offset 0 to offset 1, for a step of one."""
    return _match(offsets, lambda p: Fraction(1, p + 1))


def centred(half: int) -> tuple[int, ...]:
    """The offsets −half … half."""
    return tuple(range(-half, half + 1))


def apply(x: Array, offsets: Sequence[int], weights: Sequence[float], at: int) -> Array:
    """Σ_j w_j x[at + o_j] along axis 0, for one sample `at`."""
    picked = x[[at + o for o in offsets]]
    return np.tensordot(np.asarray(weights), picked, axes=1)


def _match(offsets: tuple[int, ...], moment: Callable[[int], Fraction]) -> tuple[float, ...]:
    """Solve Σ_j w_j o_j^p = moment(p), p = 0 … n−1, by elimination in exact arithmetic."""
    n = len(offsets)
    rows = [[Fraction(o) ** p for o in offsets] + [moment(p)] for p in range(n)]
    for k in range(n):
        pivot = next(i for i in range(k, n) if rows[i][k] != 0)
        rows[k], rows[pivot] = rows[pivot], rows[k]
        scale = rows[k][k]
        rows[k] = [v / scale for v in rows[k]]
        for i in range(n):
            if i != k and rows[i][k] != 0:
                factor = rows[i][k]
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[k], strict=True)]
    return tuple(float(row[n]) for row in rows)
