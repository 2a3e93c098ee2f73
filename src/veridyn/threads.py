"""How many threads may share in a piece of work."""

from __future__ import annotations

import os
import re
import threading

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
