"""Readings of sensors, ready for a filter: one row per time stamp, one column per output, and a word on every reading.

A reading that is not usable stays in the table and says why (:class:`Status`); a filter never guesses in its place.
Sensors on clocks of their own share the union of their stamps, so that nothing is resampled. :func:`measurements_of` makes this table of
the channels of a log, each reading at the time it was made.

A channel "<sensor>.available", or "<output>.available", is 0 while a sensor cannot be used. Such a flag acts from its own sample to the
next, on the clock of the log. A reading that is not available stays in the table as MISSING: the state and its covariance are carried on
to its time all the same, and nothing corrects them there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.arguments import as_array, checked, checked_record
from veridyn.arrays import Array
from veridyn.errors import DataError, DataWarning, Fault, Faults, did_you_mean, warn
from veridyn.mechanics.formulation import MachineModel, Readings
from veridyn.model.experiment import Channel, Experiment
from veridyn.signals.findings import MILLISECONDS, SLOWEST_CLOCK, coarse_fault, slow_clock

Codes = NDArray[np.int8]
InputHold = Literal["zero", "linear"]
OWN_DEVIATION = ".sigma"  # ending of a channel that holds the deviation of each reading
SAME_STAMP_S = 1e-9  # s: stamps of two channels that are closer are one, rounding is not a step
AVAILABLE = ".available"
MOST_STEPS = 100  # of the integration from one reading to the next, which are a second where no step is given (chosen)


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


@checked_record
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
        return self.rows(slice(begin, end))

    def rows(self, rows: slice | NDArray[np.bool_]) -> Measurements:
        """Some of the rows."""
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


@checked
def frozen(values: ArrayLike, repeats: int) -> NDArray[np.bool_]:
    """Which readings (N, m) repeat the one before for the `repeats`-th time or more; NaN is no reading and is passed over.

    Looks backwards only, so a running program may use it. A coarse encoder at rest repeats itself honestly: choose
    `repeats` longer than its longest pause without a fault.
    """
    v = as_array(values, "frozen, values")
    if v.ndim not in (1, 2):
        as_array(v, "frozen, values", (None, None))
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


class Sensing(Protocol):
    """What a log is read for: a machine with its sensors and inputs, as filters see it."""

    @property
    def model(self) -> MachineModel: ...
    @property
    def table(self) -> Readings: ...
    @property
    def inputs(self) -> tuple[str, ...]: ...
    @property
    def longest(self) -> float: ...
    def later(self, inputs: Array, dt: Array, /) -> Array | None: ...


def measurements_of(system: Sensing, log: Experiment, hold: InputHold = "zero") -> Measurements:
    """The channels of the system's sensors on the union of their clocks, each at the time it speaks of.

    With `hold` "zero" an input acts from its own stamp to its next one, as what a controller puts out: where it changes between readings
    there is a row without any. With "linear" it runs straight from sample to sample, as a measured force does, and acts on each interval
    between readings by its mean there. A channel "name.sigma" has the deviations of a sensor's readings, "name.available" is 0 where there
    are none to use. Prescribed coordinates are where they are at the time of a reading: with "zero"
    they go on from their last sample with its q̈. Readings too slow to follow a motion are a DataWarning, and a DataError where each would
    take more than `MOST_STEPS` steps of the integration: milliseconds are read as seconds, as a rule.
    """
    table, faults = system.table, Faults()
    log = _with_axes(log, table)
    delays = np.array([table.sensors[k].delay for k in table.owner])
    moved = {}
    for name, unit, delay in zip(table.names, table.units, delays.tolist()):
        channel = log[name]
        if channel.unit != unit:
            faults.add(
                "its unit is not that of the sensor.",
                where=f"{log.name}, channel '{name}'",
                expected=unit,
                found=channel.unit,
                hint="Convert it where the log is loaded.",
            )
        moved[name] = Channel(name, channel.t - delay, channel.values, unit)
        if (own := f"{name}{OWN_DEVIATION}") in log:
            moved[own] = Channel(own, log[own].t - delay, log[own].values, unit)
    faults.raise_if_any(DataError)
    known = [log[name] for name in system.inputs]
    for fault in (coarse_fault(c.name, c.values, c.unit) for c in known):
        if fault is not None:
            warn(DataWarning, replace(fault, where=f"{log.name}, {fault.where}"))
    changes = [c.t[1:][c.values[1:] != c.values[:-1]] for c in known] if hold == "zero" else []
    readings = Measurements.from_experiment(Experiment(moved, log.name), table.names, np.concatenate([*changes, []]))
    _check_clock(system, readings.t, log.name)
    first = min(float(log[name].t[0]) for name in table.names if len(log[name]))
    held, ages = np.zeros((len(readings), len(known))), np.zeros(len(readings))
    for j, channel in enumerate(known):
        if len(channel) == 0 or channel.t[0] > first:
            raise DataError("the input starts after the first reading.", where=f"{log.name}, channel '{channel.name}'")
        if hold == "linear":
            placed = channel.name.startswith(("q.", "qd."))  # of a prescribed coordinate
            held[:, j] = np.interp(readings.t, channel.t, channel.values) if placed else _means(channel, readings.t)
            continue
        acting = np.maximum(np.searchsorted(channel.t, readings.t + SAME_STAMP_S, side="right") - 1, 0)
        held[:, j] = channel.values[acting]  # where a delay looks back to before it: as it begins
        if channel.name.startswith("q."):
            ages = np.maximum(readings.t - channel.t[acting], 0.0)
    if system.model.prescribed and known and hold == "zero":
        held = np.asarray(system.later(held, ages))
    arrival = readings.t[:, None] + delays if delays.any() else None
    return replace(_muted(system, log, readings, delays), inputs=held, arrival=arrival)


def _with_axes(log: Experiment, table: Readings) -> Experiment:
    """A log with the one output of a planar gyroscope under its name NAME.z, where it stands under that of the sensor alone."""
    own = {table.names[j]: s.name for j, s in enumerate(table.sensors[k] for k in table.owner) if s.kind == "gyroscope"}
    old = {name: sensor for name, sensor in own.items() if name == f"{sensor}.z" and name not in log and sensor in log}
    if not old:
        return log
    for name, sensor in old.items():
        fault = Fault(
            f"'{sensor}' is read as '{name}'.", log.name, hint="Outputs of a gyroscope are named by their axes."
        )
        warn(DataWarning, fault)
    new = {
        f"{name}{s}": log[f"{old[name]}{s}"] for name in old for s in ("", OWN_DEVIATION) if f"{old[name]}{s}" in log
    }
    return log.replacing(*(Channel(name, c.t, c.values, c.unit) for name, c in new.items()))


def _muted(system: Sensing, log: Experiment, readings: Measurements, delays: Array) -> Measurements:
    """The readings with those MISSING that the log says were not available."""
    table, off = system.table, np.zeros(readings.values.shape, dtype=np.bool_)
    for j, (name, k) in enumerate(zip(table.names, table.owner, strict=True)):
        gone = muted(log, name, table.sensors[k].name)
        if gone.any():
            rows = np.searchsorted(readings.t, log[name].t[gone] - delays[j], side="right") - 1
            off[rows, j] = True
    flags = np.where(off, Status.MISSING, readings.flags).astype(np.int8)
    return replace(readings, flags=flags)


def _means(channel: Channel, t: Array) -> Array:
    """The mean (N,) of a channel, straight between its samples, from each time to the next; after the last time, its value there."""
    own = np.union1d(channel.t, t)
    values = np.interp(own, channel.t, channel.values)
    area = np.concatenate([[0.0], np.cumsum(0.5 * (values[1:] + values[:-1]) * np.diff(own))])
    at = np.searchsorted(own, t)
    means = np.diff(area[at]) / np.diff(t)
    return np.append(means, values[at[-1]])


def first_positions(system: Sensing, log: Experiment) -> dict[str, float]:
    """The first readings of the sensors of independent coordinates, by coordinate: where the machine is when the log begins."""
    found: dict[str, float] = {}
    for sensor in sorted(system.table.sensors, key=lambda s: s.variance):
        if sensor.kind == "coordinate" and sensor.on in system.model.names and str(sensor.on) not in found:
            values = log[sensor.name].values
            usable = values[np.isfinite(values)]
            if len(usable):
                found[str(sensor.on)] = float(usable[0]) - sensor.bias
    return found


def _check_clock(system: Sensing, t: Array, name: str) -> None:
    """Say that readings are too slow before anything is integrated between them."""
    pause = float(np.median(np.diff(t))) if len(t) > 2 else 0.0
    if pause * SLOWEST_CLOCK <= 1.0:
        return
    fault = slow_clock(name, 1.0 / pause)
    steps = pause / system.longest
    if steps < MOST_STEPS:
        warn(DataWarning, fault)
        return
    raise DataError(
        replace(
            fault,
            found=f"{fault.found}: a reading every {pause:.3g} s, {steps:.3g} steps of {system.longest:.3g} s of the integration",
            hint=f"{MILLISECONDS} If it is not, give a longer step of the integration (step), above {pause / MOST_STEPS:.3g} s.",
        )
    )


def flag_channels(log: Experiment, output: str, sensor: str) -> list[Channel]:
    """The availability flags that concern an output of a sensor; for a sensor of one output there is one name for both."""
    return [log[name] for name in dict.fromkeys(f"{x}{AVAILABLE}" for x in (output, sensor)) if name in log]


def muted(log: Experiment, output: str, sensor: str) -> NDArray[np.bool_]:
    """Which readings (N,) of a channel are not available; before the first sample of a flag none are."""
    t = log[output].t
    out = np.zeros(len(t), dtype=np.bool_)
    for flag in flag_channels(log, output, sensor):
        _check(flag, log.name)
        at = np.searchsorted(flag.t, t + SAME_STAMP_S, side="right") - 1
        out |= (at < 0) | (flag.values[np.maximum(at, 0)] == 0.0) if len(flag) else True
    return out


def _check(flag: Channel, log: str) -> None:
    odd = np.flatnonzero(~np.isin(flag.values, (0.0, 1.0)))
    if len(odd):
        k = int(odd[0])
        raise DataError(
            "it is no flag.",
            where=f"{log}, channel '{flag.name}'",
            expected="0 where the sensor is not available, 1 where it is",
            found=f"{flag.values[k]:g} at {flag.t[k]:.6g} s",
            hint="Compare a quality number with its limit where the log is loaded.",
        )
    if (np.diff(flag.t) < 0.0).any():
        raise DataError("its clock runs backwards.", where=f"{log}, channel '{flag.name}'")
