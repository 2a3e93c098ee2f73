"""One set of readings on its way to a tracker, and where it may come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from threading import Event
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


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
