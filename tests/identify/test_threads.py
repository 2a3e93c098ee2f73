"""One BLAS thread inside, and what was there before outside."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from veridyn.identify.threads import one_blas_thread


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
