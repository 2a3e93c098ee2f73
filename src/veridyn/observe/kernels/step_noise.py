"""The noise that a step of a linear system adds, as machine code: Van Loan's integral by a series and doubling.

    Q(h) = ∫₀^h exp(A s) W exp(A s)ᵀ ds = Σ_k h^k/k! L_k,    L_1 = W,  L_{k+1} = A L_k + L_k Aᵀ
    Q(2h) = Q(h) + Φ(h) Q(h) Φ(h)ᵀ,    Φ(h) = exp(A h)

The step is halved until ‖A‖h is at most 2, where the series has converged to rounding after at most 40 terms, as a rule after ten. The
reference with the matrix exponential is :func:`veridyn.observe.noise.van_loan`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.compiled import core

Array = NDArray[np.float64]
SERIES_NORM = 2.0  # largest ‖A‖h of the series
TERMS = 40
CONVERGED = 1e-17  # of a sum: a smaller term changes nothing
MOST_HALVINGS = 60


@core
def step_noise(A: Array, W: Array, dt: float, Q: Array, term: Array, product: Array, Phi: Array) -> None:
    """Q (n, n) of a step of `dt` seconds; the other matrices are room to work in."""
    n = len(A)
    norm = 0.0
    for i in range(n):
        row = 0.0
        for j in range(n):
            row += abs(A[i, j])
        norm = max(norm, row)
    halvings, h = 0, dt
    while norm * h > SERIES_NORM and halvings < MOST_HALVINGS:
        h *= 0.5
        halvings += 1
    for i in range(n):
        for j in range(n):
            term[i, j] = h * W[i, j]
            Q[i, j] = term[i, j]
    for k in range(2, TERMS + 1):
        multiply(A, term, product)
        largest, sum_size = 0.0, 0.0
        for i in range(n):
            for j in range(i + 1):
                x = (product[i, j] + product[j, i]) * (h / k)  # A L + L Aᵀ: L is symmetric
                term[i, j] = term[j, i] = x
                Q[i, j] += x
                Q[j, i] = Q[i, j]
                largest, sum_size = max(largest, abs(x)), max(sum_size, abs(Q[i, j]))
        if largest <= CONVERGED * sum_size:
            break
    if halvings == 0:
        return
    _exponential(A, h, Phi, term, product)
    for _ in range(halvings):
        multiply(Phi, Q, term)
        multiply_transposed(term, Phi, product)
        for i in range(n):
            for j in range(i + 1):
                Q[i, j] += 0.5 * (product[i, j] + product[j, i])
                Q[j, i] = Q[i, j]
        multiply(Phi, Phi, product)
        copy(product, Phi)


@core
def _exponential(A: Array, h: float, Phi: Array, term: Array, product: Array) -> None:
    """exp(A h) by its series, for ‖A‖h of at most `SERIES_NORM`."""
    n = len(A)
    for i in range(n):
        for j in range(n):
            Phi[i, j] = term[i, j] = 1.0 if i == j else 0.0
    for k in range(1, TERMS + 1):
        multiply(A, term, product)
        largest = 0.0
        for i in range(n):
            for j in range(n):
                term[i, j] = product[i, j] * (h / k)
                Phi[i, j] += term[i, j]
                largest = max(largest, abs(term[i, j]))
        if largest <= CONVERGED:
            break


@core
def multiply(A: Array, B: Array, out: Array) -> None:
    """out = A B; rows of A that are zero in a column cost nothing there."""
    rows, inner, columns = A.shape[0], A.shape[1], B.shape[1]
    for i in range(rows):
        for j in range(columns):
            out[i, j] = 0.0
        for k in range(inner):
            a = A[i, k]
            if a != 0.0:
                for j in range(columns):
                    out[i, j] += a * B[k, j]


@core
def multiply_transposed(A: Array, B: Array, out: Array) -> None:
    """out = A Bᵀ."""
    for i in range(A.shape[0]):
        for j in range(B.shape[0]):
            s = 0.0
            for k in range(A.shape[1]):
                s += A[i, k] * B[j, k]
            out[i, j] = s


@core
def copy(A: Array, out: Array) -> None:
    """out = A."""
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            out[i, j] = A[i, j]
