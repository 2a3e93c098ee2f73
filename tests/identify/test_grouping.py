"""From linear dependences to groups."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.identify.grouping import group

RNG_SHAPE = (40, 6)


def matrix(seed: int = 0, shape: tuple[int, int] = RNG_SHAPE) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def test_independent_columns_all_stay() -> None:
    g = group(matrix(), np.ones(6))
    assert g.kept == tuple(range(6)) and g.rank == 6 and g.dead == () and g.gap == np.inf
    assert np.array_equal(g.matrix, np.eye(6))


def test_of_dependent_columns_the_earlier_stay() -> None:
    """Column 4 is 2 c0 − c3 and column 5 is c1/2: both go, to the columns before them, with exact coefficients."""
    A = matrix()
    A[:, 4] = 2.0 * A[:, 0] - A[:, 3]
    A[:, 5] = 0.5 * A[:, 1]
    g = group(A, np.ones(6))
    assert g.kept == (0, 1, 2, 3)
    expected = np.zeros((4, 6))
    expected[:, :4] = np.eye(4)
    expected[[0, 3], 4] = 2.0, -1.0
    expected[1, 5] = 0.5
    assert np.array_equal(g.matrix, expected)


@pytest.mark.parametrize("seed", range(10))
def test_the_identity_of_groups(seed: int) -> None:
    """A φ = A[:, kept] K φ for a matrix of any rank and columns of any size."""
    rng = np.random.default_rng(seed)
    rank, p = int(rng.integers(1, 8)), 10
    A = rng.normal(size=(50, rank)) @ rng.normal(size=(rank, p))
    sizes = 10.0 ** rng.uniform(-3, 3, p)
    A = A / sizes
    g = group(A, sizes)
    assert g.rank == len(g.kept) == rank and g.gap > 1e6
    assert A[:, list(g.kept)] @ g.matrix == pytest.approx(A, abs=1e-10 * np.abs(A).max())
    # No earlier column depends on the kept ones before it: the kept set is the greedy one.
    first = [
        c
        for c in range(p)
        if np.linalg.matrix_rank(A[:, : c + 1] * sizes[: c + 1], tol=1e-8) == len([k for k in g.kept if k <= c])
    ]
    assert first == list(range(p))


def test_a_column_of_rounding_is_dead_not_a_direction() -> None:
    """FACTS: scaling by column norms would turn a 1e-17 column into a unit one; typical sizes do not."""
    A = matrix()
    A[:, 2] *= 1e-17
    g = group(A, np.ones(6))
    assert g.dead == (2,) and g.kept == (0, 1, 3, 4, 5) and not g.matrix[:, 2].any()


def test_typical_sizes_decide_what_is_small() -> None:
    """The same small column is a parameter where its typical size is large."""
    A = matrix()
    A[:, 2] *= 1e-11
    assert 2 not in group(A, np.ones(6)).kept
    typical = np.ones(6)
    typical[2] = 1e11
    assert 2 in group(A, typical).kept


def test_gap_is_the_ratio_across_the_cut() -> None:
    A = np.diag([4.0, 2.0, 2e-11])
    g = group(A, np.ones(3))
    assert g.rank == 2 and g.gap == pytest.approx(1e11)
    assert group(A, np.ones(3), tolerance=1e-12).rank == 3


def test_exact_zero_singular_values_give_an_infinite_gap() -> None:
    A = 100.0 * np.array([[1.0, 1.0], [0.0, 0.0]])
    A[1, 0] = A[1, 1] = 100.0
    g = group(A, np.ones(2))
    assert g.rank == 1 and g.gap > 1e12


def test_nothing_at_all() -> None:
    g = group(np.zeros((5, 3)), np.ones(3))
    assert (g.kept, g.dead, g.rank) == ((), (0, 1, 2), 0) and g.matrix.shape == (0, 3)
    assert group(np.zeros((0, 2)), np.ones(2)).dead == (0, 1)


def test_fewer_rows_than_columns() -> None:
    A = matrix(1, (3, 6))
    g = group(A, np.ones(6))
    assert g.rank == 3 and g.kept == (0, 1, 2) and len(g.singular_values) == 6


def test_the_triangle_of_a_factor_says_the_same() -> None:
    A = matrix()
    A[:, 3] = A[:, 0] + A[:, 1]
    a, b = group(A, np.ones(6)), group(np.linalg.qr(A, mode="r"), np.ones(6))
    assert a.kept == b.kept and a.matrix == pytest.approx(b.matrix, abs=1e-12)
    assert a.singular_values[:5] == pytest.approx(b.singular_values[:5])


def test_coefficients_are_as_clean_as_they_are_known() -> None:
    """Columns 3 and 4 are nearly parallel, so that rounding makes of the relation of the last a small share of both: it is none."""
    A = matrix()
    A[:, 4] = A[:, 3] + 1e-8 * A[:, 4]
    A[:, 5] = A[:, 0] + 0.4 * A[:, 1]
    A[:, 5] *= 1.0 + 1e-15 * np.random.default_rng(3).normal(size=len(A))
    g = group(A, np.ones(6))
    assert g.kept == (0, 1, 2, 3, 4)
    assert g.matrix[:, 5].tolist() == [1.0, pytest.approx(0.4, abs=1e-14), 0.0, 0.0, 0.0]


def test_what_is_hidden_need_not_be_in_a_relation() -> None:
    """A column that is another one but for 1e-6 of a third, which nobody sees below 1e-5 of the largest."""
    A = matrix()
    A[:, 5] = A[:, 1] + 1e-6 * A[:, 2]
    size = float(np.linalg.norm(A, 2))
    assert group(A, np.ones(6)).matrix[2, 5] == pytest.approx(1e-6)
    g = group(A, np.ones(6), tolerance=1e-5, hidden=1e-5 * size)
    assert g.matrix[:, 5].tolist() == [0.0, 1.0, 0.0, 0.0, 0.0]
