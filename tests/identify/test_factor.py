"""One row's R factor: blocks, merging, and sums of products with their limits."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.errors import DataError, IdentificationError
from veridyn.identify.factor import GRAM_LIMIT, RowFactor, empty

COLUMNS = (0, 2, 5)


def data(seed: int = 0, samples: int = 50) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(samples, 4))


def in_blocks(A: np.ndarray, rng: np.random.Generator, method: str = "qr") -> RowFactor:
    f = empty("q1", COLUMNS, method)
    at = 0
    while at < len(A):
        size = int(rng.integers(0, 12))
        f = f.absorb(A[at : at + size])
        at += size
    return f


def same(f: RowFactor, A: np.ndarray, tolerance: float = 1e-13) -> None:
    """RᵀR = AᵀA, R triangular, and the right count."""
    assert f.samples == len(A)
    assert np.array_equal(f.R, np.triu(f.R))
    G = A.T @ A
    assert pytest.approx(G, abs=tolerance * np.abs(G).max()) == f.R.T @ f.R


@pytest.mark.parametrize("seed", range(6))
def test_blocks_of_any_size_give_the_factor_of_the_whole(seed: int) -> None:
    A = data(seed)
    f = in_blocks(A, np.random.default_rng(seed))
    same(f, A)
    R = np.linalg.qr(A, mode="r")
    assert np.abs(f.R) == pytest.approx(np.abs(R), abs=1e-12)


def test_fewer_equations_than_columns() -> None:
    A = data(1, 2)
    same(in_blocks(A, np.random.default_rng(1)), A)


def test_many_columns_go_through_panels() -> None:
    A = np.random.default_rng(2).normal(size=(300, 90))
    f = empty("q1", tuple(range(89)))
    for k in range(0, 300, 37):
        f = f.absorb(A[k : k + 37])
    same(f, A)


@pytest.mark.parametrize("method", ["qr", "gram"])
def test_merging_in_any_order(method: str) -> None:
    rng = np.random.default_rng(3)
    parts = [data(k, int(rng.integers(1, 30))) for k in range(6)]
    factors = [in_blocks(A, rng, method) for A in parts]
    for _ in range(4):
        order = rng.permutation(6)
        total = factors[order[0]]
        for k in order[1:]:
            total = total.merge(factors[k])
        same(total.finished(), np.vstack(parts), 1e-12)


def test_an_empty_factor_changes_nothing() -> None:
    A = data()
    f = in_blocks(A, np.random.default_rng(0))
    both = empty("q1", COLUMNS).merge(f)
    same(both, A)
    assert np.array_equal(f.absorb(A[:0]).R, f.R) and f.absorb(A[:0]).samples == 50


def test_residual_and_norm() -> None:
    A = data()
    f = in_blocks(A, np.random.default_rng(0))
    x = np.array([0.5, -1.0, 2.0])
    assert f.residual(x) == pytest.approx(np.linalg.norm(A[:, -1] - A[:, :-1] @ x), rel=1e-13)
    assert f.measurement_norm == pytest.approx(np.linalg.norm(A[:, -1]), rel=1e-13)


def test_gram_is_finished_by_the_triangle_of_its_root() -> None:
    A = data() * np.array([1e3, 1.0, 1e-3, 5.0])
    f = in_blocks(A, np.random.default_rng(0), "gram").finished()
    assert f.method == "qr"
    same(f, A, 1e-12)


def test_gram_with_a_dead_column() -> None:
    A = data()
    A[:, 1] = 0.0
    same(in_blocks(A, np.random.default_rng(0), "gram").finished(), A, 1e-12)


@pytest.mark.parametrize("small", [1e-8, 0.0])
def test_gram_is_refused_where_the_condition_is_unsafe(small: float) -> None:
    """Two columns that differ by 1e-8 of themselves, or not at all: QR sees it, sums of products cannot."""
    A = data()
    A[:, 1] = A[:, 0] + small * A[:, 1]
    with pytest.raises(IdentificationError, match=r"row 'q1': sums of products are unsafe here[\s\S]*method='qr'"):
        in_blocks(A, np.random.default_rng(0), "gram").finished()
    assert in_blocks(A, np.random.default_rng(0)).finished().samples == 50
    assert GRAM_LIMIT == 1e6


def test_factors_of_different_rows_do_not_merge() -> None:
    with pytest.raises(DataError, match=r"factors of different rows cannot be merged\.\nFound 'q1' and 'q2'"):
        empty("q1", COLUMNS).merge(empty("q2", COLUMNS))
    with pytest.raises(DataError, match="cannot be merged"):
        empty("q1", COLUMNS).merge(empty("q1", COLUMNS, "gram"))
