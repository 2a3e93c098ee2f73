"""Measurements as they were recorded: named channels, each with its unit and its own clock.

An :class:`Experiment` from a simulator and one from a log file are the same type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.errors import DataError, Fault, Faults, did_you_mean, part_at

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Channel:
    """One measured quantity: `values` at the times `t`, both of shape (N,), in `unit` ("1" where it has none).

    Construction checks shapes and the unit only. What a clock or a sensor did wrong (gaps, jumps back, NaN, clipping)
    is a finding of :func:`veridyn.signals.quality.inspect`, because a user must be able to hold a bad log to mend it.
    """

    name: str
    t: Array
    values: Array
    unit: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "t", np.asarray(self.t, dtype=np.float64))
        object.__setattr__(self, "values", np.asarray(self.values, dtype=np.float64))
        faults = Faults()
        where = part_at("channel", self.name)
        if self.t.ndim != 1 or self.values.shape != self.t.shape:
            faults.add(
                "times and values do not belong together.",
                where=where,
                expected="two arrays of one length (N,)",
                found=f"t {self.t.shape} and values {self.values.shape}",
            )
        if not self.unit.strip():
            faults.add(
                "it has no unit.",
                where=where,
                expected="a unit such as 'rad', 'm/s^2', 'N', or '1' for a pure number",
                hint="A number without a unit cannot be checked; name it where the log is loaded.",
            )
        faults.raise_if_any(DataError)

    def __len__(self) -> int:
        return len(self.t)

    @property
    def rate(self) -> float:
        """Samples per second: the inverse of the median step (NaN for fewer than two samples)."""
        return float(1.0 / np.median(np.diff(self.t))) if len(self.t) > 1 else float("nan")


@dataclass(frozen=True, eq=False)
class Experiment:
    """Channels by name. `name` says where they come from and stands in every message about them."""

    channels: Mapping[str, Channel]
    name: str = "experiment"
    notes: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        wrong = [key for key, channel in self.channels.items() if key != channel.name]
        if wrong:
            raise DataError(Fault("the key and the name of a channel differ.", where=self.name, found=", ".join(wrong)))

    @classmethod
    def from_arrays(
        cls, t: ArrayLike, values: Mapping[str, ArrayLike], units: Mapping[str, str], name: str = "experiment"
    ) -> Experiment:
        """Channels that share one clock, each with its unit from `units`."""
        clock = np.asarray(t, dtype=np.float64)
        return cls(
            {
                key: Channel(key, clock, np.asarray(v, dtype=np.float64), units.get(key, ""))
                for key, v in values.items()
            },
            name,
        )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.channels)

    def __getitem__(self, name: str) -> Channel:
        if name not in self.channels:
            raise DataError(
                Fault(f"there is no channel '{name}'.", where=self.name, hint=did_you_mean(name, self.names))
            )
        return self.channels[name]

    def __contains__(self, name: object) -> bool:
        return name in self.channels

    def __iter__(self) -> Iterator[str]:
        return iter(self.channels)

    def __len__(self) -> int:
        return len(self.channels)

    @property
    def span(self) -> tuple[float, float]:
        """The times during which every channel is recorded: last start and first end."""
        if not self.channels or any(len(c) == 0 for c in self.channels.values()):
            raise DataError(Fault("it has no samples, so it spans no time.", where=self.name))
        return (
            max(float(c.t[0]) for c in self.channels.values()),
            min(float(c.t[-1]) for c in self.channels.values()),
        )

    def replacing(self, *channels: Channel) -> Experiment:
        """A copy in which these channels stand for, or beside, those of the same name."""
        return replace(self, channels={**self.channels, **{c.name: c for c in channels}})
