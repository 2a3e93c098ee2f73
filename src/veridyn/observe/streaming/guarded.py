"""A stream that follows drifting parameters as far as the readings determine them.

All of them begin frozen: no reading corrects them, and their uncertainty enters the bands. A second stream estimates them from the same
readings. What it has determined (:class:`~veridyn.observe.drifting.DriftingStates`) is released, and the second stream ends with the last
of them: from then on a step costs what it costs without a guard.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.observe.drifting import DriftingStates
from veridyn.observe.filters.filter import Filter
from veridyn.observe.measurements import Codes
from veridyn.observe.result import Belief
from veridyn.observe.streaming.stream import Stream, StreamStep
from veridyn.observe.system import System


class GuardedStream(Stream):
    """A :class:`Stream` of a system with drifting parameters; `make` gives the system with some of them frozen, the states in one order.

    `frozen`: those that no reading corrects now.
    """

    def __init__(
        self,
        settings: Filter,
        make: Callable[[tuple[str, ...]], System],
        drifting: DriftingStates,
        start: Belief,
    ) -> None:
        super().__init__(settings, make(drifting.names), start)
        self._make, self._drifting = make, drifting
        self._free: Stream | None = Stream(settings, make(()), start)
        self._first = np.nan
        self.frozen = drifting.names

    def begun(self, start: Belief) -> GuardedStream:
        return GuardedStream(self.settings, self._make, self._drifting, start)

    def act(self, inputs: ArrayLike) -> None:
        super().act(inputs)
        if self._free is not None:
            self._free.act(inputs)

    def take(
        self, t: float, readings: Array, codes: Codes, inputs: ArrayLike | None, sigma: Array | None = None
    ) -> StreamStep:
        if self._free is not None:
            self._release(t, self._free.take(t, readings, codes, inputs, sigma).belief.P)
        return super().take(t, readings, codes, inputs, sigma)

    def _release(self, t: float, P: Array) -> None:
        """Let readings correct what the second stream has determined by now."""
        self._first = t if np.isnan(self._first) else self._first
        known = self._drifting.determined(P[None], np.array([max(t - self._first, 0.0)]))
        left = tuple(name for name in self.frozen if name not in known)
        if len(left) < len(self.frozen):
            self.frozen = left
            self.go_on(self._make(left))
            if not left:
                self._free = None


def guarded_stream(
    settings: Filter, make: Callable[[tuple[str, ...]], System], drifting: DriftingStates | None, start: Belief
) -> Stream:
    """A stream with a guard where parameters drift, and without one where none do."""
    if drifting is None:
        return Stream(settings, make(()), start)
    return GuardedStream(settings, make, drifting, start)
