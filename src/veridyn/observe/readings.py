"""From the channels of a log to the readings that a filter takes: one table, each reading at the time it was made.

A channel "<sensor>.available", or "<output>.available", is 0 while a sensor cannot be used. Such a flag acts from its own sample to the
next, on the clock of the log. A reading that is not available stays in the table as MISSING: the state and its covariance are carried on
to its time all the same, and nothing corrects them there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import DataError, DataWarning, Fault, Faults, warn
from veridyn.mechanics.formulation import Readings
from veridyn.model.experiment import Channel, Experiment
from veridyn.observe.machine import MachineSystem
from veridyn.observe.measurements import OWN_DEVIATION, SAME_STAMP_S, Measurements, Status
from veridyn.observe.settings import InputHold
from veridyn.signals.findings import MILLISECONDS, SLOWEST_CLOCK, coarse_fault, slow_clock

AVAILABLE = ".available"
MOST_STEPS = 100  # of the integration from one reading to the next, which are a second where no step is given (chosen)


def measurements_of(system: MachineSystem, log: Experiment, hold: InputHold = "zero") -> Measurements:
    """The channels of the system's sensors on the union of their clocks, each at the time it speaks of.

    With `hold` "zero" an input acts from its own stamp to its next one, as what a controller puts out: where it changes between readings
    there is a row without any. With "linear" it runs straight from sample to sample, as a measured force does, and acts on each interval
    between readings by its mean there. A channel "name.sigma" has the deviations of a sensor's readings, "name.available" is 0 where there
    are none to use (:mod:`veridyn.observe.readings`). Prescribed coordinates are where they are at the time of a reading: with "zero"
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


def _muted(system: MachineSystem, log: Experiment, readings: Measurements, delays: Array) -> Measurements:
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


def first_positions(system: MachineSystem, log: Experiment) -> dict[str, float]:
    """The first readings of the sensors of independent coordinates, by coordinate: where the machine is when the log begins."""
    found: dict[str, float] = {}
    for sensor in sorted(system.table.sensors, key=lambda s: s.variance):
        if sensor.kind == "coordinate" and sensor.on in system.model.names and str(sensor.on) not in found:
            values = log[sensor.name].values
            usable = values[np.isfinite(values)]
            if len(usable):
                found[str(sensor.on)] = float(usable[0]) - sensor.bias
    return found


def _check_clock(system: MachineSystem, t: Array, name: str) -> None:
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
