"""Many quadratic forms at once against NumPy: values, gradients and second derivatives, with gradients that are multiples of each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.compiled import compiled
from veridyn.mechanics.natural.constraints import CoefficientTable
from veridyn.mechanics.natural.forms import Forms, forms_of, gather, second
from veridyn.mechanics.record import Bound, opened

Array = NDArray[np.float64]
N = 9


def between(a: int, b: int, size: float) -> Array:
    """S of |r_a − r_b|² − size² over three points of three coordinates, where the gradients of both points are opposite."""
    D = np.zeros((3, N + 1))
    D[range(3), range(3 * a, 3 * a + 3)], D[range(3), range(3 * b, 3 * b + 3)] = 1.0, -1.0
    S = D.T @ D
    S[N, N] = -(size**2)
    return S


@compiled
def _evaluated(address: NDArray[np.int64], y: Array, values: Array, slopes: Array, seconds: Array) -> None:
    f = opened(address, Forms)
    gather(f, y, values, slopes)
    for i in range(len(seconds)):
        seconds[i] = second(f, i, y)


def test_values_gradients_and_second_derivatives_of_forms() -> None:
    """Φ = yᵀ S y with y = (q, 1): Φ, 2 (S y)_q and 2 qᵀ S_qq q are those of dense matrices."""
    rng = np.random.default_rng(7)
    A = rng.normal(size=(N + 1, N + 1))
    given = [between(0, 1, 1.0), between(1, 2, 2.0), 0.3 * between(0, 1, 0.5), A + A.T, np.zeros((N + 1, N + 1))]
    forms, q = forms_of(CoefficientTable.of(given, N)), rng.normal(size=N)
    y = np.append(q, 1.0)
    values, slopes, seconds = np.full(5, np.nan), np.zeros((5, N)), np.full(5, np.nan)
    bound = Bound(forms)
    _evaluated(bound.address, y, values, slopes, seconds)
    np.testing.assert_allclose(values, [y @ S @ y for S in given], rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(slopes, [2.0 * (S @ y)[:N] for S in given], rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(seconds, [2.0 * q @ S[:N, :N] @ q for S in given], rtol=1e-13, atol=1e-13)


def test_gradients_that_are_multiples_share_a_sum() -> None:
    """Three forms of two distances have six different sums, where there are eighteen entries and the constants."""
    given = [between(0, 1, 1.0), between(1, 2, 2.0), 0.3 * between(0, 1, 0.5)]
    forms = forms_of(CoefficientTable.of(given, N))
    assert len(forms.row) == 21 and len(forms.start) - 1 == 7  # the constants are multiples of one sum, 1
    assert len(forms.source) == 6 * 2 + 1
