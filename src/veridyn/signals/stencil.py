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
from math import factorial

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@lru_cache(maxsize=64)
def derivative_weights(offsets: tuple[int, ...], order: int) -> tuple[float, ...]:
    """Weights (one per offset) of the `order`-th derivative at offset 0, for a step of one."""
    return _match(offsets, lambda p: Fraction(factorial(order) if p == order else 0))


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
