"""A log replayed: its samples at the pace of the machine, faster, slower, or as fast as they are taken."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from threading import Event

import numpy as np

from veridyn.live.tracker import Again, Item, Sample
from veridyn.model.experiment import Experiment
from veridyn.observe.machine import MachineSystem
from veridyn.observe.measurements import OWN_DEVIATION, SAME_STAMP_S
from veridyn.observe.readings import muted

AWAKE_S = 0.05  # between looks at whether a pause is over


@dataclass
class Pace:
    """How fast a replay goes: seconds of the log in one second, infinite for as fast as it can; and whether it rests."""

    rate: float = 1.0
    paused: bool = False


@dataclass(frozen=True, eq=False)
class Replay:
    """Samples of a log by their stamps, once or, with `repeat`, again and again until everything is to stop."""

    name: str
    log: Sequence[Sample]
    pace: Pace = field(default_factory=Pace)
    repeat: bool = False
    clock: Callable[[], float] = time.monotonic
    today: Callable[[], float] = time.time

    @property
    def words(self) -> str:
        return f"replay of {self.name}"

    def samples(self, stop: Event) -> Iterator[Item]:
        """Each sample when its time has come; `arrived` is that time, also where the observer is late for it."""
        yield from self._once(stop)
        while self.repeat and self.log and not stop.is_set():
            yield Again()
            yield from self._once(stop)

    def _once(self, stop: Event) -> Iterator[Item]:
        if not self.log:
            return
        at, since, rate = self.log[0].t, self.clock(), self.pace.rate
        for sample in self.log:
            while self.pace.paused or rate != self.pace.rate:
                if self.pace.paused and stop.wait(AWAKE_S):
                    return
                at, since, rate = sample.t, self.clock(), self.pace.rate
            left = 0.0
            if np.isfinite(rate):
                left = since + (sample.t - at) / rate - self.clock()
                if left > 0.0 and stop.wait(left):
                    return
            if stop.is_set():
                return
            yield Sample(sample.t, sample.values, self.today() + min(left, 0.0), sample.inputs, sample.sigma)


def log_samples(system: MachineSystem, log: Experiment) -> list[Sample]:
    """The readings of a log as they came in, one sample for each stamp, with what acts wherever that changes.

    Readings that the log says were not available are left out, and a reading that is not finite stays.
    """
    events: list[tuple[float, int, str, float, float]] = []  # stamp, kind, name, value, deviation
    for name, k in zip(system.table.names, system.table.owner, strict=True):
        channel, gone = log[name], muted(log, name, system.table.sensors[k].name)
        own = log[f"{name}{OWN_DEVIATION}"].values if f"{name}{OWN_DEVIATION}" in log else np.full(len(channel), np.nan)
        kept = ~gone
        rows = zip(channel.t[kept].tolist(), channel.values[kept].tolist(), own[kept].tolist(), strict=True)
        events += [(t, 1, name, value, sigma) for t, value, sigma in rows]
    for name in system.inputs:
        channel = log[name]
        new = np.concatenate([[True], channel.values[1:] != channel.values[:-1]])
        if name.startswith(("q.", "qd.", "qdd.")):
            new[:] = True  # a prescribed coordinate goes on from its last sample
        events += [(t, 0, name, v, np.nan) for t, v in zip(channel.t[new].tolist(), channel.values[new].tolist())]
    events.sort(key=lambda e: e[:2])
    found: list[Sample] = []
    acting: dict[str, float] = {}
    k = 0
    while k < len(events):
        t, values, sigma, changed = events[k][0], dict[str, float](), dict[str, float](), False
        while k < len(events) and events[k][0] <= t + SAME_STAMP_S:
            _, kind, name, value, own = events[k]
            if kind == 0:
                acting[name], changed = value, True
            else:
                values[name] = value
                if np.isfinite(own):
                    sigma[name] = own
            k += 1
        found.append(Sample(t, values, 0.0, dict(acting) if changed else {}, sigma))
    return found
