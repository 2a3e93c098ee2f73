"""The triangle that takes in blocks: LAPACK's R, however the equations are cut, laid out in memory or shared between threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from veridyn.identify.triangular import absorb, absorb_all
from veridyn.symbolic.host import this_host

WIDTHS = (2, 4, 8)


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VERIDYN_CACHE", str(tmp_path_factory.mktemp("objects")))
        yield


def column_order(A: np.ndarray) -> np.ndarray:
    """A copy, since what is taken in is used up."""
    return np.array(A, order="F")


def empty(size: int) -> np.ndarray:
    return np.zeros((size, size), order="F")


def taken(A: np.ndarray, width: int | None = None, R: np.ndarray | None = None) -> np.ndarray:
    """The triangle after A, which is used up."""
    R = empty(A.shape[1]) if R is None else R
    absorb(R, A, None if width is None else this_host(width))
    return R


def check(R: np.ndarray, rows: np.ndarray) -> None:
    """RᵀR = AᵀA to rounding, and |R| of LAPACK where the columns are independent."""
    assert np.array_equal(R, np.triu(R)) and np.isfinite(R).all()
    size = np.linalg.norm(rows, axis=0)
    assert (np.abs(R.T @ R - rows.T @ rows) <= 1e-13 * max(8, len(rows)) * np.outer(size, size)).all()
    if len(rows) >= rows.shape[1] and np.linalg.cond(rows) < 1e6:
        lapack = np.linalg.qr(rows, mode="r")
        assert (np.abs(np.abs(R) - np.abs(lapack)) <= 1e-10 * size).all()


@pytest.mark.parametrize("width", WIDTHS)
def test_any_number_of_rows(width: int) -> None:
    """1 to 40 rows, few of them multiples of eight, fewer and more than columns."""
    for rows in range(1, 41):
        rng = np.random.default_rng(rows)
        A = rng.normal(size=(rows, int(rng.integers(1, 20))))
        check(taken(column_order(A), width), A)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 16, 25, 33, 48, 60])
def test_repeated_absorption(width: int, size: int) -> None:
    """Blocks of random lengths one after the other are one factorisation of all of them."""
    rng = np.random.default_rng(size)
    blocks = [rng.normal(size=(int(n), size)) for n in rng.integers(1, 50, 8)]
    R = empty(size)
    for A in blocks:
        taken(column_order(A), width, R)
    check(R, np.vstack(blocks))


def layouts(A: np.ndarray) -> dict[str, np.ndarray]:
    """The same numbers in column order, row order, as columns of a wide buffer, as every second row, backwards, and as part of a table."""
    rows, size = A.shape
    wide = np.zeros((size + 3, rows + 17))
    wide[2 : 2 + size, 5 : 5 + rows] = A.T
    thin = np.zeros((2 * rows, size), order="F")
    thin[::2] = A
    table = np.zeros((rows + 4, size + 4))
    table[2:-2, 2:-2] = A
    return {
        "column order": np.array(A, order="F"),
        "row order": np.array(A, order="C"),
        "part of a buffer": wide[2 : 2 + size, 5 : 5 + rows].T,
        "every second row": thin[::2],
        "backwards": np.array(A[::-1], order="F")[::-1],
        "part of a table": table[2:-2, 2:-2],
        "columns backwards": np.array(A[:, ::-1], order="F")[:, ::-1],
    }


@pytest.mark.parametrize("rows", [64, 61])
@pytest.mark.parametrize("size", [1, 12])
def test_any_layout(rows: int, size: int) -> None:
    A = np.random.default_rng(0).normal(size=(rows, size))
    for view in layouts(A).values():
        check(taken(view), A)


def test_nothing_beside_the_equations_is_touched() -> None:
    """Blocks are used up where they lie, in a buffer shared with others."""
    rng = np.random.default_rng(0)
    buffer = rng.normal(size=(10, 96))
    before = buffer.copy()
    check(taken(buffer[3:7, 16:80].T), before[3:7, 16:80].T)
    buffer[3:7, 16:80] = before[3:7, 16:80]
    assert np.array_equal(buffer, before)


@pytest.mark.parametrize("width", WIDTHS)
def test_dependent_columns_and_columns_of_zeros(width: int) -> None:
    rng = np.random.default_rng(3)
    A = rng.normal(size=(50, 4)) @ rng.normal(size=(4, 17))
    A[:, [0, 5, 16]] = 0.0
    R = taken(column_order(A), width)
    check(R, A)
    assert np.array_equal(R[:, [0, 5, 16]], np.zeros((17, 3)))
    assert np.linalg.matrix_rank(R) == 4
    check(taken(np.zeros((24, 17), order="F"), width, R), A)


@pytest.mark.parametrize("scale", [1e-140, 1e-30, 1e30, 1e140])
def test_huge_and_tiny_equations(scale: float) -> None:
    A = np.random.default_rng(1).normal(size=(37, 11))
    plain, scaled = taken(column_order(A)), taken(column_order(scale * A))
    assert np.abs(scaled / scale - plain).max() <= 1e-13 * np.abs(plain).max()


def test_columns_of_very_different_size() -> None:
    """Each column keeps its own relative accuracy: 1e-100 beside 1e100."""
    A = np.random.default_rng(1).normal(size=(37, 9))
    sizes = 10.0 ** np.linspace(-100, 100, 9)
    plain, scaled = taken(column_order(A)), taken(column_order(A * sizes))
    assert np.abs(scaled / sizes - plain).max() <= 1e-13 * np.abs(plain).max()


@pytest.mark.parametrize("width", WIDTHS)
def test_many_triangles_in_one_call(width: int) -> None:
    """Of all sizes, some with no rows: bit for bit what one call for each gives."""
    rng = np.random.default_rng(8)
    blocks = [rng.normal(size=(int(rows), int(size))) for rows, size in rng.integers([0, 1], 40, (25, 2))]
    blocks += [np.zeros((0, 4)), rng.normal(size=(1200, 6))]
    together = [empty(A.shape[1]) for A in blocks]
    absorb_all(together, [column_order(A) for A in blocks], this_host(width))
    for R, A in zip(together, blocks, strict=True):
        assert np.array_equal(R, taken(column_order(A), width))
        check(R, A)
    absorb_all([], [])


def test_no_rows_change_nothing() -> None:
    R = taken(np.random.default_rng(0).normal(size=(20, 3)))
    before = R.copy()
    absorb(R, np.zeros((0, 3)))
    assert np.array_equal(R, before)


def test_threads_side_by_side() -> None:
    """Four triangles turned at once by four threads are, bit for bit, those turned one after the other."""
    rng = np.random.default_rng(0)
    logs = [rng.normal(size=(40, 64, 23)) for _ in range(4)]

    def work(log: np.ndarray) -> np.ndarray:
        R = empty(23)
        for A in log:
            absorb(R, column_order(A))
        return R

    alone = [work(log) for log in logs]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(work, logs))
    assert all(np.array_equal(a, b) for a, b in zip(alone, together, strict=True))
    for R, log in zip(together, logs, strict=True):
        check(R, log.reshape(-1, 23))


def test_widths_agree() -> None:
    A = np.random.default_rng(5).normal(size=(80, 21))
    first, *others = (taken(column_order(A), w) for w in WIDTHS)
    for R in others:
        assert np.abs(R - first).max() <= 1e-13 * np.abs(first).max()
