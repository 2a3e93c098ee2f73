"""Work that takes long: progress as a thing that is passed in, and how many threads may share.

The floors below never print, they only tell. A function that takes long accepts ``progress=`` and calls it with what it does, how much is
done and how much there is. The command line passes a bar; a program may pass any callable; nobody needs to pass anything.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable, Iterator, Sized
from typing import Protocol, TypeVar

T = TypeVar("T")


class Progress(Protocol):
    """Called with a short description, the amount done and the total (None where it is not known)."""

    def __call__(self, task: str, done: float, total: float | None) -> None: ...


def silent(task: str, done: float, total: float | None) -> None:
    """The default: tell nobody."""


def tracked(items: Iterable[T], task: str, progress: Progress) -> Iterator[T]:
    """Yield the items, telling `progress` after each one is dealt with."""
    total = float(len(items)) if isinstance(items, Sized) else None
    done = 0
    progress(task, 0.0, total)
    for item in items:
        yield item
        done += 1
        progress(task, float(done), total)


THREADS_VARIABLE = "OMP_NUM_THREADS"


class Worker(threading.local):
    """Whether this thread works for an executor."""

    busy = False


this_thread = Worker()


def usable_threads(wanted: int | None = None) -> int:
    """How many threads may share in a piece of work: at most the processors that this process may use, OMP_NUM_THREADS and `wanted`.

    One in a worker: whoever shares out the work has given it a processor, not the machine.
    """
    if this_thread.busy:
        return 1
    affinity = getattr(os, "sched_getaffinity", None)
    most = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    allowed = re.match(r"\s*0*([1-9]\d*)", os.environ.get(THREADS_VARIABLE, ""))
    limits = [most, *([int(allowed[1])] if allowed else []), *([wanted] if wanted is not None else [])]
    return max(1, min(limits))
