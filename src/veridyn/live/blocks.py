"""Samples of positions and forces, collected until a block of equations can be made of them.

Filters and derivatives reach `reach` samples to either side, so a block is made once that many samples came after it. Blocks lie end to
end: each sample enters one block, but for those at the two ends of a recording.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from veridyn.identify.logged import motion
from veridyn.live.sample import Sample
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.signals.motion import Signals

SPARE = 64  # samples beyond the margin of the filters, for interpolation and derivatives
GAP = 20.0  # times the step of the samples, after which they belong to another recording


@dataclass
class BlockBuilder:
    """`size`: samples of a block; `margin`: samples that it carries besides on either side, which its equations leave out again.

    `units`: channel → its unit. Not for two threads at once.
    """

    machine: Machine
    signals: Signals
    size: int
    margin: int
    units: Mapping[str, str]
    _t: list[float] = field(default_factory=list)
    _rows: list[Mapping[str, float]] = field(default_factory=list)

    @property
    def reach(self) -> int:
        return self.margin + SPARE

    @property
    def step(self) -> float:
        return 1.0 / float(self.signals.rate or 1.0)

    def add(self, sample: Sample) -> Motion | None:
        """The motion of the next block, margins included, once it is complete; a DataError where its channels cannot be used.

        After a gap of the samples, what came before it is dropped.
        """
        if self._t and sample.t - self._t[-1] > GAP * self.step:
            self.clear()
        self._t.append(sample.t)
        self._rows.append({n: v for n, v in sample.values.items() if n in self.units})
        if len(self._t) < self.size + 2 * self.reach:
            return None
        start, end = self._t[self.reach], self._t[self.reach + self.size - 1] + self.step
        try:
            whole = motion(self.machine, self._log(), self.signals)
        finally:
            del self._t[: self.size], self._rows[: self.size]
        low, high = (int(np.searchsorted(whole.t, at - 0.5 * self.step)) for at in (start, end))
        low, high = max(low, self.margin), min(high, len(whole) - self.margin)
        return whole[low - self.margin : high + self.margin] if high > low else None

    def clear(self) -> None:
        """Forget the samples that are not part of a block yet."""
        self._t.clear()
        self._rows.clear()

    def _log(self) -> Experiment:
        t, channels = np.array(self._t), {}
        for name, unit in self.units.items():
            values = np.array([row.get(name, np.nan) for row in self._rows])
            there = np.isfinite(values)
            channels[name] = Channel(name, t[there], values[there], unit)
        return Experiment(channels, "samples that came in")
