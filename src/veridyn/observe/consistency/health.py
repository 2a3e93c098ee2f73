"""What became of each sensor over a run, in words, and sensors that freeze or fall silent, while the program runs.

A reading that is not used leaves the filter to its model, and its band grows until the sensor is back. A gate judges every reading by
itself: a sensor that jumped is let in again as soon as it agrees with what the filter knows, or the filter knows so little that it agrees.

Which outputs have not been heard for longer than is usual of them, as machine code: it is asked at every step of an observer.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import DataError
from veridyn.mechanics.compiled import kept
from veridyn.observe.measurements import MISSING, Codes, Status
from veridyn.observe.result import Estimates

SILENT_AFTER_PAUSES = 3.0  # times its longest pause so far, after which an output counts as silent


@kept
def listen(t: float, flags: Codes, clocks: Array, silent: NDArray[np.bool_]) -> bool:
    """Take note of the outputs that are heard at the time t; whether some is silent, and which.

    `clocks` (3, m): when each was last heard, its longest pause, and how often it was heard; three times make its clock known.
    """
    some = False
    for j in range(len(flags)):
        heard, often = flags[j] != MISSING, clocks[2, j]
        gap = t - clocks[0, j] if often > 0.0 else 0.0
        overdue = often > 2.0 and gap > SILENT_AFTER_PAUSES * clocks[1, j]
        silent[j] = overdue and not heard
        some |= silent[j]
        if heard:
            if not overdue:
                clocks[1, j] = max(clocks[1, j], gap)
            clocks[0, j] = t
            clocks[2, j] += 1.0
    return some


WORDS = {
    Status.NOT_FINITE: "sends no numbers",
    Status.FROZEN: "repeats itself",
    Status.OUTLIER: "disagrees with all else",
    Status.LATE: "comes too late",
    Status.MISSING: "is silent",
}


@dataclass(frozen=True)
class Episode:
    """A stretch in which readings of one output were not used, and why; `until` is the last of them."""

    output: str
    status: Status
    since: float
    until: float
    count: int

    def __str__(self) -> str:
        span = f"from {self.since:.6g} s to {self.until:.6g} s" if self.count > 1 else f"at {self.since:.6g} s"
        return f"'{self.output}' {WORDS[self.status]} {span} ({self.count} readings not used)"


def episodes(estimates: Estimates, least: int = 3) -> tuple[Episode, ...]:
    """Every stretch of at least `least` readings in a row that failed; pauses of a slower clock and withheld readings do not count."""
    found = []
    for j, name in enumerate(estimates.outputs):
        codes = estimates.status[:, j]
        heard = np.flatnonzero(codes != Status.MISSING)
        expected = np.arange(len(codes)) if len(heard) == 0 else _on_clock(estimates.t, heard)
        flags = codes[expected]
        edges = np.flatnonzero(np.diff(flags, prepend=-1, append=-1))
        for a, b in itertools.pairwise(edges):
            status = Status(int(flags[a]))
            if status not in (Status.USED, Status.WITHHELD) and b - a >= least:
                rows = expected[a:b]
                found.append(
                    Episode(name, status, float(estimates.t[rows[0]]), float(estimates.t[rows[-1]]), len(rows))
                )
    return tuple(sorted(found, key=lambda e: e.since))


def _on_clock(t: Array, heard: NDArray[np.intp]) -> NDArray[np.intp]:
    """The stamps at which an output was heard, and those of its own clock at which it should have been."""
    if len(heard) < 2 or len(heard) == len(t):
        return np.arange(len(t))
    pause = float(np.median(np.diff(t[heard])))
    kept, there = [int(heard[0])], set(heard.tolist())
    for k in range(int(heard[0]) + 1, len(t)):
        if k in there or t[k] - t[kept[-1]] >= 0.999 * pause:
            kept.append(k)
    return np.array(kept, dtype=np.intp)


class Repeats:
    """Counts, reading by reading, how often each output has sent the same number in a row."""

    def __init__(self, outputs: int, most: int | None) -> None:
        if most is not None and most < 1:
            raise DataError(
                "the number of repeats is not usable.", where="frozen_after", expected="1 or more", found=f"{most}"
            )
        self.most = most
        self._last: Array = np.full(outputs, np.nan)
        self._same: NDArray[np.int64] = np.zeros(outputs, dtype=np.int64)

    def flags(self, values: Array, flags: Codes) -> Codes:
        """The flags, with FROZEN where an output has repeated itself more often than `frozen_after` allows."""
        if self.most is None:
            return flags
        heard = flags == Status.USED
        self._same = np.where(heard, np.where(values == self._last, self._same + 1, 0), self._same)
        self._last = np.where(heard, values, self._last)
        return np.where(heard & (self._same >= self.most), Status.FROZEN, flags).astype(np.int8)


class Silence:
    """Notices an output that has not been heard for three times its longest pause so far; three readings make its clock known.

    `silent` (m,): which outputs are silent now.
    """

    def __init__(self, outputs: int) -> None:
        self.silent: NDArray[np.bool_] = np.zeros(outputs, dtype=np.bool_)
        self._clocks = np.zeros((3, outputs))  # when each was last heard, its longest pause, and how often it was heard

    def since(self, t: float, flags: Codes) -> bool:
        """Take note of the outputs that are heard at the time t; whether some is silent."""
        return listen(float(t), flags, self._clocks, self.silent)
