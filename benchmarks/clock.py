"""Measuring: the best of several runs, wall and processor time, and how far the runs lay apart."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Time:
    """Seconds of the best run, by the wall and by the processor, and the spread of the runs in percent of the best."""

    wall: float
    cpu: float
    spread: float


def best_of(function: Callable[[], object], repeat: int = 5, at_least: float = 0.02) -> Time:
    """The best of `repeat` runs, each long enough (calls repeated) to be told from the clock's own grain."""
    function()
    calls = 1
    while True:
        start = time.perf_counter()
        for _ in range(calls):
            function()
        if time.perf_counter() - start >= at_least:
            break
        calls *= 2
    walls, cpus = [], []
    for _ in range(repeat):
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(calls):
            function()
        walls.append((time.perf_counter() - wall) / calls)
        cpus.append((time.process_time() - cpu) / calls)
    return Time(min(walls), min(cpus), 100.0 * (sorted(walls)[len(walls) // 2] / min(walls) - 1.0))
