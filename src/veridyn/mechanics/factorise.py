"""A symmetric positive system solved over scalars of any kind, using the zeros that the tree's branches leave.

Eliminating from the leaves to the root makes no new entries (Featherstone, 2005): what two branches do not share stays zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from veridyn.errors import Fault, ModelError
from veridyn.spatial.algebra import Scalar, add, is_zero, mul


def solve_symmetric(entries: Mapping[tuple[int, int], Scalar], load: Sequence[Scalar]) -> list[Scalar]:
    """x with H x = load, by H = Lᵀ D L from the last row to the first. `entries` holds both halves of H, structural zeros absent."""
    return solve_and_measure(entries, load, lambda x: x)[0]


def solve_and_measure(
    entries: Mapping[tuple[int, int], Scalar], load: Sequence[Scalar], magnitude: Callable[[Scalar], Scalar]
) -> tuple[list[Scalar], Scalar]:
    """The same, and how near H is to singular: Σ|H_kk| Σ|1/D_k|, without bound as a pivot vanishes; `magnitude` is |·|."""
    n = len(load)
    H = {(i, j): value for (i, j), value in entries.items() if j <= i and not is_zero(value)}
    L: dict[tuple[int, int], Scalar] = {}
    inverse: list[Scalar] = [0.0] * n
    diagonal = [H.get((k, k), 0.0) for k in range(n)]
    for k in range(n - 1, -1, -1):
        if (k, k) not in H:
            raise ModelError(
                Fault("it moves no mass, so no force gives it a finite acceleration.", where=f"row number {k}")
            )
        inverse[k] = 1.0 / H[k, k]
        left = [j for j in range(k) if (k, j) in H]
        for j in left:
            L[k, j] = mul(H[k, j], inverse[k])
        for a, i in enumerate(left):
            for j in left[: a + 1]:
                H[i, j] = add(H.get((i, j), 0.0), mul(-1.0, mul(L[k, i], H[k, j])))
    x = list(load)
    for k in range(n - 1, -1, -1):  # Lᵀ y = load
        for j in range(k):
            if (k, j) in L:
                x[j] = add(x[j], mul(-1.0, mul(L[k, j], x[k])))
    x = [mul(v, d) for v, d in zip(x, inverse, strict=True)]
    for k in range(n):  # L x = D⁻¹ y
        for j in range(k):
            if (k, j) in L:
                x[k] = add(x[k], mul(-1.0, mul(L[k, j], x[j])))
    sizes: Scalar = 0.0
    pivots: Scalar = 0.0
    for h, d in zip(diagonal, inverse, strict=True):
        sizes, pivots = add(sizes, magnitude(h)), add(pivots, magnitude(d))
    return x, mul(sizes, pivots)
