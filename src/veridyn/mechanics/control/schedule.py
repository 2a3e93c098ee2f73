"""When sampled controllers read and act: all instants of a run, in order, with what happens at each.

A controller ticks at start + m/rate, its current loop current_ticks times as often, and it reads its measurement_delay before each tick of
its law. Instants closer than rounding are one; at each, measurements are read before laws act.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics.system.simulation import SAME_INSTANT_S
from veridyn.model.controller import Controller

Numbers = NDArray[np.int64]
READ, LAW, CURRENT = range(
    3
)  # a measurement is taken; a law ticks, and its current loop with it; a current loop ticks alone


@dataclass(frozen=True, eq=False)
class Schedule:
    """Events first[k] … first[k + 1] happen at time[k]: `what` to which `controller`, for the tick `number` of its law."""

    time: Array
    first: Numbers
    what: Numbers
    controller: Numbers
    number: Numbers


def schedule(controllers: Sequence[Controller], start: float, end: float) -> Schedule:
    """All instants from start to end; a tick whose measurement is older than the start has no READ, and reads the start."""
    parts: list[tuple[Array, Numbers, Numbers, Numbers]] = []
    for j, c in enumerate(controllers):
        each = c.current_ticks
        m = np.arange(math.floor((end - start) * c.rate * each + 1e-9) + 1)
        time, law = start + m / (c.rate * each), m % each == 0
        parts.append((time, np.where(law, LAW, CURRENT), np.full(len(m), j), m // each))
        read = time[law] - c.constant("measurement_delay")
        after = read > start + SAME_INSTANT_S
        count = int(after.sum())
        parts.append((read[after], np.full(count, READ), np.full(count, j), m[law][after] // each))
    time, what, controller, number = (np.concatenate(x) for x in zip(*parts, strict=True))
    order = np.argsort(time, kind="stable")
    begins = np.diff(time[order], prepend=-math.inf) > SAME_INSTANT_S
    instant = np.empty(len(order), dtype=np.int64)
    instant[order] = np.cumsum(begins) - 1
    place = np.lexsort((controller, what != READ, instant))
    first = np.searchsorted(instant[place], np.arange(int(begins.sum()) + 1))
    return Schedule(np.minimum(time[order][begins], end), first, what[place], controller[place], number[place])
