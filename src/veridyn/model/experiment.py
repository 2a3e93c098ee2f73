"""Measurements as they were recorded: named channels, each with its unit and its own clock.

An :class:`Experiment` from a simulator and one from a log file are the same type.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from veridyn.argument_words import found_in
from veridyn.arguments import as_array, checked_record
from veridyn.arrays import Array
from veridyn.errors import DataError, Fault, Faults, did_you_mean, part_at, shortened, within

LISTED = 4  # names of one unit that the line about a log shows


def sampled(channels: Collection[Channel]) -> str:
    """How channels are sampled: "4001 samples at 200 Hz, 20 s from 0 s", from the least to the most where they differ."""
    counts, rates = sorted({len(c) for c in channels}), sorted({float(f"{c.rate:.4g}") for c in channels if len(c) > 1})
    text = f"{' to '.join(f'{n}' for n in dict.fromkeys((counts[0], counts[-1])))} samples"
    if rates:
        text += f" at {' to '.join(f'{r:g}' for r in dict.fromkeys((rates[0], rates[-1])))} Hz"
    recorded = [c.t for c in channels if len(c)]
    if not recorded:
        return text
    start, end = min(float(t[0]) for t in recorded), max(float(t[-1]) for t in recorded)
    return f"{text}, {end - start:.6g} s from {start:.6g} s"


@checked_record(arrays=False)
@dataclass(frozen=True, eq=False, repr=False)
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
        where = part_at("channel", f"{self.name}")
        object.__setattr__(self, "t", as_array(self.t, within(where, "t")))
        object.__setattr__(self, "values", as_array(self.values, within(where, "values")))
        faults = Faults()
        if self.t.ndim != 1 or self.values.shape != self.t.shape:
            faults.add(
                "times and values do not belong together.",
                where=where,
                expected="two arrays of one length (N,)",
                found=f"t {self.t.shape} and values {self.values.shape}",
            )
        if not isinstance(self.unit, str) or not self.unit.strip():
            faults.add(
                "it has no unit.",
                where=where,
                expected="a unit such as 'rad', 'm/s^2', 'N', or '1' for a pure number",
                hint="A number without a unit cannot be checked; name it where the log is loaded.",
            )
        faults.raise_if_any(DataError)

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        return f"Channel('{self.name}' [{self.unit}], {sampled([self])})"

    @property
    def rate(self) -> float:
        """Samples per second: the inverse of the median step (NaN for fewer than two samples)."""
        return float(1.0 / np.median(np.diff(self.t))) if len(self.t) > 1 else float("nan")


@checked_record(arrays=False, own=("channels",))
@dataclass(frozen=True, eq=False, repr=False)
class Experiment:
    """Channels by name. `name` says where they come from and stands in every message about them.

    Examples
    --------
    >>> import numpy as np
    >>> import veridyn as vd
    >>> log = vd.Experiment.from_arrays(0.01 * np.arange(3), {"q.hinge": [0.0, 0.1, 0.2]}, {"q.hinge": "rad"}, name="run 1")
    >>> log.names, log["q.hinge"].unit
    (('q.hinge',), 'rad')
    """

    channels: Mapping[str, Channel]
    name: str = "experiment"
    notes: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given = self.channels
        others = [c for c in given.values() if not isinstance(c, Channel)] if isinstance(given, Mapping) else [given]
        if others:
            hint = "Experiment.from_arrays(t, values, units) makes channels of arrays, and veridyn.load_log reads them."
            fault = Fault(
                "these are no channels.", self.name, "a mapping of names to Channel", found_in(others[0]), hint
            )
            raise DataError(fault)
        wrong = [key for key, channel in self.channels.items() if key != channel.name]
        if wrong:
            raise DataError("the key and the name of a channel differ.", where=self.name, found=", ".join(wrong))

    @classmethod
    def from_arrays(
        cls, t: ArrayLike, values: Mapping[str, ArrayLike], units: Mapping[str, str], name: str = "experiment"
    ) -> Experiment:
        """Channels that share one clock, each with its unit from `units`."""
        clock = as_array(t, f"{name}, t")
        for given, what in ((values, "values"), (units, "units")):
            if not isinstance(given, Mapping):
                expected = "a mapping of names to " + (
                    "arrays" if what == "values" else "units, such as {'q.hinge': 'rad'}"
                )
                raise DataError(f"`{what}` has no names.", where=name, expected=expected, found=found_in(given))
        return cls(
            {
                key: Channel(key, clock, as_array(v, part_at("channel", key)), units.get(key, ""))
                for key, v in values.items()
            },
            name,
        )

    def __repr__(self) -> str:
        """A line: where it comes from, how many channels and samples, the rate, the time it covers, and the channels by their unit."""
        by_unit: dict[str, list[str]] = {}
        for name, channel in self.channels.items():
            by_unit.setdefault(channel.unit, []).append(name)
        listed = "; ".join(f"{shortened(names, LISTED)} [{unit}]" for unit, names in by_unit.items())
        count = f"{len(self.channels)} channel{'' if len(self.channels) == 1 else 's'}"
        return f"Experiment('{self.name}', {count}{f', {sampled(self.channels.values())}: {listed}' if listed else ''})"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.channels)

    def __getitem__(self, name: str) -> Channel:
        if name not in self.channels:
            raise DataError(f"there is no channel '{name}'.", where=self.name, hint=did_you_mean(name, self.names))
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
            raise DataError("it has no samples, so it spans no time.", where=self.name)
        return (
            max(float(c.t[0]) for c in self.channels.values()),
            min(float(c.t[-1]) for c in self.channels.values()),
        )

    def replacing(self, *channels: Channel) -> Experiment:
        """A copy in which these channels stand for, or beside, those of the same name."""
        return replace(self, channels={**self.channels, **{c.name: c for c in channels}})
