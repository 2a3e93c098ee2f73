"""Motions of a log that does not fit the memory: made window by window as an estimator passes over them, and never kept.

Each motion holds its own samples and `margin` samples before and after them, which ``Sampling.trim`` leaves out again: there the
filters of positions and of equations start up. So equations are those of the whole log, but for `margin` samples at its two ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import overload

import numpy as np

from veridyn.errors import DataError
from veridyn.files.log.blocks import LogFile, Window
from veridyn.identify.logged import motion
from veridyn.identify.regression.sampling import Sampling
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.signals.butterworth import overlap
from veridyn.signals.motion import Signals

SPARE = 64  # rows beyond the margin, for interpolation and derivatives


class _Passing(Sequence[Motion]):
    """Motions that are made as one passes over them: one of them is found by counting."""

    @overload
    def __getitem__(self, k: int) -> Motion: ...
    @overload
    def __getitem__(self, k: slice) -> Sequence[Motion]: ...
    def __getitem__(self, k: int | slice) -> Motion | Sequence[Motion]:
        if isinstance(k, slice):
            return list(islice(iter(self), *k.indices(len(self))))
        for found in islice(iter(self), k, None):
            return found
        raise IndexError(k)


@dataclass(frozen=True, eq=False)
class Streamed(_Passing):
    """The motions of rows `first` to `last` of a file, one for each window of `size` rows."""

    machine: Machine
    file: LogFile
    signals: Signals
    margin: int
    size: int
    first: int
    last: int
    mend: Callable[[dict[str, Channel]], dict[str, Channel]]

    def __len__(self) -> int:
        return max(1, -(-(self.last - self.first) // self.size))

    @property
    def samples(self) -> int:
        """About how many samples there are, margins included."""
        return self.last - self.first + 2 * self.margin * len(self)

    def __iter__(self) -> Iterator[Motion]:
        reach = self.margin + SPARE
        for window in self.file.windows(self.size, 2 * reach, self.first, self.last):
            made = self._motion(window)
            if made is not None:
                yield made

    def _motion(self, window: Window) -> Motion | None:
        """The samples of a window with as much before and after as is left out again; None where it is all margin."""
        log = Experiment(self.mend(dict(window.log.channels)), window.log.name)
        whole = motion(self.machine, log, self.signals)
        lo, hi = (int(np.searchsorted(whole.t, at - 1e-9)) for at in (window.start, window.end))
        lo, hi = max(lo, self.margin), min(hi, len(whole) - self.margin)
        return whole[lo - self.margin : hi + self.margin] if hi > lo else None


@dataclass(frozen=True, eq=False)
class Chained(_Passing):
    """Motions of several sources, one after the other."""

    parts: tuple[Streamed, ...]

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts)

    def __iter__(self) -> Iterator[Motion]:
        for part in self.parts:
            yield from part

    @property
    def samples(self) -> int:
        return sum(part.samples for part in self.parts)


def margin_of(signals: Signals, sampling: Sampling, rate: float) -> int:
    """Samples on either side of a window that its filters reach for, a multiple of the decimation."""
    reach = overlap(signals.filter, rate) if signals.filter is not None else 0
    reach += sampling.margin(rate) if sampling.filtering else 0
    step = sampling.decimate
    return -(-(reach + 16) // step) * step


def with_margin(sampling: Sampling, margin: int) -> Sampling:
    """The sampling that leaves the margins out."""
    if sampling.drop:
        raise DataError("spans cannot be dropped from a log that is read in blocks.", where="drop")
    return replace(sampling, trim=margin)
