"""Work shared out by an executor: jobs handed out and taken back in order, and motions that the workers make from their logs.

    files = sorted(Path("logs").glob("*.parquet"))
    fit = identify(machine, MadeMotions(files, partial(read, machine)), executor=client.get_executor())

A worker makes one motion, turns its samples into equations and hands back R factors, which are small: neither the logs nor their samples
travel, and a worker never holds more than one motion. Factors are merged in the order of the logs, so that the result is the same
whatever the number of workers and the order in which they end.

Jobs are made when there is room for them, some ahead, so that a log need not fit the memory. Only ``submit`` of the executor is used, so
threads, processes and a cluster (dask's ``Client.get_executor()``) serve alike.

Without an executor, jobs that go through machine code are shared by threads of this process: as many as it may use processors, and no more
than the variable OMP_NUM_THREADS or the setting `threads` allows. A worker starts no threads of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar, overload

from veridyn.arguments import checked
from veridyn.errors import DataError, VeridynError
from veridyn.model.motion import Motion
from veridyn.progress import this_thread

Job = TypeVar("Job")
Result = TypeVar("Result")
MAX_PENDING_JOBS = 128  # jobs handed out and not yet taken back; chosen: a few for each worker of a large machine
JOBS_AHEAD = 2  # for each thread of this process: one at work, one waiting


@contextmanager
def threads_unless(executor: Executor | None, threads: int) -> Iterator[tuple[Executor | None, int]]:
    """An executor and how many jobs to hand it ahead: the given one, else so many threads of this process, none for a single one."""
    if executor is not None or threads <= 1:
        yield executor, MAX_PENDING_JOBS
        return
    with ThreadPoolExecutor(threads) as pool:
        yield pool, JOBS_AHEAD * threads


class MadeMotions(Sequence[Motion]):
    """A sequence of motions, none of which is kept.

    Parameters
    ----------
    sources : iterable
        What each motion is made from, such as the path of a log; at least one.
    make : callable
        make(source) → Motion. For processes and clusters it must be a function of a module, or a ``functools.partial`` of one.
    """

    @checked
    def __init__(self, sources: Iterable[Any], make: Callable[[Any], Motion]) -> None:
        self.sources, self.make = tuple(sources), make
        if not self.sources:
            raise DataError(
                "there is nothing to make motions from.",
                where="MadeMotions",
                expected="at least one source",
                found="none",
            )

    def made(self, source: Any) -> Motion:
        """The motion of one source; what is wrong with it carries its name."""
        try:
            found = self.make(source)
        except VeridynError as error:
            raise type(error)(error.faults, f"{source}: {error.source}" if error.source else f"{source}") from None
        except (OSError, ValueError, KeyError) as error:
            raise DataError(f"no motion can be made of it: {error}", where=f"{source}") from error
        if not isinstance(found, Motion):
            raise DataError(
                "what was made is no motion.", where=f"{source}", expected="a Motion", found=type(found).__name__
            )
        return found

    def __len__(self) -> int:
        return len(self.sources)

    def __iter__(self) -> Iterator[Motion]:
        return map(self.made, self.sources)

    @overload
    def __getitem__(self, k: int) -> Motion: ...
    @overload
    def __getitem__(self, k: slice) -> MadeMotions: ...
    def __getitem__(self, k: int | slice) -> Motion | MadeMotions:
        return MadeMotions(self.sources[k], self.make) if isinstance(k, slice) else self.made(self.sources[k])


def map_in_order(
    executor: Executor | None, work: Callable[[Job], Result], jobs: Iterable[Job], ahead: int = MAX_PENDING_JOBS
) -> Iterator[Result]:
    """work(job) of each job, in order, in this thread without an executor; what was handed out in vain is called back."""
    if executor is None:
        yield from map(work, jobs)
        return
    waiting: deque[Future[Result]] = deque()
    try:
        for job in jobs:
            waiting.append(executor.submit(partial(_as_worker, work), job))
            if len(waiting) >= ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def _as_worker(work: Callable[[Job], Result], job: Job) -> Result:
    """work(job), in a thread that knows that it is one of several."""
    before, this_thread.busy = this_thread.busy, True
    try:
        return work(job)
    finally:
        this_thread.busy = before
