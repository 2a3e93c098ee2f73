"""``python -m benchmarks.new_memory``: what a regressor pays for memory that the system has not handed out before.

For each machine, µs of the processor a sample and page faults of one call:

    regressor, new memory      the array is allocated by the call and given back afterwards
    regressor, kept memory     the same into a `Buffer` that is used again
    pages touched, new         as much memory allocated as NumPy does it, one number written to each 4 kB: what the system takes to clear it
    pages touched, small       the same with pages of 4 kB (MADV_NOHUGEPAGE)
    pages touched, large       the same with pages of 2 MB where the system has them (MADV_HUGEPAGE)
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import mmap
import resource
import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from benchmarks.subjects import arm, car, motion
from veridyn.mechanics.tree.dynamics.engine import Buffer
from veridyn.mechanics.tree.dynamics.inverse import regressor

NUMBERS_A_PAGE = 512  # doubles of 4 kB
PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
BYTES = 100_000_000  # of one regressor, about


def spent(function: Callable[[], object], repeat: int = 9) -> tuple[float, int]:
    """Seconds of the processor and page faults of the best of some calls, after one that is not counted."""
    function()
    best = (float("inf"), 0)
    for _ in range(repeat):
        before, start = resource.getrusage(resource.RUSAGE_SELF).ru_minflt, time.process_time()
        function()
        seconds = time.process_time() - start
        best = min(best, (seconds, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before))
    return best


def touched(size: int) -> None:
    np.empty(size // 8)[::NUMBERS_A_PAGE] = 1.0


def mapped(size: int, advice: int) -> None:
    with mmap.mmap(-1, size, flags=PRIVATE) as memory:
        memory.madvise(advice)
        x = np.frombuffer(memory, dtype=np.float64)
        x[::NUMBERS_A_PAGE] = 1.0
        del x


def lines() -> Iterator[str]:
    yield "| machine | what | µs a sample | page faults | GB/s |"
    yield "|---|---|---:|---:|---:|"
    for machine in (arm(), car(20), car(38)):
        one = regressor(machine, motion(machine, 64), engine="compiled").nbytes // 64
        m, kept = motion(machine, BYTES // one), Buffer()
        size = one * len(m)
        measured = {
            "regressor, new memory": partial(regressor, machine, m, engine="compiled"),
            "regressor, kept memory": partial(regressor, machine, m, engine="compiled", out=kept),
            "pages touched, new": partial(touched, size),
            "pages touched, small": partial(mapped, size, mmap.MADV_NOHUGEPAGE),
            "pages touched, large": partial(mapped, size, mmap.MADV_HUGEPAGE),
        }
        for what, function in measured.items():
            seconds, faults = spent(function)
            yield f"| {machine.name} | {what} | {1e6 * seconds / len(m):.2f} | {faults:,} | {1e-9 * size / seconds:.1f} |"


if __name__ == "__main__":
    for line in lines():
        print(line, flush=True)
    print(f"load {os.getloadavg()[0]:.1f}")
