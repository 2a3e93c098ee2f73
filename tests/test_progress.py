"""How many threads share in a piece of work: bounded by processors, by a variable and by a setting; one in a worker."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from veridyn.identify.regression.workers import map_in_order
from veridyn.progress import usable_threads


@pytest.mark.parametrize(
    ("variable", "wanted", "threads"),
    [
        ("", None, 6),
        ("", 4, 4),
        ("", 100, 6),  # never more than the processors
        ("3", None, 3),
        ("3", 2, 2),
        ("3", 5, 3),
        ("4,2", None, 4),  # OpenMP's list: of the outermost level
        ("0", None, 6),
        ("many", 7, 6),
    ],
)
def test_threads_are_bounded_by_processors_variable_and_setting(
    monkeypatch: pytest.MonkeyPatch, variable: str, wanted: int | None, threads: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)), raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", variable)
    assert usable_threads(wanted) == threads


def test_without_affinity_the_machine_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS and Windows."""
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert usable_threads() == 3


def test_a_worker_starts_no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)), raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    with ThreadPoolExecutor(2) as pool:
        assert list(map_in_order(pool, usable_threads, [None, 4])) == [1, 1]
        assert pool.submit(usable_threads).result() == 6  # the thread is none of these workers any more
    assert list(map_in_order(None, usable_threads, [None, 4])) == [6, 4]
