"""What follows a machine as samples come in: an observer, or an identification; and the clock of samples that it can use.

Stamps that go back or jump are named and not used. Where a sender begins again, every stamp is unusable: after `RESTART_AFTER` of them in
a row the tracker begins again as well.
A live page is sent a layout once, a row for each sample, and the newest picture of the machine.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from threading import Event
from typing import Any, Protocol

import numpy as np

from veridyn.arrays import Array

RESTART_AFTER = 50  # samples in a row with stamps that cannot be used
LONGEST_GAP_S = 30.0  # that a model goes on alone


@dataclass(frozen=True, eq=False)
class Sample:
    """Readings in SI stamped `t` (s), by channel, NaN for one that failed; `inputs`: what acts, by channel, from now on.

    `sigma`: deviations of single readings, where they are not the sensor's own; `arrived`: seconds since 1970.
    """

    t: float
    values: Mapping[str, float]
    arrived: float
    inputs: Mapping[str, float] = field(default_factory=dict)
    sigma: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Trouble:
    """What came in and is no sample, in words; troubles of one `key` are counted together."""

    key: str
    text: str


@dataclass(frozen=True)
class Again:
    """The log is replayed from its beginning."""


Item = Sample | Trouble | Again


class SampleSource(Protocol):
    """Where samples come from, until `stop` is set or there are no more."""

    @property
    def words(self) -> str:
        """What it is, for the page."""
        ...

    def samples(self, stop: Event) -> Iterator[Item]: ...


@dataclass(frozen=True)
class Shown:
    """A quantity with a band: its name, unit, and the group of plots it stands in ("states", "virtual sensors", "parameters")."""

    name: str
    unit: str
    group: str


@dataclass(frozen=True)
class Layout:
    """What does not change while a page runs.

    `quantities`: those of a row's `values`; `outputs`: those of its innovations, by name, with their units; `sensors`: what can be switched
    off, name → its outputs; `segments`: pairs of point numbers of the machine; `up`: the axis that points upwards; `trail`: the point that
    leaves a line behind, or None; `notes`: sentences about what is shown.
    """

    title: str
    kind: str
    quantities: tuple[Shown, ...]
    outputs: tuple[tuple[str, str], ...] = ()
    sensors: Mapping[str, tuple[str, ...]] | None = None
    segments: tuple[tuple[int, int], ...] = ()
    up: str = "z"
    follow: bool = False
    trail: int | None = None
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "kind": self.kind,
            "quantities": [[q.name, q.unit, q.group] for q in self.quantities],
            "outputs": [list(o) for o in self.outputs],
            "sensors": {name: list(outputs) for name, outputs in (self.sensors or {}).items()},
            "segments": [list(s) for s in self.segments],
            "up": self.up,
            "follow": self.follow,
            "trail": self.trail,
            "notes": list(self.notes),
        }


@dataclass(frozen=True, eq=False)
class Row:
    """Estimates after a sample stamped `t` (s): `values` and `sigma` (k,) in the order of the layout's quantities.

    `innovations` and `expected` (m,): reading minus prediction and the standard deviation of that, NaN where there was no reading; `status`
    (m,): what became of each reading, as :class:`~veridyn.observe.measurements.Status`; `nis`: normalised innovations squared per reading
    used, NaN without any; `arrived`: when the sample came in, seconds since 1970.
    """

    t: float
    values: Sequence[float] | Array
    sigma: Sequence[float] | Array
    arrived: float
    innovations: Sequence[float] | Array = ()
    expected: Sequence[float] | Array = ()
    status: Sequence[int] = ()
    nis: float = float("nan")

    def text(self, number: int) -> str:
        """The row as JSON with its number; numbers that are not finite become null, all others keep every digit."""
        parts = [
            number,
            self.t,
            1000.0 * self.arrived,
            *(numbers(x) for x in (self.values, self.sigma, self.innovations, self.expected)),
            [int(s) for s in self.status],
            numbers([self.nis])[0],
        ]
        return json.dumps(parts, separators=(",", ":"), allow_nan=False)


def numbers(values: Sequence[float] | Array) -> list[float | None]:
    """Plain numbers, None where one is not finite."""
    plain = values.tolist() if isinstance(values, np.ndarray) else values
    return [float(v) if isfinite(v) else None for v in plain]


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
