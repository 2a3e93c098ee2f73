"""Many runs of one random experiment, shared out: each has a generator of its own, so who runs it and when changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from typing import TypeVar

import numpy as np

from veridyn.identify.regression.workers import map_in_order
from veridyn.progress import Progress, silent

T = TypeVar("T")


def repeated(
    run: Callable[[np.random.Generator], T],
    runs: int,
    rng: np.random.Generator,
    *,
    executor: Executor | None = None,
    only: Sequence[int] | None = None,
    progress: Progress = silent,
    task: str = "runs",
) -> Iterator[T]:
    """run(generator) of so many generators, which `rng` spawns, in order; one after the other without an `executor`.

    `only`: the numbers of the runs that are made; generators of the others stay unused.

    For processes and clusters `run` must be a function of a module, or a ``functools.partial`` of one.
    """
    generators = rng.spawn(runs)
    generators = generators if only is None else [generators[k] for k in only]
    found = map_in_order(executor, run, generators)
    progress(task, 0.0, float(len(generators)))
    for done, one in enumerate(found, start=1):
        yield one
        progress(task, float(done), float(len(generators)))
