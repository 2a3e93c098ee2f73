"""Readings of sensors, ready for a filter: one row per time stamp, one column per output, and a word on every reading.

A reading that is not usable stays in the table and says why (:class:`Status`); a filter never guesses in its place.
Sensors on clocks of their own share the union of their stamps, so that nothing is resampled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.arrays import Array
from veridyn.errors import DataError, Fault, Faults, did_you_mean
from veridyn.model.experiment import Experiment

Codes = NDArray[np.int8]
OWN_DEVIATION = ".sigma"  # ending of a channel that holds the deviation of each reading
SAME_STAMP_S = 1e-9  # s: stamps of two channels that are closer are one, rounding is not a step


class Status(IntEnum):
    """What became of one reading."""

    USED = 0
    MISSING = 1  # no reading, or switched off by the caller
    NOT_FINITE = 2  # NaN or infinite
    FROZEN = 3  # the sensor repeats itself, see `frozen`
    OUTLIER = 4  # refused by the gate
    LATE = 5  # came after the filter had passed its time
    WITHHELD = 6  # compared with its prediction, and not used: the caller keeps it to judge by


# As plain numbers: a member of an enumeration is looked up slowly, and a stream asks for these at every reading.
USED, MISSING, NOT_FINITE = int(Status.USED), int(Status.MISSING), int(Status.NOT_FINITE)
STATUSES = tuple(Status)  # by number


@dataclass(frozen=True, eq=False)
class Measurements:
    """N rows of m readings: stamps `t` (N,) in increasing order, `values` (N, m), output `names`.

    `flags` (N, m): a :class:`Status`, or booleans that say "available". Values that are not finite are flagged NOT_FINITE.
    `inputs` (N, p): what drives the machine, held from one stamp to the next. `arrival` (N, m): when each reading reached
    the caller, on the caller's clock; without it every reading is on time. `sigma` (N, m): the standard deviation of each reading's own
    noise, NaN where it is the sensor's; without it all are the sensors'.
    """

    t: Array
    values: Array
    names: tuple[str, ...]
    flags: Codes = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int8))
    inputs: Array = field(default_factory=lambda: np.zeros((0, 0)))
    arrival: Array | None = None
    sigma: Array | None = None

    def __post_init__(self) -> None:
        t = np.asarray(self.t, dtype=np.float64)
        values = np.asarray(self.values, dtype=np.float64)
        names = tuple(self.names)
        shape = (len(t) if t.ndim == 1 else -1, len(names))
        if values.ndim == 1 and len(names) == 1:
            values = values[:, None]
        flags, inputs = np.asarray(self.flags), np.asarray(self.inputs, dtype=np.float64)
        if flags.size == 0:
            flags = np.zeros(values.shape, dtype=np.int8)
        elif flags.dtype == np.bool_:
            flags = np.where(flags, Status.USED, Status.MISSING)
        if flags.ndim == 1 and len(names) == 1:
            flags = flags[:, None]
        if inputs.size == 0:
            inputs = np.zeros((max(shape[0], 0), 0))
        elif inputs.ndim == 1:
            inputs = inputs[:, None]
        arrival = None if self.arrival is None else np.asarray(self.arrival, dtype=np.float64)
        if arrival is not None and arrival.ndim == 1 and len(names) == 1:
            arrival = arrival[:, None]
        sigma = None if self.sigma is None else np.asarray(self.sigma, dtype=np.float64)
        if sigma is not None and sigma.ndim == 1 and len(names) == 1:
            sigma = sigma[:, None]
        self._check(t, values, names, flags, inputs, arrival, sigma)
        flags = np.where((flags == Status.USED) & ~np.isfinite(values), Status.NOT_FINITE, flags).astype(np.int8)
        for name, value in zip(
            ("t", "values", "names", "flags", "inputs", "arrival", "sigma"),
            (t, values, names, flags, inputs, arrival, sigma),
        ):
            object.__setattr__(self, name, value)

    @staticmethod
    def _check(
        t: Array,
        values: Array,
        names: tuple[str, ...],
        flags: NDArray,
        inputs: Array,
        arrival: Array | None,
        sigma: Array | None,
    ) -> None:
        faults = Faults()
        where = "measurements"
        if t.ndim != 1 or len(t) == 0:
            faults.add("the clock is not a line of times.", where=f"{where}.t", expected="(N,)", found=f"{t.shape}")
            faults.raise_if_any(DataError)
        shape = (len(t), len(names))
        for name, array in (("values", values), ("flags", flags), ("arrival", arrival), ("sigma", sigma)):
            if array is not None and array.shape != shape:
                faults.add("wrong shape.", where=f"{where}.{name}", expected=f"{shape}", found=f"{array.shape}")
        if inputs.ndim != 2 or len(inputs) != len(t):
            faults.add("wrong shape.", where=f"{where}.inputs", expected=f"({len(t)}, p)", found=f"{inputs.shape}")
        elif not np.isfinite(inputs).all():
            first = int(np.argmin(np.isfinite(inputs).all(axis=1)))
            faults.add(f"the inputs are not finite at sample {first}.", where=f"{where}.inputs")
        if len(set(names)) != len(names):
            faults.add("two outputs have one name.", where=f"{where}.names", found=", ".join(names))
        faults.extend(clock_faults(t, f"{where}.t"))
        if sigma is not None and sigma.shape == shape and (bad := ~np.isnan(sigma) & ~usable_deviations(sigma)).any():
            k, j = (int(i) for i in np.argwhere(bad)[0])
            faults.add(
                f"a deviation of '{names[j]}' is not usable.",
                where=f"{where}.sigma",
                expected="a positive number, or NaN for the sensor's own",
                found=f"{sigma[k, j]:g} at sample {k}",
            )
        if not faults and arrival is not None and (arrival < t[:, None]).any():
            k, j = (int(i) for i in np.argwhere(arrival < t[:, None])[0])
            faults.add(
                f"a reading of '{names[j]}' arrives before it is taken.",
                where=f"{where}.arrival",
                expected=f"{t[k]:.6g} s or later",
                found=f"{arrival[k, j]:.6g} s at sample {k}",
            )
        faults.raise_if_any(DataError)

    def __len__(self) -> int:
        return len(self.t)

    def select(self, names: Sequence[str]) -> Measurements:
        """The columns of these outputs, in this order; a name that is not measured is refused."""
        missing = [n for n in names if n not in self.names]
        if missing:
            raise DataError(
                [Fault(f"there is no output '{n}'.", "measurements", hint=did_you_mean(n, self.names)) for n in missing]
            )
        at = [self.names.index(n) for n in names]
        arrival, sigma = (None if x is None else x[:, at] for x in (self.arrival, self.sigma))
        return replace(
            self,
            values=self.values[:, at],
            names=tuple(names),
            flags=self.flags[:, at],
            arrival=arrival,
            sigma=sigma,
        )

    def first(self, count: int) -> Measurements:
        """The first `count` rows."""
        return self.between(0, count)

    def between(self, begin: int, end: int) -> Measurements:
        """The rows from `begin` on, before `end`."""
        rows = slice(begin, end)
        arrival, sigma = (None if x is None else x[rows] for x in (self.arrival, self.sigma))
        return replace(
            self,
            t=self.t[rows],
            values=self.values[rows],
            flags=self.flags[rows],
            inputs=self.inputs[rows],
            arrival=arrival,
            sigma=sigma,
        )

    def without_repeats(self, most: int | None) -> Measurements:
        """With readings FROZEN that repeat one number more often than that; as they are for None."""
        return self if most is None else self.flagged(frozen(self.values, most), Status.FROZEN)

    def flagged(self, mask: NDArray[np.bool_], status: Status) -> Measurements:
        """A copy in which the readings of `mask` (N, m) that were usable carry `status`."""
        return replace(self, flags=np.where(mask & (self.flags == Status.USED), status, self.flags).astype(np.int8))

    @classmethod
    def from_experiment(
        cls, experiment: Experiment, names: Sequence[str], also: ArrayLike = (), same: float = SAME_STAMP_S
    ) -> Measurements:
        """Channels on the union of their clocks; a channel without a reading at a stamp is MISSING there.

        Stamps of different channels that are at most `same` seconds apart are one. `also`: further times that get a row, where they are
        between the first and the last reading. A channel "name.sigma" on the clock of "name" holds the deviations of its readings.
        """
        channels = [experiment[n] for n in names]
        faults = [f for c in channels for f in clock_faults(c.t, f"{experiment.name}, channel '{c.name}'", same)]
        if faults:
            raise DataError(faults)
        t = np.unique(np.concatenate([c.t for c in channels])) if channels else np.zeros(0)
        more = np.asarray(also, dtype=np.float64)
        more = more[(more > t[0] + same) & (more < t[-1] - same)] if len(t) else t
        t = np.unique(np.concatenate([t, more]))
        t = t[np.diff(t, prepend=-np.inf) > same]
        values = np.full((len(t), len(channels)), np.nan)
        flags, sigma = np.full(values.shape, Status.MISSING, dtype=np.int8), np.full(values.shape, np.nan)
        for j, c in enumerate(channels):
            rows = np.searchsorted(t, c.t, side="right") - 1
            values[rows, j] = c.values
            flags[rows, j] = Status.USED
            if (own := f"{c.name}{OWN_DEVIATION}") in experiment:
                if not np.array_equal(experiment[own].t, c.t):
                    where = f"{experiment.name}, channel '{own}'"
                    raise DataError("it has another clock.", where=where, expected=f"the clock of '{c.name}'")
                sigma[rows, j] = experiment[own].values
        return cls(t, values, tuple(names), flags, sigma=None if np.isnan(sigma).all() else sigma)


def clock_faults(t: Array, where: str, least: float = 0.0) -> list[Fault]:
    """What keeps `t` from being a clock: stamps that are not finite, repeat (to within `least`), or run backwards."""
    if not np.isfinite(t).all():
        return [Fault("the clock holds times that are not finite.", where)]
    steps = np.diff(t)
    if (steps > least).all():
        return []
    k = int(np.argmax(steps <= least))
    return [
        Fault(
            "the clock stands still or runs backwards.",
            where,
            "increasing times",
            f"{t[k]:.6g} s then {t[k + 1]:.6g} s at sample {k + 1}",
        )
    ]


def usable_deviations(sigma: Array) -> NDArray[np.bool_]:
    """Which of these are standard deviations: finite and positive."""
    return np.isfinite(sigma) & (sigma > 0.0)


def frozen(values: ArrayLike, repeats: int) -> NDArray[np.bool_]:
    """Which readings (N, m) repeat the one before for the `repeats`-th time or more; NaN is no reading and is passed over.

    Looks backwards only, so a running program may use it. A coarse encoder at rest repeats itself honestly: choose
    `repeats` longer than its longest pause without a fault.
    """
    v = np.asarray(values, dtype=np.float64)
    if repeats < 1:
        raise DataError(
            "the number of repeats is not usable.", where="frozen", expected="1 or more", found=f"{repeats}"
        )
    columns = v[:, None] if v.ndim == 1 else v
    hangs = np.zeros(columns.shape, dtype=np.bool_)
    for j, column in enumerate(columns.T):
        heard = np.flatnonzero(~np.isnan(column))
        number, readings = np.arange(len(heard)), column[heard]
        changed = np.append(True, readings[1:] != readings[:-1])[: len(heard)]
        hangs[heard, j] = number - np.maximum.accumulate(np.where(changed, number, 0)) >= repeats
    return hangs.reshape(v.shape)
