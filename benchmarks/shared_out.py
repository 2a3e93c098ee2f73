"""Jobs that several processes share in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def shared_out(work: Callable[[T], R], jobs: Sequence[T], workers: int) -> Iterator[R]:
    """Results in the order of the jobs; in this process where one worker is asked for."""
    if workers <= 1:
        yield from map(work, jobs)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(work, jobs)
