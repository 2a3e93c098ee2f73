"""One row's R factor: blocks, merging, and sums of products with their limits."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from identify.dense_equations import RIGHT, arm, check, dense, log
from identify.dense_equations import same as check_same
from strangers.random_trees import random_motion
from veridyn.errors import DataError, IdentificationError
from veridyn.identify.estimators.least_squares import solve
from veridyn.identify.regression.factor import (
    GRAM_LIMIT,
    RowFactor,
    absorb,
    absorb_all,
    empty,
    one_blas_thread,
    triangle_of,
)
from veridyn.identify.regression.observation import observation
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.settings import IdentifySettings
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.model.elements.element import coulomb, damper, spring
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.spatial.rotations import MDH
from veridyn.symbolic.kernel import this_host


def threads() -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_one_thread_inside_and_the_rest_restored() -> None:
    np.linalg.qr(np.eye(3))
    with threadpool_limits(2, user_api="blas"):
        before = threads()
        with one_blas_thread():
            assert set(threads()) <= {1}
            with one_blas_thread():
                assert set(threads()) <= {1}
            assert set(threads()) <= {1}  # the outer one still holds
        assert threads() == before


def test_restored_after_an_error() -> None:
    before = threads()
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        _ = 1 / 0
    assert threads() == before


def test_many_at_once() -> None:
    before = threads()

    def work(_: int) -> set[int]:
        with one_blas_thread():
            return set(threads())

    with ThreadPoolExecutor(4) as pool:
        seen = list(pool.map(work, range(16)))
    assert all(s <= {1} for s in seen)
    assert threads() == before


def test_the_triangle_has_the_products_of_the_matrix() -> None:
    A = np.random.default_rng(0).normal(size=(9, 4))
    R = triangle_of(A)
    np.testing.assert_allclose(R.T @ R, A.T @ A, atol=1e-13)
    assert not np.tril(R, -1).any()


def test_base_parameters_of_a_model_need_no_compiler() -> None:
    """`veridyn model show` prints them, and numba takes longer to import than the rest of it."""
    loads = "import sys, veridyn.identify.base, veridyn.cli.shown"
    code = f"{loads}; sys.exit(('numba' in sys.modules) + 2 * ('scipy.signal' in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_study_of_identification_imports_no_compiler_and_no_statistics() -> None:
    """numba, SciPy's signal processing and its statistics take longer to import than a fit takes."""
    loads = "import sys, veridyn.studies.run.identify, veridyn.report.page, veridyn.report.study"
    code = f"{loads}; print([m for m in ('numba', 'scipy.signal', 'scipy.stats', 'pandas') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


COLUMNS = (0, 2, 5)
WIDTHS = (2, 4, 8)


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


@pytest.mark.parametrize("seed", range(3))
def test_merging_all_rows_in_any_order(seed: int) -> None:
    machine, motion = arm(), log(1000)
    rng = np.random.default_rng(seed)
    cuts = np.sort(rng.choice(np.arange(1, 1000), 5, replace=False))
    parts = [observation(machine, motion[a:b]) for a, b in zip([0, *cuts], [*cuts, 1000], strict=True)]
    order = rng.permutation(6)
    total = parts[order[0]]
    for k in order[1:]:
        total = total.merge(parts[k])
    whole = observation(machine, motion)
    check_same(total, whole)
    assert solve(total).values == pytest.approx(solve(whole).values, rel=1e-10)


def test_several_motions_are_one_log() -> None:
    machine, motions = arm(), [log(300, 1), log(500, 2), log(40, 3)]
    o = observation(machine, motions)
    assert o.samples == 3 * 840
    tables = [dense(machine, m, machine.rows) for m in motions]
    joined = [(np.vstack([t[j][0] for t in tables]), np.concatenate([t[j][1] for t in tables])) for j in range(3)]
    check(machine, solve(o), joined)


