"""What follows a machine as samples come in: an observer, or an identification; and the clock of samples that it can use.

Stamps that go back or jump are named and not used. Where a sender begins again, every stamp is unusable: after `RESTART_AFTER` of them in
a row the tracker begins again as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Protocol

from veridyn.live.row import Array, Layout, Row
from veridyn.live.sample import Sample, Trouble

RESTART_AFTER = 50  # samples in a row with stamps that cannot be used
LONGEST_GAP_S = 30.0  # that a model goes on alone


@dataclass(frozen=True, eq=False)
class Tracked:
    """What came of a sample: a row and the pose (nq,) to draw, where there is a row, and sentences for the list of alarms."""

    row: Row | None = None
    pose: Array | None = None
    alarms: tuple[Trouble, ...] = ()


class LiveTracker(Protocol):
    """Follows a machine; not for two threads at once."""

    @property
    def layout(self) -> Layout: ...

    def take(self, sample: Sample) -> Tracked: ...

    def points(self, pose: Array) -> Array | None:
        """The machine (points, 3) at a pose that :meth:`take` gave."""
        ...

    def switch(self, sensor: str, on: bool) -> None:
        """Use the readings of a sensor, or leave them out."""
        ...

    def restart(self) -> None:
        """Begin again, as if no sample had come in."""
        ...


@dataclass
class StampCheck:
    """Refuses stamps that go back, where `ordered`, or jump; :attr:`restarts` once so many were refused that the sender began again."""

    longest: float = LONGEST_GAP_S
    ordered: bool = True
    newest: float = -inf
    refused: int = 0

    def __call__(self, t: float) -> Trouble | None:
        if self.newest == -inf or (self.newest <= t <= self.newest + self.longest):
            self.newest, self.refused = t, 0
            return None
        self.refused += 1
        if t < self.newest and not self.ordered and t > self.newest - self.longest:
            self.refused = 0
            return None
        if t < self.newest:
            text = f"a sample at {t:.6g} s came after one at {self.newest:.6g} s and is not used: samples out of order."
            return Trouble("out of order", text)
        text = f"a sample at {t:.6g} s is more than {self.longest:g} s after the last, at {self.newest:.6g} s, and is not used."
        return Trouble("clock jumps", text)

    @property
    def restarts(self) -> bool:
        return self.refused >= RESTART_AFTER

    def reset(self) -> None:
        self.newest, self.refused = -inf, 0


def refused_stamp(check: StampCheck, t: float, restart: Callable[[], None], then: str) -> Tracked | None:
    """What comes of a sample whose stamp cannot be used; None where it can. Where the sender began again, so does `restart`."""
    trouble = check(t)
    if trouble is None:
        return None
    if not check.restarts:
        return Tracked(alarms=(trouble,))
    restart()
    return Tracked(alarms=(trouble, Trouble("restart", f"the clock of the samples began again at {t:.6g} s{then}")))
