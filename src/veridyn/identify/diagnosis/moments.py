"""Second moments of the equations of some samples, from which many questions about their forces are answered at once.

Row j has W_j φ = y_j, weighed by 1/‖y_j‖². With G_j = W_jᵀ W_j known, other forces y need only b_j = W_jᵀ y_j, and least squares leaves

    error² = mean over rows of ‖r_j‖²/‖y_j‖² = (rows − bᵀ G⁻¹ b)/rows,    G = Σ G_j/‖y_j‖²,  b = Σ b_j/‖y_j‖²

Normal equations have half the digits: errors are right to about 1e-4 of the forces, and a direction that the data excite by less than 1e-5
of the others counts as not excited. That suffices to compare errors of some per cent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

Array = NDArray[np.float64]
RIDGE = 1e-10  # beside columns of norm one


@dataclass(frozen=True, eq=False)
class SecondMoments:
    """`W` (rows, N, p), and `grams` (rows, p, p) of it."""

    W: Array
    grams: Array

    @classmethod
    def of(cls, W: Array, acting: Sequence[NDArray[np.intp]]) -> SecondMoments:
        """Of columns (rows, N, p); `acting`: for each row those that are not zero there, which are about half of a chain's."""
        grams = np.zeros((len(W), W.shape[2], W.shape[2]))
        for gram, row, columns in zip(grams, W, acting, strict=True):
            own = row[:, columns]
            gram[np.ix_(columns, columns)] = own.T @ own
        return cls(W, grams)

    def error(self, y: Array, least: Array | float = 0.0) -> float:
        """√(mean over rows of ‖r_j‖²/s_j²) that least squares leaves of y (rows, N); s_j = ‖y_j‖, or `least` (rows,) if larger."""
        weights, own = _weights(y, least)
        b, x = self._solution(y, weights)
        return float(np.sqrt(max(own - b @ x, 0.0) / len(y)))

    def left(self, y: Array, least: Array | float = 0.0) -> Array:
        """‖r_j‖ of each row (rows,) that the same least squares leaves."""
        _, x = self._solution(y, _weights(y, least)[0])
        return np.asarray(np.linalg.norm(y - self.W @ x, axis=1))

    def _solution(self, y: Array, weights: Array) -> tuple[Array, Array]:
        """Σ b_j/s_j², and the parameters."""
        b = weights @ self._products(y)
        return b, _solved(np.tensordot(weights, self.grams, 1), b)

    def factor(self, y: Array, j: int) -> float:
        """λ of λ y_j = W_j φ beside the other rows as they are: the factor of one force that agrees best with the others."""
        weights, _ = _weights(y)
        products = self._products(y)
        others = np.delete(np.arange(len(y)), j)
        p = self.grams.shape[1]
        gram = np.zeros((p + 1, p + 1))
        gram[:p, :p] = np.tensordot(weights, self.grams, 1)
        gram[:p, p] = gram[p, :p] = -weights[j] * products[j]
        gram[p, p] = weights[j] * float(y[j] @ y[j])
        return float(_solved(gram, np.append(weights[others] @ products[others], 0.0))[p])

    def _products(self, y: Array) -> Array:
        return (y[:, None, :] @ self.W)[:, 0]


def _weights(y: Array, least: Array | float = 0.0) -> tuple[Array, float]:
    """1/s_j², s_j = max(‖y_j‖, least_j), one where nothing is measured; and Σ ‖y_j‖²/s_j²."""
    squares = np.einsum("jn,jn->j", y, y)
    sizes = np.maximum(squares, np.square(least))
    weights = 1.0 / np.where(sizes > 0.0, sizes, 1.0)
    return weights, float(weights @ squares)


def _solved(gram: Array, right: Array) -> Array:
    norms = np.sqrt(np.diag(gram))
    scale = np.where(norms > 0.0, norms, 1.0)
    scaled = gram / np.outer(scale, scale)
    scaled[np.diag_indices_from(scaled)] += RIDGE
    scaled[norms == 0.0, norms == 0.0] = 1.0
    return cho_solve(cho_factor(scaled, check_finite=False), right / scale, check_finite=False) / scale
