"""Forces within bounds: SciPy's bounded least squares on random problems, and dependent directions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from veridyn.mechanics.system.holding_steps import solve_bounded


@pytest.mark.parametrize("m", [1, 2, 5, 12])
def test_the_same_as_bounded_least_squares(m: int) -> None:
    """½ fᵀH f − bᵀf with H = AᵀA and b = Aᵀd is ½‖A f − d‖² less a constant."""
    rng = np.random.default_rng(m)
    for _ in range(20):
        A, d = rng.normal(size=(m + 2, m)), 3.0 * rng.normal(size=m + 2)
        low, high = -rng.uniform(0.1, 1.0, m), rng.uniform(0.1, 1.0, m)
        expected = lsq_linear(A, d, (low, high), method="bvls", tol=1e-14).x
        assert solve_bounded(A.T @ A, A.T @ d, low, high) == pytest.approx(expected, abs=1e-9)


def test_dependent_directions_share_a_force() -> None:
    """Two frictions on the same coordinate: their forces are not unique, what they do together is."""
    H = np.ones((2, 2))
    f = solve_bounded(H, np.array([0.5, 0.5]), -np.ones(2), np.ones(2))
    assert f.sum() == pytest.approx(0.5, abs=1e-9)
    f = solve_bounded(H, np.array([3.0, 3.0]), -np.ones(2), np.ones(2))
    assert f == pytest.approx([1.0, 1.0])
