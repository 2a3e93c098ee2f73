"""The small factorisations against LAPACK, on matrices of every size that mechanisms have, and on singular ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veridyn.mechanics.dense import factor, solve, solve_many, solve_once, solve_transposed


def numbers(n: int) -> np.ndarray:
    return np.empty(n, dtype=np.int64)


@settings(deadline=None)
@given(st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_both_solves_are_lapack_s(n: int, seed: int) -> None:
    """Errors grow with the condition, so the tolerance does."""
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(n, n)), rng.normal(size=n)
    B, pivot = A.copy(), numbers(n)
    close = 1e-14 * n * float(np.linalg.cond(A))
    assert factor(B, pivot)
    for matrix, back in ((A, solve), (A.T, solve_transposed)):
        wanted, x = np.linalg.solve(matrix, b), b.copy()
        back(B, pivot, x)
        assert np.abs(x - wanted).max() <= close * np.abs(wanted).max()
    many = np.column_stack([b, 2.0 * b, A[:, 0]])
    wanted = np.linalg.solve(A, many)
    solve_many(B, pivot, many)
    assert np.abs(many - wanted).max() <= close * np.abs(wanted).max()
    once = b.copy()
    solve_once(A.copy(), pivot, once)
    assert np.linalg.norm(A @ once - b) <= close * max(1.0, float(np.linalg.norm(once)))


@pytest.mark.parametrize("A", [np.zeros((3, 3)), np.ones((2, 2)), np.diag([1.0, np.nan]), np.diag([np.inf, 1.0])])
def test_a_singular_matrix_is_reported(A: np.ndarray) -> None:
    assert not factor(A.copy(), numbers(len(A)))
    x = np.ones(len(A))
    solve_once(A.copy(), numbers(len(A)), x)
    assert np.isnan(x).all()


def test_rows_are_exchanged_where_a_pivot_is_small() -> None:
    A, b = np.array([[1e-20, 1.0], [1.0, 1.0]]), np.array([1.0, 2.0])
    solve_once(A.copy(), numbers(2), b)
    assert b == pytest.approx([1.0, 1.0])