def test_gram_equals_qr_on_well_conditioned_data() -> None:
    """A slide with friction, damping and a spring: nothing to group within a row."""
    bodies = [Body("1", joint="sliding", placement=MDH(alpha=RIGHT))]
    machine = Machine.of_bodies(bodies, elements=[damper("q1", 2.0), spring("q1", 5.0), coulomb("q1", 1.0)])
    asked = machine.parameters.known(dict.fromkeys(machine.parameters.names[:9], 0.0)).replacing({"M1": 3.0})
    machine = machine.with_parameters(asked)
    rng = np.random.default_rng(0)
    motion = random_motion(rng, machine, 3000, wrenches=False)
    motion = replace(motion, forces=inverse_dynamics(machine, motion) + 0.1 * rng.normal(size=(3000, 1)))
    a, b = (
        solve(observation(machine, motion, settings=IdentifySettings(sampling=Sampling(method=m))))
        for m in ("qr", "gram")
    )
    assert b.values == pytest.approx(a.values, rel=1e-10)
    assert np.diag(b.covariance) == pytest.approx(np.diag(a.covariance), rel=1e-9)


def test_gram_is_refused_on_badly_conditioned_data() -> None:
    """All standard parameters of an arm are dependent within each row."""
    with pytest.raises(IdentificationError, match=r"row 'q\d': sums of products are unsafe here[\s\S]*Use method='qr'"):
        observation(arm(), log(500), settings=IdentifySettings(sampling=Sampling(method="gram")))


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VERIDYN_CACHE", str(tmp_path_factory.mktemp("objects")))
        yield


def column_order(A: np.ndarray) -> np.ndarray:
    """A copy, since what is taken in is used up."""
    return np.array(A, order="F")


def empty_triangle(size: int) -> np.ndarray:
    return np.zeros((size, size), order="F")


def taken(A: np.ndarray, width: int | None = None, R: np.ndarray | None = None) -> np.ndarray:
    """The triangle after A, which is used up."""
    R = empty_triangle(A.shape[1]) if R is None else R
    absorb(R, A, None if width is None else this_host(width))
    return R


def check_triangle(R: np.ndarray, rows: np.ndarray) -> None:
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
        check_triangle(taken(column_order(A), width), A)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 16, 25, 33, 48, 60])
def test_repeated_absorption(width: int, size: int) -> None:
    """Blocks of random lengths one after the other are one factorisation of all of them."""
    rng = np.random.default_rng(size)
    blocks = [rng.normal(size=(int(n), size)) for n in rng.integers(1, 50, 8)]
    R = empty_triangle(size)
    for A in blocks:
        taken(column_order(A), width, R)
    check_triangle(R, np.vstack(blocks))


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
        check_triangle(taken(view), A)


def test_nothing_beside_the_equations_is_touched() -> None:
    """Blocks are used up where they lie, in a buffer shared with others."""
    rng = np.random.default_rng(0)
    buffer = rng.normal(size=(10, 96))
    before = buffer.copy()
    check_triangle(taken(buffer[3:7, 16:80].T), before[3:7, 16:80].T)
    buffer[3:7, 16:80] = before[3:7, 16:80]
    assert np.array_equal(buffer, before)


@pytest.mark.parametrize("width", WIDTHS)
def test_dependent_columns_and_columns_of_zeros(width: int) -> None:
    rng = np.random.default_rng(3)
    A = rng.normal(size=(50, 4)) @ rng.normal(size=(4, 17))
    A[:, [0, 5, 16]] = 0.0
    R = taken(column_order(A), width)
    check_triangle(R, A)
    assert np.array_equal(R[:, [0, 5, 16]], np.zeros((17, 3)))
    assert np.linalg.matrix_rank(R) == 4
    check_triangle(taken(np.zeros((24, 17), order="F"), width, R), A)


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
    together = [empty_triangle(A.shape[1]) for A in blocks]
    absorb_all(together, [column_order(A) for A in blocks], this_host(width))
    for R, A in zip(together, blocks, strict=True):
        assert np.array_equal(R, taken(column_order(A), width))
        check_triangle(R, A)
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
        R = empty_triangle(23)
        for A in log:
            absorb(R, column_order(A))
        return R

    alone = [work(log) for log in logs]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(work, logs))
    assert all(np.array_equal(a, b) for a, b in zip(alone, together, strict=True))
    for R, own in zip(together, logs, strict=True):
        check_triangle(R, own.reshape(-1, 23))


def test_widths_agree() -> None:
    A = np.random.default_rng(5).normal(size=(80, 21))
    first, *others = (taken(column_order(A), w) for w in WIDTHS)
    for R in others:
        assert np.abs(R - first).max() <= 1e-13 * np.abs(first).max()
