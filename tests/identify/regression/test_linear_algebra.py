"""One BLAS thread inside, and what was there before outside."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from veridyn.identify.regression.linear_algebra import one_blas_thread, triangle_of


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
    loads = "import sys, veridyn.identify.base, veridyn.cli.shown_model"
    code = f"{loads}; sys.exit(('numba' in sys.modules) + 2 * ('scipy.signal' in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_study_of_identification_imports_no_compiler_and_no_statistics() -> None:
    """numba, SciPy's signal processing and its statistics take longer to import than a fit takes."""
    loads = "import sys, veridyn.studies.run.identify, veridyn.report.page, veridyn.report.study"
    code = f"{loads}; print([m for m in ('numba', 'scipy.signal', 'scipy.stats', 'pandas') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
