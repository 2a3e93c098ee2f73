"""Channels of a machine's own sensors and drives, read as the quantities that a motion is made of.

=============================================================== ==========================
on the machine                                                  is
=============================================================== ==========================
a sensor of kind coordinate or rate on coordinate c             q.c, qd.c
a drive on coordinate c                                         force.c
a gyroscope on a free base, with all three axes                 base.omega.x …
an accelerometer at the origin of a free base, three axes       base.acceleration.x …
a velocity sensor there, along axes of its own                  base.velocity.x …
=============================================================== ==========================

Channels that have these names already stay as they are. Of two sensors of one quantity the one with less noise is taken.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from veridyn.model.experiment import Channel, Experiment
from veridyn.model.load import Drive
from veridyn.model.machine_parts import MachineParts
from veridyn.model.place import Marker, frame
from veridyn.model.sensor import Sensor

Array = NDArray[np.float64]
OF_BASE = {"gyroscope": "omega", "accelerometer": "acceleration", "velocity": "velocity"}


def with_sensor_channels(tree: MachineParts, log: Experiment) -> Experiment:
    """The same log with what the sensors and drives of the machine recorded under the names that a motion is made from."""
    found: dict[str, Channel] = {}
    for sensor in sorted(tree.sensors, key=lambda s: s.variance):
        if all(name in log for name in sensor.channels(3)):
            for channel in _readings(tree, sensor, log):
                found.setdefault(channel.name, channel)
    for load in tree.loads:
        if isinstance(load, Drive) and load.name in log:
            given = log[load.name]
            name = f"force.{load.coordinate}"
            before = found.get(name)
            values = given.values if before is None else before.values + given.values  # several drives act together
            found[name] = Channel(name, given.t, values, given.unit)
    return log.replacing(*(channel for name, channel in found.items() if name not in log))


def _readings(tree: MachineParts, sensor: Sensor, log: Experiment) -> Iterator[Channel]:
    """What a sensor measures of the motion itself; nothing where it measures something else."""
    names = sensor.channels(3)
    t = log[names[0]].t - sensor.delay
    if sensor.kind in ("coordinate", "rate"):
        values = log[names[0]].values - sensor.bias
        symbol = "q" if sensor.kind == "coordinate" else "qd"
        yield Channel(f"{symbol}.{sensor.on}", t, np.unwrap(values) if sensor.turns else values, log[names[0]].unit)
        return
    axes = _axes_on_base(tree, sensor)
    if axes is None or sensor.components(3) != ("x", "y", "z") or any(len(log[n]) != len(t) for n in names):
        return
    values = (np.column_stack([log[n].values for n in names]) - sensor.bias) @ axes
    for k, axis in enumerate("xyz"):
        yield Channel(f"base.{OF_BASE[sensor.kind]}.{axis}", t, values[:, k], log[names[k]].unit)


def _axes_on_base(tree: MachineParts, sensor: Sensor) -> Array | None:
    """The sensor's axes as rows, in the frame of a free base whose own motion it measures; None where it does not."""
    if tree.base != "free" or sensor.kind not in OF_BASE:
        return None
    place = sensor.on if isinstance(sensor.on, Marker) else Marker(sensor.on, (0.0, 0.0, 0.0))
    away = sensor.kind != "gyroscope" and any(place.at)
    if place.body != tree.root or away or not sensor.has_own_axes:
        return None
    return np.array(frame(place)) if place.axis else np.eye(3)
