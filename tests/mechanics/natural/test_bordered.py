"""The bordered system against the penalised one it stands for."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.mechanics.natural.bordered import Bordered


def test_equals_the_penalised_system() -> None:
    rng = np.random.default_rng(0)
    A, J, a, b = rng.normal(size=(6, 6)), rng.normal(size=(3, 6)), rng.normal(size=6), rng.normal(size=3)
    alpha = 50.0
    x, mu = Bordered(A, J, alpha).solve(a, b)
    assert x == pytest.approx(np.linalg.solve(A + alpha * J.T @ J, a - alpha * J.T @ b), rel=1e-11)
    assert mu == pytest.approx(alpha * (J @ x + b), rel=1e-10)


def test_redundant_rows_and_a_singular_matrix() -> None:
    """A mass that one coordinate lacks is made up for by the constraint that holds it, given twice."""
    A = np.diag([2.0, 0.0])
    J = np.array([[1.0, -1.0], [1.0, -1.0]])
    x, mu = Bordered(A, J, 1e12).solve(np.array([4.0, 1.0]), np.zeros(2))
    assert x == pytest.approx([2.5, 2.5], rel=1e-10)
    assert mu.sum() == pytest.approx(-1.0, rel=1e-10)


def test_a_singular_system_is_not_finite() -> None:
    x, _ = Bordered(np.zeros((2, 2)), np.zeros((1, 2)), 1.0).solve(np.ones(2), np.ones(1))
    assert not np.isfinite(x).any()
