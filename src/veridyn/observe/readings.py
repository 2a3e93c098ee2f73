"""From the channels of a log to the readings that a filter takes: one table, each reading at the time it was made."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from veridyn.errors import DataError, Fault, Faults
from veridyn.model.experiment import Channel, Experiment
from veridyn.observe.machine import MachineSystem
from veridyn.observe.measurements import SAME, Measurements


def measurements_of(system: MachineSystem, log: Experiment) -> Measurements:
    """The channels of the system's sensors on the union of their clocks, each at the time it speaks of.

    An input acts from its own stamp to its next one: where it changes between readings there is a row without any.
    """
    table, faults = system.table, Faults()
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
    faults.raise_if_any(DataError)
    known = [log[name] for name in system.inputs]
    changes = [c.t[1:][c.values[1:] != c.values[:-1]] for c in known]
    readings = Measurements.from_experiment(Experiment(moved, log.name), table.names, np.concatenate([*changes, []]))
    first = min(float(log[name].t[0]) for name in table.names if len(log[name]))
    held = np.zeros((len(readings), len(known)))
    for j, channel in enumerate(known):
        if len(channel) == 0 or channel.t[0] > first:
            raise DataError(
                Fault("the input starts after the first reading.", where=f"{log.name}, channel '{channel.name}'")
            )
        acting = np.searchsorted(channel.t, readings.t + SAME, side="right") - 1
        held[:, j] = channel.values[np.maximum(acting, 0)]  # where a delay looks back to before it: as it begins
    arrival = readings.t[:, None] + delays if delays.any() else None
    return replace(readings, inputs=held, arrival=arrival)
