"""The QR step in vector code against LAPACK: every width, every size up to sixty columns."""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np
import pytest

from veridyn.symbolic.kernel import compile_object, loaded, this_host
from veridyn.symbolic.qr_llvm import AT_ONCE, qr_program

WIDTHS = (1, 2, 4, 8)
I, P = ctypes.c_int64, ctypes.c_void_p
SIGNATURE = ctypes.CFUNCTYPE(None, I, P, P)


@cache
def step(width: int):
    return loaded(compile_object(qr_program(width), this_host(width)), "take_in", SIGNATURE)


def turned(width: int, R: np.ndarray, A: np.ndarray, spare: int = 0) -> np.ndarray:
    """R after [R; A], both in column order with `spare` rows between columns; what lies in the spare rows must stay."""
    (m, n), fence = A.shape, 7.5
    r, a = np.full((n + spare, n), fence, order="F"), np.full((m + spare, n), fence, order="F")
    r[:n], a[:m] = R, A
    work = np.full(128 + 8, fence)
    table = np.array([(m, n, r.ctypes.data, n + spare, a.ctypes.data, m + spare)], dtype=np.int64)
    step(width)(1, table.ctypes.data, work.ctypes.data)
    assert (r[n:] == fence).all() and (a[m:] == fence).all() and (work[128:] == fence).all()
    return r[:n]


def check(found: np.ndarray, rows: np.ndarray, tolerance: float = 1e-13) -> None:
    """Upper triangular, RᵀR = AᵀA, and the entries of LAPACK's R up to the sign of each row."""
    n = found.shape[1]
    assert np.array_equal(np.tril(found, -1), np.zeros((n, n)))
    lapack = np.zeros((n, n))
    made = np.linalg.qr(rows, mode="r")
    lapack[: len(made)] = made
    size = np.linalg.norm(rows, axis=0)
    gram = rows.T @ rows
    assert (np.abs(found.T @ found - gram) <= tolerance * len(rows) * np.outer(size, size)).all()
    if np.linalg.cond(rows / np.where(size > 0, size, 1.0)) < 1e6 and len(rows) >= n:
        assert (np.abs(np.abs(found) - np.abs(lapack)) <= 1e-9 * size).all()


@pytest.mark.parametrize("width", WIDTHS)
def test_every_size(width: int) -> None:
    """1 to 60 columns, so every remainder of the panel and of the columns taken together; rows in full groups of eight."""
    for n in range(1, 61):
        rng = np.random.default_rng(n)
        A = rng.normal(size=(8 * int(rng.integers(1, 20)), n))
        check(turned(width, np.zeros((n, n)), A, spare=int(rng.integers(0, 5))), A)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("rows", [AT_ONCE - 8, AT_ONCE, AT_ONCE + 8, 2 * AT_ONCE, 3 * AT_ONCE - 8])
def test_more_rows_than_one_step_holds(width: int, rows: int) -> None:
    for n in (1, 9, 26):
        A = np.random.default_rng(rows).normal(size=(rows, n))
        check(turned(width, np.zeros((n, n)), A, spare=3), A)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_triangle_takes_in_more(width: int) -> None:
    for n in (1, 7, 8, 9, 23, 41):
        rng = np.random.default_rng(n)
        blocks = [rng.normal(size=(8 * k, n)) for k in (1, 4, 9, 1)]
        R = np.zeros((n, n))
        for A in blocks:
            R = turned(width, R, A)
        check(R, np.vstack(blocks))


@pytest.mark.parametrize("width", WIDTHS)
def test_dependent_and_empty_columns(width: int) -> None:
    """Rank 5 of 20, columns of zeros first, amid and last: RᵀR stays right and nothing is NaN."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(64, 5)) @ rng.normal(size=(5, 20))
    A[:, [0, 8, 9, 19]] = 0.0
    R = turned(width, np.zeros((20, 20)), A)
    assert np.isfinite(R).all()
    assert np.array_equal(R[:, [0, 8, 9, 19]], np.zeros((20, 4)))
    check(R, A)
    check(turned(width, R, np.zeros((16, 20))), A)
    assert np.array_equal(turned(width, np.zeros((20, 20)), np.zeros((8, 20))), np.zeros((20, 20)))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scale", [1e-140, 1e-12, 1e12, 1e140])
def test_scales(width: int, scale: float) -> None:
    """All columns at one scale (sums of squares stay within what a double holds), and columns of very different scales."""
    rng = np.random.default_rng(1)
    A = rng.normal(size=(80, 13))
    assert turned(width, np.zeros((13, 13)), A * scale) / scale == pytest.approx(
        turned(width, np.zeros((13, 13)), A), rel=1e-11, abs=1e-12
    )
    mixed = A * np.where(np.arange(13) % 2, scale, 1.0)
    found = turned(width, np.zeros((13, 13)), mixed)
    lapack = np.linalg.qr(mixed, mode="r")
    assert (np.abs(np.abs(found) - np.abs(lapack)) <= 1e-12 * np.linalg.norm(mixed, axis=0)).all()


@pytest.mark.parametrize("size", [1e-150, 1e-156, 1e-160, 1e-162])
def test_what_is_left_of_dependent_columns_turns_no_others(size: float) -> None:
    """Squares of so little have few digits, or none: a reflection made of them is none, and would change the columns behind it."""
    A = np.random.default_rng(2).normal(size=(80, 9))
    A[:, :5] *= size
    R = turned(this_host().width, np.zeros((9, 9)), A)
    gram = A.T @ A
    np.testing.assert_allclose((R.T @ R)[5:, 5:], gram[5:, 5:], rtol=0, atol=1e-13 * np.abs(gram).max())


def test_badly_conditioned_columns_keep_their_digits() -> None:
    """Vandermonde of 12 columns, condition 1e8: the triangle is as good as LAPACK's, which a Gram matrix is not."""
    A = np.vander(np.linspace(0.0, 1.0, 128), 12)
    R = turned(this_host().width, np.zeros((12, 12)), A)
    x = np.linspace(1.0, 2.0, 12)
    y = A @ x
    solved = np.linalg.solve(R, np.linalg.solve(R.T, A.T @ y))
    improved = solved + np.linalg.solve(R, np.linalg.solve(R.T, A.T @ (y - A @ solved)))
    assert improved == pytest.approx(x, rel=1e-7)
    assert np.linalg.svd(R, compute_uv=False) == pytest.approx(np.linalg.svd(A, compute_uv=False), rel=1e-6)


def test_what_is_no_number_shows() -> None:
    A = np.random.default_rng(0).normal(size=(16, 10))
    A[3, 4] = np.nan
    R = turned(this_host().width, np.zeros((10, 10)), A)
    assert np.isfinite(R[:, :4]).all() and np.isnan(R[:, 4:]).any(axis=0).all()


def test_the_text_calls_no_library() -> None:
    text = qr_program(4)
    declared = [line.split("@")[1].split("(")[0] for line in text.splitlines() if line.startswith("declare")]
    assert all(name.startswith("llvm.") for name in declared)
