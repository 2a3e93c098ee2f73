"""Work handed to an executor and taken back in order, some ahead: jobs are made when there is room, so that a log need not fit the memory.

Only ``submit`` of the executor is used, so threads, processes and a cluster (dask's ``Client.get_executor()``) serve alike.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from typing import TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")
MAX_PENDING_JOBS = 128  # jobs handed out and not yet taken back; chosen: a few for each worker of a large machine


def handed(
    executor: Executor, work: Callable[[Job], Result], jobs: Iterable[Job], ahead: int = MAX_PENDING_JOBS
) -> Iterator[Result]:
    """work(job) of each job, in order; what was handed out in vain is called back."""
    waiting: deque[Future[Result]] = deque()
    try:
        for job in jobs:
            waiting.append(executor.submit(work, job))
            if len(waiting) >= ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()
